"""Opens a page in Chromium without a window, and measures it there. Owns its processes; knows nothing of a page.

A page lets no script run, so that what is measured is a copy: its policy is left out, and a script is put at its end.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OpenedPage", "measure_page", "take_screenshot"]

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_LIMIT = 120
_NARROWEST_WINDOW = 500
"""Chromium makes a window at least so wide; a narrower page is shown in a frame."""

_PLAIN = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-breakpad")
_DARK = "--blink-settings=preferredColorScheme=0"
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_CONSOLE = re.compile(r"^.*CONSOLE.*$", re.MULTILINE)
_MEASURED = re.compile(r'<pre id="measured">(.*?)</pre>', re.DOTALL)


class OpenedPage(NamedTuple):
    """The result of opening a page.

    Args:
        measured: what the script found.
        console: the lines that the page wrote to the console.
    """

    measured: Any
    console: list[str]


def measure_page(
    page: str, script: str, folder: Path, *, width: int = 1280, height: int = 800, dark: bool = False
) -> OpenedPage:
    """Open a page, and give what a script measures in it.

    Args:
        page: its HTML.
        script: the body of a function that returns what JSON can hold.
        folder: an empty one.
        width: the width of the page in pixels.
        height: window height in pixels.
        dark: whether the user prefers dark pages.

    Raises:
        pytest.skip.Exception: there is no Chromium.
    """
    text = (
        "<script>parent.document.body.append(Object.assign(parent.document.createElement('pre'), {id: 'measured', "
        f"textContent: JSON.stringify((() => {{{script}}})())}}))</script>"
    )
    begin, _, end = _POLICY.sub("", page).rpartition("</body>")
    page = f"{begin}{text}</body>{end}"
    if width < _NARROWEST_WINDOW:
        style = f"border:0;width:{width}px;height:{height}px"
        page = f'<!doctype html><body><iframe style="{style}" srcdoc="{html.escape(page)}"></iframe></body>'
    (folder / "page.html").write_text(page, "utf-8")
    options = ["--dump-dom", "--enable-logging=stderr", f"--window-size={width},{height}", *([_DARK] if dark else [])]
    output, log = _run_chromium([*options, (folder / "page.html").as_uri()], folder)
    found = _MEASURED.search(output)
    return OpenedPage(json.loads(html.unescape(found[1])) if found else None, _CONSOLE.findall(log))


def take_screenshot(page: str, folder: Path, *, width: int = 1280, height: int = 800) -> bytes:
    """Give the picture of a page as it is, as a PNG.

    Raises:
        pytest.skip.Exception: there is no Chromium.
    """
    (folder / "page.html").write_text(page, "utf-8")
    picture = folder / "page.png"
    options = [f"--screenshot={picture}", f"--window-size={width},{height}"]
    _run_chromium([*options, (folder / "page.html").as_uri()], folder)
    return picture.read_bytes()


def _run_chromium(arguments: list[str], folder: Path) -> tuple[str, str]:
    """Run Chromium to its end, with all that it starts."""
    program = next((place for place in map(shutil.which, _NAMES) if place), None)
    if program is None:
        pytest.skip(f"none of {', '.join(_NAMES)} is installed")
    command = [program, *_PLAIN, f"--user-data-dir={folder / 'profile'}", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
    )
    try:
        return process.communicate(timeout=_LIMIT)
    finally:
        with contextlib.suppress(ProcessLookupError):  # all of them are gone
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
