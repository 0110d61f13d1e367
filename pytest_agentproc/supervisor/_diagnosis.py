"""Sentences that explain a bad ending: how an agent exited, or why it could not be started. Pure; judges nothing."""

from __future__ import annotations

import shlex
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["explain_exit", "explain_start", "with_command", "with_stderr"]

_LONGEST_COMMAND = 1000
"""Characters: a prompt may be part of the command, and of any length."""

_LONGEST_STDERR = 1000
"""Bytes: the end of stderr, where an agent says why it gives up."""

_SHELLS = 128
"""A program that a signal ends in an orderly way exits with this plus the signal's number, as shells report it."""


def explain_exit(status: int, now: int, spawned_at: int, output_at: int | None) -> str:
    """Say how an agent exited, and how long after its last output.

    Args:
        status: its exit code, or minus the number of the signal that ended it.
        now: the instant of the exit, in nanoseconds, as the two others are.
        spawned_at: when it was started.
        output_at: when its last byte on stdout or stderr came; None: it never printed one.
    """
    since = spawned_at if output_at is None else output_at
    what = "its start, without any output" if output_at is None else "its last output"
    return f"{_how(status)}, {round((now - since) / 1e9, 3):g} s after {what}"  # nobody reads microseconds


def explain_start(reason: str, errno: int) -> str:
    """Say why an agent could not be started: the system's words and its error number, 0 if there is none."""
    return f"{reason} (errno {errno})" if errno else reason


def with_command(argv: Sequence[str], words: str) -> str:
    """Put the agent's command before a sentence; a long command is cut."""
    command = shlex.join(argv)
    if len(command) > _LONGEST_COMMAND:
        command = f"{command[:_LONGEST_COMMAND]}..."
    return f"{command}: {words}" if command else words


def with_stderr(words: str, stderr: bytes) -> str:
    """Put the end of stderr after a sentence: its last lines, if there is anything in them."""
    tail = stderr.rstrip()[-_LONGEST_STDERR:]
    if len(tail) < len(stderr.rstrip()):
        tail = tail.partition(b"\n")[2] or tail  # half a line says little, unless it is all that there is
    text = tail.decode(errors="replace").strip()
    return f"{words}: {text}" if text else words


def _how(status: int) -> str:
    if status < 0:
        return f"{_name(-status) or f'signal {-status}'} ended the agent"
    name = _name(status - _SHELLS)
    return f"the agent exited with code {status}" + (f" (128 + {name})" if name else "")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
