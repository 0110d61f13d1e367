"""The starts that a fake refused as its CLI does, and the options that it did not obey, for the text of a failure.

A fake refuses arguments that its CLI does not take, a folder that the CLI does not trust, or a prompt that is missing.
It says why on its own output, which the code under test often captures and does not show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_agentproc.clock import convert_note_to_event
from pytest_agentproc.events import OptionsNotObeyed, OutputWritten, Payload, StepBegun
from pytest_agentproc.harness.fakes._fake_log import list_open_logs
from pytest_agentproc.record import list_agent_starts
from pytest_agentproc.vocabulary import explain_unobeyed_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.events import Event
    from pytest_agentproc.harness.fakes._fake_log import FakeLog


_MAX_STARTS_SHOWN = 5
_MAX_OUTPUT_CHARS_SHOWN = 200


class _Start(NamedTuple):
    """A start of a fake.

    Args:
        name: the fake.
        pid: its process.
        status: its exit code, or minus the number of a signal; None: it lives.
        events: what it has done.
    """

    name: str
    pid: int
    status: int | None
    events: list[Event]


def describe_refused_arguments() -> list[str]:
    """Say of each start that was refused what the fake printed, for the fakes of this process that have not ended."""
    starts = (start for log in list_open_logs() for start in _list_starts(log))
    lines = [_describe_refusal(start) for start in starts if _is_refused(start)]
    more = [f"and {len(lines) - _MAX_STARTS_SHOWN} more refused starts"] if len(lines) > _MAX_STARTS_SHOWN else []
    return [*lines[:_MAX_STARTS_SHOWN], *more]


def describe_unobeyed_options() -> list[str]:
    """Say of each start with options that its fake does not obey what the real CLI does for them."""
    starts = (start for log in list_open_logs() for start in _list_starts(log))
    reports = [event for start in starts for event in start.events if isinstance(event, OptionsNotObeyed)]
    words = ((event.dialect, explain_unobeyed_options(event.dialect, event.unobeyed)) for event in reports)
    return [*dict.fromkeys(f"the fake {dialect} does not obey {line}" for dialect, lines in words for line in lines)]


def _list_starts(log: FakeLog) -> Iterator[_Start]:
    """Give the starts in virtual time and in real time, as far as they are known; it waits for none."""
    record = log.read_virtual_record()
    if record is not None:
        for start in list_agent_starts(record):
            own = [event for event in record.events if event.process == start.name]
            yield _Start(start.name, start.pid, start.status, own)
    for process, _ in log.list_processes():
        if process.index < 0:
            own = [convert_note_to_event(at, process.name, code, data) for at, code, data in process.notes]
            yield _Start(process.name, process.pid, process.code, own)


def _is_refused(start: _Start) -> bool:
    """Say whether a fake ended itself with a bad code before its script began: what it does then has no line."""
    steps = [event for event in start.events if isinstance(event, StepBegun)]
    return bool(start.status) and not any(step.line for step in steps) and bool(steps) and steps[-1].step == "exit"


def _describe_refusal(start: _Start) -> str:
    written = (event.bytes for event in start.events if isinstance(event, OutputWritten))
    output = b"".join(data.head if isinstance(data, Payload) else data for data in written)
    lines = (line.strip() for line in output.decode("utf-8", "replace").splitlines())
    text = " / ".join(line for line in lines if line)
    shown = text if len(text) <= _MAX_OUTPUT_CHARS_SHOWN else f"{text[:_MAX_OUTPUT_CHARS_SHOWN]}..."
    return f"{start.name} (pid {start.pid}) refused this start with code {start.status}, as its CLI does: {shown}"
