"""Where a supervisor keeps its artifacts during a play: a directory, as it is or failing, and one in memory.

What is real: a directory in which nobody can make a file, root neither, is one of the kernel's own (`/sys`, or else
`/proc`); it is tried before it is used. What is played: a full disk. Every artifact's name leads to `/dev/full`, where
the kernel refuses each byte; a subject that writes under other names has to bring that about itself (`Order.disk`), and
one that got bytes past it was not on a full disk, so the scenario does not apply to it.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.errors import KitError
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.vocabulary import ARTIFACTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.scenario import Scenario

__all__ = ["MemoryStore", "Room"]

_KERNELS_OWN = ("/sys", "/proc")


class Room:
    """The directory of one play.

    Args:
        scenario: what it asks for.
        keeps_artifacts: whether the subject keeps any.
        folder: where a directory may be made.

    Raises:
        NotApplicable: the scenario is about artifacts' disk, and the subject has none.
        KitError: no directory of this machine refuses a file.
    """

    def __init__(self, scenario: Scenario, folder: Path, *, keeps_artifacts: bool) -> None:
        self.disk = scenario.disk
        self._line = scenario.host_line
        self.path: str | None = None
        if self.disk and not keeps_artifacts:
            raise NotApplicable("artifacts", self._line)
        if not scenario.asks_for_artifacts or not keeps_artifacts:
            return
        if self.disk == "read_only":
            self.path = _read_only()
            return
        self.path = tempfile.mkdtemp(prefix="artifacts-", dir=folder)
        if self.disk == "full":
            for name in ARTIFACTS:
                Path(self.path, name).symlink_to("/dev/full")

    def files(self) -> Mapping[str, bytes] | None:
        """Give what was kept, by name; None if the subject keeps nothing, or was not asked to.

        Raises:
            NotApplicable: the disk was to be full, and something was written to it.
        """
        if self.path is None:
            return None
        folder = Path(self.path)
        names = ARTIFACTS if self.disk == "read_only" else sorted(file.name for file in folder.iterdir())
        found = {name: data for name in names if (data := _read(folder / name)) is not None}
        if self.disk == "full" and any(found.values()):
            raise NotApplicable("files that meet the kit's full disk", self._line)
        return found

    def close(self) -> None:
        """Remove the directory, if it was made."""
        if self.path is not None and self.disk != "read_only":
            shutil.rmtree(self.path, ignore_errors=True)


def _read(file: Path) -> bytes | None:
    """Read a regular file; what else has the name is no artifact."""
    try:
        return file.read_bytes() if stat.S_ISREG(file.lstat().st_mode) else None
    except OSError:
        return None


def _read_only() -> str:
    for folder in _KERNELS_OWN:
        probe = Path(folder, f"agentproc-{os.getpid()}")
        try:
            probe.touch()
        except OSError:
            if Path(folder).is_dir():
                return folder
        else:
            with suppress(OSError):
                probe.unlink()
    raise KitError(f"none of {', '.join(_KERNELS_OWN)} is a directory in which no file can be made")


class MemoryStore:
    """The core's store in memory: what a `Folder` does in the directory of a `Room`.

    Args:
        disk: how it fails; see `Order`.
    """

    def __init__(self, disk: str = "") -> None:
        self.files: dict[str, bytes] = {}
        self._disk = disk
        self._parts: dict[str, bytearray] = {}

    def begin(self, name: str) -> None:
        """See `supervisor.Store`."""
        if self._disk == "read_only":
            raise PermissionError(13, "Permission denied", name)
        self._parts[name] = bytearray()

    def write(self, name: str, data: bytes) -> None:
        """See `supervisor.Store`."""
        if self._disk == "full":
            raise OSError(28, "No space left on device", name)
        self._parts[name] += data

    def finish(self, name: str) -> None:
        """See `supervisor.Store`."""
        self.files[name] = bytes(self._parts.pop(name))

    def drop(self, name: str) -> None:
        """See `supervisor.Store`."""
        self._parts.pop(name, None)
