"""Starts that the machine refuses, for want of memory or of descriptors. Judges nothing.

No file makes the kernel refuse so, and a machine in that state would stop the kit, too. So the starts of a fake by this
process fail in Python, before anything is started. What a program does by itself is out of reach.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.harness._faults import map_probe_answers
from pytest_agentproc.tree import COMMAND_TEXT_OF_FORK, ProcessStart, listen_to_starts
from pytest_agentproc.vocabulary import ERRNO_BY_SPAWN_ERROR

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from types import FrameType

    from pytest_agentproc.scenario import Scenario


def find_spawn_error(scenario: Scenario, number: int) -> OSError | None:
    """Give the error with which a start of the agent fails, if it does.

    Args:
        scenario: the agent's.
        number: counts the starts from 1.
    """
    refused, reason = scenario.refused_start
    why = reason if number == refused else scenario.cannot_spawn
    return None if not why else OSError(ERRNO_BY_SPAWN_ERROR[why], os.strerror(ERRNO_BY_SPAWN_ERROR[why]))


def make_spawn_failure_listener(launcher: str, scenario: Scenario) -> SpawnFailureListener | None:
    """Give what refuses starts of a fake; None: the machine refuses none."""
    return SpawnFailureListener(launcher, scenario) if scenario.simulates_failed_spawn else None


def simulate_spawn_failures(refusals: Iterable[SpawnFailureListener | None]) -> ExitStack:
    """Give a block in which those starts of fakes fail that are to fail."""
    block = ExitStack()
    for refusal in refusals:
        if refusal is not None:
            block.enter_context(listen_to_starts(refusal))
    return block


class SpawnFailureListener:
    """A listener that lets some starts of a fake fail. A fork counts, too: it is how a terminal starts an agent.

    A question for the version does not count, because it plays no script.

    Args:
        launcher: the executable of the fake.
        scenario: says which starts fail.
    """

    cookie_word = ""

    def __init__(self, launcher: str, scenario: Scenario) -> None:
        self._launcher = launcher
        self._scenario = scenario
        self._probes = map_probe_answers(scenario.dialect_record)
        self._count = 0

    def before_start(self, command: str, frame: FrameType) -> ProcessStart:
        """Refuse it, or let it be."""
        is_fake = self._launcher in command or Path(command.partition(" ")[0]).name == Path(self._launcher).name
        is_probe = tuple(command.split()[1:]) in self._probes
        if (is_fake and not is_probe) or command == COMMAND_TEXT_OF_FORK:
            self._count += 1
            if (error := find_spawn_error(self._scenario, self._count)) is not None:
                raise error
        return ProcessStart(self._count, command, is_own=False)

    def after_start(self, start: ProcessStart) -> None:
        """Ignore it."""

    def before_thread_start(self, thread: threading.Thread) -> None:
        """Ignore it."""

    def before_signal(self) -> None:
        """Ignore it."""
