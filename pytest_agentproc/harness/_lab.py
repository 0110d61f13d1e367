"""The lab: plays a scenario against a subject with real processes. Owns the broker and the fakes' files."""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import VirtualClock
from pytest_agentproc.errors import ClockError, KitError
from pytest_agentproc.harness._fake import FakeAgent, note_leaks
from pytest_agentproc.harness._launch import Workshop, interpreter
from pytest_agentproc.harness._played import (
    PROMPT_SHOWN,
    Played,
    command_line,
    environment,
    header,
    requested_model,
)
from pytest_agentproc.harness._room import Room
from pytest_agentproc.record import Record
from pytest_agentproc.vocabulary import Order, Policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pytest_agentproc.clock import Clock
    from pytest_agentproc.scenario import Bound, Scenario
    from pytest_agentproc.vocabulary import Answer, Subject

__all__ = ["LIFETIME", "Lab", "order_of"]

LIFETIME = 300.0
"""Real seconds after which a fake is killed whatever happens."""

_COMMANDS = {"raw": "agent", "pi": "pi", "gemini": "gemini"}


class Lab:
    """Where scenarios are played. The broker process starts with the first fake and ends with `close`."""

    def __init__(self) -> None:
        self._workshop: Workshop | None = None
        self._broker: subprocess.Popen[bytes] | None = None
        self._lifeline = b""
        self._clock: VirtualClock | None = None

    def __enter__(self) -> Lab:  # noqa: PYI034  # nobody derives from it
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def play(self, scenario: Scenario, subject: Subject, *, backend: str = "asyncio") -> Played:
        """Play a scenario against a subject, in virtual time.

        Args:
            scenario: what the fake does and what must be true.
            subject: the supervisor under test.
            backend: "asyncio" or "trio".

        Raises:
            NotApplicable: the script needs a limit that the subject does not have, or its host a disk that it has not.
            KitError: the harness failed, so there is no verdict on the subject.
        """
        bound = scenario.bind(subject.policy(scenario.policy))
        room = Room(scenario, self._shop().folder, keeps_artifacts=subject.keeps_artifacts)
        clock = VirtualClock()
        fake = self._make(bound, clock, Record(header(scenario, subject.name, bound.policy)))
        try:
            played = _supervise(subject, bound, fake, clock, backend, room)
            if self._broker is None or self._broker.poll() is not None:
                raise KitError("the lifeline broker ended during the play, and every fake with it")
            return played
        finally:
            clock.close()
            room.close()
            self._shop().take_back(fake.launcher)

    def fake(self, scenario: Scenario, *, clock: VirtualClock | None = None, name: str = "agent") -> FakeAgent:
        """Make the scenario's fake, to be started by code of your own.

        Args:
            scenario: who the agent is and what it does, under the default policy and the scenario's own.
            clock: the virtual clock that it obeys; None: the one that `virtual_clock` made last, or else real time.
            name: what the record calls it.
        """
        bound = scenario.bind(Policy(**scenario.policy))  # type: ignore[arg-type]  # Policy checks each value itself
        record = Record(header(scenario, "", bound.policy))
        return self._make(bound, clock or self._clock, record, name)

    def virtual_clock(self, **options: Any) -> VirtualClock:
        """Make a virtual clock, which the fakes made from now on obey; see `VirtualClock` for the options."""
        self._clock = VirtualClock(**options)
        self._clock.on_close = self._forget_clock
        return self._clock

    def close(self) -> None:
        """End the broker, and with it every fake that is left, and remove the files."""
        if self._broker is not None:
            self._broker.kill()
            self._broker.wait()
            self._broker = None
        if self._workshop is not None:
            self._workshop.close()
            self._workshop = None

    def _forget_clock(self) -> None:
        self._clock = None

    def _make(self, bound: Bound, clock: VirtualClock | None, record: Record, name: str = "agent") -> FakeAgent:
        scenario = bound.scenario
        token = clock.hub.roll.admit(record.add) if clock else b""
        baked = {
            "hub": clock.hub.roll.address if clock else b"",
            "token": token,
            "lifeline": self._lifelines(),
            "program": {**bound.program, "name": name, "prompt": scenario.prompt[:PROMPT_SHOWN]},
        }
        executable = scenario.cannot_spawn != "not_executable"
        path = self._shop().make(_COMMANDS[scenario.dialect], baked, executable=executable)
        if clock:
            clock.launchers.add(os.path.realpath(path))
        missing = "-not-there" if scenario.cannot_spawn == "not_found" else ""
        fake = FakeAgent(path + missing, command_line(scenario), record, clock, token)
        fake.launcher = path
        return fake

    def _shop(self) -> Workshop:
        if self._workshop is None:
            self._workshop = Workshop()
        return self._workshop

    def _lifelines(self) -> bytes:
        """Give the broker's address, and start it if it does not run."""
        if self._broker is None or self._broker.poll() is not None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                listener.bind(b"")
                listener.listen(1024)
                self._lifeline = listener.getsockname()
                script = str(Path(__file__).with_name("_broker.py"))
                command = [interpreter(), "-IS", script, str(os.getpid()), str(LIFETIME), str(self._shop().folder)]
                self._broker = subprocess.Popen(command, stdin=listener.fileno(), start_new_session=True)
        return self._lifeline


def _supervise(
    subject: Subject, bound: Bound, fake: FakeAgent, clock: VirtualClock, backend: str, room: Room
) -> Played:
    record = fake.record
    order = replace(order_of(bound, fake, clock, record.add), artifacts=room.path, disk=room.disk)

    async def supervise() -> Answer:
        answer = await subject.run(order)
        record.add(clock.instant(), "m", {"process": "supervisor", "returned": True})
        return answer

    answer, fault = None, None
    try:
        answer = clock.run(supervise, backend=backend)
        note_leaks(record, clock, fake.token)
    except ClockError as error:
        fault = error
        told = {"process": "supervisor", "fault": error.reason, "message": str(error)}
        record.add(clock.instant(), "m", told)
    return Played(bound, record, answer, fault, room.files())


def order_of(bound: Bound, fake: FakeAgent, clock: Clock, trace: Callable[[int, str, dict[str, Any]], None]) -> Order:
    """Give the order for one run of a fake.

    Args:
        bound: the scenario under the subject's policy.
        fake: the executable agent.
        clock: whose time counts.
        trace: takes the supervisor's side of the record.
    """
    scenario = bound.scenario
    return Order(
        argv=tuple(fake.argv),
        env=environment(fake.folder),
        cwd=fake.folder,
        dialect=scenario.dialect,
        mode=scenario.mode,
        prompt=scenario.prompt,
        prompt_by=scenario.prompt_by,
        policy=bound.policy,
        clock=clock,
        trace=trace,
        model=requested_model(scenario),
    )
