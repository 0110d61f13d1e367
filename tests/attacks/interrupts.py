"""Interrupt a block of the kit at each of its calls, and say where the interpreter was not as before afterwards.

Usage: interrupts.py BLOCK [STEP [FIRST]], with a TMPDIR of its own. A STEP of 7 takes each seventh call. The output is
one line of JSON for each wrong call, then one with the number of calls. An interrupt is a SIGINT that is raised as a
call begins, or as a call of C ends: there Python looks for signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import multiprocessing.process
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections import Counter
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import anyio
import freezegun.api
from anyio._backends._asyncio import AsyncIOBackend

from pytest_agentproc import machine
from pytest_agentproc.clock import VirtualClock, current_clock, make_popen_limits_exact
from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.harness._open_stdin import keep_stdin_open
from pytest_agentproc.harness._signal_guard import guard_signals
from pytest_agentproc.interrupts import end_left_blocks
from pytest_agentproc.subjects import Function, reference_supervisor
from pytest_agentproc.tree import LeakTracker, adopt_orphans_in_block
from pytest_agentproc.tree._prctl import is_subreaper
from tests.process.preload.supervising import supervise_with_thread
from tests.process.stand import build_scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import FrameType

PATCHED_MODULES = (
    *("asyncio", "asyncio.events", "asyncio.selector_events", "asyncio.unix_events", "datetime", "os", "select"),
    *("signal", "socket", "subprocess", "sys", "threading", "time", "freezegun.api", "trio.to_thread", "trio._threads"),
    *("trio._core._run", "trio._core._wakeup_socketpair", "anyio._backends._asyncio", __name__),
)
PATCHED_CLASSES = (subprocess.Popen, threading.Thread, multiprocessing.process.BaseProcess, AsyncIOBackend)
"""What a block of the kit may put something into."""
INTERRUPTED_FOLDERS = ("/pytest_agentproc/", "/contextlib.py", "/freezegun/")
TIMES_OF_A_PLACE = 3
"""A loop over all modules is no new place at each turn."""
LOST_DESCRIPTORS = 1
"""The number of a descriptor is lost if it was opened as the interrupt came."""
ALARM = signal.SIGRTMAX - 2
SCENARIO = build_scenario("- silence: 1s\n- answer: done")
SUPERVISOR = Function(supervise_with_thread, limits={"inactivity_timeout": 180, "kill_grace": 5}, dialects=["raw"])


def read_state() -> dict[str, Any]:
    """Read all that a block may change, of this interpreter and this process."""
    state: dict[str, Any] = {
        f"{getattr(owner, '__name__', '')}.{name}": id(value)
        for owner in (*map(import_module, PATCHED_MODULES), *PATCHED_CLASSES)
        for name, value in vars(owner).items()
        if callable(value) or isinstance(value, ModuleType | staticmethod | classmethod)
    }
    numbers = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    return state | {
        "handlers": {int(number): repr(signal.getsignal(number)) for number in numbers},
        "alarm": signal.getitimer(signal.ITIMER_REAL)[1],
        "freezegun": (len(freezegun.api.freeze_factories), len(freezegun.api.tz_offsets)),
        "stdin": (os.fstat(0).st_ino, id(sys.stdin)),
        "environment": dict(os.environ),
        "adopts": is_subreaper(),
        "clock": current_clock(),
        "is virtual": machine.read_virtual_start(),
    }


def count_descriptors() -> int:
    """Count the open descriptors."""
    return len(list(Path("/proc/self/fd").iterdir()))


def read_resources() -> dict[str, Any]:
    """Read what a block may leave that goes with the last reference to it."""
    gc.collect()
    return {
        "children": sorted(Path("/proc/thread-self/children").read_text("ascii").split()),
        "files": sorted(map(str, Path(os.environ["TMPDIR"]).iterdir())),
    }


def _run_clock(backend: str) -> None:
    with VirtualClock() as clock:
        clock.run(partial(anyio.sleep, 1), backend=backend)


def _enter(make: Callable[[], AbstractContextManager[Any]]) -> None:
    with make():
        pass


def _make_loops() -> None:
    with VirtualClock() as clock, clock.make_loops_virtual():
        asyncio.run(asyncio.sleep(1))


def _track_leaks() -> None:
    with contextlib.closing(LeakTracker()) as tracker:
        tracker.begin()
        with tracker.pause():
            pass


def _make_fake() -> None:
    with ScenarioRunner() as runner:
        runner.make_fake(SCENARIO)


def _play() -> None:
    with ScenarioRunner() as runner:
        runner.play(SCENARIO, reference_supervisor())


def _play_on_trio() -> None:
    with ScenarioRunner() as runner:
        runner.play(SCENARIO, reference_supervisor(), backend="trio")


def _play_below_coordinator() -> None:
    with ScenarioRunner() as runner:
        runner.play(SCENARIO, SUPERVISOR)


BLOCKS: dict[str, Callable[[], object]] = {
    "asyncio": partial(_run_clock, "asyncio"),
    "trio": partial(_run_clock, "trio"),
    "loops": _make_loops,
    "popen": partial(_enter, make_popen_limits_exact),
    "signals": partial(_enter, lambda: guard_signals(lambda _event: None, int)),
    "stdin": partial(_enter, keep_stdin_open),
    "adoption": partial(_enter, adopt_orphans_in_block),
    "leaks": _track_leaks,
    "fake": _make_fake,
    "play": _play,
    "play on trio": _play_on_trio,
    "play below a coordinator": _play_below_coordinator,
    "below a coordinator": partial(_enter, lambda: machine.enter_virtual_time(0, ALARM)),
}


class Interrupter:
    """Raise one interrupt at a call of a block.

    Args:
        number: which call, from 0.
    """

    def __init__(self, number: int) -> None:
        self.place = ""
        self.count = 0
        self.error: BaseException | None = None
        """It holds all frames, and so all blocks: none is ended because nobody refers to it any more."""
        self._number = number
        self._times_by_place: Counter[tuple[str, str, int]] = Counter()

    def run(self, block: Callable[[], object]) -> str:
        """Run a block; say how it ended."""
        try:
            with end_left_blocks():
                sys.setprofile(self._look)
                block()
                sys.setprofile(None)
        except BaseException as error:  # noqa: BLE001  # what is raised in place of the interrupt is what this looks for
            self.error = error
            return "interrupted" if type(error) is KeyboardInterrupt else repr(error)
        finally:
            sys.setprofile(None)
        return "ended"

    def _look(self, frame: FrameType, event: str, _given: object) -> None:
        file = frame.f_code.co_filename
        if event not in ("call", "c_return") or not any(word in file for word in INTERRUPTED_FOLDERS):
            return
        self._times_by_place[event, file, frame.f_lineno] += 1
        if self._times_by_place[event, file, frame.f_lineno] > TIMES_OF_A_PLACE:
            return
        self.count += 1
        if self.count == self._number + 1:
            sys.setprofile(None)
            self.place = f"{event} {file}:{frame.f_lineno} {frame.f_code.co_name}"
            signal.raise_signal(signal.SIGINT)


def main() -> None:
    """Interrupt the block at its calls, one after the other, each in a new run of it."""
    block = BLOCKS[sys.argv[1]]
    step, number = int((sys.argv[2:] or ["1"])[0]), int((sys.argv[3:] or ["0"])[0])
    for _ in range(2):
        block()  # what is loaded late and what is kept
    before, tried = read_state() | read_resources(), 0
    while True:
        interrupter, descriptors = Interrupter(number), count_descriptors()
        ended = interrupter.run(block)
        if not interrupter.place:
            break
        after = read_state()
        trace = [] if ended == "interrupted" else traceback.format_exception(interrupter.error)[-8:]
        interrupter.error = None
        after |= read_resources()
        changed = {name: (before[name], after.get(name)) for name in before if after.get(name) != before[name]}
        if (kept := count_descriptors() - descriptors) > LOST_DESCRIPTORS:
            changed["descriptors"] = (0, kept)
        if changed or trace:
            line = {"number": number, "place": interrupter.place, "ended": ended, "changed": changed, "trace": trace}
            sys.stdout.write(f"{json.dumps(line)}\n")
            sys.stdout.flush()
        tried += 1
        number += step
    sys.stdout.write(f"{json.dumps({'tried': tried})}\n")


if __name__ == "__main__":
    main()
