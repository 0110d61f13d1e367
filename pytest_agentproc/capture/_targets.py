"""Says where a scenario may be written, by whom it may be read, and where programs can be recorded. Owns the names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pytest_agentproc.errors import UsageError

__all__ = ["SUFFIX", "check_target", "require_linux", "write_private"]

SUFFIX = ".scenario.yaml"


def check_target(path: str) -> Path:
    """Give the path of a scenario that is to be written.

    Raises:
        UsageError: its name or its folder is none for a scenario.
    """
    target = Path(path)
    if not target.name.endswith(SUFFIX) or target.name == SUFFIX:
        raise UsageError(f'--out is "{path}"', f"name a file that ends in {SUFFIX}")
    if not target.parent.is_dir():
        raise UsageError(f'--out is "{path}", and there is no folder "{target.parent}"', "make it first")
    if not os.access(target.parent, os.W_OK):
        raise UsageError(f'--out is "{path}", and nothing can be written there', "name another folder")
    return target


def write_private(path: Path, data: bytes) -> None:
    """Write a file that its owner alone may read, also where an older one was for all."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as file:
        if os.fstat(number).st_mode & 0o077:
            os.fchmod(number, 0o600)
        file.write(data)


def require_linux() -> None:
    """See that programs can be recorded here.

    Raises:
        UsageError: they cannot.
    """
    system = sys.platform
    if system != "linux":
        raise UsageError(f"programs can be recorded on Linux only, and this is {system}", "record there, check here")
