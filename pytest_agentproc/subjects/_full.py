"""The core's store on a disk that is full. Owns what is played about it: where the bytes of a file go.

The core writes under names that nobody can know before, so no directory that anyone may make can be full for it. Files
are made and renamed for real, and what is written meets the kernel's own "no space left" at /dev/full.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FullFolder"]


class FullFolder(Folder):
    """A directory in which files can be made, and nothing can be written to them."""

    def create(self, path: Path) -> int:
        """Make the file, and give a descriptor that takes no byte."""
        os.close(super().create(path))
        return os.open("/dev/full", os.O_WRONLY)
