"""A process below a coordinator writes anything into the page that they share: nobody outside is touched.

The coordinator neither crashes nor hangs, and has no order carried out that the writer could not give itself. By hand,
for 100,000 pages:

    ATTACK_SEED=7 ATTACK_TIMES=100 nice pytest -o faulthandler_timeout=0 tests/attacks/test_page.py -k random -s
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from pytest_agentproc.clock.preload import find_coordinator
from tests.attacks import SEED, TIMES
from tests.process.preload.stand import require_program

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

WRITER = Path(__file__).with_name("page_writer.py")
PAGES, MAX_PAGES_OF_A_WRITER = 500, 500
LIMIT = 60
SECONDS_WITHOUT_A_PAGE = 1
OTHER_USER = "54321"
WAIT, TIMER, ASKS_TO_BE_TRACED = "0", "2", "7"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up rights")


@contextmanager
def start_bystanders(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start processes that no coordinator knows."""
    bystanders = [subprocess.Popen(["sleep", "1000"]) for _ in range(count)]
    try:
        yield bystanders
    finally:
        for bystander in bystanders:
            bystander.kill()
            bystander.wait()


def run_below_coordinator(script: str, *words: str | int, seconds: float = LIMIT) -> subprocess.CompletedProcess[str]:
    """Run a shell in virtual time; `$0` is Python, `$1` the writer, the others are the words."""
    command: list[str | Path] = [find_coordinator(), "sh", "-c", script, sys.executable, WRITER, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)


def count_pages_until_end(watcher: subprocess.Popen[bytes], wanted: int) -> int:
    """Let a writer write so many pages, or until it is stuck or dead; give their number.

    Random numbers may well stop the programs that share the page.
    """
    assert watcher.stdout is not None
    pages = 0
    while pages < wanted and select.select([watcher.stdout], [], [], SECONDS_WITHOUT_A_PAGE)[0]:
        data = os.read(watcher.stdout.fileno(), 65536)
        pages += data.count(b".")
        if b"\n" in data or not data:
            break
    return pages


def end_program(watcher: subprocess.Popen[bytes]) -> int:
    """Kill the program below a coordinator, which must notice its end; give the exit code of the command."""
    with contextlib.suppress(psutil.Error):  # it may have ended by itself
        for coordinator in psutil.Process(watcher.pid).children():
            for program in coordinator.children():
                if "page_writer.py" in " ".join(program.cmdline()):
                    program.kill()
    return watcher.wait(LIMIT)


@pytest.mark.parametrize("library", [[], ["bare"]], ids=["with the library", "without it"])
def test_random_pages_disturb_nobody_outside(library: list[str], tmp_path: Path) -> None:
    """Indexes, counts and states are checked: each of them came from a stranger."""
    script = '(while :; do sleep 1; done) & "$0" "$@"; echo; while :; do sleep 1; done'
    with start_bystanders(3) as bystanders:
        pids, pages, part = [bystander.pid for bystander in bystanders], 0, 0
        for part in range(PAGES * TIMES):
            words = (*library, "fuzz", f"{SEED}-{part}", MAX_PAGES_OF_A_WRITER, os.getpid(), *pids)
            command: list[str | Path] = [
                find_coordinator(),
                "sh",
                "-c",
                script,
                sys.executable,
                WRITER,
                *map(str, words),
            ]
            errors = tmp_path / "errors"
            with (
                errors.open("wb") as stderr,
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr) as watcher,
            ):
                pages += count_pages_until_end(watcher, PAGES * TIMES - pages)
                code = end_program(watcher)
            told = f"seed {SEED}-{part}: {code} {errors.read_text('utf-8', 'replace')}"
            assert code > 128, told
            assert "coordinator" not in told, told
            assert [bystander.poll() for bystander in bystanders] == [None] * 3, told
            if pages >= PAGES * TIMES:
                break
        sys.stdout.write(f"{pages} pages of {part + 1} writers\n")
        assert pages >= PAGES * TIMES


@pytest.mark.parametrize("library", [[], ["bare"]], ids=["with the library", "without it"])
@pytest.mark.parametrize("kind", [WAIT, TIMER])
@pytest.mark.parametrize("uid", ["", pytest.param(OTHER_USER, marks=needs_root)])
def test_an_order_for_a_process_outside_is_not_carried_out(kind: str, uid: str, library: list[str]) -> None:
    """Root's coordinator killed any process whose number a program without rights wrote into the page."""
    with start_bystanders(1) as [bystander]:
        words: list[str | int] = [*library, "order", kind, bystander.pid, bystander.pid, signal.SIGKILL, uid]
        run_below_coordinator('"$0" "$@"', *words)
        assert bystander.poll() is None


STATIC = """
#include <signal.h>
#include <unistd.h>
int main() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_UNBLOCK, &all, NULL);
  for (;;) pause();
}
"""


def test_a_wait_of_a_process_without_the_library_is_not_ended(tmp_path: Path) -> None:
    """The signal that ends a wait would kill a static program, which does not catch it."""
    program, source = tmp_path / "static", tmp_path / "static.c"
    source.write_text(STATIC, "utf-8")
    assert subprocess.run([require_program("cc"), "-static", source, "-o", program], check=False).returncode == 0
    order = f'"$0" "$1" bare order {WAIT} $victim $victim 0'
    script = f'"$2" & victim=$!; {order}; kill -0 $victim && echo lives; kill -9 $victim'
    assert run_below_coordinator(script, str(program)).stdout == "lives\n"


@needs_root
def test_an_order_for_a_process_with_more_rights_is_not_carried_out() -> None:
    """It is below the same coordinator, but the writer could not signal it itself."""
    script = (
        f'sleep 1000 & victim=$!; "$0" "$1" order {TIMER} $victim $victim 9 {OTHER_USER} & sleep 8;'
        " kill -0 $victim && echo lives; kill -9 $victim $!"
    )
    assert run_below_coordinator(script).stdout == "lives\n"


@needs_root
def test_a_process_that_did_not_ask_is_not_traced() -> None:
    """Root's coordinator traced a process of root, as one without rights had asked in its name."""
    script = (
        'sleep 1000 & victim=$!; "$0" "$1" order "$2" $victim $victim 0 "$3";'
        " grep TracerPid /proc/$victim/status; kill -9 $victim"
    )
    assert run_below_coordinator(script, ASKS_TO_BE_TRACED, OTHER_USER).stdout == "TracerPid:\t0\n"


def test_the_page_cannot_be_made_shorter() -> None:
    """The coordinator would die of SIGBUS at its next look."""
    completed = run_below_coordinator('"$0" "$@"; sleep 5; exit 7', "shorten")
    assert completed.returncode == 7
    assert "5 s of virtual time" in completed.stderr
