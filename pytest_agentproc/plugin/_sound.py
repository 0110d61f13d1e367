"""Owns which scenario files were found without mistake in earlier sessions. Refuses to read and to check any.

A file is known by the hash of its content, whatever it is called, for as long as the language is the same edition of
the kit's own; what is not known is checked. The list is a file in pytest's cache: `--cache-clear` empties it, and
without pytest's cache there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.plugin._results import write_atomically
from pytest_agentproc.scenario import edition

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Sound", "sound_of"]

_SOUND: pytest.StashKey[Sound] = pytest.StashKey()
_FILE = "files"
_MOST = 50_000


class Sound:
    """The files that have no mistake, by their content.

    Args:
        folder: where the list is kept; None: nowhere, and nothing is known.
    """

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / _FILE
        self._known = dict.fromkeys(self._read())
        self._has_new = False

    def _read(self) -> list[str]:
        """Read the list; one of another edition, and what is no list, is none."""
        try:
            told, *hashes = self._path.read_text("utf-8").splitlines() if self._path is not None else [""]
        except (OSError, ValueError):
            return []
        return hashes if told == edition() else []

    def knows(self, data: bytes) -> bool:
        """Say whether a file with this content was found without mistake."""
        return _hash(data) in self._known

    def add(self, data: bytes) -> None:
        """Take in the content of a file that has no mistake, and says all by itself."""
        self._known[_hash(data)] = None
        self._has_new = True

    def write(self) -> None:
        """Keep the list for later sessions, if it can be kept: of very many the last ones."""
        if self._has_new and self._path is not None:
            lines = [edition(), *[*self._known][-_MOST:]]
            with contextlib.suppress(OSError):
                write_atomically(self._path, "\n".join(lines) + "\n")


def sound_of(config: pytest.Config) -> Sound:
    """Give what is known in a session, which is written when the session is over."""
    sound = config.stash.get(_SOUND, None)
    if sound is None:
        sound = config.stash[_SOUND] = Sound(_folder(config))
        config.add_cleanup(sound.write)
    return sound


def _folder(config: pytest.Config) -> Path | None:
    cache = getattr(config, "cache", None)  # there is none with `-p no:cacheprovider`
    if cache is None:
        return None
    try:
        folder: Path = cache.mkdir("agentproc-sound")
    except OSError:
        return None
    return folder


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
