"""The tasks of workers in a test: each task is a word and a name."""

from __future__ import annotations

import os
import signal
import sys
from threading import Event, Thread
from typing import TYPE_CHECKING

from pytest_agentproc.cli import _workers
from pytest_agentproc.errors import AgentprocError, Problem, ScenarioError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Worker"]


class OwnError(AgentprocError):
    """Says two things."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one}, {other}")


class Worker:
    """Does what a task's first word says; notes in a file that its block has ended.

    Args:
        folder: where that is noted, and where processes meet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Callable[[str], tuple[int, str]]:
        return self.work

    def __exit__(self, *error: object) -> None:
        (self.folder / f"left-{os.getpid()}").touch()

    def work(self, task: str) -> tuple[int, str]:
        """Do a task; give in which process that was, and its name."""
        word, _, name = task.partition(" ")
        getattr(self, word)(name)
        return os.getpid(), name

    def pass_on(self, name: str) -> None:
        """Do nothing."""

    def wait(self, name: str) -> None:
        """Wait until another process does the task `meet` of this name."""
        (self.folder / name).read_bytes()

    def meet(self, name: str) -> None:
        """Let the waiting process continue."""
        (self.folder / name).write_bytes(b"")

    def told(self, name: str) -> None:
        """Tell who this is, and wait."""
        sys.stdout.write(f"{os.getpid()}\n")
        sys.stdout.flush()
        self.wait(name)

    def scenario(self, name: str) -> None:
        """Have a mistake in a file."""
        raise ScenarioError([Problem(name, 2, 1, "no such key"), Problem(name, 1, 1, "no agent")])

    def misuse(self, name: str) -> None:
        """Be used wrongly."""
        raise UsageError(f"{name}: not so", "do it so")

    def fail(self, name: str) -> None:
        """Have a mistake of its own."""
        raise LookupError(name)

    def fail_as(self, name: str) -> None:
        """Tell who this is, and fail."""
        (self.folder / name).write_text(str(os.getpid()), "utf-8")
        self.fail(name)

    def note(self, name: str) -> None:
        """Note that this was done."""
        (self.folder / name).touch()

    def line(self, name: str) -> None:
        """Be torn off from who asks."""
        raise EOFError(name)

    def interrupt(self, name: str) -> None:
        """Be interrupted."""
        raise KeyboardInterrupt(name)

    def interrupt_after(self, name: str) -> None:
        """Be interrupted when another process lets this one continue."""
        self.wait(name)
        self.interrupt(name)

    def interrupt_group(self, name: str) -> None:
        """Be interrupted as a trio program is."""
        raise BaseExceptionGroup("tasks", [KeyboardInterrupt(name)])

    def group(self, name: str) -> None:
        """Be interrupted, and have a mistake besides."""
        raise BaseExceptionGroup("tasks", [KeyboardInterrupt(name), ValueError(name)])

    def own(self, name: str) -> None:
        """Have an error that cannot be made from its words alone."""
        raise OwnError(name, "and more")

    def leave(self, name: str) -> None:
        """Have this process end in an orderly way."""
        sys.exit(int(name))

    def stop(self, name: str) -> None:
        """Interrupt who asks, and wait for nothing but the end."""
        os.kill(os.getppid(), signal.SIGINT)
        self.wait("gate")

    def deaf(self, name: str) -> None:
        """Ignore interrupts from now on, let the process that waits at the gate continue, and wait."""
        signal.signal(signal.SIGINT, lambda *_: None)
        (self.folder / "ignores_signals").write_text(str(os.getpid()), "utf-8")
        self.meet("gate")
        self.wait(name)

    def stay(self, name: str) -> None:
        """Have a thread that never ends, and no time left once no process asks for work."""
        vars(_workers).update(_PATIENCE=0.1, _LAST=0.1)
        Thread(target=Event().wait).start()
        self.told(name)

    def hasty(self, name: str) -> None:
        """Ignore interrupts, and have no time left once no process asks for work."""
        vars(_workers).update(_PATIENCE=0.1, _LAST=0.1)
        signal.signal(signal.SIGINT, lambda *_: None)
        self.told(name)

    def flags(self, name: str) -> None:
        """See that this interpreter was started as the other one, and that no child gets the line to that."""
        assert sys.warnoptions[-1] == name
        assert not os.get_inheritable(int(sys.argv[1]))

    def go(self, name: str) -> None:
        """End without a word."""
        os._exit(int(name))

    def end(self, name: str) -> None:
        """Kill the process whose number is in a file."""
        os.kill(int((self.folder / name).read_text("utf-8")), signal.SIGKILL)
