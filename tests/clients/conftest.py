"""The Python clients where a test can import them. Installs nothing by itself; knows no client."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.packages import from_pypi

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def _pypi() -> Iterator[None]:
    """Have the Python clients importable, behind whatever is installed already."""
    folder = str(from_pypi())
    sys.path.append(folder)
    yield
    sys.path.remove(folder)


@pytest.fixture(scope="session")
def claude_sdk(_pypi: None) -> Any:
    """Give the module `claude_agent_sdk`."""
    return import_module("claude_agent_sdk")


@pytest.fixture(scope="session")
def acp(_pypi: None) -> Any:
    """Give the module `acp`."""
    return import_module("acp")
