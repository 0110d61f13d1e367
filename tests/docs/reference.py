"""Loads the writer of the reference's pages, which is no package. Knows no page."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from typing import TYPE_CHECKING

from pytest_agentproc.reference import make_heading_anchor
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

__all__ = ["is_made", "list_anchors", "load_page_writer", "make_pages"]


@cache
def load_page_writer() -> ModuleType:
    """Load docs/_ext/reference_pages.py."""
    spec = importlib.util.spec_from_file_location("reference_pages", ROOT / "docs" / "_ext" / "reference_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def make_pages() -> dict[str, str]:
    """Write every page of the reference that is made from tables, by its file below docs/reference."""
    pages: dict[str, str] = load_page_writer().pages()
    return pages


def is_made(page: Path) -> bool:
    """Say whether a page below docs is one of them, which a build has left there."""
    folder = ROOT / "docs" / "reference"
    return folder in page.parents and load_page_writer().is_made(str(page.relative_to(folder))) is True


def list_anchors(page: str) -> list[str]:
    """List the anchors of a page's headings, and the names that it gives them; code is no heading."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", page, flags=re.MULTILINE | re.DOTALL)
    titles = [make_heading_anchor(title) for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    return [*titles, *re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)]
