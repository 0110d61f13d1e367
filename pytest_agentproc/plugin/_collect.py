"""Owns which files are scenarios, and where the bundled ones are.

Opens none of them: a suite without scenarios pays for a look at names only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["PACKAGE", "SUFFIX", "corpus_folder", "pytest_collect_file"]

SUFFIX = ".scenario.yaml"
PACKAGE = Path(__file__).resolve().parent.parent


def corpus_folder() -> Path | None:
    """Find the bundled scenarios; None if this installation has none."""
    return next((place for place in (PACKAGE / "_corpus", PACKAGE.parent / "scenarios") if place.is_dir()), None)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take every file called `*.scenario.yaml`."""
    if not file_path.name.endswith(SUFFIX):
        return None
    from pytest_agentproc.plugin._items import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)
