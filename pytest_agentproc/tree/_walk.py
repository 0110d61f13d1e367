"""Descent, sessions and marks of processes, read from /proc. Owns the reading; judges and sends nothing.

A fact from here is old when it is used. So a caller that signals holds a pidfd, reads again, and checks that the
process lived on.
"""

from __future__ import annotations

import contextlib
import os
import select

from pytest_agentproc.tree._kernel import (
    call_with_spare_descriptor,
    is_out_of_descriptors,
    list_children,
    read_file,
    read_stat,
)

_QUEUE_LIMIT_LINE_PREFIX = b"Max msgqueue size"
_DEAD_STATE_LETTERS = (b"Z", b"X", b"x")
_CODE_ADDRESS_FIELD_INDEX, _STACK_ADDRESS_FIELD_INDEX = 23, 25
"""Where, from the state on, the kernel says at which addresses the program and its stack begin."""
_CODE_ADDRESS_DURING_EXEC = b"0"
"""The program's address until the environment is in place."""
_MAX_LOOKS_DURING_EXEC = 1000
"""Looks at a process that is just executing another program, a millisecond apart."""


def list_descendants(pid: int) -> list[int]:
    """List the descendants of a process, parents before children."""
    found: dict[int, None] = {}
    frontier = [pid]
    while frontier:
        parent = frontier.pop(0)
        for child in list_children(parent):
            if child not in found:
                found[child] = None
                frontier.append(child)
    return list(found)


def list_session_members(session: int) -> list[int]:
    """List the processes of a session without its leader: one system call for each process of the machine."""
    found = []
    for name in call_with_spare_descriptor(os.listdir, "/proc"):
        if name.isdecimal():
            pid = int(name)
            try:  # a call or a context manager for each process would cost more than the answers
                if os.getsid(pid) == session and pid != session:
                    found.append(pid)
            except (ProcessLookupError, PermissionError):
                pass
    return found


def read_group(pid: int) -> int | None:
    """Give the process group of a process, a zombie's too; None once it has disappeared."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getpgid(pid)
    return None


def read_session(pid: int) -> int | None:
    """Give the session of a process, a zombie's too; None once it has disappeared."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        return os.getsid(pid)
    return None


def read_environment(pid: int) -> bytes:
    """Give the initial environment of a process's program; nothing if it has none, hides it or has disappeared.

    A process that is just executing another program shows none: it is asked again, for a second of real time at most.
    """
    before: tuple[bytes, ...] = ()
    for _ in range(_MAX_LOOKS_DURING_EXEC):
        try:
            found = read_file(f"/proc/{pid}/environ")
        except OSError as error:
            if is_out_of_descriptors(error):
                raise
            return b""
        # The kernel shows no environment between the end of the old program and the start of the new one. An orphan
        # that was looked at in that instant had no owner, and its leak was missed.
        if found or not (now := _read_program_identity(pid)) or (now == before and now[0] != _CODE_ADDRESS_DURING_EXEC):
            return found
        if now[0] == _CODE_ADDRESS_DURING_EXEC:
            select.poll().poll(1)
        before = now
    return b""


def _read_program_identity(pid: int) -> tuple[bytes, ...]:
    """Say where a process's program and stack are: the stack tells two equal programs apart; nothing: it is dead."""
    fields = read_stat(pid)
    return (
        (fields[_CODE_ADDRESS_FIELD_INDEX], fields[_STACK_ADDRESS_FIELD_INDEX])
        if fields and fields[0] not in _DEAD_STATE_LETTERS
        else ()
    )


def has_word_in_environment(pid: int, word: str) -> bool:
    """Say whether a word is in the initial environment of a living process, as far as it is readable."""
    return word.encode() in read_environment(pid)


def read_queue_limit(pid: int) -> int | None:
    """Give a process's soft limit for message queues, in bytes, a zombie's too; None if it has none or is not there."""
    try:
        lines = read_file(f"/proc/{pid}/limits").splitlines()
    except OSError as error:
        if is_out_of_descriptors(error):
            raise
        return None
    soft = next(
        (
            line.removeprefix(_QUEUE_LIMIT_LINE_PREFIX).split()[0]
            for line in lines
            if line.startswith(_QUEUE_LIMIT_LINE_PREFIX)
        ),
        b"",
    )
    return int(soft) if soft.isdigit() else None
