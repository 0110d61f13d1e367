"""Writes the verdicts of the examples, each into its folder: `python -m tests.plugin.examples`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

__all__ = ["FOLDERS", "VERDICTS", "verdicts"]

HERE = Path(__file__).parent
FOLDERS = ("naive", "asyncio_wait_for", "trio_watchdog", "node", "shell")
VERDICTS = "verdicts.txt"
_CEILING = 300
_VIRTUAL = "byte-a-minute or silent-past-the-limit or leftover or slow-death or split-utf8-plain or stderr-only"
_CERTAIN = "leftover-in-its-own-group or killed-from-outside or one-number or split-utf8-plain or stdin-ends"
"""Those whose verdicts in real time do not turn on who is faster."""


def command(folder: str) -> list[str]:
    """Give the command whose verdicts are kept."""
    which = _VIRTUAL if folder in ("asyncio_wait_for", "trio_watchdog") else _CERTAIN
    return ["pytest", "--agentproc-corpus", "-q", "--tb=no", "-rs", "-k", which]


def verdicts(folder: str, place: Path | None = None) -> tuple[str, str]:
    """Judge an example.

    Args:
        folder: its name.
        place: where its files are; None: here.

    Returns:
        the command and the table by rule, as they are kept, without what varies; and all that was printed.
    """
    words = command(folder)
    quiet = ["-pno:cacheprovider", "-pno:asyncio", "-pno:hypothesispytest", "-c", _ini(HERE / folder), "--rootdir=."]
    env = {**os.environ, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""}
    for name in ("CI", "BUILD_NUMBER"):
        env.pop(name, None)
    completed = subprocess.run(
        [sys.executable, "-m", *words, *quiet],
        cwd=place or HERE / folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=_CEILING,
    )
    table = re.search(r"^rule .*?\n\n(agentproc: .*?); ", completed.stdout, re.MULTILINE | re.DOTALL)
    printed = completed.stdout + completed.stderr
    return f"$ {shlex.join(words)}\n{table[0][:-2] if table else printed}\n", printed


def _ini(folder: Path) -> str:
    return "pytest.ini" if (folder / "pytest.ini").exists() else os.devnull


if __name__ == "__main__":
    for name in sys.argv[1:] or FOLDERS:
        (HERE / name / VERDICTS).write_text(verdicts(name)[0], "utf-8")
