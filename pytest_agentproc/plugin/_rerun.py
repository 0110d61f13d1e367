"""Owns the command that runs one test again, with the same supervisor in the same time. Runs nothing."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.plugin._collect import CORPUS
from pytest_agentproc.plugin._options import PLAY_FLAGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

__all__ = ["rerun_command"]

_FLAGS = ("-p", "-c", "-o", "--override-ini", "--rootdir", "--confcutdir", "--import-mode", *PLAY_FLAGS)


def rerun_command(item: pytest.Item, file: str = "") -> str:
    """Give the command that runs a test again from the directory in which pytest was called.

    Args:
        item: the test.
        file: a scenario file in that directory, which is run in place of the test.
    """
    config, here = item.config, item.config.invocation_params.dir
    path, colons, name = item.nodeid.partition("::")
    is_here = bool(file) or path.startswith(CORPUS)
    place = file or (path if is_here else os.path.relpath(config.rootpath / path, here)) + colons + name
    conftests = _conftests(config, here if is_here else item.path.parent)
    return shlex.join(["pytest", *conftests, place, *_options(config.invocation_params.args)])


def _conftests(config: pytest.Config, folder: Path) -> Iterator[str]:
    """Name the conftest files with supervisors that pytest does not load for a test in a folder."""
    for impl in config.hook.pytest_agentproc_subjects.get_hookimpls():
        file = Path(str(getattr(impl.plugin, "__file__", "")))
        if file.name == "conftest.py" and file.parent not in (folder, *folder.parents):
            yield os.path.relpath(file, config.invocation_params.dir)


def _options(words: tuple[str, ...] | list[str]) -> Iterator[str]:
    """Give the words of a command line that choose the supervisor, the clock, or what pytest loads."""
    left = iter(map(str, words))
    for word in left:
        if word in _FLAGS:
            value = next(left, "")
            yield from () if (word, value[:3]) == ("-p", "no:") else (word, value)
        elif word.startswith(tuple(f"{flag}=" if flag.startswith("--") else flag for flag in _FLAGS)):
            yield word
