"""Supervisors that are no async Python, judged in virtual time: a program, a function in a thread, a stranger."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from pytest_agentproc.harness import ScenarioRunner, _preload
from pytest_agentproc.harness._preload import PreloadRunner
from pytest_agentproc.scenario import load
from pytest_agentproc.subjects import Command, Function
from pytest_agentproc.verdict import Verdict, judge_play
from tests.bundled import load_bundled
from tests.event_lines import list_lines
from tests.process.preload.stand import require_program, require_tracing, run_in_virtual_time
from tests.process.preload.supervising import supervise_with_thread
from tests.process.stand import is_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.vocabulary import RunReport, RunRequest, Subject

PROGRAMS = Path(__file__).parent / "programs"
LIMITS = {"inactivity_timeout": 180, "kill_grace": 5}
"""Hard-coded in each: real time can judge them at scale 1 only, in minutes."""
SAYS = {"outcome": {"exit_code": {0: "completed", 124: "inactive", "other": "failed"}}}
POLLS = """
import subprocess, sys, time
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
while agent.poll() is None:
    time.sleep(0.02)
time.sleep(0.03)
"""

LOOKS_AND_WRITES = """
import os, selectors, subprocess, sys
folder, *argv = sys.argv[1:]
prompt = sys.stdin.buffer.read()
agent = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
os.set_blocking(agent.stdin.fileno(), False)
selector = selectors.DefaultSelector()
selector.register(agent.stdin, selectors.EVENT_WRITE)
selector.register(agent.stdout, selectors.EVENT_READ)
while agent.poll() is None:
    for key, _ in selector.select(9):
        if key.fileobj is agent.stdin:
            prompt = prompt[os.write(key.fd, prompt[:65536]):]
        elif not os.read(key.fd, 65536):
            selector.unregister(agent.stdout)
with open(folder + "/result.json", "w") as file:
    file.write('{"outcome": "failed"}')
"""

WAKES_BY_OUTPUT = """
import os, selectors, signal, subprocess, sys
agent = subprocess.Popen(
    sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
)
selector = selectors.DefaultSelector()
selector.register(agent.stdout, selectors.EVENT_READ)
selector.register(agent.stderr, selectors.EVENT_READ)
code = 0
while agent.poll() is None and not code:
    ready = selector.select(90)
    code = 0 if ready else 124
    for key, _ in ready:
        if not os.read(key.fd, 65536):
            selector.unregister(key.fileobj)
os.killpg(agent.pid, signal.SIGKILL)
sys.exit(code or agent.wait())
"""

SIGNALLED_AT_WORK = f"""\
scenario: an agent that says much and exits in the same instant does so, though its child signals it meanwhile
agent: raw
script:
  - spawn: {{id: child, script: [{{kill: {{id: parent, signal: TERM}}}}]}}
{f"  - say: more{chr(10)}" * 3000}
  - exit: 3
expect: {{signals: []}}
"""
DEAF = """\
scenario: an agent that says nothing and ignores TERM is killed
agent: raw
script: [{when: {signal: TERM}, do: []}, {silence: for ever}]
expect:
  signals: [{TERM: inactivity_timeout}, {KILL: inactivity_timeout + kill_grace}]
  returned: inactivity_timeout + kill_grace
"""
LATE = """\
scenario: an agent that speaks a millisecond before the limit is left alone
agent: raw
script: [{silence: inactivity_timeout - 1ms}, {say: hello}, {silence: 1s}, {exit: 0}]
expect: {signals: [], outcome: completed}
"""


@pytest.fixture(scope="module")
def runner() -> Iterator[ScenarioRunner]:
    """Have one process below the coordinator for all plays of this file."""
    with ScenarioRunner() as runner:
        yield runner


KINDS = ["node", "c", "bash", "rust", "thread", "static c", "musl c", "go"]
"""The last three are traced."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_hard_coded_minutes_are_judged_exactly(runner: ScenarioRunner, kind: str, tmp_path: Path) -> None:
    """185 s pass in a moment, each signal comes at its millisecond, and two plays have the same record."""
    subject = build_supervisor(kind, tmp_path, LIMITS)
    plays = [_play_text(runner, tmp_path, text, subject) for text in (DEAF, LATE, DEAF)]
    for played in plays:
        assert (played.record.header["clock"], played.record.header["arm"]) == ("virtual", "preload")
        judgement = judge_play(played)
        assert judgement.verdict is Verdict.PASSED, [(row.key, row.seen, row.wanted) for row in judgement.rows]
    assert plays[0].record.digest() == plays[2].record.digest()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_that_is_wrong_by_a_second_is_red(runner: ScenarioRunner, kind: str, tmp_path: Path) -> None:
    """A supervisor that keeps other limits than it states fails, by the exact instants."""
    subject = build_supervisor(kind, tmp_path, {**LIMITS, "kill_grace": 6})
    rows = {row.key: row for row in judge_play(_play_text(runner, tmp_path, DEAF, subject)).rows}
    assert rows["signals"].verdict is Verdict.FAILED
    assert (rows["signals"].wanted, rows["signals"].seen) == (
        "TERM at 180 s, KILL at 186 s",
        "TERM at 180 s, KILL at 185 s",
    )


def build_supervisor(kind: str, folder: Path, limits: dict[str, int]) -> Subject:
    """Make one of the kinds; C and Rust are compiled into the folder."""
    if kind == "thread":
        return Function(supervise_with_thread, limits=limits)
    return Command([*_build_command(kind, folder), "{agent}"], limits=limits, says=SAYS)


def _build_command(kind: str, folder: Path) -> list[str]:
    if kind == "node":
        return [require_program("node"), str(PROGRAMS / "supervisor.mjs")]
    if kind == "bash":
        return [require_program("bash"), str(PROGRAMS / "supervisor.sh")]
    compiler, source = {
        "c": (["cc"], "supervisor.c"),
        "static c": (["cc", "-static"], "supervisor.c"),
        "musl c": (["musl-gcc"], "supervisor.c"),
        "rust": (["rustc"], "supervisor.rs"),
        "go": (["go", "build"], "supervisor.go"),
    }[kind]
    if kind in ("static c", "musl c", "go"):
        require_tracing()
    made = subprocess.run(
        [require_program(compiler[0]), *compiler[1:], "-o", folder / "supervisor", PROGRAMS / source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return [str(folder / "supervisor")]


def _play_text(runner: ScenarioRunner, folder: Path, text: str, subject: Subject) -> PlayResult:
    path = folder / "one.scenario.yaml"
    path.write_text(text, "utf-8")
    return runner.play(load(path), subject)


@pytest.mark.slow
def test_a_program_that_polls_is_judged_with_its_period(runner: ScenarioRunner, tmp_path: Path) -> None:
    """It sees the end of its agent at one of its looks, every 20 ms, and may be late by some of them."""
    played = _play_text(runner, tmp_path, SHORT, Command([sys.executable, "-c", POLLS, "{agent}"], limits=LIMITS))
    assert played.polling is not None
    assert played.polling.period == 20_000_000
    assert judge_play(played).verdict is Verdict.PASSED


def test_a_program_that_polls_for_ever_is_given_up_soon(runner: ScenarioRunner, tmp_path: Path) -> None:
    """An hour of its looks would take minutes of the machine. It has the time of all its limits, and a minute."""
    stated = Command([sys.executable, "-c", LOOKS_FOR_EVER, "{agent}"], limits=LIMITS)
    played = _play_text(runner, tmp_path, SHORT, stated)
    assert str(played.fault) == "the supervisor did not return within 246 virtual seconds"


def test_a_program_that_never_kills_and_polls_is_given_up_after_its_graces(
    runner: ScenarioRunner, tmp_path: Path
) -> None:
    """Once an agent has outlived TERM and the graces, no limit on its run can end it any more, however long it is."""
    limits = {**LIMITS, "max_runtime": 3000}
    played = _play_text(runner, tmp_path, DEAF, Command([sys.executable, "-c", NEVER_KILLS, "{agent}"], limits=limits))
    assert str(played.fault) == "the supervisor did not return within 245 virtual seconds"


def test_the_result_of_a_play_that_was_broken_off_is_not_the_next_ones(
    runner: ScenarioRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit of the test's own, such as that of pytest-timeout, raises in the middle of it."""
    subject = Command(["timeout", "60", "{agent}"], limits=LIMITS)

    def break_off(_runner: PreloadRunner) -> None:
        raise TimeoutError

    with monkeypatch.context() as patch:
        patch.setattr(_preload, "_RESULT_POLL_SECONDS", 0)
        patch.setattr(PreloadRunner, "_require_all_in_virtual_time", break_off)
        with pytest.raises(TimeoutError):
            _play_text(runner, tmp_path, LATE, subject)
    assert _play_text(runner, tmp_path, SHORT, subject).bound.scenario.claim == "it ends by itself"


@pytest.mark.parametrize("role", ["watcher", "coordinator", "play server"])
def test_a_process_that_was_killed_between_two_plays_is_started_again(
    runner: ScenarioRunner, tmp_path: Path, role: str
) -> None:
    """The next play had no verdict, though nothing happened in it."""
    subject = Function(supervise_with_thread, limits=LIMITS)
    _play_text(runner, tmp_path, SHORT, subject)
    watcher = psutil.Process(runner._preload._process.pid)  # type: ignore[union-attr]  # noqa: SLF001
    [coordinator] = watcher.children()
    [server] = coordinator.children()
    {"watcher": watcher, "coordinator": coordinator, "play server": server}[role].kill()
    assert all(is_gone(process.pid) for process in (server, coordinator, watcher))
    assert judge_play(_play_text(runner, tmp_path, SHORT, subject)).verdict is Verdict.PASSED


LOOKS_FOR_EVER = """
import subprocess, sys, time
agent = subprocess.Popen(sys.argv[1:])
while True:
    time.sleep(0.02)
"""
NEVER_KILLS = """
import subprocess, sys, time
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
time.sleep(170)
agent.terminate()
while agent.poll() is None:
    time.sleep(0.02)
"""
SHORT = (
    "scenario: it ends by itself\nagent: raw\nscript: [{silence: 1s}, {exit: 0}]\nexpect: {signals: [], returned: 1s}\n"
)
STATIC = """
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
  int status = 0;
  if (!fork()) execv(words[count > 1], words + 1);
  return wait(&status) < 0 || status;
}
"""


def test_a_supervisor_out_of_reach_is_judged_in_real_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never silently wrong: the record says which clock it was, and why."""
    monkeypatch.setenv("AGENTPROC_CLOCK_TRACE", "0")
    (tmp_path / "static.c").write_text(STATIC)
    program = tmp_path / "static"
    assert run_in_virtual_time(require_program("cc"), "-static", tmp_path / "static.c", "-o", program).code == 0
    with ScenarioRunner() as runner:
        played = _play_short(runner, tmp_path, Command([str(program), "{agent}"], limits=LIMITS))
    reason = played.record.header["out_of_reach"]
    assert reason == (
        "static: it is a setuid or 32-bit program, or one that may not be traced, which virtual time cannot reach"
    )


def test_a_function_that_cannot_be_sent_is_judged_in_real_time(runner: ScenarioRunner, tmp_path: Path) -> None:
    """A function inside a test has no name under which another process would find it."""

    def inner(order: RunRequest) -> RunReport:
        return supervise_with_thread(order)

    played = _play_short(runner, tmp_path, Function(inner, limits=LIMITS))
    assert played.record.header["out_of_reach"].startswith("inner cannot be sent to another process: ")


def _play_short(runner: ScenarioRunner, folder: Path, subject: Subject) -> PlayResult:
    played = _play_text(runner, folder, SHORT, subject)
    assert (judge_play(played).verdict, played.record.header["clock"]) == (Verdict.PASSED, "real")
    return played


@pytest.mark.slow
def test_an_agent_does_all_of_an_instant_before_a_signal_of_that_instant(
    runner: ScenarioRunner, tmp_path: Path
) -> None:
    """Whichever was faster had decided: a client of codex signals it at the words with which codex ends."""
    played = _play_text(runner, tmp_path, SIGNALLED_AT_WORK, Command(["{agent}"], says=SAYS))
    ends = [event.data for event in list_lines(played.record) if event.code == "x" and event.data["process"] == "agent"]
    assert ends == [{"process": "agent", "code": 3}]


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["claude", "codex"])
def test_a_program_that_looks_for_the_exit_still_meets_the_broken_pipe(runner: ScenarioRunner, dialect: str) -> None:
    """A look for an ended child waits for its exit, so the pipe has to break before the agent exits."""
    words = [sys.executable, "-c", LOOKS_AND_WRITES, "{folder}", "{agent}"]
    says = {"outcome": {"json": "result.json", "key": "outcome"}}
    subject = Command(words, prompt_on_stdin=True, says=says, dialects=[dialect])
    judgement = judge_play(runner.play(load_bundled(f"{dialect}-exits-before-it-reads"), subject))
    assert judgement.verdict is Verdict.CRASHED
    assert judgement.rows[0].seen == "it exits with code 1: BrokenPipeError: [Errno 32] Broken pipe"


@pytest.mark.slow
def test_a_program_that_only_output_wakes_is_late_for_an_exit_without_output(runner: ScenarioRunner) -> None:
    """A helper holds the pipes, so the exit alone wakes it; it is no longer at the look after the last output."""
    subject = Command(
        [sys.executable, "-c", WAKES_BY_OUTPUT, "{agent}"],
        limits={"inactivity_timeout": 90, "kill_grace": 0, "leftover_kill_grace": 0},
        says=SAYS,
        dialects=["codex"],
    )
    judgement = judge_play(runner.play(load_bundled("codex-crashes-and-leaves-a-child"), subject))
    rows = {row.key: (row.verdict, row.seen) for row in judgement.rows}
    assert rows["outcome"] == (Verdict.FAILED, "inactive")
