"""How an agent ends as its client closes it: three kinds of agent, and what each one's record says. Knows no client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.event_lines import list_lines

if TYPE_CHECKING:
    from pytest_agentproc.record import Record

__all__ = ["COOPERATES", "IGNORES_ALL", "IGNORES_EOF", "list_end_events", "read_stdin_bytes"]

COOPERATES = "- wait_for: prompt 1"
"""The script of an agent that exits at the end of its stdin."""

IGNORES_EOF = "- when: eof\n  do: []\n- silence: for ever"
"""The script of an agent that only a signal ends."""

IGNORES_ALL = "- when: {signal: TERM}\n  do: []\n" + IGNORES_EOF
"""The script of an agent that only KILL ends."""


def list_end_events(record: Record) -> list[tuple[int, str]]:
    """Give what ended the agent, each with its instant in nanoseconds: the end of its stdin, signals, its exit."""
    steps = []
    for at, code, data in list_lines(record):
        if code == "i" and data.get("eof"):
            steps.append((at, "EOF"))
        elif code == "s":
            steps.append((at, str(data["signal"])))
        elif code == "x":
            steps.append((at, f"dies of {data['signal']}" if "signal" in data else f"exits {data['code']}"))
    return steps


def read_stdin_bytes(record: Record) -> bytes:
    """Give all that the agent read from its stdin."""
    return b"".join(event.data.get("bytes", b"") for event in list_lines(record) if event.code == "i")
