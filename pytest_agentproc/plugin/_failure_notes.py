"""Notes under the exception of a failed test: what the kit knows of its cause. Judges nothing.

pytest shows the notes of an exception directly below it, and a worker of pytest-xdist sends them along.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc import machine
from pytest_agentproc.foreign import read_attribute
from pytest_agentproc.harness import (
    NAMES_OF_REFUSED_CLIS,
    describe_idle_fakes,
    describe_refused_arguments,
    describe_unobeyed_options,
    has_fake_in_real_time,
    list_fake_faults,
    list_fake_paths,
)
from pytest_agentproc.plugin._virtual_time import explain_unused_clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pytest


_LEAST_IDLE_SECONDS = 2.0
"""Real seconds without an event after which a fake counts as one that waits in vain."""

_NOT_FOUND_EXIT_CODE = 127


def add_failure_notes(
    error: BaseException, causes: Iterable[BaseException] = (), item: pytest.Item | None = None
) -> None:
    """Add to an exception what the kit knows of its cause.

    That is a program that was not found, a start that a fake refused, an option that a fake does not obey, fakes that
    wait, and a clock that was not used.

    Args:
        error: the exception.
        causes: those that it came from.
        item: the test that it fails; None: it passes through a block of fakes inside of a test.
    """
    try:
        notes = _list_notes(error, causes, item)
    except Exception as raised:  # noqa: BLE001  # mocks may still stand in the place of what the kit calls here
        notes = [f"the cause could not be looked for, which raised {type(raised).__name__}: {raised}"]
    known = read_attribute(error, "__notes__", [])
    if isinstance(known, list):
        for note in (f"agentproc: {note}" for note in notes):
            if note not in known:
                BaseException.add_note(error, note)


def _list_notes(error: BaseException, causes: Iterable[BaseException], item: pytest.Item | None) -> list[str]:
    fakes = list_fake_paths()
    if not fakes:
        return []
    notes = [note for each in (error, *causes) for note in _explain_missing_program(each, fakes)]
    notes += list_fake_faults()
    notes += describe_refused_arguments()
    notes += describe_unobeyed_options()
    if machine.read_virtual_start() is None:  # in virtual time a wait in vain is a deadlock, which says all of this
        notes += describe_idle_fakes(_LEAST_IDLE_SECONDS)
        if item is not None and has_fake_in_real_time():
            notes += explain_unused_clock(item)
    return notes


class _FailedSearch(NamedTuple):
    """A search for a program.

    Args:
        name: the program; None: it is not known.
        path: the PATH that was searched.
        is_own_path: whether that is the PATH of this process.
    """

    name: str | None
    path: str
    is_own_path: bool


def _explain_missing_program(error: BaseException, fakes: Iterable[str]) -> Iterator[str]:
    """Say why a program was not found, if the fakes are the reason."""
    search = _find_failed_search(error)
    names = sorted({Path(fake).name for fake in fakes})
    if search is None or search.name in names:
        return
    if search.name in NAMES_OF_REFUSED_CLIS:
        yield f"{search.name} is no fake of this test: fake_agents.on_path({search.name!r}) makes one"
    elif search.path and {*search.path.split(os.pathsep)} <= {str(Path(fake).parent) for fake in fakes}:
        found = f"{search.name} was not found" if search.name else "exit code 127 says that a program was not found"
        remedy = "take keep_path=False away" if search.is_own_path else "add the real PATH to that of env"
        yield f"{found}: its PATH leads to fakes alone ({', '.join(names)}); {remedy}"


def _find_failed_search(error: BaseException) -> _FailedSearch | None:
    """Give the search on PATH that failed a start; None: the error is another one."""
    path = os.environ.get("PATH", "")
    if isinstance(error, subprocess.CalledProcessError) and error.returncode == _NOT_FOUND_EXIT_CODE:
        return _FailedSearch(None, path, is_own_path=True)
    if not isinstance(error, FileNotFoundError) or error.__traceback__ is None:
        return None
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    start = last.tb_frame.f_locals
    # A missing folder (cwd) and a missing file that was opened raise the same exception.
    is_start = last.tb_frame.f_code.co_filename == subprocess.__file__ and not start.get("child_exec_never_called")
    if not is_start or not isinstance(error.filename, str) or "/" in error.filename:
        return None
    given = start.get("env")
    own = path if given is None else _read_path_of(given)
    return _FailedSearch(error.filename, own, is_own_path=own == path)


def _read_path_of(env: Mapping[Any, Any]) -> str:
    """Give PATH of the environment of a start: subprocess takes bytes and paths there."""
    found = {os.fsdecode(name): value for name, value in env.items()}
    return os.fsdecode(found.get("PATH", ""))
