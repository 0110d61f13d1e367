"""Limits of 180 s against children that answer just before, just after and exactly at them, in every language."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.process.preload.stand import require_program, run_in_virtual_time

PROGRAMS = Path(__file__).parent / "programs"

ANSWERS = [("179.999", "data 179999"), ("180.001", "timeout 180000"), ("180", "data 180000")]
"""When the child answers, and what a supervisor with a limit of 180 s sees at which millisecond; on a tie the child
is first."""


@pytest.mark.parametrize(("after", "observed"), ANSWERS)
@pytest.mark.parametrize(
    "command",
    [
        ["node", PROGRAMS / "limit.cjs"],
        [sys.executable, PROGRAMS / "limit.py"],
        ["perl", PROGRAMS / "limit.pl"],
    ],
    ids=["node", "python-threads", "perl-alarm"],
)
def test_a_limit_of_three_minutes_is_exact(command: list[str], after: str, observed: str) -> None:
    """A supervisor that is right in this is judged rightly; one millisecond decides."""
    run = run_in_virtual_time(*command, after)
    assert (run.out.strip(), run.code) == (observed, 0), run.err


@pytest.mark.parametrize(("after", "observed"), [*ANSWERS[:2], ("180", "timeout 180000")])
def test_a_limit_in_bash_is_exact(after: str, observed: str) -> None:
    """`read -t` looks at the clock after the data have come, so bash itself decides a tie for the limit."""
    run = run_in_virtual_time("bash", PROGRAMS / "limit.sh", after)
    assert (run.out.strip(), run.code) == (observed, 0), run.err


@pytest.mark.parametrize(("source", "compiler"), [("limit.c", "cc"), ("limit.rs", "rustc")])
def test_a_compiled_program_is_exact(source: str, compiler: str, tmp_path: Path) -> None:
    """Programs without a runtime wait by other calls: poll, conditions, futexes."""
    program = tmp_path / "limit"
    built = run_in_virtual_time(require_program(compiler), PROGRAMS / source, "-o", program)
    assert built.code == 0, built.err
    assert [run_in_virtual_time(program, after).out.strip() for after, _ in ANSWERS] == [seen for _, seen in ANSWERS]


def test_time_is_exact_to_the_nanosecond(tmp_path: Path) -> None:
    """A program that asks in nanoseconds gets them."""
    source = tmp_path / "sleeper.c"
    source.write_text("#include <time.h>\nint main(void) { struct timespec t = {1, 23}; return nanosleep(&t, 0); }\n")
    assert run_in_virtual_time(require_program("cc"), source, "-o", tmp_path / "sleeper").code == 0
    assert run_in_virtual_time(tmp_path / "sleeper").virtual == "1.000000023"


def test_a_thread_that_is_woken_goes_on_before_time_moves(tmp_path: Path) -> None:
    """The coordinator does not look at a thread that waits for a condition, unless something may have woken it."""
    program = tmp_path / "wakings"
    built = run_in_virtual_time(require_program("cc"), "-pthread", PROGRAMS / "wakings.c", "-o", program)
    assert built.code == 0, built.err
    assert run_in_virtual_time(program).out == "0 late\n"


LOOKS = """
import os, subprocess, sys, time
begun = time.monotonic()
for look in ("wait", "poll", "waitid", "wait4") * 20:
    child = subprocess.Popen(["/bin/true"], stdout=subprocess.PIPE)
    child.stdout.read()
    if look == "waitid":
        seen = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    elif look == "wait4":
        seen = os.wait4(child.pid, os.WNOHANG)[0]
        child.returncode = 0
    else:
        seen = getattr(child, look)(**{"timeout": 60} if look == "wait" else {}) == 0
    assert seen, f"{look} saw a child that has closed its stdout, and has not ended"
    child.wait()
assert time.monotonic() == begun, time.monotonic() - begun
"""


def test_a_look_at_a_child_that_ends_at_this_instant_sees_its_end() -> None:
    """Its pipe ends a moment of the machine before it does: a look in between found it alive, now and then."""
    run = run_in_virtual_time(sys.executable, "-c", LOOKS)
    assert (run.code, run.err) == (0, run.err), run.err
