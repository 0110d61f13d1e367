"""Owns which files are scenarios as pytest sees them.

Opens none of them: a suite without scenarios pays for a look at names only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.corpus import SUFFIX

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

__all__ = ["pytest_collect_file"]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take every file called `*.scenario.yaml`."""
    if not file_path.name.endswith(SUFFIX):
        return None
    from pytest_agentproc.plugin._items import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)
