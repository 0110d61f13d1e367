"""A client of another author under the caller of a scenario: the effects of its methods and of their mistakes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import Client, Driven, Function
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations, judge_play
from pytest_agentproc.vocabulary import RunReport
from tests.bundled import find_bundled_path, load_bundled
from tests.process.subjects.acp_client import Acp

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner

TALK = "scenario: s\nagent: {dialect: pi, mode: rpc}\n"
ONCE = TALK + "script:\n  - wait_for: prompt 1\n  - "


class Pi(Client):
    """A client of pi, as short as it can be."""

    async def start(self) -> None:
        """Start it."""
        order = self.order
        self.agent = await self.enter_context(
            await anyio.open_process(order.argv, env=order.env, start_new_session=True)
        )

    async def prompt(self, text: str) -> Any:
        """Ask, and read until the turn ends."""
        await self.send(type="prompt", message=text)
        assert self.agent.stdout is not None
        rest = b""
        while not (ends := [line for line in rest.split(b"\n")[:-1] if b'"agent_end"' in line]):
            rest += await self.agent.stdout.receive()
        last = json.loads(ends[0])["messages"][-1]
        outcome = {"stop": "completed", "aborted": "cancelled"}.get(last["stopReason"], "failed")
        return {"outcome": outcome, "text": "".join(part.get("text", "") for part in last["content"])}

    async def cancel(self) -> None:
        """Abort."""
        await self.send(type="abort")

    async def close(self) -> None:
        """Have it read the end of its stdin."""
        assert self.agent.stdin is not None
        await self.agent.stdin.aclose()

    async def send(self, **command: str) -> None:
        """Write a line."""
        assert self.agent.stdin is not None
        await self.agent.stdin.send(f"{json.dumps(command)}\n".encode())


def play_and_list_turns(runner: ScenarioRunner, client: type[Client], text: str) -> tuple[RunReport, ...]:
    """Play it, and give what each turn came to."""
    answer = runner.play(loads(text), Driven(client)).answer
    assert answer is not None
    return answer.turns or ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pi-session-cancel", "session-cannot-be-executed"])
def test_a_client_is_driven_from_end_to_end(runner: ScenarioRunner, name: str, backend: str) -> None:
    """Cancelled turns, and an agent that cannot be started: bundled scenarios as they stand."""
    scenario = load_bundled(name)
    rows = judge_all_expectations(runner.play(scenario, Driven(Pi), backend=backend))
    assert choose_overall_verdict(rows) is Verdict.PASSED, [row for row in rows if row.verdict is not Verdict.PASSED]


@pytest.mark.parametrize("name", ["session-agent-dies-while-it-asks[acp]", "session-turn-ends-while-it-asks[acp]"])
def test_a_client_that_reads_nothing_while_it_asks_is_red_at_must(runner: ScenarioRunner, name: str) -> None:
    """The reader loop awaits the caller's answer, so nobody sees that the turn or the agent has ended."""
    rows = judge_all_expectations(runner.play(load_bundled(name), Driven(Acp)))
    assert [(row.key, row.seen) for row in rows if row.level == "must" and row.verdict is Verdict.FAILED] == [
        ("turns.1.outcome", "stopped")
    ]


class SwitchesMode(Acp):
    """A client that can switch the mode."""

    async def set_mode(self, name: str) -> None:
        """Call the method, and wait for its result."""
        await self.call("session/set_mode", sessionId=self.session, modeId=name)


class SwitchesToNewAgent(Acp):
    """A client that starts another agent for another mode."""

    async def set_mode(self, name: str) -> None:
        """End the agent, and start one."""
        await self.close()
        await self.agent.wait()
        await self.start()


def test_a_client_switches_the_mode_if_it_has_that_action(runner: ScenarioRunner) -> None:
    """A client without the method is never green: the scenario does not apply. A new agent has lost the work."""
    scenario = load_bundled("session-mode-switch-keeps-the-agent[acp]")
    with pytest.raises(NotApplicable, match="line 5 needs sessions with set_mode"):
        runner.play(scenario, Driven(Acp))
    failed: dict[type[Client], list[str]] = {}
    for client in (SwitchesMode, SwitchesToNewAgent):
        rows = judge_all_expectations(runner.play(scenario, Driven(client, limits={"close_grace": 5})))
        failed[client] = [row.key for row in rows if row.verdict is Verdict.FAILED]
    assert failed[SwitchesMode] == []
    assert "spawns" in failed[SwitchesToNewAgent]


class StartsAgentLate(Pi):
    """A client that starts its agent when it is asked."""

    async def start(self) -> None:
        """Start nothing."""

    async def prompt(self, text: str) -> Any:
        """Start, and ask."""
        await super().start()
        return await super().prompt(text)

    async def close(self) -> None:
        """End all that was started."""
        if hasattr(self, "agent"):
            await super().close()


class FailsInTaskGroup(Pi):
    """A client that has a task group open when it finds no agent."""

    async def start(self) -> None:
        """Start it from a task."""
        group = await self.enter_context(anyio.create_task_group())
        group.start_soon(super().start)
        await anyio.Event().wait()


@pytest.mark.parametrize("client", [StartsAgentLate, FailsInTaskGroup])
def test_a_missing_program_is_reported_wherever_it_is_missed(runner: ScenarioRunner, client: type[Client]) -> None:
    """Neither is a lost agent or a mistake of the adapter."""
    scenario = load_bundled("session-cannot-be-executed")
    rows = judge_all_expectations(runner.play(scenario, Driven(client)))
    assert choose_overall_verdict(rows) is Verdict.PASSED, [row for row in rows if row.verdict is not Verdict.PASSED]


class Patient(Pi):
    """A client with a limit of its own: it reports an overdue turn once the agent has let go of it."""

    async def prompt(self, text: str) -> Any:
        """Ask, and give up after five seconds."""
        with anyio.move_on_after(5) as limit:
            return await super().prompt(text)
        assert limit.cancelled_caught
        await self.cancel()
        await self.acknowledged()
        return {"outcome": "timed_out"}

    async def acknowledged(self) -> None:
        """Read until the turn is over."""
        assert self.agent.stdout is not None
        rest = b""
        while b'"agent_end"' not in rest:
            rest += await self.agent.stdout.receive()


class HoldsPrompts(Patient):
    """A client that reports it at once, and holds the next prompt back."""

    is_owed = False

    async def prompt(self, text: str) -> Any:
        """Let the agent get over the turn before."""
        if self.is_owed:
            await super().acknowledged()
        return await super().prompt(text)

    async def acknowledged(self) -> None:
        """Leave it for later."""
        self.is_owed = True


class ReportsNoTimeout(HoldsPrompts):
    """A client that has no word for a turn whose time was over, as an ACP program has none for its editor."""

    async def prompt(self, text: str) -> Any:
        """Call it failed."""
        answer = await super().prompt(text)
        return {"outcome": "failed"} if answer["outcome"] == "timed_out" else answer


class Slow(Patient):
    """A client that waits on after the agent has let go, a virtual second long, for an event that never comes."""

    async def acknowledged(self) -> None:
        """Wait for nothing."""
        await super().acknowledged()
        with anyio.move_on_after(1):
            await anyio.Event().wait()


@pytest.mark.slow
@pytest.mark.parametrize(("client", "verdict"), [(Patient, "passed"), (HoldsPrompts, "passed"), (Slow, "failed")])
def test_a_client_may_wait_for_the_agent_that_lets_go_of_a_turn(
    runner: ScenarioRunner, client: type[Client], verdict: str
) -> None:
    """The client cannot see that pi is ready, so both styles are right; the turn after it has its whole time."""
    scenario = load_bundled("session-timeout-cancels-the-turn")
    rows = judge_all_expectations(runner.play(scenario, Driven(client, limits={"prompt_timeout": 5})))
    assert choose_overall_verdict(rows).value == verdict, rows
    assert [row.verdict.value for row in rows if row.key == "turns.1.elapsed"] == [verdict]


@pytest.mark.slow
@pytest.mark.parametrize("client", [Patient, HoldsPrompts, ReportsNoTimeout])
def test_an_agent_lets_go_of_a_turn_by_its_answer_too(runner: ScenarioRunner, client: type[Client]) -> None:
    """Nothing has to be acknowledged of a turn that was answered when its time was just over."""
    scenario = loads(
        f"{TALK}policy: {{prompt_timeout: 5s}}\n"
        "drive: [{prompt: slow}, {wait_for: turn 1}, {prompt: next}]\n"
        "script: [{wait_for: prompt 1}, {wait_for: cancel}, {silence: 4s}, {answer: late},\n"
        "  {wait_for: prompt 2}, {silence: 2s}, {answer: in time}]\n"
        "expect: {turns: [{outcome: {not: completed}, elapsed: 5s},\n"
        "  {outcome: completed, text: in time, elapsed: 2s}]}\n"
    )
    rows = judge_all_expectations(runner.play(scenario, Driven(client, limits={"prompt_timeout": 5})))
    assert choose_overall_verdict(rows) is Verdict.PASSED, rows


class Failing(HoldsPrompts):
    """A client that has one word for each bad end, as an error of JSON-RPC is."""

    async def prompt(self, text: str) -> Any:
        """Ask, and call a turn failed whose time is over."""
        said = await super().prompt(text)
        return {"outcome": "failed"} if said["outcome"] == "timed_out" else said


@pytest.mark.slow
def test_a_prompt_may_wait_for_a_turn_that_is_reported_as_failed(runner: ScenarioRunner) -> None:
    """The agent reads the second prompt when it has let go of the first: there the second turn begins."""
    scenario = loads(
        f"{TALK}policy: {{prompt_timeout: 5s}}\n"
        "drive: [{prompt: slow}, {wait_for: turn 1}, {prompt: next}]\n"
        "script: [{wait_for: prompt 1}, {wait_for: cancel}, {silence: 4s}, {acknowledge: cancel},\n"
        "  {wait_for: prompt 2}, {silence: 2s}, {answer: in time}]\n"
        "expect: {turns: [{outcome: timed_out}, {outcome: completed, text: in time, elapsed: 2s}]}\n"
    )
    words = ("completed", "failed", "cancelled")
    rows = judge_all_expectations(runner.play(scenario, Driven(Failing, limits={"prompt_timeout": 5}, outcomes=words)))
    assert choose_overall_verdict(rows) is Verdict.PASSED, rows


class Reborn(Pi):
    """A client that starts the next agent two seconds after a crash, once a prompt waits for it."""

    pause = 0.0

    async def prompt(self, text: str) -> Any:
        """Ask, or report that the agent has gone."""
        if self.pause:
            with anyio.move_on_after(self.pause):
                await anyio.Event().wait()
            await super().start()
        try:
            said = await super().prompt(text)
        except anyio.EndOfStream:
            self.pause = 2.0
            return {"outcome": "failed"}
        return said


@pytest.mark.slow
def test_a_prompt_may_wait_for_the_next_agent(runner: ScenarioRunner) -> None:
    """The time of a turn begins when an agent reads its prompt, as that of the reference supervisor does."""
    scenario = loads(
        f"{TALK}policy: {{restart_backoff: 2s}}\n"
        "drive: [{prompt: one}, {wait_for: turn 1}, {prompt: two}]\n"
        "scripts: [[{wait_for: prompt 1}, {exit: 3}], [{wait_for: prompt 1}, {silence: 4s}, {answer: done}]]\n"
        "expect: {turns: [{outcome: {not: completed}}, {outcome: completed, text: done, elapsed: 4s}]}\n"
    )
    rows = judge_all_expectations(runner.play(scenario, Driven(Reborn, limits={"restart_backoff": 2})))
    assert choose_overall_verdict(rows) is Verdict.PASSED, rows


class Unscaled(Pi):
    """A client that measures a second and a half of real time, at any speed of the run."""

    async def prompt(self, text: str) -> Any:
        """Give up in the middle of the turn."""
        with anyio.move_on_after(1.5):
            return await super().prompt(text)
        return {"outcome": "timed_out"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "turn", "verdict"),
    [
        ({"prompt_timeout": 2.4}, "outcome: timed_out, elapsed: prompt_timeout", "adapter error"),
        ({}, "outcome: completed", "failed"),
    ],
)
def test_a_limit_that_is_not_divided_in_real_time_is_reported(
    runner: ScenarioRunner, limits: Any, turn: str, verdict: str
) -> None:
    """It is the adapter's mistake, and none of a client that keeps no time: that one is wrong by itself."""
    script = "[{wait_for: prompt 1}, {silence: 16s}, {answer: late}]"
    scenario = loads(f"{TALK}drive: [prompt: one]\nscript: {script}\nexpect: {{turns: [{{{turn}}}]}}\n")
    rows = judge_all_expectations(runner.play_real(scenario, Driven(Unscaled, limits=limits), scale=8))
    assert choose_overall_verdict(rows).value == verdict, rows


def test_an_agent_that_gets_one_prompt_is_for_others(runner: ScenarioRunner) -> None:
    """It would be started, be asked nothing, and be ended."""
    with pytest.raises(NotApplicable, match="agents that get one prompt and end"):
        runner.play(loads("scenario: s\nagent: pi\nscript: [{answer: hi}]\nexpect: {text: hi}\n"), Driven(Pi))


@pytest.mark.slow
def test_a_lost_connection_is_an_outcome(runner: ScenarioRunner) -> None:
    """Every client reports it in its own way, and these ways are common to all."""
    assert [turn.outcome for turn in play_and_list_turns(runner, Pi, ONCE + "exit: 3\n")] == ["agent_lost"]

    class Refused(Pi):
        async def start(self) -> None:
            raise ConnectionError("not logged in")

    [turn] = play_and_list_turns(runner, Refused, ONCE + "answer: hi\n")
    assert (turn.outcome, turn.error) == ("handshake_failed", "not logged in")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "verdict"), [("start", "adapter error"), ("prompt", "crashed"), ("close", "crashed")]
)
def test_an_exception_of_a_client_is_no_outcome(runner: ScenarioRunner, method: str, verdict: str) -> None:
    """Before an agent is started the adapter is wrong; from then on the client has crashed."""

    async def slips(_self: Any, *_: Any) -> None:
        raise KeyError("result")

    client = type("Slips", (Pi,), {method: slips})
    row = judge_all_expectations(runner.play(loads(ONCE + "answer: hi\n"), Driven(client)))[0]
    assert row.verdict == verdict
    assert re.match(
        r"it raised KeyError: 'result'\n  tests/process/subjects/test_driven.py:\d+ in slips: raise", row.seen
    )


@pytest.mark.slow
def test_a_close_that_finds_the_agent_gone_is_no_mistake(runner: ScenarioRunner) -> None:
    """Many clients raise there the error of their broken pipe; leftover processes are judged as always."""

    class Breaks(Pi):
        async def close(self) -> None:
            await super().close()
            raise ConnectionResetError("Connection lost")

    rows = judge_all_expectations(runner.play(loads(ONCE + "answer: hi\n"), Driven(Breaks)))
    assert choose_overall_verdict(rows) is Verdict.PASSED, rows


@pytest.mark.slow
def test_a_turn_that_a_close_cuts_short_is_stopped(runner: ScenarioRunner) -> None:
    """A turn does not wait for an answer that has no reader."""
    drive = "drive: [{prompt: one}, {wait_for: status prompting}, {close: {}, after: 3s}]\n"
    script = "script: [{wait_for: prompt 1}, {silence: 1h}]\n"
    [turn] = play_and_list_turns(runner, Pi, TALK + drive + script)
    assert (turn.outcome, turn.elapsed) == ("stopped", 3_000_000_000)


@pytest.mark.parametrize(
    ("drive", "need"),
    [
        ("[{prompt: one}, {prompt: two}]", "line 3 needs sessions with queue"),
        ("[{prompt: one}, {wait_for: background 1}]", "line 3 needs sessions with background"),
        ("[{prompt: one}, {wait_for: status restarting}]", "line 3 needs sessions with restart"),
        ("[{wait_for: status failed}, {prompt: one}]", "line 3 needs sessions with restart"),
        ("[{prompt: one}, {cancel: {}}]", "line 3 needs sessions with cancel"),
    ],
)
def test_what_no_client_can_do_is_not_applicable(runner: ScenarioRunner, drive: str, need: str) -> None:
    """An action of the kit in its place, or a useless wait of the kit, gives no verdict about the client."""
    scenario = loads(f"{TALK}drive: {drive}\nscript: [answer: hi]\n".replace("pi, mode: rpc", "claude, mode: session"))
    with pytest.raises(NotApplicable, match=need):
        runner.play(scenario, Driven(Pi, cannot=["cancel"]))


@pytest.mark.slow
def test_who_gets_no_other_agent_is_judged_by_the_turn_that_was_lost(runner: ScenarioRunner) -> None:
    """Pi's client starts one, and says so; the outcome of the turn after it is then neither its merit nor its fault."""
    text = find_bundled_path("session-killed-while-prompting").read_text()
    scenario = loads(text.replace("  spawns: [0s, 2s + restart_backoff]\n", ""))
    verdicts = {}
    for limits in ({}, {"restart_backoff": None}):
        rows = judge_all_expectations(runner.play(scenario, Driven(Pi, limits=limits)))
        verdicts[bool(limits)] = {row.key: row.verdict.value for row in rows}
    assert verdicts[False]["turns.2.outcome"] == "failed"
    assert verdicts[True]["turns.2.outcome"] == "not applicable"
    assert verdicts[True]["turns.1.outcome"] == "passed"


@pytest.mark.slow
def test_tools_of_the_host_are_for_supervisors_that_take_them(runner: ScenarioRunner) -> None:
    """A supervisor that knows no such tools cannot end a turn for one."""

    async def nothing(_order: Any) -> None:
        pass

    text = "scenario: s\nagent: claude\npolicy: {host_tools: [Read]}\nscript: [answer: hi]\n"
    for limits in ({}, {"host_tools": ["Write"]}):
        with pytest.raises(NotApplicable, match="line 3 needs host_tools, which the subject does not have"):
            runner.play(loads(text), Function(nothing, limits=limits))
    assert runner.play(loads(text), Function(nothing, limits={"host_tools": ["Write", "Read"]})).answer is not None


def test_what_is_no_client_is_refused() -> None:
    """With how one is written; an object of one is none, as each session has its own."""
    with pytest.raises(UsageError, match="42 is no client\nwrite Driven"):
        Driven(42)  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(UsageError, match="there is no ability 'cancle', did you mean cancel"):
        Driven(Pi, cannot=["cancle"])


@pytest.mark.parametrize("given", [None, 3, RunReport(outcome="completed")], ids=["nothing", "number", "report"])
def test_a_prompt_that_gives_no_outcome_is_the_adapters_mistake(runner: ScenarioRunner, given: object) -> None:
    """The client did nothing wrong, also if the adapter takes every exception for a lost agent."""

    class Other(Pi):
        async def prompt(self, text: str) -> Any:
            await super().prompt(text)
            return given

        def outcome_of_prompt_error(self, error: Exception) -> str:
            return "agent_lost"

    rows = judge_all_expectations(
        runner.play(loads(f"{ONCE}answer: hi\nexpect: {{turns: [{{text: hi}}]}}\n"), Driven(Other))
    )
    assert choose_overall_verdict(rows) is Verdict.ADAPTER_ERROR
    article = "an" if isinstance(given, int) else "a"
    text = f"its prompt gave {article} {type(given).__name__}"
    assert rows[0].seen == f"{text}\ngive the name of an outcome, or a mapping of RunReport fields"


class EarlyCancels(Acp):
    """A right client that notes the calls."""

    heard: ClassVar[list[str]] = []

    async def cancel(self) -> None:
        """Cancel."""
        self.heard.append("cancel")
        await super().cancel()


class RefusesCancel(Acp):
    """A faulty client, whose every cancel fails."""

    async def cancel(self) -> None:
        """Fail."""
        raise RuntimeError("no cancel")


EARLY = """
scenario: x
agent: acp
drive: [{prompt: one}, ACTION]
script:
  - handshake: {after: 5s}
  - wait_for: prompt 1
  - answer: one is here
expect: {turns: [{outcome: OUTCOME, elapsed: 1s}]}
"""


@pytest.mark.parametrize("client", [EarlyCancels, RefusesCancel])
@pytest.mark.parametrize("action", ["{cancel: {}, at: 1s}", "{cancel: {turn: 1}, at: 1s}", "{close: {}, at: 1s}"])
def test_what_comes_while_a_client_starts_gives_no_verdict(
    runner: ScenarioRunner, client: type[Client], action: str
) -> None:
    """The kit keeps it from the client, so neither a right nor a faulty one is judged for it."""
    outcome = "stopped" if "close" in action else "cancelled"
    scenario = loads(EARLY.replace("ACTION", action).replace("OUTCOME", outcome))
    judged = judge_play(runner.play(scenario, Driven(client)))
    assert judged.verdict is Verdict.NOT_APPLICABLE, judged.rows
    assert "came while the client was in `start`" in judged.reason
    assert EarlyCancels.heard == []


def test_a_close_in_a_start_that_never_ends_gives_no_verdict(runner: ScenarioRunner) -> None:
    """A client without a limit on its start waits for ever. Its own user could close it, and the kit cannot."""
    text = EARLY.replace("{after: 5s}", "never").replace("ACTION", "{close: {}, at: 1s}")
    scenario = loads(text.replace("OUTCOME", "stopped"))
    assert judge_play(runner.play(scenario, Driven(Acp))).verdict is Verdict.NOT_APPLICABLE
