"""The documentation in a real browser: on a phone nothing is wider than the page, and in the dark it is dark."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.architecture.sources import ROOT
from tests.browser.chromium import measure_page

if TYPE_CHECKING:
    from pathlib import Path

PAGES = ("index", "reference/index", "reference/steps", "reference/expect", "reference/rules/T1", "reference/commands")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the pages; every warning is an error."""
    pytest.importorskip("sphinx", reason="pip install -e '.[docs]' builds the documentation")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", str(ROOT / "docs"), str(folder)]
    subprocess.run(command, check=True, timeout=120)
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_documentation_fits_on_a_phone(site: Path, name: str, tmp_path: Path) -> None:
    """Code scrolls in its own box; the page does not move sideways."""
    seen = measure_page(
        _build_page(site, name), "return document.scrollingElement.scrollWidth - innerWidth", tmp_path, width=500
    )
    assert seen.measured <= 0


@pytest.mark.parametrize("name", PAGES[:3])
def test_a_page_of_the_documentation_has_a_dark_mode(site: Path, name: str, tmp_path: Path) -> None:
    """White paper at night hurts."""
    script = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    dark, light = (
        measure_page(_build_page(site, name), script, tmp_path, dark=dark).measured for dark in (True, False)
    )
    assert max(dark) < 64
    assert min(light) > 192


def _build_page(site: Path, name: str) -> str:
    """Give a page that finds its styles from another folder."""
    file = site / f"{name}.html"
    return file.read_text("utf-8").replace("<head>", f'<head><base href="{file.parent.as_uri()}/">', 1)
