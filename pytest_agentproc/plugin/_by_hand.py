"""Owns the command that plays one scenario again by hand. Plays nothing."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.plugin._contributions import language_of
from pytest_agentproc.plugin._options import asked
from pytest_agentproc.plugin._subjects import is_core, subjects_of
from pytest_agentproc.scenario import BUNDLED

if TYPE_CHECKING:
    from pytest_agentproc.plugin._items import ScenarioItem
    from pytest_agentproc.vocabulary import Subject

__all__ = ["by_hand"]


def by_hand(item: ScenarioItem) -> str:
    """Give the command: `agentproc run`, or pytest's own for what only a conftest file or a plugin knows."""
    config, words = item.config, []
    name = None if is_core(item.subject) else _name_of(item)
    if _is_known_to_pytest_alone(item, name):
        return shlex.join(["pytest", item.nodeid, *_options(item)])
    if name is not None:
        words += ["--subject", name]
    elif asked(config, "defect") is not None:
        words += ["--defect", str(asked(config, "defect"))]
    if item.clock != "virtual":
        words += ["--clock", item.clock]
    if item.clock == "real":
        scale = asked(config, "scale")
        words += [] if scale is None else ["--scale", f"{scale:g}"]
    if item.backend not in ("asyncio", "model"):
        words += ["--backend", item.backend]
    return shlex.join(["agentproc", "run", item.scenario.argument, *words])


def _is_known_to_pytest_alone(item: ScenarioItem, name: str | None) -> bool:
    from pytest_agentproc.defects import NAMES

    is_known = asked(item.config, "defect") in (None, *NAMES) if is_core(item.subject) else name is not None
    return not is_known or language_of(item.config) is not BUNDLED


def _name_of(item: ScenarioItem) -> str | None:
    """Give the name under which `agentproc run` finds the item's supervisor from here; None: it does not."""
    from pytest_agentproc.subjects import bundled

    names: dict[Subject, str] = dict(
        zip(subjects_of(item.config), dict.fromkeys(asked(item.config, "subject")), strict=False)
    )
    name = names.get(item.subject)
    if name is not None and (
        name in bundled() or ((":" in name or name.endswith(".toml")) and item.config.rootpath == Path.cwd())
    ):
        return name
    return None


def _options(item: ScenarioItem) -> list[str]:
    """Give the options that chose the supervisor and the clock."""
    subjects, defect = asked(item.config, "subject"), asked(item.config, "defect")
    given = [f"--agentproc-subject={','.join(subjects)}"] if subjects else []
    given += [f"--agentproc-command={line}" for line in asked(item.config, "command")]
    given += [f"--agentproc-defect={defect}"] if defect is not None else []
    return given + ([f"--agentproc-clock={item.clock}"] if item.clock != "virtual" else [])
