"""Where artifacts go: files that grow under another name and then appear whole. Owns descriptors; knows no content.

While it grows, `stdout.log` is `stdout.log.TOKEN.part`, with a token of its own for each store, so that two runs in one
directory never write into one file. A supervisor that is killed leaves its `.part` files: they hold all that it had
read, nothing renames them, and whoever owns the directory may remove them. Nothing is forced to the disk (fsync could
hold the loop for seconds): the promise is to readers, not against a power cut. Writes are made where the loop runs, one
read's bytes at a time; a disk that does not answer at all, such as a dead network mount, holds it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Protocol

__all__ = ["Folder", "Store"]


class Store(Protocol):
    """Files by name. A method that cannot do its work raises OSError, and then the file is dropped."""

    def begin(self, name: str) -> None:
        """Make an empty file, which nobody sees yet."""

    def write(self, name: str, data: bytes) -> None:
        """Write all of these bytes behind the others; they are kept nowhere else."""

    def finish(self, name: str) -> None:
        """Show the file, whole, in place of an older one."""

    def drop(self, name: str) -> None:
        """Leave nothing of a file that was not finished; this never raises."""


class Folder:
    """A store in a directory.

    Args:
        path: the directory; it is made with the first file if it is not there, for its owner alone.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with contextlib.suppress(OSError):  # it is relative, and here is gone: the first file will tell
            self.path = self.path.absolute()
        self._suffix = f".{secrets.token_hex(4)}.part"
        self._open: dict[str, int] = {}

    def begin(self, name: str) -> None:
        """See `Store`."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._open[name] = self.create(self._part(name))

    def create(self, path: Path) -> int:
        """Make a file that was not there, for its owner alone, and give a descriptor to write to."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)

    def write(self, name: str, data: bytes) -> None:
        """See `Store`."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._open[name], rest) :]

    def finish(self, name: str) -> None:
        """See `Store`."""
        os.close(self._open.pop(name))
        self._part(name).replace(self.path / name)

    def drop(self, name: str) -> None:
        """See `Store`."""
        with contextlib.suppress(OSError):
            if name in self._open:
                os.close(self._open.pop(name))
        with contextlib.suppress(OSError):
            self._part(name).unlink()

    def _part(self, name: str) -> Path:
        return self.path / f"{name}{self._suffix}"
