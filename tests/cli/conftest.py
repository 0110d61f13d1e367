"""Modules that the command imports from a test's own folder are forgotten after the test."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Run in this process, the command would leave a supervisor's module and folder to the next test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("FORCE_COLOR", raising=False)  # the words are compared, and a CI server may want colours
    yield
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]
