"""Where process tests stand: real fakes under a virtual clock, started by the test's own code. Knows no expectation."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.clock import VirtualClock
from pytest_agentproc.files import shorten_path
from pytest_agentproc.scenario import loads
from pytest_agentproc.tree import open_pidfd
from tests.event_lines import list_lines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_agentproc.harness import FakeAgent, ScenarioRunner
    from pytest_agentproc.scenario import Scenario

__all__ = [
    "CEILING",
    "SECOND",
    "Stand",
    "build_scenario",
    "format_line_of",
    "is_gone",
    "list_open_descriptors",
    "make_spinning",
    "start_and_wait",
    "start_with_used_pid",
]

SECOND = 1_000_000_000
CEILING = 20.0
"""Real seconds that anything here may take at most, on a machine with every core burnt."""


def build_scenario(script: str, agent: str = "raw") -> Scenario:
    """Make a scenario of a script's steps alone."""
    steps = textwrap.indent(textwrap.dedent(script).strip(), "  ")
    return loads(f"scenario: an agent of a test\nagent: {agent}\nscript:\n{steps}\n")


def list_open_descriptors() -> list[str]:
    """List the descriptors that this process has open."""
    return sorted(file.name for file in Path("/proc/self/fd").iterdir())


def format_line_of(function: Callable[..., Any], number: int = 1) -> str:
    """Write a line of a test's function as messages do, counted from its `def`."""
    code = function.__code__
    return f"{shorten_path(code.co_filename)}:{code.co_firstlineno + number}"


def is_gone(pid: int, seconds: float = CEILING) -> bool:
    """Say whether a process of any parent dies within the given real seconds; a zombie is dead."""
    pidfd = open_pidfd(pid)
    if pidfd is None:
        return True
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(pidfd)


async def start_and_wait(argv: list[str]) -> None:
    """Let a program run for half a virtual second, and kill it."""
    with subprocess.Popen(argv, start_new_session=True) as process:
        await anyio.sleep(0.5)
        process.kill()


def start_with_used_pid(pid: int, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Start a process with a pid that another process had; skip the test if the kernel does not allow that."""
    last = Path("/proc/sys/kernel/ns_last_pid")
    greatest = last.read_text("ascii")
    try:
        for _ in range(200):
            try:
                last.write_text(str(pid - 1), "ascii")
            except OSError as error:
                pytest.skip(f"cannot choose the next pid: {error}")
            process = start()
            if process.pid == pid:
                return process
            process.kill()
            process.communicate()
        pytest.skip("others on this machine took the pid each time")
    finally:
        with contextlib.suppress(OSError):
            last.write_text(greatest, "ascii")  # the next process has a pid that no other one has had


class Stand:
    """One test's virtual clock and its fakes.

    Args:
        runner: the maker of the fakes.
        options: those of `VirtualClock`.
    """

    def __init__(self, runner: ScenarioRunner, **options: Any) -> None:
        self.clock = VirtualClock(**options)
        self.fakes: list[FakeAgent] = []
        self._runner = runner

    def fake(self, script: str, agent: str = "raw", name: str = "agent") -> list[str]:
        """Make a fake and give its command."""
        fake = self._runner.make_fake(build_scenario(script, agent), clock=self.clock, name=name)
        self.fakes.append(fake)
        return fake.argv

    @property
    def seconds(self) -> float:
        """The instant, in virtual seconds since the start."""
        return self.clock.now

    def run(self, function: Callable[..., Awaitable[Any]], *args: Any, backend: str = "asyncio") -> Any:
        """Run an async function in virtual time."""
        return self.clock.run(function, *args, backend=backend)

    def pids(self) -> list[int]:
        """List the processes that said hello, in the order of the fakes."""
        return [event.data["pid"] for fake in self.fakes for event in list_lines(fake.record) if event.data.get("seen")]

    def close(self) -> None:
        """End the processes that are left."""
        self.clock.close()


_SPINS = """
import marshal
def spin(player, duration):
    while True:
        pass
def load(code, scope):
    exec(code, scope)
    if scope["__name__"] == "pytest_agentproc.fake_agents.player":
        scope["ScriptPlayer"]._play_sleep_step = spin
exec(marshal.loads(open({boot!r}, "rb").read()), {{"exec": load}})
"""


def make_spinning(argv: list[str]) -> list[str]:
    """Have a fake burn its processor where its script is silent; no scenario can make a fake do that."""
    launcher = Path(argv[0])
    program = _SPINS.format(boot=str(launcher.parent.with_suffix(".boot")))
    launcher.write_text(f"#!{sys.executable} -IS{program}", "utf-8")
    return argv
