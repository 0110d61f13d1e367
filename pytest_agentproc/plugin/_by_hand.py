"""Owns the command that plays one scenario again by hand. Plays nothing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.plugin._options import asked
from pytest_agentproc.plugin._subjects import is_core, subjects_of

if TYPE_CHECKING:
    from pytest_agentproc.plugin._items import ScenarioItem
    from pytest_agentproc.vocabulary import Subject

__all__ = ["by_hand"]


def by_hand(item: ScenarioItem) -> str:
    """Give the command: `agentproc run`, or pytest's own for a supervisor that only a conftest file knows."""
    config, words = item.config, []
    if asked(config, "defect") is not None and is_core(item.subject):
        words += ["--defect", str(asked(config, "defect"))]
    elif not is_core(item.subject):
        name = _name_of(item)
        if name is None:
            return shlex.join(["pytest", item.nodeid, *_subject_option(item)])
        words += ["--subject", name]
    if item.clock == "real":
        words += ["--clock", item.clock]
        scale = asked(config, "scale")
        words += [] if scale is None else ["--scale", f"{scale:g}"]
    if item.backend not in ("asyncio", "model"):
        words += ["--backend", item.backend]
    return shlex.join(["agentproc", "run", str(item.scenario.path), *words])


def _name_of(item: ScenarioItem) -> str | None:
    """Give the name under which `agentproc run` finds the item's supervisor from here; None: it does not."""
    from pytest_agentproc.subjects import bundled

    names: dict[Subject, str] = dict(
        zip(subjects_of(item.config), dict.fromkeys(asked(item.config, "subject")), strict=False)
    )
    name = names.get(item.subject)
    if name is not None and (name in bundled() or (":" in name and item.config.rootpath == Path.cwd())):
        return name
    return None


def _subject_option(item: ScenarioItem) -> list[str]:
    given = asked(item.config, "subject")
    return [f"--agentproc-subject={','.join(given)}"] if given else []
