"""Owns the file of known failures: where it is, when it is read and written. What it says is the verdict's affair."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.corpus import SUFFIX, corpus_folder
from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.files import read_text_file
from pytest_agentproc.plugin._options import asked
from pytest_agentproc.plugin._results import write_atomically
from pytest_agentproc.plugin._scripts import shown_path
from pytest_agentproc.plugin._subjects import is_core, subjects_of
from pytest_agentproc.verdict import Baseline, accepted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_agentproc.plugin._items import ScenarioItem
    from pytest_agentproc.verdict import Judged, Row

__all__ = ["begin_baseline", "read_by_baseline", "update_baseline"]

_BASELINE: pytest.StashKey[Baseline] = pytest.StashKey()
_DEFAULT = "agentproc-baseline.yaml"
_MOST_BYTES = 1 << 24
_UNSEEN = ("node_modules", "venv", "build", "dist", "__pycache__")


def begin_baseline(config: pytest.Config) -> None:
    """Read the file, if there is one.

    Raises:
        pytest.UsageError: it cannot be read, is malformed, or lists a scenario that there is not.
    """
    path, is_updating = _path(config), asked(config, "update_baseline")
    if not path.exists() and (is_updating or not asked(config, "baseline")):
        return
    try:
        baseline = Baseline(read_text_file(path, _MOST_BYTES), shown_path(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise pytest.UsageError(
            f"the baseline {shown_path(path)} cannot be read: {reason}: --agentproc-update-baseline writes one"
        ) from error
    except ScenarioError as problems:
        raise pytest.UsageError(str(problems)) from None
    config.stash[_BASELINE] = baseline
    if not is_updating and baseline.missing(_scenarios(corpus_folder())):
        missing = baseline.missing([*_scenarios(corpus_folder()), *_scenarios(config.rootpath)])
        if missing:
            raise pytest.UsageError("\n".join(missing))


def read_by_baseline(item: ScenarioItem, rows: Sequence[Row]) -> tuple[Row, ...]:
    """Give the rows of a scenario in the light of what is known."""
    if (item.scenario if item.played is None else item.played.bound.scenario).level == "info":
        return tuple(rows)
    if asked(item.config, "update_baseline"):
        return accepted(rows)
    baseline = item.config.stash.get(_BASELINE, None)
    if baseline is None:
        return tuple(rows)
    return baseline.apply(rows, item.scenario.id, item.subject.name, is_core=is_core(item.subject))


def update_baseline(config: pytest.Config, judged: Sequence[Judged]) -> str:
    """Write the file anew, and say so."""
    path = _path(config)
    baseline = config.stash.get(_BASELINE, None) or Baseline("", shown_path(path))
    scenarios = [*_scenarios(corpus_folder()), *_scenarios(config.rootpath), *(one.scenario for one in judged)]
    core = [subject.name for subject in subjects_of(config) if is_core(subject)]
    text = baseline.updated(judged, scenarios, core)
    write_atomically(path, text)
    return f"agentproc: {shown_path(path)} lists {len(Baseline(text, str(path)).known)} known failures"


def _path(config: pytest.Config) -> Path:
    given = asked(config, "baseline")
    if not given:
        return (config.inipath.parent if config.inipath else config.rootpath) / _DEFAULT
    by_ini = config.getoption("agentproc_baseline") is None
    return (config.rootpath if by_ini else Path.cwd()) / str(given)


def _scenarios(folder: Path | None) -> Iterator[str]:
    """Find the ids of the scenarios below a folder, by their files' names."""
    for _, folders, files in os.walk(folder) if folder is not None else ():
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _UNSEEN]
        yield from (file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX))
