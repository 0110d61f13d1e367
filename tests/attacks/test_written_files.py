"""The modes of the files that are left to a user, as "What is written where" of SECURITY.md promises them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.attacks.trials import AGENTPROC

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SCENARIO = """\
scenario: an agent says hi
agent: raw
script: [{say: hi}]
expect: {text: TEXT}
"""
OPEN = """\
scenario: an agent works for long
agent: raw
policy: {inactivity_timeout: 10m}
script: [{silence: {between: [0s, 20m]}}, {say: hi}]
expect: {outcome: completed}
"""
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
SEARCH = [*AGENTPROC, "search", "open.scenario.yaml", "--out", ".", "--seconds", "15"]
ROWS = {
    "a page": ([*PYTEST, "--agentproc-report=new", "red.scenario.yaml"], "new/*.html", 0o666, True),
    "results": ([*PYTEST, "--agentproc-results=new/r.json", "green.scenario.yaml"], "new/r.json", 0o666, True),
    "import": (
        [*AGENTPROC, "import", "log.txt", "--dialect", "claude", "--yes", "--out", "new.scenario.yaml"],
        "new.*",
        0o666,
        True,
    ),
    "new": ([*AGENTPROC, "new", "--claim", "it works", "fresh"], "fresh.*", 0o666, True),
    "search": (SEARCH, "found-*", 0o666, True),
    "fake": ([*AGENTPROC, "fake", "green.scenario.yaml", "--dir", "new", "--name", "mine"], "new/mine", 0o755, False),
    "record": ([*AGENTPROC, "record", "--yes", "--out", "new.scenario.yaml", "--", "echo", "x"], "new.*", 0o600, False),
}


@pytest.mark.parametrize("umask", [0o027, 0o077], ids=oct)
@pytest.mark.parametrize("row", ROWS)
def test_a_file_has_the_mode_that_is_promised(tmp_path: Path, row: str, umask: int) -> None:
    """What an agent printed is in most of them. A user who keeps others out by umask must be obeyed."""
    command, pattern, mode, obeys = ROWS[row]
    for name, text in {"green": "hi", "red": "ho"}.items():
        (tmp_path / f"{name}.scenario.yaml").write_text(SCENARIO.replace("TEXT", text), "utf-8")
    (tmp_path / "open.scenario.yaml").write_text(OPEN, "utf-8")
    (tmp_path / "log.txt").write_text('{"type":"result","subtype":"success","is_error":false,"result":"hi"}\n', "utf-8")
    done = subprocess.run(
        command,
        cwd=tmp_path,
        umask=umask,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    found = [path for path in tmp_path.glob(pattern) if path.is_file()]
    assert found, done.stdout + done.stderr
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in found} == {
        path.name: oct(mode & ~umask if obeys else mode) for path in found
    }
    folders = [path for path in (tmp_path / "new",) if path.is_dir()]
    assert [oct(path.stat().st_mode & 0o777) for path in folders] == [oct(0o777 & ~umask) for _ in folders]
