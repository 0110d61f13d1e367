"""The reference supervisor's store on a full disk. Owns the part that is played: where the bytes of a file are written.

The reference supervisor writes under names that no test can know before, so no writable directory can be full for it.
Files are made and renamed for real, and written bytes meet the kernel's own "no space left" at /dev/full.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Folder

if TYPE_CHECKING:
    from pathlib import Path


class FullFolder(Folder):
    """A directory in which files can be made, and nothing can be written to them."""

    def create(self, path: Path) -> int:
        """Make the file, and give a descriptor that takes no byte."""
        os.close(super().create(path))
        return os.open("/dev/full", os.O_WRONLY)
