"""The environments: what the kit needs, one release of pytest, and at most one plugin. Installs each once; runs none.

They stay where `tests.clients.packages` keeps its packages. A plugin's environment has the plugin and what only that
needs. The rest is in the environment without a plugin, to which a file of paths leads. The kit itself is in none: it is
the one whose tests these are.
"""

from __future__ import annotations

import os
import sys
import venv
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from tests.architecture.sources import ROOT
from tests.clients.packages import fill_cached_folder

if TYPE_CHECKING:
    from tests.neighbours.plugins import Neighbour

__all__ = ["NEWEST", "OLDEST", "describe_environment", "find_interpreter"]

OLDEST = "8.2.0"
"""The oldest pytest that pyproject.toml allows."""
NEWEST = "9.2.0"
"""The newest pytest when the pins of the plugins were chosen."""

_VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}"
_SITE_PACKAGES = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def find_interpreter(pytest_version: str, neighbour: Neighbour | None) -> Path:
    """Give the interpreter of an environment, which is made if it does not exist.

    Args:
        pytest_version: `OLDEST` or `NEWEST`.
        neighbour: the plugin; None: there is none.
    """
    needed = [f"pytest=={pytest_version}", *_list_needs()]
    if neighbour is None:
        return _make_environment("beside-none", needed, None)
    base = find_interpreter(pytest_version, None).parents[1]
    pins = [*neighbour.pin(pytest_version), *needed]
    return _make_environment(f"beside-{neighbour.name}", pins, base)


def _list_needs() -> list[str]:
    """List what the kit needs beside pytest."""
    found = [need for need in metadata.requires("pytest-agentproc") or () if "extra ==" not in need]
    return sorted(need for need in found if not need.startswith("pytest"))


def _make_environment(name: str, pins: list[str], base: Path | None) -> Path:
    def install(folder: Path) -> list[str]:
        venv.create(folder, symlinks=True)
        if base is not None:
            (folder / _SITE_PACKAGES / "base.pth").write_text(f"{base / _SITE_PACKAGES}\n", "utf-8")
        pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"]
        return [*pip, "install", "--quiet", *pins]

    return fill_cached_folder(name, [*pins, _VERSION, str(base)], install) / "bin" / "python"


@cache
def describe_environment(folder: Path) -> dict[str, str]:
    """Give the variables of an inner session: no option of the outer one, and the kit with its entry point.

    Args:
        folder: an empty one, for a link to the kit's metadata.
    """
    files = metadata.distribution("pytest-agentproc").files or ()
    entry_points = next(Path(file.locate()) for file in files if file.name == "entry_points.txt")
    folder.joinpath(entry_points.parent.name).symlink_to(entry_points.parent)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "PYTHON"))}
    for name in ("CI", "BUILD_NUMBER"):  # pytest prints other lines there
        kept.pop(name, None)
    return {**kept, "PYTHONPATH": f"{ROOT}:{folder}", "COLUMNS": "80"}
