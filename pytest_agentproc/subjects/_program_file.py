"""Owns the file that describes a program as a subject, for projects without Python: TOML in, a `Command` out."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError, suggest_known_word
from pytest_agentproc.files import read_text_file
from pytest_agentproc.subjects._acp_program import AcpProgram
from pytest_agentproc.subjects._command import Command
from pytest_agentproc.vocabulary import ALL_LIMIT_NAMES, RunReport, find_remedy

if TYPE_CHECKING:
    from pathlib import Path


_MAX_INTEGER_BITS = 64
_MAX_TOML_FILE_BYTES = 1 << 20
_NO_LIMIT = "none"


def make_command(line: str) -> Command:
    """Make a subject of a command as a shell would split it.

    Raises:
        UsageError: it cannot be split, or is no command for a subject.
    """
    words = _split_command_line(line, "the command")
    if not _names_agent(words):
        remedy = "write 'my-supervisor --timeout {inactivity_timeout} -- {agent}', for example"
        raise UsageError(f"the command {line!r} has no {{agent}} in it", remedy)
    return Command(words)


def _names_agent(words: list[str]) -> bool:
    """Say whether a command has a place for the agent. `Command` asks, too, and its message is for Python."""
    return any(place in word.lower() for word in words for place in ("{agent}", "{agent_path}"))


def load_command_file(path: Path) -> Command:
    """Make a subject of a TOML file; its keys are the arguments of `Command`, and `command`.

    `command` is one text, which is split as a shell would, or a list of words. The command runs where the file is, and
    is called what the file is called, unless the file gives a `name`. TOML has no None: a limit is "none".

    Raises:
        UsageError: it cannot be read, is no TOML, or a key or value is wrong; the text begins with the file.
    """
    try:
        return _make_command_from_table(_parse_toml(read_text_file(path, _MAX_TOML_FILE_BYTES)), path)
    except OSError as error:
        raise UsageError(f"{path.name}: {error.strerror}", "name a file that can be read") from None
    except ValueError as error:  # no UTF-8, no TOML, or a number of more digits than are read
        raise UsageError(f"{path.name}: {error}", "write TOML") from None
    except UsageError as error:
        raise UsageError(f"{path.name}: {error.message}", error.remedy) from None


def _parse_toml(text: str) -> dict[str, Any]:
    """Read TOML; what Python itself refuses, or cannot print, is said as the file's mistake."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise UsageError("it is nested too deeply", "write TOML with fewer brackets in brackets") from None
    except ValueError:  # more digits than Python converts
        table = {"": 1 << _MAX_INTEGER_BITS}
    if _has_too_large_number(table):
        raise UsageError("a number is too large", f"write a whole number of at most {_MAX_INTEGER_BITS} bits")
    return table


def _has_too_large_number(value: Any) -> bool:
    """Say whether a whole number is larger than TOML's own."""
    if isinstance(value, Mapping):
        return any(map(_has_too_large_number, value.values()))
    if isinstance(value, list):
        return any(map(_has_too_large_number, value))
    return isinstance(value, int) and value.bit_length() >= _MAX_INTEGER_BITS


def _make_command_from_table(table: dict[str, Any], path: Path) -> Command:
    for key, value in table.items():
        _require_known_key(key)
        fits, allowed = _CHECKS_BY_TOML_KEY[key]
        if not fits(value):
            raise UsageError(f"{key} is {value!r}", f"write {allowed}")
    for key in set(table.get("says", ())) & (set(_CHECKS_BY_TOML_KEY) - {"says"}):
        raise UsageError(f"{key} stands in [says]", f"write it above the first line in brackets: {key} = ...")
    if "command" not in table:
        raise UsageError("there is no command", 'write command = "my-supervisor {agent}", for example')
    given = {"name": path.stem} | table
    limits = given.get("limits", {})
    for name in (name for name, value in limits.items() if value == "off"):
        raise UsageError(f"{name} is 'off'", f'write {name} = "none" for no limit')
    given["limits"] = {name: None if value == _NO_LIMIT else value for name, value in limits.items()}
    argv = given.pop("command")
    kind = AcpProgram if given.pop("sessions", "") == "acp" else Command
    words = _split_command_line(argv, "command") if isinstance(argv, str) else argv
    if kind is Command and not _names_agent(words) and not given.get("on_path"):
        remedy = 'write command = "my-supervisor {agent}"; or on_path = true, if it finds the agent on PATH'
        raise UsageError(f"command {argv!r} has no {{agent}} in it", remedy)
    return kind(words, cwd=os.fspath(path.parent), **given)


def _require_known_key(key: str) -> None:
    """Raise a UsageError for another key; a field or a limit in the wrong table is told its place."""
    if key in _CHECKS_BY_TOML_KEY:
        return
    for table, names in (("says", [field.name for field in fields(RunReport)]), ("limits", ALL_LIMIT_NAMES)):
        if key in names:
            raise UsageError(f"{key} stands outside [{table}]", f"write it below a line [{table}]: {key} = ...")
    limit = find_remedy("limit", key)
    remedy = f"below a line [limits], {limit}" if limit else ""
    raise UsageError(f"there is no key {key!r}", suggest_known_word(key, _CHECKS_BY_TOML_KEY, remedy=remedy))


def _split_command_line(line: str, place: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{place} {line!r} cannot be split: {str(error).lower()}", "quote it as for a shell") from None


def _is_nonempty_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _is_toml_table(value: Any) -> bool:
    return isinstance(value, Mapping)


_CHECKS_BY_TOML_KEY: dict[str, tuple[Callable[[Any], bool], str]] = {
    "command": (lambda value: _is_nonempty_text(value) or _is_list_of_texts(value), "a text or a list of texts"),
    "name": (lambda value: _is_nonempty_text(value) and "," not in value, "a text without a comma"),
    "limits": (_is_toml_table, "a table, such as inactivity_timeout = 60"),
    "dialects": (_is_list_of_texts, "a list of texts"),
    "says": (_is_toml_table, "a table, such as text = 'stdout'"),
    "env": (lambda value: _is_toml_table(value) and _is_list_of_texts(list(value.values())), "a table of texts"),
    "cannot": (_is_list_of_texts, "a list of texts"),
    "outcomes": (_is_list_of_texts, "a list of texts"),
    "first_signal": (_is_nonempty_text, "a text, such as INT"),
    "declines": (_is_toml_table, "a table: {exit_code = 77}"),
    "prompt_on_stdin": (lambda value: isinstance(value, bool), "true or false"),
    "sessions": (lambda value: value == "acp", "acp: it is an ACP agent, and the kit its editor"),
    "on_path": (lambda value: isinstance(value, bool), "true or false"),
}
