"""What the Tab key offers, in a bash that asks the installed command as it asks for users."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("argcomplete", reason="needs `pip install 'pytest-agentproc[completion]'`")

ASK = """
eval "$(register-python-argcomplete agentproc)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
_python_argcomplete agentproc
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "offered", "not_offered"),
    [
        ("agentproc ", {"check ", "explain ", "help ", "run "}, {"--out "}),
        ("agentproc ex", {"explain "}, {"check "}),
        ("agentproc help re", {"record "}, {"run "}),
        ("agentproc check mi", {"mine.scenario.yaml "}, set[str]()),
        ("agentproc explain incom", {"incomplete "}, {"completed "}),
        ("agentproc list --rule C", {"C1 "}, {"T1 "}),
        ("agentproc list --by ", {"rule ", "dialect ", "family "}, set[str]()),
        ("agentproc list --family K0", {"K01 "}, set[str]()),
        ("agentproc list --dialect co", {"codex "}, {"claude "}),
        ("agentproc run mi", {"mine.scenario.yaml "}, set[str]()),
        ("agentproc run lingers-and-ig", {"lingers-and-ignores-term "}, set[str]()),
        ("agentproc record --o", {"--out "}, {"--mode "}),
    ],
)
def test_tab_offers_the_words_of_the_installed_version(
    tmp_path: Path, line: str, offered: set[str], not_offered: set[str]
) -> None:
    """A user finds a scenario or a rule without the list beside him."""
    tmp_path.joinpath("mine.scenario.yaml").touch()
    asked = subprocess.run(
        ["bash", "-c", ASK, "bash", line],
        cwd=tmp_path,
        env={"PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    answers = {answer if answer.endswith(" ") else f"{answer} " for answer in asked.stdout.splitlines()}
    assert offered <= answers, asked.stderr
    assert not_offered & answers == set()
