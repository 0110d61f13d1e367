"""The stated outcomes, first signal and command line of a supervisor are not held against it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import NotApplicable, UsageError
from pytest_agentproc.subjects import Client, Command, Driven, Function, load_command_file
from pytest_agentproc.verdict import judge_play
from pytest_agentproc.vocabulary import LimitsRequest, Outcome, choose_reported_outcomes
from tests.bundled import load_bundled
from tests.process.subjects.acp_client import Acp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

    EscalationSteps = Sequence[tuple[signal.Signals, float]]

TERM = [(signal.SIGTERM, 5.0)]
KNOWN = ("completed", "failed")


async def supervise_for_a_minute(
    order: RunRequest, argv: Sequence[str], escalation_steps: EscalationSteps, silent: str
) -> Any:
    """Give an agent a minute, and end it by an escalation of signals and KILL; know good and bad alone."""
    how: dict[str, Any] = {"stdin": DEVNULL, "stdout": PIPE, "stderr": DEVNULL, "start_new_session": True}
    try:
        agent = await asyncio.create_subprocess_exec(*argv, env=order.env, **how)
    except OSError:
        return "failed"
    assert agent.stdout is not None
    reading = asyncio.ensure_future(agent.stdout.read())
    done, _ = await asyncio.wait([reading], timeout=60)
    if done:
        code = await agent.wait()
        return {"outcome": "failed" if code else "completed", "text": (await reading).decode().rstrip("\n")}
    for number, grace in [*escalation_steps, (signal.SIGKILL, 60.0)]:
        os.killpg(agent.pid, number)
        try:
            await asyncio.wait_for(agent.wait(), grace)
            break
        except TimeoutError:
            pass
    await reading
    return silent


def build_supervisor(escalation_steps: EscalationSteps = TERM, silent: str = "failed", **stated: Any) -> Function:
    """Make a supervisor that is handed its command line."""

    async def mine(order: RunRequest) -> Any:
        return await supervise_for_a_minute(order, order.argv, escalation_steps, silent)

    grace = sum(grace for _, grace in escalation_steps)
    limits = {"inactivity_timeout": 60, "kill_grace": grace, "linger_kill_grace": grace}
    return Function(mine, limits=limits, dialects=["raw"], **stated)


def list_failed_checks(runner: ScenarioRunner, name: str, subject: Function) -> dict[str, tuple[str, str]]:
    """Play a bundled scenario, and give the wanted and the seen value of each check that failed."""
    played = runner.play(load_bundled(name), subject)
    rows = judge_play(played, is_reference=False).rows
    return {row.key: (row.wanted, row.seen) for row in rows if row.verdict == "failed"}


@pytest.mark.parametrize(
    ("outcome", "known", "met"),
    [
        ("inactive", KNOWN, ("failed",)),
        ("inactive", ("completed", "failed", "timed_out"), ("timed_out",)),
        ("stalled", ("completed", "failed", "inactive", "overran"), ("inactive", "overran")),
        ("incomplete", ("completed", "failed", "inactive"), ("failed",)),
        ("tool_use", KNOWN, ("completed",)),
        ("cancelled", ("completed", "failed", "stopped"), ("stopped",)),
        ("completed", KNOWN, ("completed",)),
    ],
)
def test_an_outcome_is_reported_by_the_known_one_that_is_most_like_it(
    outcome: str, known: tuple[str, ...], met: tuple[str, ...]
) -> None:
    """A supervisor that knows one word for all limits uses that, and else `failed`."""
    assert choose_reported_outcomes(outcome, known) == met
    assert all(choose_reported_outcomes(one, tuple(Outcome)) == (one,) for one in Outcome)


def test_a_supervisor_that_knows_good_and_bad_alone_is_right_about_silence(runner: ScenarioRunner) -> None:
    """Without the statement its `failed` is another outcome; and no statement makes `completed` of silence."""
    assert list_failed_checks(runner, "silent-past-the-limit", build_supervisor(outcomes=KNOWN)) == {}
    assert list_failed_checks(runner, "silent-past-the-limit", build_supervisor()).keys() == {"outcome"}
    assert list_failed_checks(
        runner, "silent-past-the-limit", build_supervisor(outcomes=KNOWN, silent="completed")
    ) == {"outcome": ("inactive or stalled or overran or timed_out or failed", "completed")}


@pytest.mark.parametrize(
    ("first", "escalation_steps"),
    [
        ("INT", [(signal.SIGINT, 5.0)]),
        ("INT", [(signal.SIGINT, 3.0), (signal.SIGTERM, 4.0)]),
        ("HUP", [(signal.SIGHUP, 1.0), (signal.SIGINT, 2.0), (signal.SIGTERM, 3.0)]),
    ],
)
@pytest.mark.parametrize("name", ["silent-past-the-limit", "silent-and-ignores-term[raw]", "talks-while-it-is-ended"])
def test_an_escalation_may_begin_with_another_signal(
    runner: ScenarioRunner, name: str, first: str, escalation_steps: EscalationSteps
) -> None:
    """Scenarios expect it where they say TERM, agents react to it as to TERM, and other steps may follow."""
    assert (
        list_failed_checks(runner, name, build_supervisor(escalation_steps, outcomes=KNOWN, first_signal=first)) == {}
    )


def test_a_supervisor_that_does_not_begin_with_its_first_signal_is_red(runner: ScenarioRunner) -> None:
    """Its twin sends TERM, and another one KILL at once."""
    subject = build_supervisor(outcomes=KNOWN, first_signal="INT")
    assert list_failed_checks(runner, "silent-and-ignores-term[raw]", subject)["signals"] == (
        "INT at 60 s, KILL at 65 s",
        "TERM at 60 s, KILL at 65 s",
    )
    at_once = build_supervisor([(signal.SIGKILL, 5.0)], outcomes=KNOWN, first_signal="INT")
    assert list_failed_checks(runner, "silent-past-the-limit", at_once)["signals"] == ("INT at 60 s", "KILL at 60 s")
    unstated = build_supervisor([(signal.SIGINT, 5.0)], outcomes=KNOWN)
    assert list_failed_checks(runner, "silent-past-the-limit", unstated)["signals"] == ("TERM at 60 s", "INT at 60 s")


def build_supervisor_by_name(answer: Callable[[Any], Any] = lambda said: said, **stated: Any) -> Function:
    """Make a supervisor that finds its agent by name on PATH, and makes the command line itself."""

    async def mine(order: RunRequest) -> Any:
        agent = shutil.which("agent", path=order.env["PATH"]) or "agent"
        return answer(await supervise_for_a_minute(order, [agent, "--prompt", order.prompt], TERM, "failed"))

    limits = {"inactivity_timeout": 60, "kill_grace": 5}
    return Function(mine, limits=limits, dialects=["raw"], outcomes=KNOWN, **stated)


def test_a_supervisor_that_makes_its_own_command_line_is_not_judged_by_that_of_the_kit(runner: ScenarioRunner) -> None:
    """The rest of the scenario is judged: a twin that loses the text is red."""
    own = ["argv", "env"]
    assert list_failed_checks(runner, "sees-its-command-line-plain", build_supervisor_by_name(cannot=own)) == {}
    assert {"received.argv"} <= list_failed_checks(
        runner, "sees-its-command-line-plain", build_supervisor_by_name()
    ).keys()
    lost = build_supervisor_by_name(lambda said: {**said, "text": ""}, cannot=own)
    assert list_failed_checks(runner, "sees-its-command-line-plain", lost).keys() == {"text"}
    rows = judge_play(
        runner.play(load_bundled("sees-its-command-line-plain"), build_supervisor_by_name(cannot=own))
    ).rows
    assert {
        row.key: row.seen for row in rows if row.verdict == "not applicable" and row.key.startswith("received")
    } == {
        "received.argv": "the subject has no command line of the order: it makes its own",
        "received.stdin": "the subject has no command line of the order: it makes its own",
        "received.env": "the subject has no environment and folder of the order: it has its own",
        "received.cwd": "the subject has no environment and folder of the order: it has its own",
    }


def test_an_agent_that_cannot_be_found_is_on_no_path(runner: ScenarioRunner) -> None:
    """A supervisor that looks for it by name would run the fake, and be right to call that completed."""
    assert list_failed_checks(runner, "cannot-be-found", build_supervisor_by_name(cannot=["argv", "env"])) == {}
    assert list_failed_checks(runner, "cannot-be-executed[raw]", build_supervisor_by_name(cannot=["argv", "env"])) == {}


def test_a_program_states_the_same_in_its_file(tmp_path: Path) -> None:
    """One word means one thing wherever it is stated; a program that finds its agent on PATH makes the command line."""
    file = tmp_path / "mine.toml"
    words = "command = 'x {prompt}'\non_path = true\noutcomes = ['completed', 'failed']\nfirst_signal = 'INT'\n"
    file.write_text(words, "utf-8")
    subject = load_command_file(file)
    assert (subject.outcomes, subject.first_signal, subject.cannot) == (KNOWN, "INT", ("env", "argv"))
    assert Command(["x", "{agent}"]).cannot == ("env",)
    driven = Driven(Client, outcomes=KNOWN, first_signal="HUP")
    assert (driven.outcomes, driven.first_signal) == (KNOWN, "HUP")


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"outcomes": ["ok"]}, "there is no outcome 'ok'\nwrite completed"),
        ({"outcomes": ["complete", "failed"]}, "there is no outcome 'complete'\nwrite completed"),
        (
            {"outcomes": ["failed"]},
            "outcomes is ['failed']\nname completed and failed among them, or leave it out for all",
        ),
        ({"first_signal": "KILL"}, "first_signal is 'KILL'\nwrite one of TERM, INT, HUP"),
    ],
)
def test_a_statement_that_cannot_be_is_refused(stated: dict[str, Any], said: str) -> None:
    """The message names what can be written."""
    with pytest.raises(UsageError) as refused:
        build_supervisor(**stated)
    assert str(refused.value).startswith(said)


def build_capped_client(seconds: float, outcome: str = "timed_out", **stated: Any) -> Driven:
    """Make a client of pi that gives each turn the given seconds, whatever the agent says meanwhile."""

    class Capped(Client):
        agent: asyncio.subprocess.Process

        async def start(self) -> None:
            how: dict[str, Any] = {"env": self.order.env, "stdin": PIPE, "stdout": PIPE}
            self.agent = await asyncio.create_subprocess_exec(*self.order.argv, **how)

        async def prompt(self, text: str) -> Any:
            self.send(type="prompt", message=text)
            ending = asyncio.ensure_future(self.end())
            done, _ = await asyncio.wait([ending], timeout=seconds)
            if done:
                return await ending
            self.send(type="abort")
            await ending
            return outcome

        async def end(self) -> Any:
            assert self.agent.stdout is not None
            async for line in self.agent.stdout:
                event = json.loads(line)
                if event["type"] == "agent_end":
                    last = event["messages"][-1]
                    text = "".join(part.get("text", "") for part in last["content"])
                    return {"outcome": "completed" if last["stopReason"] == "stop" else "failed", "text": text}
            raise EOFError("the agent has gone")

        async def close(self) -> None:
            assert self.agent.stdin is not None
            self.agent.stdin.close()
            await self.agent.wait()

        def send(self, **command: str) -> None:
            assert self.agent.stdin is not None
            self.agent.stdin.write(json.dumps(command).encode() + b"\n")

    return Driven(Capped, dialects=["pi"], **stated)


def test_a_hard_cap_for_each_turn_is_max_runtime(runner: ScenarioRunner) -> None:
    """Scenarios of a limit that progress moves do not apply; a client with more or less time than it states is red."""
    hard = {"max_runtime": 60, "cancel_grace": 600}
    assert list_failed_checks(runner, "session-turn-overruns[pi]", build_capped_client(60, limits=hard)) == {}
    for name in ("session-progress-moves-the-deadline", "pi-session-question-after-the-timeout"):
        with pytest.raises(NotApplicable, match="prompt_timeout"):
            runner.play(load_bundled(name), build_capped_client(60, limits=hard))
    assert "turns.2.outcome" in list_failed_checks(
        runner, "session-turn-overruns[pi]", build_capped_client(30, limits=hard)
    )
    assert "turns.1.outcome" in list_failed_checks(
        runner, "session-turn-overruns[pi]", build_capped_client(9999, limits=hard)
    )
    assert "turns.1.outcome" in list_failed_checks(
        runner, "session-turn-overruns[pi]", build_capped_client(60, "completed", limits=hard)
    )
    moved = build_capped_client(60, limits={"prompt_timeout": 60, "cancel_grace": 600})
    assert "turns.1.outcome" in list_failed_checks(runner, "session-progress-moves-the-deadline", moved)


@pytest.mark.parametrize(("limits", "observed"), [({"permission_timeout": None}, "not applicable"), ({}, "failed")])
def test_a_client_that_waits_for_its_caller_for_ever_says_so(
    runner: ScenarioRunner, limits: dict[str, Any], observed: str
) -> None:
    """Then no harm is done that its user does not know. A client that says nothing has some limit, and hangs."""
    scenario = load_bundled("acp-session-question-is-never-answered")
    judged = judge_play(runner.play(scenario, Driven(Acp, limits=limits)))
    assert judged.verdict.value == observed, judged.rows


def test_a_limit_of_a_file_may_be_none(tmp_path: Path) -> None:
    """TOML has no None."""
    file = tmp_path / "wrapper.toml"
    file.write_text('command = "cat {agent}"\n[limits]\npermission_timeout = "none"\n', "utf-8")
    policy = load_command_file(file).policy(LimitsRequest({}, "acp"))
    assert (policy.permission_timeout, "permission_timeout" in policy.unstated) == (None, False)
    file.write_text('command = "cat {agent}"\n[limits]\npermission_timeout = "off"\n', "utf-8")
    with pytest.raises(UsageError) as refused:
        load_command_file(file)
    assert (
        str(refused.value)
        == "wrapper.toml: permission_timeout is 'off'\nwrite permission_timeout = \"none\" for no limit"
    )
