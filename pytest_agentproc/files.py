"""Reads and writes files that a user names. Owns the look before the reading and its bound; knows not what they say.

A name may lead to a device that never ends, to a pipe that nobody writes to, or to a file that is larger than the
memory. So a file is opened without waiting, the opened file is looked at, and no more than a limit is read.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_file", "read_file_inside_folder", "read_text_file", "shorten_path", "write_file"]

_OPEN_FILE_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK_FLAG = getattr(os, "O_NOFOLLOW", 0)
_OPEN_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0) | _NO_LINK_FLAG
_READ_CHUNK_BYTES = 1 << 20
_INSTALLED_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
_FILE_KIND_TESTS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """Read a regular file, or the one that a link leads to.

    Args:
        path: where it is.
        most: the largest number of bytes that it may have.

    Raises:
        OSError: it cannot be opened, is no regular file, or has more bytes; `strerror` says which.
        ValueError: the path has a zero byte.
    """
    return _read_and_close_descriptor(os.open(path, _OPEN_FILE_FLAGS), most)


def read_text_file(path: str | os.PathLike[str], most: int) -> str:
    """Read a regular file as UTF-8, with a byte order mark or without one.

    Raises:
        OSError: as `read_file`.
        UnicodeDecodeError: it is not UTF-8.
        ValueError: the path has a zero byte.
    """
    return read_file(path, most).decode("utf-8-sig")


def read_file_inside_folder(folder: Path, path: Path, most: int) -> bytes:
    """Read a regular file below a folder, and follow no link on the way: one may be put there after a check.

    Args:
        folder: the folder, with no link in its path.
        path: the file, below the folder, with no link in its path when it was looked at.
        most: the largest number of bytes that it may have.

    Raises:
        OSError: as `read_file`, or a part of the path is a link now.
    """
    if os.open not in os.supports_dir_fd:
        return read_file(path, most)
    *above, name = path.relative_to(folder).parts
    place = os.open(folder, _OPEN_FOLDER_FLAGS)
    try:
        for part in above:
            below = os.open(part, _OPEN_FOLDER_FLAGS, dir_fd=place)
            os.close(place)
            place = below
        number = os.open(name, _OPEN_FILE_FLAGS | _NO_LINK_FLAG, dir_fd=place)
    finally:
        os.close(place)
    return _read_and_close_descriptor(number, most)


def shorten_path(file: str | os.PathLike[str]) -> str:
    """Write a file's path for a message: from `site-packages` on, or as seen from the current folder if it is below."""
    path = os.fspath(file)
    for name in _INSTALLED_PACKAGE_FOLDERS:
        _, folder, rest = path.rpartition(f"{os.sep}{name}{os.sep}")
        if folder:
            return f"{name}{os.sep}{rest}"
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


def read_own_file(path: str | os.PathLike[str]) -> bytes:
    """Read a file of the kit whole, also where a test has put mocks in the place of `open` and of methods of `Path`.

    Raises:
        OSError: it cannot be read.
    """
    with io.open(path, "rb") as file:
        return file.read()


def write_file(path: Path, data: str | bytes, mode: int) -> None:
    """Write a file so that no reader ever sees half of it; a pipe or a link of that name is replaced.

    Args:
        path: its place, in a folder that exists.
        data: bytes, or text for UTF-8.
        mode: the permissions that it gets.

    Raises:
        OSError: it cannot be written; what was there before stays.
    """
    import tempfile  # pytest loads this module before it needs the rest

    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(number, mode)
            file.write(data.encode() if isinstance(data, str) else data)
        os.replace(name, path)  # noqa: PTH105  # pathlib is not loaded here
    except BaseException:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108  # as above
        raise


def _read_and_close_descriptor(number: int, most: int) -> bytes:
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            kind = next((words for is_kind, words in _FILE_KIND_TESTS if is_kind(found.st_mode)), "of an unknown kind")
            raise OSError(errno.EINVAL, f"it is {kind}, and not a regular file")
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it has {found.st_size} bytes: at most {most} are read")
        pieces: list[bytes] = []
        left = most + 1
        while left and (piece := os.read(number, min(left, _READ_CHUNK_BYTES))):
            pieces.append(piece)
            left -= len(piece)
    finally:
        os.close(number)
    if not left:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes, and no more are read")
    return b"".join(pieces)
