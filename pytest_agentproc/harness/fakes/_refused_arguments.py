"""The starts that a fake refused as its CLI does, and the options that it did not obey, for the text of a failure.

A fake refuses arguments that its CLI does not take, a folder that the CLI does not trust, or a prompt that is missing.
It says why on its own output, which the code under test often captures and does not show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.events import OptionsNotObeyed, OutputWritten, Payload, StepBegun
from pytest_agentproc.harness.fakes._fake_log import list_open_logs
from pytest_agentproc.record import list_agent_starts
from pytest_agentproc.vocabulary import explain_unobeyed_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_agentproc.harness.fakes._fake_log import FakeLog


_MAX_STARTS_SHOWN = 5
_MAX_OUTPUT_CHARS_SHOWN = 200
_OUTPUT_CODES = ("o", "e")
"""The events of bytes on stdout and stderr."""


class _Start(NamedTuple):
    """A start of a fake.

    Args:
        name: the fake.
        pid: its process.
        status: its exit code, or minus the number of a signal; None: it lives.
        steps: the steps that it has begun, each with its line; what a fake does before its script has no line.
        output: what it has printed.
    """

    name: str
    pid: int
    status: int | None
    steps: list[tuple[int, str]]
    output: bytes


def describe_refused_arguments() -> list[str]:
    """Say of each start that was refused what the fake printed, for the fakes of this process that have not ended."""
    starts = (start for log in list_open_logs() for start in (*_list_virtual_starts(log), *_list_real_starts(log)))
    lines = [_describe_refusal(start) for start in starts if _is_refused(start)]
    more = [f"and {len(lines) - _MAX_STARTS_SHOWN} more refused starts"] if len(lines) > _MAX_STARTS_SHOWN else []
    return [*lines[:_MAX_STARTS_SHOWN], *more]


def describe_unobeyed_options() -> list[str]:
    """Say of each start with options that its fake does not obey what the real CLI does for them."""
    found: dict[str, None] = {}
    for log in list_open_logs():
        for dialect, options in _list_unobeyed_options(log):
            found |= {
                f"the fake {dialect} does not obey {line}": None for line in explain_unobeyed_options(dialect, options)
            }
    return [*found]


def _list_unobeyed_options(log: FakeLog) -> Iterator[tuple[str, Sequence[str]]]:
    """Give the options that the fakes of a log do not obey, with their dialects."""
    record = log.read_virtual_record()
    for event in () if record is None else record.events:
        if isinstance(event, OptionsNotObeyed):
            yield event.dialect, event.unobeyed
    for process, _ in log.list_processes():
        for _, code, data in process.notes:
            if code == "q" and "unobeyed" in data:
                yield data["dialect"], data["unobeyed"]


def _list_virtual_starts(log: FakeLog) -> Iterator[_Start]:
    record = log.read_virtual_record()
    if record is None:
        return
    for start in list_agent_starts(record):
        own = [event for event in record.events if start.status and event.process == start.name]
        steps = [(event.line, event.step) for event in own if isinstance(event, StepBegun)]
        output = [_read_bytes(event.bytes) for event in own if isinstance(event, OutputWritten)]
        yield _Start(start.name, start.pid, start.status, steps, b"".join(output))


def _list_real_starts(log: FakeLog) -> Iterator[_Start]:
    for process, _ in log.list_processes():
        if process.index < 0:
            steps = [data for _, code, data in process.notes if code == "m"]
            output = [data for _, code, data in process.notes if code in _OUTPUT_CODES]
            yield _Start(process.name, process.pid, process.code, steps, b"".join(output))


def _read_bytes(data: Any) -> bytes:
    """Give the bytes of an output, or the beginning of a long one."""
    found: bytes = data.head if isinstance(data, Payload) else data
    return found


def _is_refused(start: _Start) -> bool:
    """Say whether a fake ended itself with a bad code before its script began."""
    has_begun_script = any(line for line, _ in start.steps)
    return bool(start.status) and not has_begun_script and start.steps[-1:] == [(0, "exit")]


def _describe_refusal(start: _Start) -> str:
    lines = (line.strip() for line in start.output.decode("utf-8", "replace").splitlines())
    text = " / ".join(line for line in lines if line)
    shown = text if len(text) <= _MAX_OUTPUT_CHARS_SHOWN else f"{text[:_MAX_OUTPUT_CHARS_SHOWN]}..."
    return f"{start.name} (pid {start.pid}) refused this start with code {start.status}, as its CLI does: {shown}"
