"""An exception out of a supervisor: whether the supervisor crashed or its adapter is wrong, and the message."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
from asyncio.subprocess import PIPE, create_subprocess_exec
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import Command, Function
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, explain_play, judge_all_expectations
from tests.process.glue import wrap_supervise_function

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

HEAD = "scenario: s\nagent: raw\nexpect: {outcome: completed}\n"
LONG = loads(HEAD + "script: [{raw: {text: x, repeat: 140000}}, {answer: hi}]\n")
BYTES = loads(HEAD + "script: [{raw: {hex: ff 0a}}, {answer: hi}]\n")
MISSING = loads(
    "scenario: s\nagent: {dialect: raw, cannot_spawn: not_found}\nscript: []\nexpect: {outcome: spawn_failed}\n"
)


async def read_lines(order: RunRequest) -> str:
    """Read lines as asyncio's documentation shows it: a line has at most 64 KiB, and is UTF-8."""
    agent = await create_subprocess_exec(*order.argv, env=order.env, stdout=PIPE)
    assert agent.stdout is not None
    try:
        while line := await agent.stdout.readline():
            line.decode()
    finally:
        await agent.communicate()
    return "completed"


async def raise_before_start(_order: RunRequest) -> str:
    """Raise before an agent is started."""
    models: dict[str, str] = {}
    return models["model"]


async def start_with_too_long_a_prompt(order: RunRequest) -> str:
    """Start the agent with a prompt that is longer than the kernel lets an argument be."""
    await create_subprocess_exec(*order.argv, "x" * 200_000, env=order.env)
    return "completed"


async def raise_in_a_group(order: RunRequest) -> str:
    """Raise in a task that an anyio task group holds."""

    async def look() -> None:
        raise KeyError("type")

    async with anyio.create_task_group() as group:
        group.start_soon(look)
    return str(order)


async def exit_process(order: RunRequest) -> str:
    """Run the agent, and call `sys.exit`."""
    await anyio.run_process(order.argv, env=order.env)
    raise SystemExit(3)


def play_and_list_rows(runner: ScenarioRunner, scenario: Any, function: Callable[[RunRequest], Awaitable[Any]]) -> Any:
    """Play a scenario, and give its rows and its text."""
    played = runner.play(scenario, Function(function))
    rows = judge_all_expectations(played)
    return rows, explain_play(played, rows)


@pytest.mark.parametrize(
    ("scenario", "supervise", "said"),
    [
        (LONG, read_lines, "ValueError: Separator is not found, and chunk exceed the limit"),
        (
            BYTES,
            read_lines,
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        (BYTES, raise_before_start, "KeyError: 'model'"),
        (BYTES, raise_in_a_group, "KeyError: 'type'"),
        (BYTES, exit_process, "SystemExit: 3"),
        (MISSING, read_lines, "FileNotFoundError: "),
    ],
    ids=["64 KiB", "no UTF-8", "too early", "group", "exit", "cannot start"],
)
def test_an_exception_of_the_supervisor_is_a_crash(
    runner: ScenarioRunner, scenario: Any, supervise: Any, said: str
) -> None:
    """A maintainer looks where the frames are: in the supervisor, not in the kit, the event loop or the library."""
    rows, text = play_and_list_rows(runner, scenario, wrap_supervise_function(supervise))
    assert (choose_overall_verdict(rows), rows[0].key, rows[0].verdict) == (Verdict.CRASHED, "answer", Verdict.CRASHED)
    raised, *frames = rows[0].seen.splitlines()
    assert raised.startswith(f"it raised {said}")
    assert re.fullmatch(r"  tests/process/glue\.py:\d+ in adapter: return await supervise\(order\)", frames[0])
    assert {frame.split(":")[0].strip() for frame in frames[1:]} == {"tests/process/subjects/test_crash.py"}
    assert "  answer: crashed\n    expected  an answer\n    seen      it raised " in text
    assert "EXCEPTION: it raised " in text
    assert "the run ended in a crash" in {row.seen for row in rows}


@pytest.mark.parametrize(
    ("scenario", "supervise", "verdict"),
    [
        (BYTES, raise_before_start, Verdict.ADAPTER_ERROR),
        (MISSING, raise_before_start, Verdict.ADAPTER_ERROR),
        (BYTES, read_lines, Verdict.CRASHED),
        (MISSING, read_lines, Verdict.CRASHED),
        (BYTES, start_with_too_long_a_prompt, Verdict.CRASHED),
    ],
    ids=["too early", "too early, cannot start", "no UTF-8", "cannot start", "prompt too long"],
)
def test_an_exception_of_the_adapters_module_is_its_error_until_an_agent_is_started(
    runner: ScenarioRunner, scenario: Any, supervise: Any, verdict: Verdict
) -> None:
    """A supervisor of one file is its own adapter: once an agent is started, every action is the supervisor's."""
    rows, text = play_and_list_rows(runner, scenario, supervise)
    assert choose_overall_verdict(rows) is rows[0].verdict is verdict, text


def test_a_supervisor_in_a_thread_crashes_too(runner: ScenarioRunner) -> None:
    """In real time nothing is different."""

    def supervise(order: RunRequest) -> str:
        return asyncio.run(read_lines(order))

    played = runner.play_real(BYTES, Function(supervise))
    assert choose_overall_verdict(judge_all_expectations(played)) is Verdict.CRASHED


async def handle_child_signals(order: RunRequest) -> str:
    """Have the event loop handle a signal."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, lambda: None)
    return str(order)


@pytest.mark.parametrize(
    ("handle", "said"),
    [
        (lambda _order: signal.signal(signal.SIGCHLD, lambda *_: None), "signal only works in main thread"),
        (lambda order: asyncio.run(handle_child_signals(order)), "set_wakeup_fd only works in main thread"),
    ],
    ids=["signal", "asyncio"],
)
def test_a_function_that_needs_the_main_thread_is_to_be_called_by_a_program(
    runner: ScenarioRunner, handle: Any, said: str
) -> None:
    """The kit chose the thread, so the exception says nothing of the supervisor."""
    row = judge_all_expectations(runner.play_real(BYTES, Function(handle)))[0]
    assert row.verdict is Verdict.ADAPTER_ERROR
    assert row.seen.splitlines() == [
        f"the kit calls it in a thread, and {said} of the main interpreter",
        "write a program that calls it, and a wrapper.toml for that program",
    ]


PYTHON = """import subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True)
done.stdout.decode()
"""
READS = {"outcome": {"exit_code": {"0": "completed", "other": "failed"}}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "verdict", "said"),
    [
        (
            ["node", "-e", "throw new Error('boom')", "{agent}"],
            Verdict.ADAPTER_ERROR,
            "it exits with code 1 before it starts an agent: Error: boom\nhave it start {agent}; *",
        ),
        (
            ["sh", "-c", "no-such-program {agent}"],
            Verdict.ADAPTER_ERROR,
            "it exits with code 127 before it starts an agent: sh: 1: no-such-program: not found\nhave it start *",
        ),
        (
            ["sh", "-c", "exec /bin/true $(head -c 200000 /dev/zero | tr '\\0' x) # {agent}"],
            Verdict.FAILED,
            "it exits with code 126: the kernel refused its start, as the command line is too long: *too long\none *",
        ),
        (
            ["node", "-e", "require('child_process').execFileSync('true', ['x'.repeat(200000)])", "{agent}"],
            Verdict.FAILED,
            "it exits with code 1: the kernel refused its start, as the command line is too long: *E2BIG\none *",
        ),
        (
            ["python3", "-c", PYTHON, "{agent}"],
            Verdict.CRASHED,
            "it exits with code 1: UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: *",
        ),
        (["sh", "-c", "{agent} >/dev/null; kill -SEGV $$"], Verdict.CRASHED, "it dies of SEGV"),
        (["sh", "-c", "{agent} >/dev/null; exit 1"], Verdict.FAILED, "failed"),
        (["true", "{agent}"], Verdict.NOT_EXERCISED, "no agent was started; completed"),
    ],
    ids=["no start", "not found", "too long", "too long in Node", "traceback", "signal", "exit code", "nothing done"],
)
def test_the_end_of_a_program_says_what_went_wrong(
    runner: ScenarioRunner, program: list[str], verdict: Verdict, said: str
) -> None:
    """A program that never starts an agent is called wrongly; a program that ends in a traceback has crashed."""
    if shutil.which(program[0]) is None:
        pytest.skip(f"there is no {program[0]}")
    rows = judge_all_expectations(runner.play_real(BYTES, Command(program, says=READS)))
    assert (choose_overall_verdict(rows), rows[0].verdict) == (verdict, verdict), rows
    assert re.fullmatch(re.escape(said).replace(r"\*", ".*"), rows[0].seen)


BY_FILE = {"outcome": {"json": "result.json", "key": "outcome"}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("a.rb:3:in `block in drain': no good (NoMethodError)\n\tfrom a.rb:9:in `<main>'", "no good (NoMethodError)"),
        ("a.rb:3:in 'Run#call': Broken pipe (Errno::EPIPE)", "Broken pipe (Errno::EPIPE)"),
        ("PHP Fatal error:  Uncaught TypeError: no in /a.php:2\nStack trace:\n#0 /a.php(3): go()", "TypeError: no"),
        ('Exception in thread "main" java.lang.Error: no\n\tat A.main(A.java:1)', "java.lang.Error: no"),
        (
            'Exception in thread "main" java.lang.StackOverflowError\n'
            + "\tat java.base/a.b.C.match(C.java:1)\n" * 1024,
            "java.lang.StackOverflowError",
        ),
        ('Traceback:\n  File "a.py", line 1, in <module>\nValueError: no', "ValueError: no"),
    ],
    ids=["ruby", "ruby 3.4", "php", "java", "java, a deep stack", "python"],
)
def test_a_program_that_crashes_before_its_report_has_crashed(runner: ScenarioRunner, stderr: str, said: str) -> None:
    """No check fails where it reports nothing, and 'it does not report' would hide the exception."""
    program = ["sh", "-c", f"{{agent}} >/dev/null; cat >&2 <<'E'\n{stderr}\nE\nexit 1"]
    rows = judge_all_expectations(runner.play_real(BYTES, Command(program, says=BY_FILE)))
    assert (rows[0].verdict, rows[0].seen) == (Verdict.CRASHED, f"it exits with code 1: {said}")
    assert {row.verdict for row in rows[1:]} <= {Verdict.NOT_EXERCISED, Verdict.PASSED}


@pytest.mark.slow
def test_a_program_that_reports_nothing_and_does_not_crash_is_undecided(runner: ScenarioRunner) -> None:
    """An exit code alone is no exception."""
    program = ["sh", "-c", "{agent} >/dev/null; echo no room >&2; exit 1"]
    rows = judge_all_expectations(runner.play_real(BYTES, Command(program, says=BY_FILE)))
    assert choose_overall_verdict(rows) is Verdict.UNDECIDED


@pytest.mark.slow
def test_a_traceback_on_stderr_is_no_failure_by_itself(runner: ScenarioRunner) -> None:
    """A supervisor may log an exception that it has dealt with, and say by its exit code that the agent failed."""
    fails = loads("scenario: s\nagent: raw\nexpect: {outcome: failed}\nscript: [{raw: {hex: ff 0a}}, {exit: 3}]\n")
    rows = judge_all_expectations(runner.play_real(fails, Command(["python3", "-c", PYTHON, "{agent}"], says=READS)))
    assert choose_overall_verdict(rows) is Verdict.PASSED, rows
