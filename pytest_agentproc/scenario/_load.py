"""Owns loading: text or file in, a checked scenario or all its problems out. Refuses to know any key's meaning."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import Problem, ScenarioError
from pytest_agentproc.files import read_text_file
from pytest_agentproc.scenario._additions import BUNDLED
from pytest_agentproc.scenario._check import Check
from pytest_agentproc.scenario._drive import Item, unawaited
from pytest_agentproc.scenario._fields import WHOLE_FILE
from pytest_agentproc.scenario._file import FILE
from pytest_agentproc.scenario._nodes import Enough, Mapping, Node, Scalar, parse
from pytest_agentproc.scenario._open import closed, openings
from pytest_agentproc.scenario._scenario import Scenario
from pytest_agentproc.scenario._several import SESSION_KEYS, require_script
from pytest_agentproc.scenario._traps import position
from pytest_agentproc.scenario._wanted import of_session
from pytest_agentproc.vocabulary import LEVELS, Answer

if TYPE_CHECKING:
    from pytest_agentproc.scenario._expect import Expected
    from pytest_agentproc.scenario._language import Language

__all__ = ["load", "loads"]

_SUFFIX = ".scenario.yaml"
_LARGEST = 4 * 1024**2
_MOST_BYTES = 4 * _LARGEST + 3
"""So many bytes the longest text can have, with a byte order mark."""
_TOLD = tuple(field.name for field in fields(Answer))
_NOWHERE = {
    "[\ud800-\udfff]": "U+{:04X} is half a character: no file can hold it",
    "[\x85\u2028\u2029]": 'U+{0:04X} ends a line for YAML and for no editor: write "\\u{0:04x}", in a quoted text',
}
"""Characters that a scenario has nowhere, quoted or not, with what is said about them."""


def load(path: str | os.PathLike[str], language: Language = BUNDLED, name: str | None = None) -> Scenario:
    """Read and check a scenario file.

    Args:
        path: the file.
        language: the steps and the dialects that it may speak of.
        name: what messages call it, and the scenario's `path`; None: the path as it is given.

    Raises:
        ScenarioError: every problem of the file at once.
    """
    name = os.fspath(path) if name is None else name
    try:
        text = read_text_file(path, _MOST_BYTES)
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        line, column = position(before, len(before))
        raise ScenarioError([Problem(name, line, column, "the file is not UTF-8")]) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ScenarioError([Problem(name, 1, 1, f"the file cannot be read: {reason}")]) from error
    return loads(text, name, os.path.split(path)[0] or ".", language)


def loads(
    text: str,
    name: str = "<text>",
    folder: str | os.PathLike[str] | None = None,
    language: Language = BUNDLED,
) -> Scenario:
    """Check a scenario's text.

    Args:
        text: the YAML.
        name: what messages call it; its last part without `.scenario.yaml` is the scenario's id.
        folder: where the files that the scenario names must stay; without one it can name none.
        language: the steps and the dialects that it may speak of.

    Raises:
        ScenarioError: every problem of the text at once.
    """
    check = Check(name, folder, language)
    values = _values(text, check)
    if check.problems:
        raise ScenarioError(list(dict.fromkeys(check.problems)))
    drive = values.get("drive", (Item(0, "prompt", "hi"),))
    about = {
        "id": name if name.startswith("<") else os.path.split(name)[1].removesuffix(_SUFFIX),
        "path": name,
        "claim": values["scenario"],
        "source": values.get("source", ""),
        "covers": tuple(values.get("covers", ())),
        "catches": values.get("catches", {}),
        "level": values.get("level", LEVELS[0]),
        "harm": values.get("harm", ""),
        "text": text,
        "told_lines": check.told_lines,
        "language": language,
    }
    expected = values.get("expect", ())
    parts = {
        session: Scenario(
            **about,
            **_of_an_agent(own),
            session=session,
            drive=tuple(item for item in drive if item.session == session),
            expected=of_session(expected, session),
        )
        for session, own in values.get("sessions", {}).items()
    }
    return Scenario(
        **about,
        **({} if parts else _of_an_agent(values)),
        **values.get("host", {}),
        drive=drive,
        expected=expected,
        parts=parts,
        openings=values.get("openings", ()),
    )


def _of_an_agent(values: dict[str, Any]) -> dict[str, Any]:
    """Give what a file says of one agent."""
    agent = values["agent"]
    return {
        "dialect": agent["dialect"],
        "mode": agent["mode"],
        "prompt_by": agent.get("prompt", "argv"),
        "cannot_spawn": agent.get("cannot_spawn"),
        "model": agent.get("model", ""),
        "newline": agent.get("newline", "lf"),
        "bom": agent.get("bom", False),
        "chunk": agent.get("chunk", 0),
        "partials": agent.get("partials", True),
        "states": agent.get("states", False),
        "policy": values.get("policy", {}),
        "handlers": values.get("handler", ()),
        "scripts": values.get("scripts", (values.get("script", ()),)),
    }


def _values(text: str, check: Check) -> dict[str, Any]:
    if len(text) > _LARGEST:
        check.report(1, 1, f"the file has {len(text)} characters: at most {_LARGEST} are read")
        return {}
    for wrong, message in () if text.isascii() else _NOWHERE.items():
        found = re.search(wrong, text)
        if found is not None:
            check.report(*position(text, found.start()), message.format(ord(found[0])))
            return {}
    try:
        return _read(text, check)
    except Enough:
        return {}


def _read(text: str, check: Check) -> dict[str, Any]:
    root = parse(text, check.report)
    if root is None:
        return {}
    before = len(check.problems)
    found = openings(root, text, check.report)
    if len(check.problems) > before:
        return {}
    if not found:
        return _read_closed(root, check)
    default = {(one.line, one.column): (one, one.default) for one in found}
    for one in found:
        for other in one.others():
            tried = Check(check.file, check.folder, check.language)
            _read_closed(closed(root, {**default, (one.line, one.column): (one, other)}), tried)
            check.problems += [problem for problem in tried.problems if problem not in check.problems]
    return {**_read_closed(closed(root, default), check), "openings": found}


def _read_closed(root: Node, check: Check) -> dict[str, Any]:
    values = FILE.read(root, WHOLE_FILE, check) or {}
    keys = {key.text: key for key, _ in root.pairs} if isinstance(root, Mapping) else {}
    if "sessions" in keys:
        _check_several(keys, check)
    else:
        require_script(root, WHOLE_FILE, check)
    drive = values.get("drive", ())
    for session, own in values.get("sessions", {"": values}).items():
        for script in own.get("scripts", (own.get("script", ()),)) if drive else ():
            if (missing := unawaited(drive, script, session)) and not check.problems:
                check.at(keys["drive"], missing)
    if any(item.kind == "abandon" for item in drive):
        _check_unheard(values.get("expect", ()), check)
    return values


def _check_unheard(expected: tuple[Expected, ...], check: Check) -> None:
    """Report what a supervisor would have to tell a caller who has gone away."""
    for one in expected:
        if one.key.partition(".")[0] in _TOLD:
            message = f"nobody hears the {one.key} of a run that is abandoned: leave it out, and say who is left"
            check.report(one.line, one.column, message)


def _check_several(keys: dict[str, Scalar], check: Check) -> None:
    """Report what a file with sessions has at its top though each of them has it, and a drive that is missing."""
    for name in SESSION_KEYS:
        if name in keys:
            check.at(keys[name], f"a file with sessions has no {name} of its own: write it under sessions.NAME")
    if "drive" not in keys:
        check.at(keys["sessions"], "a file with sessions needs the key drive: who is prompted in which session")
