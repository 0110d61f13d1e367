"""Owns how a session leaves files behind it. Knows nothing of what is in them."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.plugin._options import asked
from pytest_agentproc.plugin._scripts import shown_path

if TYPE_CHECKING:
    import pytest

__all__ = ["write_atomically", "write_results"]


def write_results(config: pytest.Config, text: str) -> str:
    """Write the file of results that was asked for, and say so; on the command line it is seen from where one is.

    Returns:
        one sentence; also about why it cannot be written, which is no failure of what was judged.
    """
    given = str(asked(config, "results"))
    path = (config.rootpath if config.getoption("agentproc_results") is None else Path.cwd()) / given
    try:
        write_atomically(path, text)
    except OSError as error:
        return f"agentproc: {shown_path(path)} cannot be written: {error.strerror}"
    return f"agentproc: results in {shown_path(path)}"


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that nobody ever sees half of it.

    Raises:
        OSError: it cannot be written; what was there before stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
