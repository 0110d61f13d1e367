"""Owns what other plugins add: dialects, steps, defects. Each session has its own; no table of the kit changes.

Plugins are asked one by one, so that whatever is wrong with a contribution is told with the name of who made it.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_agentproc.defects import Defect
    from pytest_agentproc.scenario import Language

__all__ = ["defect_named", "language_of"]

_LANGUAGE: pytest.StashKey[Language] = pytest.StashKey()
_DEFECTS: pytest.StashKey[dict[str, Defect]] = pytest.StashKey()
_OF_LANGUAGE = ("pytest_agentproc_dialects", "pytest_agentproc_steps")
_OF_DEFECTS = "pytest_agentproc_defects"


def language_of(config: pytest.Config) -> Language:
    """Give the language of the session's scenarios: the kit's, with what plugins add.

    Raises:
        pytest.UsageError: what a plugin adds is none, or its name is taken.
    """
    language = config.stash.get(_LANGUAGE, None)
    if language is None:
        from pytest_agentproc import scenario
        from pytest_agentproc.vocabulary import Dialect, ScriptStep

        language = scenario.BUNDLED
        kinds: tuple[tuple[type, Callable[[Language, Any, str], Language]], ...] = (
            (Dialect, scenario.with_dialect),
            (ScriptStep, scenario.with_step),
        )
        for hook, (kind, grown) in zip(_OF_LANGUAGE, kinds, strict=True):
            for origin, given in _given(config, hook, kind):
                try:
                    language = grown(language, given, origin)
                except UsageError as error:
                    raise pytest.UsageError(_told(hook, origin, error)) from None
        config.stash[_LANGUAGE] = language
    return language


def defect_named(config: pytest.Config, name: str) -> Defect:
    """Give a defect by its name: one of the kit's, or one that a plugin adds.

    Raises:
        ValueError: there is none of that name; the text says which was meant.
        pytest.UsageError: what a plugin adds is none, or its name is taken.
    """
    from pytest_agentproc import defects

    if name in defects.NAMES:
        return defects.defect(name)
    added = config.stash.get(_DEFECTS, None)
    if added is None:
        added = config.stash[_DEFECTS] = _defects(config)
    if name not in added:
        known = (*defects.NAMES, *added)
        near = difflib.get_close_matches(name, known, 1)
        raise ValueError(
            "there is no such defect, " + (f"did you mean {near[0]}?" if near else f"only {', '.join(known)}")
        )
    return added[name]


def _defects(config: pytest.Config) -> dict[str, Defect]:
    from pytest_agentproc import defects
    from pytest_agentproc.vocabulary import RULES

    found: dict[str, tuple[Defect, str]] = {}
    for origin, given in _given(config, _OF_DEFECTS, defects.Defect):
        name = given.name
        problem = None
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            problem = UsageError(f"defect {name!r}: that is no name", 'write small letters with "-" between the words')
        elif name in defects.NAMES or name in found:
            whose = f"{found[name][1]} adds one, too" if name in found else "it is one of the kit's"
            problem = UsageError(f"defect {name}: the name is taken, {whose}", "choose another name")
        elif given.breaks not in RULES:
            problem = UsageError(f"defect {name}: it breaks {given.breaks!r}", f"rules are {', '.join(RULES)}")
        if problem is not None:
            raise pytest.UsageError(_told(_OF_DEFECTS, origin, problem))
        found[name] = given, origin
    return {name: given for name, (given, _) in found.items()}


def _given(config: pytest.Config, hook: str, kind: type) -> Iterator[tuple[str, Any]]:
    """Ask each plugin by itself, in the order of pytest's hooks; give what it adds with who it is."""
    manager = config.pluginmanager
    for impl in reversed(getattr(config.hook, hook).get_hookimpls()):
        if impl.wrapper or impl.hookwrapper:
            continue
        origin = _origin(impl.plugin_name)
        others = [plugin for plugin in manager.get_plugins() if plugin is not impl.plugin]
        try:
            answers = manager.subset_hook_caller(hook, others)(config=config)
            things = [thing for answer in answers for thing in (answer if hasattr(answer, "__iter__") else [answer])]
        except UsageError as error:
            raise pytest.UsageError(_told(hook, origin, error)) from None
        except Exception as error:  # it is theirs, whatever it is
            problem = UsageError(f"it raised {type(error).__name__}: {error}", "mend that first")
            raise pytest.UsageError(_told(hook, origin, problem)) from error
        for thing in things:
            if not isinstance(thing, kind):
                wanted = f"{kind.__module__.rpartition('.')[0]}.{kind.__name__}"
                raise pytest.UsageError(_told(hook, origin, UsageError(f"it gave {thing!r}", f"give {wanted} objects")))
            yield origin, thing


def _origin(name: str) -> str:
    return os.path.relpath(name) if Path(name).is_absolute() else f"the plugin {name}"


def _told(hook: str, origin: str, error: UsageError) -> str:
    return f"{hook} of {origin}: {error.message}" + (f": {error.remedy}" if error.remedy else "")
