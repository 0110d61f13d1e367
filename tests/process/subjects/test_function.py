"""A function as the supervisor under test: its arguments, its return values, and its mistakes."""

from __future__ import annotations

import functools
import re
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import AdapterError, UsageError
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import CheckedSubject, Function
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, explain_play, judge_all_expectations
from pytest_agentproc.vocabulary import LimitsRequest, Policy, RunReport
from tests.process.stand import is_gone

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.vocabulary import RunRequest

HELLO = loads(
    "scenario: hello\nagent: raw\nscript: [silence: 2s, say: hello]\nexpect: {outcome: completed, elapsed: 2s}\n"
)
SILENT = loads(
    "scenario: silent\nagent: raw\nscript: [silence: for ever]\n"
    "expect: {outcome: inactive, elapsed: inactivity_timeout, signals: [{TERM: inactivity_timeout}]}\n"
)


async def supervise_to_end(order: RunRequest, **said: Any) -> dict[str, Any]:
    """Run the agent to its end, however long it takes."""
    start = anyio.current_time()
    completed = await anyio.run_process(order.argv, env=order.env, cwd=order.cwd, check=False, start_new_session=True)
    text = completed.stdout.decode().strip()
    return {"outcome": "completed", "text": text, "elapsed": anyio.current_time() - start, **said}


def build_returning_supervisor(given: Any) -> Function:
    """Give a supervisor that runs the agent and returns something."""

    async def supervise(order: RunRequest) -> Any:
        await supervise_to_end(order)
        return given

    return Function(supervise)


def play_hello(runner: ScenarioRunner, subject: Any) -> tuple[Verdict, dict[str, Verdict], str]:
    """Play HELLO, and give the verdict, those of its rows, and what was seen in the first of them."""
    play: PlayResult = runner.play(HELLO, subject)
    rows = judge_all_expectations(play)
    return choose_overall_verdict(rows), {row.key: row.verdict for row in rows}, rows[0].seen


def test_a_function_that_does_it_right_passes(runner: ScenarioRunner, backend: str) -> None:
    """It needs no class, no clock and no trace."""
    assert (
        choose_overall_verdict(judge_all_expectations(runner.play(HELLO, Function(supervise_to_end), backend=backend)))
        is Verdict.PASSED
    )


def test_its_name_is_the_functions() -> None:
    """A partial has its function's name, too; the caller may pass another one."""
    subjects = [
        Function(supervise_to_end),
        Function(functools.partial(supervise_to_end, noise=0)),
        Function(supervise_to_end, name="x"),
    ]
    assert [subject.name for subject in subjects] == ["supervise_to_end", "supervise_to_end", "x"]
    assert not any(subject.real_time_only for subject in subjects)


@pytest.mark.parametrize(
    ("given", "outcome", "elapsed"),
    [
        (RunReport(outcome="completed", elapsed=2_000_000_000), Verdict.PASSED, Verdict.PASSED),
        ({"outcome": "completed", "elapsed": 2}, Verdict.PASSED, Verdict.PASSED),
        ({"outcome": "completed", "elapsed": 2.5}, Verdict.PASSED, Verdict.FAILED),
        ({"outcome": "completed", "elapsed": None}, Verdict.PASSED, Verdict.PASSED),
        ("completed", Verdict.PASSED, Verdict.PASSED),
        ("inactive", Verdict.FAILED, Verdict.PASSED),
        (None, Verdict.UNDECIDED, Verdict.PASSED),
    ],
)
def test_what_it_says_is_judged_and_what_it_does_not_say_is_seen_or_undecided(
    runner: ScenarioRunner, given: Any, outcome: Verdict, elapsed: Verdict
) -> None:
    """The record shows the rest: no process was left here, and the run has an end."""
    _, rows, _ = play_hello(runner, build_returning_supervisor(given))
    assert rows == {"outcome": outcome, "elapsed": elapsed, "leaks": Verdict.PASSED}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("complete", "it returned the outcome 'complete', which is no outcome\nwrite completed"),
        (3, "it returned 3\ngive a RunReport, a mapping of its fields, the name of an outcome, or None"),
        ({"outcom": "failed"}, "it returned the field 'outcom', which no answer has\ndid you mean outcome?"),
        ({"outcome": 1}, "it returned outcome 1, which is no outcome\nknown are completed, failed, *"),
        (
            {"exit_code": "0"},
            "it returned exit_code '0'\nexit_code must be a whole number, or None for: it does not say",
        ),
        ({"exit_code": True}, "it returned exit_code True\nexit_code must be a whole number, *"),
        ({"elapsed": -1}, "it returned elapsed -1\nelapsed must be seconds (a number from 0 to 3000000000), *"),
        ({"elapsed": 1e300}, "it returned elapsed 1e+300\nelapsed must be seconds (a number from 0 to 3000000000), *"),
        ({"text": b"x"}, "it returned text b'x'\ntext must be text, *"),
        ({"warnings": "x"}, "it returned warnings 'x'\nwarnings must be a list of texts, *"),
        (
            RunReport(elapsed=1.5),  # type: ignore[arg-type]
            "it returned elapsed 1.5\nelapsed must be whole nanoseconds *",
        ),
        (
            RunReport(turns=(None,)),  # type: ignore[arg-type]
            "it returned turns 1 None\ngive a RunReport, a mapping of its fields, the name of an outcome",
        ),
        ({"turns": [{"elapsed": "x"}]}, "it returned turns 1: elapsed 'x'\nturns 1: elapsed must be seconds *"),
        ({"turns": 2}, "it returned turns 2\nturns must be a list with one answer each, *"),
        ({"viewers": {"v": 1}}, "it returned viewers.v 1\nviewers.v must be {status: ..., transcript: ...}, *"),
        (
            {"viewers": {"v": {"status": "ready", "transcript": "", "saw": ["x"]}}},
            "it returned viewers.v.saw ['x']\nviewers.v.saw must be a list of prompt, *",
        ),
        ({"called": [1]}, "it returned called [1]\ncalled must be a list of (hook, instant), *"),
        ({"sessions": []}, "it returned sessions []\nsessions must be a mapping of names to answers, *"),
    ],
)
def test_a_wrong_answer_is_the_adapters_error(runner: ScenarioRunner, given: Any, message: str) -> None:
    """It is neither the kit's nor a verdict on what it did with the agent; whose it is shows which field is wrong."""
    verdict, rows, seen = play_hello(runner, build_returning_supervisor(given))
    assert verdict is Verdict.ADAPTER_ERROR
    assert rows == {
        "answer": Verdict.ADAPTER_ERROR,
        "outcome": Verdict.NOT_EXERCISED,
        "elapsed": Verdict.NOT_EXERCISED,
        "leaks": Verdict.NOT_EXERCISED,
    }
    assert re.fullmatch(re.escape(message).replace(r"\*", ".*"), seen)


def test_a_function_that_returns_a_coroutine_gets_a_clear_error(runner: ScenarioRunner) -> None:
    """A forgotten await is the commonest mistake of all."""

    async def supervise(order: RunRequest) -> Any:
        made = supervise_to_end(order)
        made.close()
        return made

    verdict, _, seen = play_hello(runner, Function(supervise))
    assert verdict is Verdict.ADAPTER_ERROR
    assert "its function is no `async def`, or lacks an await: give a RunReport" in seen


class RaisingSubject:
    """A subject that is no `Function`."""

    name = "raises"
    keeps_artifacts = holds_sessions = False

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def policy(self, request: LimitsRequest) -> Policy:
        """Keep the default."""
        return Policy.for_dialect(request.dialect)

    async def run(self, order: RunRequest) -> RunReport:
        """Raise."""
        raise self.error


def _build_exception_group() -> BaseException:
    return ExceptionGroup("several", [LookupError("no such thing")])


@pytest.mark.parametrize("make", [lambda subject: subject, CheckedSubject], ids=["Function", "subject"])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LookupError("no such thing"), "it raised LookupError: no such thing"),
        (_build_exception_group(), "it raised LookupError: no such thing"),
        (SystemExit(3), "it raised SystemExit: 3"),
        (TimeoutError(), "it raised TimeoutError"),
    ],
    ids=["error", "group", "exit", "timeout"],
)
def test_its_exception_is_reported_with_the_last_lines(
    runner: ScenarioRunner, make: Callable[[Any], Any], error: BaseException, said: str, backend: str
) -> None:
    """Their lines and none of ours; the record up to there is shown, too."""
    subject = RaisingSubject(error)
    asked = make(Function(subject.run) if make is not CheckedSubject else subject)
    play = runner.play(HELLO, asked, backend=backend)
    text = explain_play(play, judge_all_expectations(play))
    assert f"  answer: adapter error\n    expected  an answer\n    seen      {said}\n" in text
    assert re.search(r"^ +tests/process/subjects/test_function\.py:\d+ in run: raise self\.error$", text, re.MULTILINE)
    assert "pytest_agentproc/" not in text
    assert f"EXCEPTION: {said}" in text


def test_an_agent_that_is_left_by_a_function_that_raises_is_a_leak(runner: ScenarioRunner) -> None:
    """The record proves it, whatever was said."""
    children = []

    async def supervise(order: RunRequest) -> None:
        children.append(subprocess.Popen(order.argv, start_new_session=True, stdout=subprocess.DEVNULL))
        await anyio.sleep(1)
        raise LookupError

    verdict, rows, _ = play_hello(runner, Function(supervise))
    children[0].wait()
    assert is_gone(children[0].pid)
    assert (verdict, rows["leaks"]) == (Verdict.CRASHED, Verdict.FAILED)


def test_a_cancellation_that_nobody_asked_for_is_an_error_like_any_other(runner: ScenarioRunner) -> None:
    """It would end the whole event loop otherwise."""
    import asyncio

    async def supervise(_order: RunRequest) -> None:
        raise asyncio.CancelledError

    verdict, _, seen = play_hello(runner, Function(supervise))
    assert verdict is Verdict.ADAPTER_ERROR
    assert seen.startswith("it raised asyncio.exceptions.CancelledError")


@pytest.mark.parametrize(
    ("limits", "applies"),
    [
        (None, False),
        ({"inactivity_timeout": None}, False),
        ({"inactivity_timeout": 60}, True),
        (lambda request: {"inactivity_timeout": 7, **request.limits}, True),
    ],
)
def test_it_is_judged_by_the_limits_that_it_states(runner: ScenarioRunner, limits: Any, applies: bool) -> None:
    """Its numbers are its own; a limit that it does not name it does not have."""

    async def supervise(order: RunRequest) -> dict[str, Any]:
        limit = order.policy.inactivity_timeout
        assert limit is not None
        async with await anyio.open_process(order.argv, start_new_session=True) as agent:
            await anyio.sleep(limit)
            agent.send_signal(signal.SIGTERM)
            await agent.wait()
        return {"outcome": "inactive", "elapsed": limit}

    subject = Function(supervise, limits=limits)
    if not applies:
        with pytest.raises(NotApplicable):
            runner.play(SILENT, subject)
        return
    rows = judge_all_expectations(runner.play(SILENT, subject))
    assert choose_overall_verdict(rows) is Verdict.PASSED, rows


def test_limits_that_are_none_are_the_callers_mistake_or_the_adapters_error() -> None:
    """A mapping is checked where it is written, a function's when it is asked."""
    with pytest.raises(UsageError, match="there is no limit 'inactivity'\nwrite inactivity_timeout"):
        Function(supervise_to_end, limits={"inactivity": 3})
    with pytest.raises(UsageError, match="policy kill_grace is -1"):
        Function(supervise_to_end, limits={"kill_grace": -1})
    with pytest.raises(UsageError, match="there is no dialect 'pie', did you mean pi"):
        Function(supervise_to_end, dialects=["pie"])
    with pytest.raises(UsageError, match="3 is no function"):
        Function(3)  # type: ignore[arg-type]
    for limits, message in [
        (lambda _request: None, "its limits are None, and no mapping"),
        (lambda _request: {"inactivity": 3}, "asked for its limits, it raised .*there is no limit 'inactivity'"),
        (lambda request: request.limits["x"], "asked for its limits, it raised KeyError: 'x'\n  tests/process"),
    ]:
        with pytest.raises(AdapterError, match=message):
            Function(supervise_to_end, limits=limits).policy(LimitsRequest({}, "raw"))


def test_a_dialect_that_it_does_not_claim_is_not_applicable(runner: ScenarioRunner) -> None:
    """A supervisor of one CLI is not judged by how it treats others."""
    with pytest.raises(NotApplicable, match="agents of raw"):
        runner.play(HELLO, Function(supervise_to_end, dialects=["pi"]))


def supervise_without_loop(order: RunRequest) -> dict[str, Any]:
    """Run the agent as a program without an event loop does."""
    completed = subprocess.run(
        order.argv, capture_output=True, text=True, check=False, env=order.env, start_new_session=True
    )
    return {"outcome": "completed", "text": completed.stdout}


@pytest.mark.slow
def test_a_function_that_is_not_async_is_played_in_a_process_of_its_own(runner: ScenarioRunner) -> None:
    """There its thread waits in virtual time, too; the reason has its place."""
    subject = Function(supervise_without_loop)
    line = supervise_without_loop.__code__.co_firstlineno
    assert subject.real_time_only == (
        f"tests/process/subjects/test_function.py:{line}: supervise_without_loop is no `async def`, "
        "so it runs in a thread"
    )
    played = runner.play(HELLO, subject)
    assert played.record.header["arm"] == "preload"
    assert {row.verdict for row in judge_all_expectations(played)} == {Verdict.PASSED}
    rows = {row.key: row.verdict for row in judge_all_expectations(runner.play_real(HELLO, subject, scale=100))}
    elapsed = rows.pop("elapsed")
    assert elapsed in (Verdict.PASSED, Verdict.UNDECIDED), "that it returned soon shows it, if it was soon enough"
    assert rows == {"outcome": Verdict.PASSED, "leaks": Verdict.PASSED}


ASKS = loads(
    "scenario: asks\nagent: raw\n"
    'script: [raw: "Delete build? [y/N] ", wait_for: {stdin: y}, silence: 5s, say: deleted]\n'
    'expect: {outcome: completed, text: deleted, elapsed: 65s, received: {stdin: "y\\n"}}\n'
)


async def answer_in_plain_text(order: RunRequest) -> dict[str, Any]:
    """Answer a minute after the question, as a user does."""
    start = anyio.current_time()
    async with await anyio.open_process(order.argv, env=order.env, cwd=order.cwd) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        seen = b""
        async for data in agent.stdout:
            seen += data
            if seen.endswith(b"[y/N] "):
                await anyio.sleep(60)
                await agent.stdin.send(b"y\n")
    text = seen.decode().rpartition("] ")[2].strip()
    return {"outcome": "completed", "text": text, "elapsed": anyio.current_time() - start}


@pytest.mark.parametrize(
    ("supervise", "verdict"), [(answer_in_plain_text, Verdict.PASSED), (supervise_to_end, Verdict.FAILED)]
)
def test_an_answer_in_plain_text_reaches_stdin(runner: ScenarioRunner, supervise: Any, verdict: Verdict) -> None:
    """The agent asks in words alone, and waits for a line: one that closes its stdin gives no answer."""
    rows = judge_all_expectations(runner.play(ASKS, Function(supervise, limits={})))
    assert choose_overall_verdict(rows) is verdict, rows
