"""Owns how a test may write a scenario: file, text, steps or mapping; keeps the lines of the test's own file."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.corpus import YAML_FILE_SUFFIXES, index_corpus_files, split_agent
from pytest_agentproc.errors import UsageError, suggest_known_word
from pytest_agentproc.files import read_text_file
from pytest_agentproc.foreign import find_code
from pytest_agentproc.plugin._contributions import get_language
from pytest_agentproc.plugin._data_calls import find_calling_frame, find_data_call
from pytest_agentproc.scenario import (
    BUNDLED_LANGUAGE,
    Scenario,
    ScenarioLanguage,
    load,
    load_data,
    loads,
)

if TYPE_CHECKING:
    import pytest


CONVERSATION_AGENT = {"dialect": "pi", "mode": "rpc"}
"""The agent of steps alone, where it is to be talked to."""

_MAX_SCRIPT_FILE_BYTES = 1 << 24
_SCENARIO_ID_PATTERN = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\[[a-z0-9-]+\])?")


class ScriptPlace(NamedTuple):
    """Where a script is written.

    Args:
        file: the test's file: paths are relative to its folder, and text that stands in it keeps its line numbers.
        first_line: the line of the function that gives it.
        name: the name of the test.
        language: the steps, keys and dialects of the script.
    """

    file: Path
    first_line: int
    name: str
    language: ScenarioLanguage


def find_test_place(request: pytest.FixtureRequest) -> ScriptPlace:
    """Give the place of a test that asks for a fixture."""
    code = find_code(getattr(request, "function", None))
    first_line = 1 if code is None else code.co_firstlineno
    return ScriptPlace(request.path, first_line, request.node.name, get_language(request.config))


def find_caller_place() -> ScriptPlace:
    """Give the place of the code outside this package that has called it."""
    code = find_calling_frame().f_code
    return ScriptPlace(Path(code.co_filename), code.co_firstlineno, code.co_name, BUNDLED_LANGUAGE)


def load_given_scenario(given: Any, place: ScriptPlace, agent: Any, argument: tuple[str, ...]) -> Scenario:
    """Load what a test gave as its scenario.

    Args:
        given: a loaded scenario, the path of a file (relative to the test's own), the id of a bundled scenario, the
            text of a scenario, its list of steps alone, as text or as a list, or a mapping of its keys.
        place: where it is written.
        agent: the agent of steps, and of mappings that name none.
        argument: where the call of the test has it, for messages; see `find_data_call`.

    Raises:
        ScenarioError: every problem of it.
        UsageError: it is none of these.
    """
    if isinstance(given, Scenario):
        return given
    folder, language = place.file.parent, place.language
    if isinstance(given, os.PathLike):
        return load_named_scenario(Path(given), folder, language)
    if isinstance(given, str) and (_is_scenario_path(given) or _SCENARIO_ID_PATTERN.fullmatch(given)):
        return load_named_scenario(given, folder, language)
    claim = f"an agent of {place.name}"
    if isinstance(given, str):
        name, text = _locate_in_test_file(given, place)
        return loads(_complete_scenario_text(text, claim, json.dumps(agent)), name, folder, language)
    if not isinstance(given, Mapping | list | tuple):
        is_iterable = isinstance(given, Iterable) and not isinstance(given, bytes | bytearray)
        raise UsageError(
            f"a scenario is text, a path, a list of steps or a mapping, not {type(given).__name__}",
            "write list(...) around the steps" if is_iterable else 'write fake_agent("- say: hello"), for example',
        )
    call = find_data_call(given, argument)
    if not isinstance(given, Mapping):
        given, call = {"script": given}, call.name_value("script")
    own = {"scenario": claim} if "sessions" in given else {"scenario": claim, "agent": agent}
    return load_data({**own, **given}, call, folder, language)


def load_named_scenario(name: str | Path, folder: Path, language: ScenarioLanguage = BUNDLED_LANGUAGE) -> Scenario:
    """Load a scenario by the path of its file, or by its id if it is a bundled one.

    Args:
        name: the path or the id.
        folder: the folder that the path is relative to.
        language: its steps, keys and dialects.

    Raises:
        ScenarioError: every problem of it.
        UsageError: no bundled scenario has such an id.
    """
    if not isinstance(name, Path) and not _is_scenario_path(name):
        return _load_bundled_scenario(name)
    file, agent = split_agent(os.fspath(name))
    return load(shorten_path(folder / file), language, agent=agent)


def _load_bundled_scenario(name: str) -> Scenario:
    """Load a scenario of the corpus by its id.

    Raises:
        UsageError: there is none of that name.
    """
    files = index_corpus_files()
    name, agent = split_agent(name)
    if name not in files:
        raise UsageError(
            f"no bundled scenario is called {name}{suggest_known_word(name, files, '', ', ')}",
            "a file's name ends in .yaml, and a list of steps begins with a hyphen and a space",
        )
    return load(shorten_path(files[name]), agent=agent)


def _is_scenario_path(given: str) -> bool:
    return "\n" not in given and split_agent(given)[0].endswith(YAML_FILE_SUFFIXES)


def shorten_path(path: Path) -> str:
    """Write a path as people do: relative to where they are, unless it is elsewhere."""
    text, here = str(path), os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118  # a Path takes longer than all else
    if text.startswith(here) and ".." not in text:  # nearly always, and a session has thousands of files
        return text.removeprefix(here)
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _locate_in_test_file(text: str, place: ScriptPlace) -> tuple[str, str]:
    """Name the text after the test's file and push it down to its line there, if it stands there as it is."""
    source = _read_source(place.file)
    begin = sum(len(line) for line in source.splitlines(keepends=True)[: place.first_line - 1])
    found = source.find(text, begin) if text.strip() else -1
    if found < 0:
        return f"<{place.name}>", textwrap.dedent(text)
    return shorten_path(place.file), "\n" * source.count("\n", 0, found) + textwrap.dedent(text)


def _read_source(file: Path) -> str:
    try:
        return read_text_file(file, _MAX_SCRIPT_FILE_BYTES).replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return ""


def _complete_scenario_text(text: str, claim: str, agent: str) -> str:
    """Make a scenario of a bare list of steps, on the same lines; leave anything else as it is."""
    lines = text.splitlines()
    first = next(
        (index for index, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), None
    )
    if first is None or not (lines[first].startswith("- ") or lines[first].rstrip() == "-"):
        return text
    if first > 0 and not lines[first - 1].strip():
        lines[first - 1] = "script:"
    else:
        lines.insert(first, "script:")
    return "\n".join([*lines, f"scenario: {json.dumps(claim)}", f"agent: {agent}", ""])
