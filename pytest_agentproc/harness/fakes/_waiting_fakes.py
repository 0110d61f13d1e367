"""The fakes of this process that have not been ended: what they wait for, for the text of a failure. Judges nothing.

Waits are those of fakes in real time and below a coordinator. The hub describes those of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.clock import describe_endless_wait, describe_waiting_fake
from pytest_agentproc.files import shorten_path
from pytest_agentproc.harness._faults import read_fault
from pytest_agentproc.harness._unrelated_processes import read_alive_or_stopped
from pytest_agentproc.harness.fakes._fake_log import list_open_logs
from pytest_agentproc.originals import monotonic_ns
from pytest_agentproc.procfs import read_watched_descriptors
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND, format_signal_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.harness.fakes._fake_log import FakeLog


_MAX_FAKES_SHOWN = 5
_STREAM_COUNT = 3


def describe_living_fakes() -> dict[int, str]:
    """Say of each fake that lives what it waits for and at which line of its script it is, by its pid."""
    return {
        process.pid: describe_waiting_fake(
            process.name,
            process.pid,
            "is stopped"
            if read_alive_or_stopped(process.pid) == "stopped"
            else describe_endless_wait(_read_awaited_streams(process.pid)),
            process.last_begun_step,
        )
        for log in list_open_logs()
        for process, is_alive in log.list_processes()
        if is_alive
    }


def _read_awaited_streams(pid: int) -> list[bool]:
    """Say for which of its three streams a fake waits."""
    watched = read_watched_descriptors(pid)
    return [number in watched for number in range(_STREAM_COUNT)]


def list_fake_paths() -> list[str]:
    """List the executables of the fakes that this process has made and not ended."""
    return [log.command for log in list_open_logs()]


def list_fake_faults() -> list[str]:
    """Say what broke in these fakes: their scripts, or they themselves."""
    pairs = ((log.scenario, read_fault(log.command)) for log in list_open_logs())
    return [str(fault.make_error(scenario)) for scenario, fault in pairs if scenario and fault]


def has_fake_in_real_time() -> bool:
    """Say whether one of these fakes was started in real time, or below a coordinator."""
    return any(log.list_processes() for log in list_open_logs())


def describe_idle_fakes(least: float) -> list[str]:
    """Describe the fakes that waited in vain: to the present, or until a signal ended them.

    Args:
        least: real seconds without an event from which a wait counts.
    """
    lines = [line for log in list_open_logs() for line in _describe_idle(log, least)]
    more = [f"and {len(lines) - _MAX_FAKES_SHOWN} more"] if len(lines) > _MAX_FAKES_SHOWN else []
    return [*lines[:_MAX_FAKES_SHOWN], *more]


def _describe_idle(log: FakeLog, least: float) -> Iterator[str]:
    for process, is_alive in log.list_processes():
        end = monotonic_ns() if is_alive or process.died is None else process.died
        idle = (end - process.last_event_at) / NANOSECONDS_PER_SECOND
        if idle < least or process.code is not None:
            continue
        line, _ = process.last_begun_step
        signal_name = format_signal_name(process.signum) if process.signum else "KILL"
        how = "has waited" if is_alive else "waited"
        until = "" if is_alive else f", until {signal_name} ended it"
        yield f"{process.name} (pid {process.pid}) {how} for {idle:.1f} s{until}{_quote_step(log, line)}"


def _quote_step(log: FakeLog, line: int) -> str:
    """Quote the step at a line of what a fake plays, with its place; empty if there is none."""
    if log.scenario is None:
        return ""
    texts = log.scenario.text.splitlines()
    text = texts[line - 1].strip() if 0 < line <= len(texts) else ""
    return f", at {shorten_path(log.scenario.path)}:{line}: {text}".rstrip(": ")
