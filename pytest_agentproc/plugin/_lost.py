"""Owns what is kept of a scenario whose play has no verdict, since the process that played it is gone. Judges nothing.

A worker of xdist that dies takes its report along: what is left is the id of the test that it had begun.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from pytest_agentproc.corpus import SUFFIX, corpus_folder
from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.plugin._collect import CORPUS
from pytest_agentproc.plugin._contributions import language_of
from pytest_agentproc.plugin._scripts import shown_path
from pytest_agentproc.plugin._subjects import subjects_of
from pytest_agentproc.scenario import load, read_agents
from pytest_agentproc.verdict import Judged, Verdict
from pytest_agentproc.vocabulary import LEVELS

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pytest_agentproc.scenario import Language

__all__ = ["lost"]

_ID = re.compile(r"(?P<file>.*)::[^\[]*\[(?P<axes>.*)\](@.*)?")
"""As `ScenarioFile` gives it; `--dist=loadgroup` puts the group behind it."""


def lost(config: pytest.Config, report: pytest.TestReport) -> Judged | None:
    """Make an entry of a scenario that was begun and never judged: an error that belongs to nobody is the kit's.

    Args:
        config: the session's.
        report: of a test that failed before it was played, or whose worker died.

    Returns:
        the entry; None if the report is not about a scenario.
    """
    found = _ID.fullmatch(report.nodeid)
    if found is None or not found["file"].endswith(SUFFIX):
        return None
    place, corpus = found["file"].removeprefix(f"{CORPUS}/"), corpus_folder()
    is_bundled = corpus is not None and place != found["file"]
    path = (corpus if is_bundled and corpus is not None else config.rootpath) / place
    axes = found["axes"].removesuffix("-real")
    agent = next((name for name in read_agents(path) if axes.startswith(f"{name}-")), "")
    subject, _, backend = axes.removeprefix(f"{agent}-" if agent else "").rpartition("-")
    return Judged(
        **_about(path, agent, language_of(config), report),
        subject=subject or subjects_of(config)[0].name,
        clock="virtual" if axes == found["axes"] else "real",
        backend=backend,
    )


def _about(path: Path, agent: str, language: Language, report: pytest.TestReport) -> dict[str, Any]:
    """Tell of a scenario what its file says; of one with a mistake, which might have decided, just that."""
    try:
        scenario = load(shown_path(path), language, agent=agent)
    except ScenarioError as problems:
        told = {"file": "", "level": LEVELS[0], "covers": (), "reason": str(problems.problems[0])}
        name = path.name.removesuffix(SUFFIX) + (f"[{agent}]" if agent else "")
        return {"scenario": name, "verdict": str(Verdict.UNDECIDED), **told}
    return {
        "scenario": scenario.id,
        "file": hashlib.sha256(scenario.text.encode()).hexdigest(),
        "level": scenario.level,
        "covers": scenario.covers,
        "verdict": str(Verdict.KIT_ERROR),
        "reason": _why(report),
    }


def _why(report: pytest.TestReport) -> str:
    if report.when == "setup":
        return "something failed before it was played"
    return str(report.longrepr).partition(" while running ")[0]
