"""Five careful supervisors whose authors knew the public texts alone: each is conformant, or the kit is wrong.

They are read-only: a red is a reason to look at the scenario, not at the supervisor. Each has at most 250 lines. Where
reading showed that the supervisor is wrong, its folder lists the known failure.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.plugin.examples.__main__ import HERE
from tests.plugin.reports.test_summary import find_sentences

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.once, pytest.mark.slow]

STRANGERS = HERE / "strangers"
LONGEST = 250
IN_VIRTUAL_TIME = {
    "anyio_claude_print": ("trio", ["anyio_claude_print"]),
    "asyncio_acp": ("asyncio", ["Acp", "acp_function"]),
    "asyncio_claude_session": ("asyncio", ["claude_session"]),
    "trio_pi": ("trio", ["trio_pi", "trio_pi_whole", "trio_pi_run"]),
}
"""The supervisors that are async, with the event loop, and their names in the verdict."""
CERTAIN = (
    "leftover-in-its-own-group or killed-from-outside or split-utf8-plain or stdin-ends"
    " or silent-with-a-child-that-ignores-term"
)
"""Some bundled scenarios, so that its test is short."""


def judge_folder(pytester: pytest.Pytester, folder: Path, *arguments: str) -> list[tuple[str, ...]]:
    """Judge the supervisor of a folder, and give the sentences of the verdict."""
    pytest.importorskip("trio")
    for file in folder.iterdir():
        shutil.copy(file, pytester.path) if file.is_file() else None
    return find_sentences(pytester.runpytest_subprocess("--agentproc-corpus", "-q", "--tb=no", *arguments))


@pytest.mark.parametrize("name", IN_VIRTUAL_TIME)
def test_a_careful_supervisor_is_conformant(
    name: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No check at level must is failed or undecided; a should may be, as its author disputes it."""
    monkeypatch.setenv("ADAPTER", "all")
    backend, names = IN_VIRTUAL_TIME[name]
    found = judge_folder(pytester, STRANGERS / name, f"--agentproc-backend={backend}")
    assert [(subject, verdict) for subject, verdict, *_ in found] == [(name, "is conformant") for name in names]
    assert all("must: 0 failed" in figures and "undecided: 0" in figures for _, _, figures, *_ in found)


def test_a_careful_supervisor_of_threads_is_conformant(pytester: pytest.Pytester) -> None:
    """It waits in threads, in virtual time, too, and kills what is its own: no process looks older than the run."""
    [(subject, verdict, figures, *_)] = judge_folder(pytester, STRANGERS / "threads_raw", "-k", CERTAIN)
    assert (subject, verdict) == ("threads_raw", "is conformant")
    assert figures.startswith("must: 0 failed, ")


@pytest.mark.parametrize("name", ["threads_raw", *IN_VIRTUAL_TIME])
def test_each_is_as_short_as_a_stranger_would_try(name: str) -> None:
    """Users do not try a longer one."""
    assert len((STRANGERS / name / "supervisor.py").read_text("utf-8").splitlines()) <= LONGEST
