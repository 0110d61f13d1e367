"""A program that runs without end fails within the guard of real time and is named; no process of it is left."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from pytest_agentproc.clock import VirtualClock
from pytest_agentproc.clock._hub import Hub
from pytest_agentproc.errors import ClockError, Hang, Spin, Stall
from pytest_agentproc.supervisor import Policy, run_once
from tests.process.stand import CEILING, build_scenario, format_line_of, is_gone, make_spinning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.harness import ScenarioRunner
    from tests.process.stand import Stand

GUARD = 0.2


def run_into_fault(stand: Stand, backend: str, host: Callable[[], Any], *, least: float = GUARD * 0.9) -> ClockError:
    """Run into a fault; give it once every process has ended: in time, but not before the given seconds."""
    start = time.monotonic()
    with pytest.raises(ClockError) as found:
        stand.run(host, backend=backend)
    assert least <= time.monotonic() - start <= CEILING
    assert all(is_gone(pid) for pid in stand.pids())
    return found.value


@pytest.fixture
def guarded(make_stand: Callable[..., Stand]) -> Stand:
    """Give a stand with a very short guard, after all modules of a first run are loaded."""
    for name in ("asyncio", "trio"):
        make_stand().run(anyio.sleep, 0, backend=name)
    return make_stand(guard=GUARD)


@pytest.mark.slow
def test_an_agent_that_spins_is_a_stall_that_names_its_line(guarded: Stand, backend: str) -> None:
    """A program that neither parks nor speaks is never taken for a silent one; it is killed."""
    argv = make_spinning(guarded.fake("- say: hello\n- silence: 1s"))

    async def host() -> None:
        await anyio.run_process(argv)

    found = run_into_fault(guarded, backend, host)
    (pid,) = guarded.pids()
    assert isinstance(found, Stall)
    assert str(found).splitlines() == [
        f"agent (pid {pid}) runs on, last at start: it neither parked nor spoke for {GUARD:g} s",
        f"the supervising program waits at {format_line_of(host)}",
    ]


@pytest.mark.slow
def test_a_descendant_that_spins_is_named_too(guarded: Stand, backend: str) -> None:
    """The spinning process is named, and the whole tree is ended."""
    argv = make_spinning(guarded.fake("- spawn: {id: helper, script: [{silence: 1s}]}\n- wait_for: signal"))

    async def host() -> None:
        async with await anyio.open_process(argv) as process:
            await process.wait()

    found = run_into_fault(guarded, backend, host)
    assert isinstance(found, Stall)
    assert str(found).startswith("helper (pid ")
    assert len(guarded.pids()) == 2


@pytest.mark.slow
def test_a_supervised_agent_that_spins_is_a_stall(guarded: Stand, backend: str) -> None:
    """The reference supervisor's own run ends in the same fault, and its agent is reaped."""
    argv = make_spinning(guarded.fake("- silence: 1s"))

    async def host() -> None:
        await run_once(argv, policy=Policy(inactivity_timeout=60))

    assert isinstance(run_into_fault(guarded, backend, host), Stall)


@pytest.mark.slow
def test_a_program_that_yields_for_ever_is_a_spin(guarded: Stand, backend: str) -> None:
    """`while True: await sleep(0)` never lets time move; it is cancelled and named."""

    async def host() -> None:
        while True:
            await anyio.lowlevel.checkpoint()

    found = run_into_fault(guarded, backend, host)
    assert isinstance(found, Spin)
    assert f"the {backend} loop ran " in str(found)
    assert str(found).endswith(f"times, for {GUARD:g} s, without a pause, a byte or a jump")


@pytest.mark.slow
def test_a_program_that_computes_for_ever_is_a_spin_that_names_its_line(guarded: Stand, backend: str) -> None:
    """A callback in a pure loop never comes back to its event loop: the alarm says where it is."""
    argv = guarded.fake("- silence: for ever")

    async def host() -> None:
        async with await anyio.open_process(argv):
            while True:
                pass

    found = run_into_fault(guarded, backend, host)
    assert isinstance(found, Spin)
    said = "the supervising program computes, or waits in a call that blocks its loop"
    said += f", for {GUARD:g} s now, at {__file__}:"
    assert str(found).startswith(said)
    place, remedy = str(found).splitlines()
    assert place.endswith(f" ({host.__code__.co_qualname})")
    assert remedy == (
        "code that blocks belongs into a plain function: a test with @pytest.mark.virtual_time, or a plain supervisor"
    )


def test_a_timer_that_is_set_again_for_the_same_instant_is_a_spin(guarded: Stand, backend: str) -> None:
    """A step smaller than a rounding error never passes."""
    argv = guarded.fake("- silence: for ever")

    async def host() -> None:
        async with await anyio.open_process(argv):
            await anyio.sleep(1)
            while True:  # noqa: ASYNC110  # nothing will ever happen
                await anyio.sleep(1e-18)

    found = run_into_fault(
        guarded, backend, host, least=0
    )  # the timers are counted, and that takes as long as it takes
    assert isinstance(found, Spin)
    assert backend == "trio" or str(found).endswith("timers again and again, 10000 times at one instant")


def test_a_program_that_polls_for_what_never_comes_hangs(make_stand: Callable[..., Stand], backend: str) -> None:
    """It would poll for ever, each time at another instant; a program that gives up in time does not hang."""
    stand = make_stand(patience=100)
    argv = stand.fake("- silence: for ever")

    async def host(most: float) -> float:
        async with await anyio.open_process(argv) as process:
            while process.returncode is None and anyio.current_time() < most:  # noqa: ASYNC110  # that is the point
                await anyio.sleep(0.05)
            process.kill()
        return anyio.current_time()

    assert stand.run(host, 100, backend=backend) == pytest.approx(100, abs=0.1)
    with pytest.raises(Hang) as found:
        stand.run(host, 1_000_000, backend=backend)
    assert str(found.value) == "the event loop polled every 50 ms for 102 s of virtual time, and nothing else happened"


def test_a_ring_of_the_kits_own_alarm_is_nothing_that_a_loop_meets(
    make_stand: Callable[..., Stand], backend: str
) -> None:
    """It wakes a loop that listens for signals; on a slow machine one lay in every thousand wakes, and no end came."""
    stand = make_stand(guard=CEILING, patience=100)
    stand.fake("- silence: for ever")

    async def host() -> int:
        for _ in range(3000):
            signal.raise_signal(signal.SIGALRM)
            await anyio.sleep(1)
        return 3000

    with pytest.raises(Hang, match=r"polled every 1 s for 17\.1 min of virtual time, and nothing else happened"):
        stand.run(host, backend=backend)


@pytest.fixture
def no_litter() -> Iterator[None]:
    """Collect the garbage of a run that was broken off while no test runs."""
    yield
    gc.collect()


@pytest.mark.usefixtures("no_litter")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_who_swallows_every_cancellation_is_broken_off(make_stand: Callable[..., Stand], backend: str) -> None:
    """The verdict is there, and he would never come to an end."""
    stand = make_stand(guard=GUARD, patience=100)
    stand.fake("- silence: for ever")

    async def host() -> None:
        while True:
            with contextlib.suppress(anyio.get_cancelled_exc_class()):
                await anyio.sleep(1000)

    start = time.monotonic()
    with pytest.raises(Hang, match=r"polled every 16\.7 min for 284 h of virtual time, and nothing else happened"):
        stand.run(host, backend=backend)
    assert time.monotonic() - start <= CEILING


def test_much_work_is_no_spin(make_stand: Callable[..., Stand], backend: str) -> None:
    """A program that yields thousands of times and then waits is a busy one, and work takes no time."""
    stand = make_stand(guard=CEILING)

    async def host() -> float:
        for _ in range(5_000):
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(1)
        return stand.seconds

    assert stand.run(host, backend=backend) == 1.0


class AlwaysReadableRun:
    """A run that looks and looks: its descriptor is always readable, and it never takes anything."""

    news = False

    deadline = None

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.looks = 0

    def look(self) -> bool:
        """Take nothing."""
        self.looks += 1
        return False

    def describe(self) -> str:
        """Name the process."""
        return "is restless"


def test_a_run_that_looks_for_ever_is_a_spin(stand: Stand, backend: str) -> None:
    """A closed stream that is watched on is readable for ever; ten thousand looks at one instant are enough."""
    begin, end = os.pipe()
    os.close(end)
    restless = AlwaysReadableRun(begin)

    async def host() -> None:
        await stand.clock.drive(restless)

    with pytest.raises(Spin) as found:
        stand.run(host, backend=backend)
    os.close(begin)
    assert str(found.value) == ("the supervisor looks again and again, 10000 times at one instant, and takes nothing")
    assert restless.looks <= 10_002


def test_a_run_that_looks_slowly_for_ever_is_a_spin_too(
    stand: Stand, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading all of /proc at each look takes minutes for ten thousand looks; a guard period is enough."""
    monkeypatch.setattr(Hub, "longest_loop_seconds", 0.0)
    begin, end = os.pipe()
    os.close(end)
    restless = AlwaysReadableRun(begin)

    async def host() -> None:
        await stand.clock.drive(restless)

    with pytest.raises(Spin, match="the supervisor looks again and again, 127 times at one instant"):
        stand.run(host, backend=backend)
    os.close(begin)


def test_who_reads_byte_by_byte_looks_as_often_as_there_are_bytes(
    stand: Stand, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is slow, and takes something each time, for as long as it takes."""
    monkeypatch.setattr(Hub, "longest_loop_seconds", 0.0)
    argv = stand.fake("- raw: {text: x, repeat: 30000}\n- silence: 1s\n- exit: 0")

    async def host() -> int:
        count = 0
        with subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0) as agent:
            assert agent.stdout is not None
            while True:
                await anyio.wait_readable(agent.stdout)
                if not agent.stdout.read(1):
                    return count
                count += 1

    assert stand.run(host, backend=backend) == 30_000


class Broken(AlwaysReadableRun):
    """A run whose look fails."""

    def look(self) -> bool:
        """Fail."""
        raise LookupError("a bug in a look")


def test_an_error_in_a_look_is_raised_where_the_run_is_awaited(stand: Stand, backend: str) -> None:
    """Not in the clock, not in the loop: in the task that waits for the run."""

    async def host() -> str:
        try:
            await stand.clock.drive(Broken(0))
        except LookupError as error:
            return str(error)
        return "nothing"

    assert stand.run(host, backend=backend) == "a bug in a look"


@pytest.mark.slow
def test_a_process_that_never_says_hello_is_a_stall(guarded: Stand, backend: str) -> None:
    """A launcher that hangs before its hello is waited for no longer than the guard."""
    argv = guarded.fake("- exit: 0")
    launcher = Path(argv[0])
    launcher.write_text(f"#!{sys.executable} -IS\nwhile True: pass\n", "utf-8")

    async def host() -> None:
        await anyio.run_process(argv)

    found = run_into_fault(guarded, backend, host)
    assert isinstance(found, Stall)
    first, place = str(found).splitlines()
    assert first.startswith(f"{sys.executable} -IS {launcher} (pid ")
    assert first.endswith(f") was started, and no fake began within {GUARD:g} s")
    assert place == f"the supervising program is at {format_line_of(host)}"


@pytest.mark.slow
def test_an_unbound_clock_leaves_no_trace_after_a_fault(runner: ScenarioRunner, guarded: Stand, backend: str) -> None:
    """Patches are undone, the alarm is off, and the next clock of the same interpreter is exact."""
    patched = (subprocess.Popen.__init__, os.kill, os.killpg)

    async def spin() -> None:
        while True:
            await anyio.lowlevel.checkpoint()

    run_into_fault(guarded, backend, spin)
    assert (subprocess.Popen.__init__, os.kill, os.killpg) == patched
    with VirtualClock() as clock:
        argv = runner.make_fake(build_scenario("- silence: 1m\n- exit: 9"), clock=clock).argv

        async def host() -> int:
            return (await anyio.run_process(argv, check=False)).returncode

        assert (clock.run(host, backend=backend), clock.now) == (9, 60.0)
