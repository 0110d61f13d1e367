"""The words for a fake that waits, the same in every kind of time. Values only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


_WAIT_DESCRIPTIONS = (
    "data on stdin (descriptor 0)",
    "room in stdout (descriptor 1)",
    "room in stderr (descriptor 2)",
)


def describe_endless_wait(wants: Sequence[bool]) -> str:
    """Say what a process waits for that waits for no instant: some of its stdin, stdout and stderr, or a signal."""
    streams = (words for words, wanted in zip(_WAIT_DESCRIPTIONS, wants, strict=True) if wanted)
    return "waits for " + (" or ".join(streams) or "a signal")


def describe_waiting_fake(name: str, pid: int, waits: str, doing: tuple[int, str]) -> str:
    """Say of a fake's process what it waits for, and at which line and step of its script it is."""
    line, step = doing
    return f"{name} (pid {pid}) {waits}, last at {f'line {line} ({step})' if line else step}"
