"""The needs of every inner pytest run: no foreign plugin that warns, nothing loaded twice. Knows no scenario."""

from __future__ import annotations

import importlib

import pytest

collect_ignore = ["examples"]  # repositories of their own: their conftest files are not ours

# An inner run forgets what it has imported, but C extensions (yaml's) cannot be loaded twice: load them here, for all.
for _name in ("defects", "harness", "scenario", "subjects", "verdict"):
    importlib.import_module(f"pytest_agentproc.{_name}")

_OTHERS = ("asyncio", "hypothesispytest", "random_order", "rerunfailures", "timeout", "trio")
"""Plugins that inner runs are without, unless a test is about one of them."""


@pytest.fixture(autouse=True)
def _quiet_inner_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out of inner runs what warns of its options (pytest-asyncio) or takes a second to load (hypothesis)."""
    request.getfixturevalue("pytester")  # it clears the variable, so it comes first
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(f"-p no:{name}" for name in _OTHERS))
    monkeypatch.setenv("COLUMNS", "80")  # a wide terminal shows more, and so does pytest on a CI server
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
