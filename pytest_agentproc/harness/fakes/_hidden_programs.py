"""A PATH on which some programs cannot be found. Starts nothing, and changes no real folder.

A folder that has such a program is replaced by a copy of links to all else in it. Its siblings are linked beside it, so
a program finds `../lib` there, and a virtual environment its `pyvenv.cfg`. A program that refused to run in their place
was rejected: code that looks for installed agents, as `shutil.which` does, would have found all of them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


class ProgramHider:
    """Makes such PATHs, and keeps the copies for the next one.

    Args:
        root: an empty folder for the copies.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._copies: dict[tuple[str, int, frozenset[str]], str] = {}

    def hide(self, path: str, names: Collection[str]) -> str:
        """Give a PATH on which no program has one of these names."""
        return os.pathsep.join(self._hide_in_folder(folder, names) for folder in path.split(os.pathsep))

    def _hide_in_folder(self, folder: str, names: Collection[str]) -> str:
        real = Path(folder).absolute()  # an empty word on PATH is this folder, too
        hidden = frozenset(name for name in names if os.path.lexists(real / name))
        if not hidden:
            return folder
        key = str(real), real.stat().st_mtime_ns, hidden
        if key not in self._copies:
            place = self._root / str(len(self._copies))
            copy = place / (real.name or "bin")
            copy.mkdir(parents=True)
            _link_all_but(real.parent, place, {real.name})
            _link_all_but(real, copy, hidden)
            self._copies[key] = str(copy)
        return self._copies[key]


def _link_all_but(folder: Path, copy: Path, names: Collection[str]) -> None:
    with suppress(PermissionError):  # it may be searched, and not be listed
        for entry in folder.iterdir():
            if entry.name not in names and not os.path.lexists(copy / entry.name):
                (copy / entry.name).symlink_to(entry)
