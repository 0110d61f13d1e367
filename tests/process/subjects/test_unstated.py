"""Supervisors that keep limits of their own and do not state them: no demand follows from the defaults of the kit."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.harness._limit_binding import UnstatedLimitResults
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import Command, Driven, Function, as_subject, reference_supervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations, judge_play
from pytest_agentproc.vocabulary import LimitsRequest, Policy, mark_unstated_limits
from tests.bundled import load_all_bundled, load_bundled
from tests.process.stand import is_gone
from tests.process.subjects.acp_client import Acp
from tests.process.subjects.test_driven import Pi

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

SILENCE = {"inactivity_timeout": 60}
TIMES = {"prompt_timeout": 10, "close_grace": 2, "kill_grace": 2}


def build_supervisor(*signals: signal.Signals, grace: float = 0) -> Any:
    """Make a supervisor that ends a silent agent by these signals, with a grace between them."""

    async def supervise(order: RunRequest) -> dict[str, Any]:
        async with await anyio.open_process(order.argv, env=order.env, start_new_session=True) as agent:
            assert agent.stdout is not None
            await anyio.sleep(60)
            for place, number in enumerate(signals):
                agent.send_signal(number)
                with anyio.move_on_after(grace if place < len(signals) - 1 else None):
                    await agent.wait()
            return {"outcome": "inactive", "elapsed": 60, "exit_code": 124}

    return supervise


def list_verdicts(runner: ScenarioRunner, name: str, supervise: Any, **limits: float) -> dict[str, str]:
    """Judge it, check by check."""
    rows = judge_all_expectations(runner.play(load_bundled(name), Function(supervise, limits={**SILENCE, **limits})))
    return {row.key: row.verdict.value for row in rows}


AT_ONCE = build_supervisor(signal.SIGKILL)
SHORT = build_supervisor(signal.SIGTERM, signal.SIGKILL, grace=0.5)


def test_a_kill_without_a_stated_grace_is_judged_by_nobody(runner: ScenarioRunner) -> None:
    """A supervisor may give no grace; a supervisor that states a grace owes it."""
    name = "silent-past-the-limit"
    assert list_verdicts(runner, name, AT_ONCE, kill_grace=2)["signals"] == "failed"
    assert list_verdicts(runner, name, AT_ONCE, kill_grace=0)["signals"] == "passed"
    seen = list_verdicts(runner, name, AT_ONCE)
    assert (seen["signals"], seen["outcome"], seen["elapsed"], seen["leaks"]) == ("not applicable", *["passed"] * 3)


def test_an_own_grace_that_is_not_stated_is_not_the_default(runner: ScenarioRunner) -> None:
    """Half a second between TERM and KILL is wrong for two seconds, and right for half a second."""
    name = "silent-and-ignores-term[raw]"
    assert list_verdicts(runner, name, SHORT, kill_grace=2)["signals"] == "failed"
    assert set(list_verdicts(runner, name, SHORT, kill_grace=0.5).values()) == {"passed"}
    assert list_verdicts(runner, name, SHORT)["signals"] == "not applicable"
    rows = judge_all_expectations(runner.play(load_bundled(name), Function(SHORT, limits=SILENCE)))
    assert {row.seen for row in rows if row.unstated} == {"state limits={'kill_grace': ...} to have this judged"}


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_no_unstated_limit_touches_is_judged(runner: ScenarioRunner) -> None:
    """A wrong outcome is red, and so is an agent that is left."""
    started = []

    async def wrong(order: RunRequest) -> str:
        started.append((await anyio.open_process(order.argv, env=order.env, start_new_session=True)).pid)
        await anyio.sleep(60)
        return "completed"

    seen = list_verdicts(runner, "silent-past-the-limit", wrong)
    assert (seen["outcome"], seen["leaks"]) == ("failed", "failed")
    assert all(map(is_gone, started))


async def quit_at_timeout(order: RunRequest) -> dict[str, Any]:
    """Ask an ACP agent once. When the time is over end it without a cancel, and drop what else there is to ask."""
    prompt = {"sessionId": "sess_1", "prompt": [{"type": "text", "text": order.drive[0].value}]}
    calls = [("initialize", {"protocolVersion": 1}), ("session/new", {"cwd": "/", "mcpServers": []})]
    async with await anyio.open_process(order.argv, env=order.env, start_new_session=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        for number, (method, params) in enumerate([*calls, ("session/prompt", prompt)]):
            call = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await agent.stdin.send(f"{json.dumps(call)}\n".encode())
            if method != "session/prompt":
                await agent.stdout.receive()
        await anyio.sleep(order.policy.prompt_timeout or 0)
        agent.terminate()
        await agent.wait()
    return {"turns": [{"outcome": "timed_out", "elapsed": order.policy.prompt_timeout}]}


@pytest.mark.parametrize("name", ["acp-session-timeout-cancels", "session-timeout-leaves-the-queue[acp]"])
def test_a_dropped_prompt_is_no_matter_of_a_grace(runner: ScenarioRunner, name: str) -> None:
    """It sends no cancel, so no time after a cancel explains why it ended its agent or lost the other prompts."""
    subject = Function(quit_at_timeout, limits=TIMES, dialects=["acp"], runs=False, sessions=["prompt", "queue"])
    rows = judge_all_expectations(runner.play(load_bundled(name), subject))
    seen = {row.key: row.verdict.value for row in rows}
    assert (seen["turns.1.outcome"], seen["turns.2.outcome"], seen["turns.2.text"]) == ("passed", "failed", "failed")
    assert choose_overall_verdict(rows) is Verdict.FAILED


@pytest.mark.parametrize("name", ["acp-session-timeout-cancels", "session-timeout-leaves-the-queue[acp]"])
def test_an_answer_to_an_undelivered_prompt_is_no_matter_of_a_grace(runner: ScenarioRunner, name: str) -> None:
    """It calls the prompt completed that no agent got, and has no words that could be wrong."""

    async def complete_all(order: RunRequest) -> dict[str, Any]:
        given = await quit_at_timeout(order)
        return {"turns": [*given["turns"], *({"outcome": "completed"} for _ in order.drive)]}

    subject = Function(complete_all, limits=TIMES, dialects=["acp"], runs=False, sessions=["prompt", "queue"])
    rows = {row.key: row for row in judge_all_expectations(runner.play(load_bundled(name), subject))}
    seen = rows["turns.2.outcome"]
    assert (seen.verdict, seen.seen) == (Verdict.FAILED, "completed, and no agent got this prompt")


ACP_TIMES = {"prompt_timeout": 10, "close_grace": 2, "kill_grace": 2}
ENDLESS = [
    ("acp-session-question-is-never-answered", "permission_timeout", Driven, Acp, ACP_TIMES),
    ("session-callers-cancel-is-not-acknowledged[acp]", "cancel_grace", Driven, Acp, ACP_TIMES),
    ("silent-and-ignores-term[raw]", "kill_grace", Function, build_supervisor(signal.SIGTERM), SILENCE),
]


def find_reason(runner: ScenarioRunner, name: str, subject: Any) -> str:
    """Give why a scenario is not applicable."""
    try:
        judgement = judge_play(runner.play(load_bundled(name), subject))
    except NotApplicable as error:
        return str(error)
    assert judgement.verdict is Verdict.NOT_APPLICABLE
    return judgement.reason


@pytest.mark.parametrize(("name", "limit", "make", "supervisor", "limits"), ENDLESS, ids=[case[1] for case in ENDLESS])
def test_a_wait_without_end_names_the_limit_that_is_not_stated(
    runner: ScenarioRunner, name: str, limit: str, make: Any, supervisor: Any, limits: dict[str, float]
) -> None:
    """A deadlock alone does not say that a limit, or the statement that there is none, is missing."""
    rows = judge_all_expectations(runner.play(load_bundled(name), make(supervisor, limits=limits)))
    hint = (
        f"it states no {limit}, which ends this wait for the kit's own supervisor:\n"
        f"state limits={{'{limit}': 30}} if it waits 30 s at most, and None if it waits for ever"
    )
    assert [row.hint for row in rows if row.hint] == [hint]
    assert choose_overall_verdict(rows) is Verdict.FAILED
    assert limit in find_reason(runner, name, make(supervisor, limits={**limits, limit: None}))


def test_a_wait_that_a_missing_limit_would_end_is_not_applicable_and_names_it(runner: ScenarioRunner) -> None:
    """A supervisor that names no prompt_timeout has none. The reason was a bare deadlock."""
    limits = {"close_grace": 2, "kill_grace": 2}
    reason = find_reason(runner, "acp-session-timeout-cancels", Driven(Acp, limits=limits))
    assert reason.endswith("; it has no prompt_timeout, so nothing ends this wait")


class Impatient(Pi):
    """A client that gives a cancelled agent ten seconds, and then kills it."""

    is_cancelled = is_waiting = False

    async def prompt(self, text: str) -> Any:
        """Ask; a turn that the kill cuts off was cancelled."""
        self.is_waiting = True
        try:
            given = await super().prompt(text)
            self.is_waiting = False
        except anyio.EndOfStream:
            if self.is_cancelled:
                self.is_cancelled = False
                return "cancelled"
            raise
        return given

    async def cancel(self) -> None:
        """Abort, and kill an agent that has not acknowledged soon."""
        self.is_cancelled = True
        await super().cancel()
        await anyio.sleep(10)
        if self.is_waiting:
            self.agent.kill()


TALK = """
scenario: x
agent: {dialect: pi, mode: rpc}
drive: [{prompt: slow}, {cancel: {}, after: 5s}, {wait_for: turn 1}, {prompt: next}]
script:
  - wait_for: prompt 1
  - wait_for: cancel
  - silence: SILENCE
  - acknowledge: cancel
  - wait_for: prompt 2
  - answer: done
expect: {turns: [{outcome: cancelled}, {outcome: completed}]}
"""


@pytest.mark.parametrize(
    ("silence", "limits", "observed"),
    [
        ("cancel_grace / 4", {}, "not applicable"),
        ("cancel_grace / 4", {"cancel_grace": 10}, "passed"),
        ("cancel_grace / 4", {"cancel_grace": 300}, "failed"),
        ("1s", {}, "passed"),
    ],
)
def test_a_script_may_use_the_default_where_the_verdict_cannot_be_wrong(
    runner: ScenarioRunner, silence: str, limits: dict[str, float], observed: str
) -> None:
    """An agent that takes a quarter of the default is cut off by a shorter grace, and by no other."""
    scenario = loads(TALK.replace("SILENCE", silence))
    rows = judge_all_expectations(
        runner.play(scenario, Driven(Impatient, limits={"close_grace": 2, "kill_grace": 2, **limits}))
    )
    assert {row.key: row.verdict.value for row in rows}["turns.2.outcome"] == observed


@pytest.mark.once
@pytest.mark.slow
def test_no_value_of_an_unstated_limit_is_red() -> None:
    """The reference supervisor is right under every value. Only noise counts a line that the end of an agent cut."""
    red = set()
    for scenario in (one for one in load_all_bundled() if not one.parts and one.level != "info"):
        limits = dict(scenario.policy)
        policy = mark_unstated_limits(Policy.for_dialect(scenario.dialect, **limits), limits)
        try:
            unstated = UnstatedLimitResults.for_play(scenario.bind(policy))
        except NotApplicable:
            continue
        assert unstated is not None
        for name, played in ((name, play) for name, plays in unstated.varied_results.items() for play in plays):
            rows = judge_all_expectations(replace(played, unstated=unstated))
            failed = {row.key for row in rows if row.verdict is Verdict.FAILED and row.level != "info"}
            red |= {(scenario.id, name, key) for key in failed - {"noise"}}
    assert red == set()


def test_the_reference_supervisor_states_all_its_limits(runner: ScenarioRunner) -> None:
    """So does an object that gives a whole Policy; a program states its command line and its file."""
    assert runner.play(load_bundled("silent-and-ignores-term[raw]"), reference_supervisor()).unstated is None
    told = Command(["x", "{agent}", "{kill_grace}"], limits={"close_grace": 1})
    policy = told.policy(LimitsRequest({}, "raw"))
    assert policy.unstated & {"kill_grace", "close_grace", "linger_grace"} == {"linger_grace"}


def test_every_defect_of_a_bare_function_is_not_excused(runner: ScenarioRunner) -> None:
    """A supervisor that states nothing and loses the text is red."""

    async def loses(order: RunRequest) -> dict[str, Any]:
        completed = await anyio.run_process(order.argv, env=order.env)
        return {"outcome": "completed" if completed.returncode == 0 else "failed", "text": ""}

    rows = judge_all_expectations(
        runner.play(loads("scenario: x\nagent: raw\nscript: [{say: a}]\nexpect: {text: a}\n"), Function(loses))
    )
    assert choose_overall_verdict(rows) is Verdict.FAILED


class SubjectWithMapping:
    """A subject that is no function, and states one limit in a mapping."""

    name = "mapped"
    keeps_artifacts = holds_sessions = False

    def policy(self, _request: LimitsRequest) -> dict[str, float]:
        """State one limit."""
        return {"kill_grace": 5}

    async def run(self, _order: RunRequest) -> None:
        """Do nothing."""


def test_an_object_may_state_some_limits_only() -> None:
    """A whole Policy states all limits, a mapping only its own."""
    policy = as_subject(SubjectWithMapping()).policy(LimitsRequest({}, "raw"))
    assert (policy.kill_grace, policy.inactivity_timeout) == (5, None)
    assert "linger_grace" in policy.unstated
    assert "kill_grace" not in policy.unstated


def test_a_client_whose_limits_are_a_function_starts_anew_for_the_next_prompt() -> None:
    """As one does whose limits are a mapping; a word of its own counts."""
    ask = LimitsRequest({}, "pi", "rpc", is_session=True)
    assert Driven(Pi, limits=lambda _request: {}).policy(ask).restart_backoff == 0
    assert Driven(Pi, limits=lambda _request: {"restart_backoff": 3}).policy(ask).restart_backoff == 3


def test_limits_of_several_sessions_are_varied_in_each() -> None:
    """Each session has limits of its own, and the reference supervisor holds them all."""
    scenario = load_bundled("sessions-cancel-stays-in-one")
    bound = scenario.bind(scenario.request_limits(Function(AT_ONCE, limits={"prompt_timeout": 60}, sessions=True)))
    plays = UnstatedLimitResults.for_play(bound)
    assert plays is not None
    assert {"cancel_grace", "close_grace"} <= plays.varied_results.keys()
    assert "hook_timeout" not in plays.varied_results, "it never counted"
    assert all(play.bound is bound for ones in plays.varied_results.values() for play in ones)


def test_no_tool_of_the_host_may_be_stated_as_none() -> None:
    """It means the same for a list as for a limit in seconds: there is none."""
    assert Function(AT_ONCE, limits={"host_tools": None}).policy(LimitsRequest({}, "claude")).host_tools == ()
