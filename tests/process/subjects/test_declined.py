"""Orders that an adapter declines: the scenario is not applicable, with the reason of the adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import (
    CheckedSubject,
    Client,
    Command,
    Declined,
    Driven,
    Function,
    as_subject,
    load_command_file,
)
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from pytest_agentproc.vocabulary import LimitsRequest, Policy, RunReport

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import RunRequest

HELLO = loads("scenario: x\nagent: raw\nscript: [{say: hello}]\nexpect: {outcome: completed}\n")
TALK = loads(
    "scenario: x\nagent: {dialect: pi, mode: rpc}\nscript: [{wait_for: prompt 1}, {answer: hello}]\n"
    "drive: [{prompt: hi}]\nexpect: {turns: [{outcome: completed}]}\n"
)
CANCELLED = loads(
    "scenario: x\nagent: {dialect: pi, mode: rpc}\n"
    "script: [{wait_for: prompt 1}, {wait_for: cancel}, {acknowledge: cancel}]\n"
    "drive: [{prompt: hi}, {cancel: {turn: 1}, after: 5s}]\nexpect: {turns: [{outcome: cancelled}]}\n"
)
WHY = "it has no session mode"


async def decline(_order: RunRequest) -> RunReport:
    """Decline every order."""
    raise Declined(WHY)


def decline_in_thread(_order: RunRequest) -> RunReport:
    """Decline every order in a thread."""
    raise Declined(WHY)


async def decline_in_task_group(_order: RunRequest) -> RunReport:
    """Decline inside a task group."""
    async with anyio.create_task_group() as group:
        group.start_soon(decline, _order)
    return RunReport()


def decline_one_mode(request: LimitsRequest) -> dict[str, Any]:
    """Decline agents of one mode."""
    if request.mode == "text" and not request.is_session:
        raise Declined(WHY)
    return {}


class DecliningSubject:
    """A subject that is no function."""

    name = "whole"
    keeps_artifacts = holds_sessions = False

    def policy(self, request: LimitsRequest) -> Policy:
        """Keep the defaults."""
        return Policy.for_dialect(request.dialect)

    async def run(self, order: RunRequest) -> RunReport:
        """Decline."""
        return await decline(order)


class DeclinesEarly(DecliningSubject):
    """A subject that declines when it is asked for its limits."""

    def policy(self, request: LimitsRequest) -> Policy:
        """Decline."""
        raise Declined(WHY)


class SubjectWithOldPolicy(DecliningSubject):
    """A subject whose `policy` takes other arguments."""

    def policy(self, reported: object, dialect: str) -> Policy:  # type: ignore[override]
        """Keep the defaults."""
        return Policy.for_dialect(dialect, kill_grace=reported)


def state_old_limits(reported: object, dialect: str) -> dict[str, Any]:
    """State limits in a form that is not taken any more."""
    return {"kill_grace": reported, "linger_grace": dialect}


class DeclinesAtStart(Client):
    """A client that declines as it is to start."""

    async def start(self) -> None:
        """Decline."""
        raise Declined(WHY)


class Prompts(Client):
    """A client that declines its first prompt, and starts no agent before."""

    async def prompt(self, text: str) -> str:
        """Decline."""
        raise Declined(WHY)


class Cancels(Client):
    """A client that declines to cancel, and starts no agent before."""

    async def prompt(self, text: str) -> str:
        """Wait for ever."""
        await anyio.Event().wait()
        return "completed"

    async def cancel(self) -> None:
        """Decline."""
        raise Declined(WHY)


@pytest.mark.parametrize(
    ("subject", "scenario"),
    [
        (Function(decline), HELLO),
        (Function(decline_in_task_group), HELLO),
        (Function(decline, limits=decline_one_mode), HELLO),
        (as_subject(DecliningSubject()), HELLO),
        (CheckedSubject(DeclinesEarly()), HELLO),
        (Driven(DeclinesAtStart), TALK),
        (Driven(Prompts), TALK),
        (Driven(Cancels), CANCELLED),
    ],
    ids=["run", "group", "limits", "object", "policy", "start", "prompt", "cancel"],
)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_order_may_be_declined_anywhere(runner: ScenarioRunner, subject: Any, scenario: Any, backend: str) -> None:
    """An adapter says in one way which things its supervisor cannot do, and that is never called an error."""
    with pytest.raises(NotApplicable) as caught:
        runner.play(scenario, subject, backend=backend)
    assert caught.value.reason() == WHY


@pytest.mark.slow
def test_a_thread_may_decline_too(runner: ScenarioRunner) -> None:
    """A supervisor that is not async declines from its thread, in real time here."""
    with pytest.raises(Declined, match=WHY):
        runner.play_real(HELLO, Function(decline_in_thread), scale=100)


async def start_and_decline(order: RunRequest) -> RunReport:
    """Run the agent, and only then decline."""
    await anyio.run_process(order.argv, env=order.env)
    raise Declined(WHY)


def test_a_decline_after_the_start_is_an_adapter_error(runner: ScenarioRunner) -> None:
    """Otherwise a supervisor could try, fail, and call the scenario not applicable."""
    rows = judge_all_expectations(runner.play(HELLO, Function(start_and_decline)))
    assert choose_overall_verdict(rows) is Verdict.ADAPTER_ERROR
    assert rows[0].seen.startswith(f"it declined the order after it had started an agent: {WHY}\nraise Declined before")


PROMPT = loads(
    "scenario: x\nagent: {dialect: claude, mode: print}\nscript: [{answer: hello}]\nexpect: {outcome: completed}\n"
)
SESSION_OPTIONS = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--print"]


@pytest.mark.parametrize(
    ("scenario", "given", "way"),
    [
        (PROMPT, SESSION_OPTIONS, "judge this supervisor as a client of sessions: "),
        (TALK, ["--mode", "json", "hi"], "judge this supervisor as one of runs, without `sessions`"),
    ],
    ids=["session", "run"],
)
def test_a_start_for_the_other_kind_is_not_applicable(
    scenario: Scenario, given: list[str], way: str, runner: ScenarioRunner
) -> None:
    """A program on claude-agent-sdk gives one prompt to a session. Each scenario was a kit error."""

    async def start(order: RunRequest) -> RunReport:
        await anyio.run_process([order.argv[0], *given], env=order.env, input=b"", check=False)
        return RunReport()

    class Starts(Client):
        async def start(self) -> None:
            await start(self.order)

    subject = Function(start) if scenario is PROMPT else Driven(Starts)
    with pytest.raises(Declined) as caught:
        runner.play(scenario, subject)
    assert way in caught.value.reason()


@pytest.mark.slow
def test_a_program_declines_by_its_exit_code(tmp_path: Path, runner: ScenarioRunner) -> None:
    """The last line of its stderr is the reason."""
    file = tmp_path / "mine.toml"
    file.write_text(
        "command = ['sh', '-c', 'echo first >&2; echo no raw agents >&2; exit 77', '{agent}']\n"
        "declines = {exit_code = 77}\n",
        "utf-8",
    )
    with pytest.raises(Declined) as caught:
        runner.play_real(HELLO, load_command_file(file), scale=100)
    assert caught.value.reason() == "no raw agents"
    silent = Command(["sh", "-c", "exit 77", "{agent}"], declines={"exit_code": 77})
    with pytest.raises(Declined, match="it exits with code 77"):
        runner.play_real(HELLO, silent, scale=100)
    late = Command(["sh", "-c", '"$@"; exit 77', "sh", "{agent}"], declines={"exit_code": 77})
    rows = judge_all_expectations(runner.play_real(HELLO, late, scale=100))
    assert choose_overall_verdict(rows) is Verdict.ADAPTER_ERROR


@pytest.mark.parametrize("declines", [77, {}, {"exit_code": 0}, {"exit_code": True}, {"code": 77}])
def test_a_wrong_code_of_declining_is_a_mistake(declines: Any) -> None:
    """Exit code 0 is no decline."""
    with pytest.raises(UsageError, match=r"declines is .*\nwrite declines="):
        Command(["x", "{agent}"], declines=declines)


def test_a_function_of_limits_takes_the_request_alone() -> None:
    """The form with two parameters is named in the error, so that the user does not have to guess."""
    with pytest.raises(UsageError) as caught:
        Function(decline, limits=state_old_limits)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "limits is the function state_old_limits(reported: 'object', dialect: 'str') -> 'dict[str, Any]', "
        "and it must take one argument, the request\n"
        "write `def limits(request):`; it has request.limits, request.dialect, request.mode, request.is_session"
    )
    with pytest.raises(UsageError, match="its policy does not take one argument, the request for limits"):
        as_subject(SubjectWithOldPolicy())


def test_limits_may_depend_on_mode_and_session() -> None:
    """A client of runs and sessions keeps other limits in each."""
    asked: list[LimitsRequest] = []

    def limits(request: LimitsRequest) -> Policy:
        asked.append(request)
        return Policy(kill_grace=7)

    subject = Function(decline, limits=limits, sessions=True)
    assert TALK.request_agent_limits(subject).kill_grace == 7
    HELLO.request_agent_limits(subject)
    seen = [(request.limits, request.dialect, request.mode, request.is_session) for request in asked]
    assert seen == [({}, "pi", "rpc", True), ({}, "raw", "text", False)]
