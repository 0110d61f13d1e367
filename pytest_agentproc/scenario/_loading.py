"""Owns loading: text or file in, a checked scenario or all its problems out; one file for each of several agents.

A file is loaded for one of its agents at a time: `choose_agent_in_file` puts that agent's dialect and mode in the place
of the list, and `narrow_text_to_agent` gives the text of a file for that agent alone. Everything after that sees an
ordinary file.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.errors import ScenarioError, ScenarioProblem
from pytest_agentproc.files import read_text_file
from pytest_agentproc.scenario._additions import BUNDLED_LANGUAGE
from pytest_agentproc.scenario._drive_keys import DriveItem, find_history_without_load, find_unawaited_turn
from pytest_agentproc.scenario._expect_keys import filter_expectations_by_session
from pytest_agentproc.scenario._fields import WHOLE_SCENARIO_NAME
from pytest_agentproc.scenario._file import SCENARIO_FILE_TYPE, SESSION_KEY_BY_NAME, require_script
from pytest_agentproc.scenario._file_check import FileCheck
from pytest_agentproc.scenario._open_values import close_open_values, find_open_values
from pytest_agentproc.scenario._python_data import DataNodeBuilder, ValuePaths
from pytest_agentproc.scenario._scenario import Scenario
from pytest_agentproc.scenario._suggestions import describe_unknown_word, join_choices
from pytest_agentproc.scenario._yaml import (
    StopReading,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    find_line_starts,
    find_position,
    format_node_inline,
    parse_yaml,
)
from pytest_agentproc.vocabulary import LEVELS, RunReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_agentproc.scenario._expect_keys import UnboundExpectation
    from pytest_agentproc.scenario._file_check import ScenarioLanguage
    from pytest_agentproc.scenario._open_values import OpenValue
    from pytest_agentproc.scenario._python_data import DataCall


_AGENT_LIST_EXAMPLE = "write each: [claude, gemini stream, ...]"


class AgentList(NamedTuple):
    """The agents of a file, by name, each with the scalars of its dialect and its mode.

    `start` and `end` are the places of the list's brackets in the file: line and column, from 1. A list with a line for
    each item begins at its first "-", and has the end (0, 0).
    """

    agents: dict[str, tuple[YamlScalar, ...]]
    start: tuple[int, int]
    end: tuple[int, int]


def find_agent_list(root: YamlNode, report: Callable[[int, int, str], None]) -> AgentList | None:
    """Find the list of agents; None if the file has none, or a wrong one.

    Args:
        root: the file.
        report: takes line, column and message of each mistake in the list.
    """
    listed = _find_each_value(root)
    if listed is None or _report_keys_beside_list(root, report):
        return None
    if not isinstance(listed, YamlSequence) or not listed.items:
        is_word = isinstance(listed, YamlScalar) and listed.text
        remedy = f"write each: [{format_node_inline(listed)}]" if is_word else _AGENT_LIST_EXAMPLE
        report(listed.line, listed.column, f"each must be a list: {remedy}")
        return None
    found: list[tuple[YamlScalar, ...]] = []
    for item in listed.items:
        words = item.text.split() if isinstance(item, YamlScalar) else []
        if not isinstance(item, YamlScalar) or len(words) not in (1, 2) or not item.is_one_line:
            report(
                item.line,
                item.column,
                f"each item of each must be a dialect, or a dialect and a mode: {_AGENT_LIST_EXAMPLE}",
            )
            return None
        scalars = tuple(item._replace(text=word, column=item.column + item.text.find(word)) for word in words)
        if _list_scalar_texts(scalars) in map(_list_scalar_texts, found):
            report(item.line, item.column, f"each has {item.text} twice")
            return None
        found.append(scalars)
    dialects = [scalars[0].text for scalars in found]
    names = [
        "-".join(_list_scalar_texts(scalars)) if dialects.count(scalars[0].text) > 1 else scalars[0].text
        for scalars in found
    ]
    return AgentList(dict(zip(names, found, strict=True)), (listed.line, listed.column), listed.end)


def _report_keys_beside_list(root: YamlNode, report: Callable[[int, int, str], None]) -> bool:
    """Report what an agent has beside the list though each item of the list says it."""
    agent = _find_agent_mapping(root)
    beside = [key for key, _ in agent.pairs if key.text in ("dialect", "mode")] if agent else []
    for key in beside:
        report(key.line, key.column, f"each item of each says its {key.text}: leave {key.text} out")
    return bool(beside)


def _list_scalar_texts(scalars: tuple[YamlScalar, ...]) -> tuple[str, ...]:
    return tuple(scalar.text for scalar in scalars)


def _find_agent_mapping(root: YamlNode) -> YamlMapping | None:
    """Give the mapping under the file's own key `agent`."""
    values = [value for key, value in root.pairs if key.text == "agent"] if isinstance(root, YamlMapping) else []
    return values[0] if values and isinstance(values[0], YamlMapping) else None


def _find_each_value(root: YamlNode) -> YamlNode | None:
    """Give the value of `each` in the file's own `agent`."""
    agent = _find_agent_mapping(root)
    return None if agent is None else next((value for key, value in agent.pairs if key.text == "each"), None)


def choose_agent_in_file(root: YamlNode, each: AgentList, name: str) -> YamlNode:
    """Give the file with one of its agents: each word keeps its place."""
    if not isinstance(root, YamlMapping):
        return root
    chosen = each.agents[name]
    given = zip(("dialect", "mode"), chosen, strict=False)
    own = tuple((YamlScalar(value.line, value.column, key, plain=True), value) for key, value in given)
    pairs: list[tuple[YamlScalar, YamlNode]] = []
    for key, value in root.pairs:
        if key.text == "agent" and isinstance(value, YamlMapping):
            others = tuple(pair for pair in value.pairs if pair[0].text != "each")
            pairs.append((key, value._replace(pairs=own + others)))
        else:
            pairs.append((key, value))
    return root._replace(pairs=tuple(pairs))


def narrow_text_to_agent(text: str, each: AgentList, name: str) -> str:
    """Give the file's text with this agent alone in the list; all that follows keeps its line and column."""
    starts = find_line_starts(text)
    begin = starts[each.start[0] - 1] + each.start[1] - 1
    agent = " ".join(_list_scalar_texts(each.agents[name]))
    if each.end[0]:
        end = starts[each.end[0] - 1] + each.end[1] - 1
        lines = each.end[0] - each.start[0]
        filler = "\n" * lines + " " * (each.end[1] - 2 if lines else end - begin - len(agent) - 2)
        return f"{text[:begin]}[{agent}{filler}]{text[end:]}"
    last = max(scalar.line for scalars in each.agents.values() for scalar in scalars)
    filler = "\n" * (last + 1 - each.start[0])
    return f"{text[:begin]}- {agent}{filler}{text[starts[last] :] if last < len(starts) else ''}"


def find_agent_names(text: str) -> tuple[str, ...]:
    """Give the names of the agents that a file runs with one after the other; () if it has one, or is no scenario."""
    if "each" not in text:  # most files: they are not read before their tests run
        return ()
    root = parse_yaml(text, lambda *_: None)
    each = None if root is None else find_agent_list(root, lambda *_: None)
    return () if each is None else tuple(each.agents)


_SCENARIO_FILE_SUFFIX = ".scenario.yaml"
_MAX_FILE_CHARACTERS = 4 * 1024**2
_MAX_VALUES_LEFT_OPEN = 100
_MAX_FILE_BYTES = 4 * _MAX_FILE_CHARACTERS + 3
"""So many bytes the longest text can have, with a byte order mark."""
_RUN_REPORT_FIELD_NAMES = tuple(field.name for field in fields(RunReport))
_MESSAGE_BY_FORBIDDEN_CHARACTERS = {
    "[\ud800-\udfff]": "U+{:04X} is half a character: no file can hold it",
    "[\x85\u2028\u2029]": (
        'U+{0:04X} ends a line for YAML and for no editor: write "\\u{0:04x}", in a quoted text '
        '(in a text of Python "\\\\u{0:04x}")'
    ),
}
"""Characters that a scenario has nowhere, quoted or not, with what is said about them."""


def load(
    path: str | os.PathLike[str],
    language: ScenarioLanguage = BUNDLED_LANGUAGE,
    name: str | None = None,
    agent: str = "",
) -> Scenario:
    """Read and check a scenario file.

    Args:
        path: the file.
        language: the steps and the dialects that it may speak of.
        name: what messages call it, and the scenario's `path`; None: the path as it is given.
        agent: the agent to load it for, by its name in `agent: {each: [...]}`; "" for a file with one agent.

    Raises:
        ScenarioError: every problem of the file at once.
    """
    name = os.fspath(path) if name is None else name
    return loads(_read_scenario_text(path, name), name, os.path.split(path)[0] or ".", language, agent)


def load_for_each_agent(
    path: str | os.PathLike[str], language: ScenarioLanguage = BUNDLED_LANGUAGE, name: str | None = None
) -> tuple[Scenario, ...]:
    """Read and check a scenario file for each of its agents: one scenario, or several with `agent: {each: [...]}`.

    Raises:
        ScenarioError: every problem of the file at once.
    """
    name = os.fspath(path) if name is None else name
    text = _read_scenario_text(path, name)
    found: list[Scenario] = []
    problems: list[ScenarioProblem] = []
    for agent in find_agent_names(text) or ("",):
        try:
            found.append(loads(text, name, os.path.split(path)[0] or ".", language, agent))
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(sorted(dict.fromkeys(problems), key=lambda problem: (problem.line, problem.column)))
    return tuple(found)


def read_agent_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Give the names of the agents that a file runs with, without checking it; () for one agent, or no such file."""
    try:
        return find_agent_names(read_text_file(path, _MAX_FILE_BYTES))
    except (OSError, ValueError):
        return ()


def _read_scenario_text(path: str | os.PathLike[str], name: str) -> str:
    try:
        return read_text_file(path, _MAX_FILE_BYTES)
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        line, column = find_position(before, len(before))
        raise ScenarioError([ScenarioProblem(name, line, column, "the file is not UTF-8")]) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ScenarioError([ScenarioProblem(name, 1, 1, f"the file cannot be read: {reason}")]) from error


def loads(
    text: str,
    name: str = "<text>",
    folder: str | os.PathLike[str] | None = None,
    language: ScenarioLanguage = BUNDLED_LANGUAGE,
    agent: str = "",
) -> Scenario:
    """Check a scenario's text.

    Args:
        text: the YAML.
        name: what messages call it; its last part without `.scenario.yaml` is the scenario's id.
        folder: where the files that the scenario names must stay; without one it can name none.
        language: the steps and the dialects that it may speak of.
        agent: the agent to load it for, by its name in `agent: {each: [...]}`; "" for a text with one agent.

    Raises:
        ScenarioError: every problem of the text at once.
    """
    check = FileCheck(name, folder, language)
    return _make_scenario(_read_checked_text(text, check, agent), check, text)


def load_data(
    data: Mapping[str, Any],
    call: DataCall,
    folder: str | os.PathLike[str] | None = None,
    language: ScenarioLanguage = BUNDLED_LANGUAGE,
) -> Scenario:
    """Check a scenario that is Python data.

    Args:
        data: its keys with their values.
        call: the call that gives it, for messages.
        folder: where the files that the scenario names must stay; without one it can name none.
        language: the steps and the dialects that it may speak of.

    Raises:
        ScenarioError: every problem of the data at once.
    """
    paths = ValuePaths()
    check = FileCheck(call.file, folder, language, paths)
    values: dict[str, Any] = {}
    with suppress(StopReading):
        root = DataNodeBuilder(check.report_problem, paths.locate_value).build_node(data, "", call.line, call.literal)
        values = {} if check.problems else _read_root(root, None, check, "")
    return _make_scenario(values, check, call.text)


def _make_scenario(values: dict[str, Any], check: FileCheck, text: str) -> Scenario:
    """Make the scenario of what was read.

    Raises:
        ScenarioError: every problem of it at once.
    """
    if check.problems:
        raise ScenarioError(list(dict.fromkeys(check.problems)))
    name = check.file
    drive = values.get("drive", (DriveItem(0, "prompt", "hi"),))
    stem = name if name.startswith("<") else os.path.split(name)[1].removesuffix(_SCENARIO_FILE_SUFFIX)
    about = {
        "id": f"{stem}[{values['agent_name']}]" if values["agent_name"] else stem,
        "agent_name": values["agent_name"],
        "path": name,
        "claim": values["scenario"],
        "source": values.get("source", ""),
        "covers": tuple(values.get("covers", ())),
        "catches": values.get("catches", {}),
        "level": values.get("level", LEVELS[0]),
        "harm": values.get("harm", ""),
        "text": values.get("text", text),
        "told_lines": check.told_lines,
        "language": check.language,
    }
    expected = values.get("expect", ())
    parts = {
        session: Scenario(
            **about,
            **_collect_agent_fields(own),
            session=session,
            drive=tuple(item for item in drive if item.session == session),
            expected=filter_expectations_by_session(expected, session),
        )
        for session, own in values.get("sessions", {}).items()
    }
    return Scenario(
        **about,
        **({} if parts else _collect_agent_fields(values)),
        **values.get("host", {}),
        drive=drive,
        expected=expected,
        parts=parts,
        openings=values.get("openings", ()),
    )


def _collect_agent_fields(values: dict[str, Any]) -> dict[str, Any]:
    """Give what a file says of one agent."""
    agent = values["agent"]
    return {
        "dialect": agent["dialect"],
        "mode": agent["mode"],
        "version": agent.get("version", ""),
        "prompt_by": agent.get("prompt", "argv"),
        "cannot_spawn": agent.get("cannot_spawn"),
        "refused_start": agent.get("refused_start", (0, "")),
        "model": agent.get("model", ""),
        "newline": agent.get("newline", "lf"),
        "bom": agent.get("bom", False),
        "chunk": agent.get("chunk", 0),
        "partials": agent.get("partials", True),
        "states": agent.get("states", False),
        "takes_any_flags": "flags" in agent,
        "needs_terminal": agent.get("terminal", False),
        "policy": values.get("policy", {}),
        "handlers": values.get("handler", ()),
        **values.get("continues", {}),
        "scripts": values.get("scripts", (values.get("script", ()),)),
    }


def _read_checked_text(text: str, check: FileCheck, agent: str) -> dict[str, Any]:
    if len(text) > _MAX_FILE_CHARACTERS:
        check.report_problem(
            1,
            1,
            f"the text has {len(text)} characters: at most {_MAX_FILE_CHARACTERS} are read: "
            "write a long text as {repeat: TEXT, size: SIZE}, or give Python data",
        )
        return {}
    for wrong, message in () if text.isascii() else _MESSAGE_BY_FORBIDDEN_CHARACTERS.items():
        found = re.search(wrong, text)
        if found is not None:
            check.report_problem(*find_position(text, found.start()), message.format(ord(found[0])))
            return {}
    try:
        return _parse_and_read(text, check, agent)
    except StopReading:
        return {}


def _parse_and_read(text: str, check: FileCheck, agent: str) -> dict[str, Any]:
    root = parse_yaml(text, check.report_problem)
    return {} if root is None else _read_root(root, text, check, agent)


def _read_root(root: YamlNode, text: str | None, check: FileCheck, agent: str) -> dict[str, Any]:
    """Read a scenario; without a text it is Python data."""
    before = len(check.problems)
    root, about = _choose_loaded_agent(root, text, check, agent)
    found = find_open_values(root, about.get("text", text), check.report_problem)
    if len(found) > _MAX_VALUES_LEFT_OPEN:  # each is tried in a reading of the whole file
        first = found[_MAX_VALUES_LEFT_OPEN]
        check.report_problem(
            first.line,
            first.column,
            f"the scenario has {len(found)} open values: at most {_MAX_VALUES_LEFT_OPEN} are read",
        )
    if len(check.problems) > before:
        return {}
    return {**about, **_read_file_with_open_values(root, found, check)}


def _choose_loaded_agent(
    root: YamlNode, text: str | None, check: FileCheck, agent: str
) -> tuple[YamlNode, dict[str, str]]:
    """Give the file with the agent that it is loaded for, and what that makes of the scenario's id and text."""
    before = len(check.problems)
    each = find_agent_list(root, check.report_problem)
    if each is None:
        if agent and len(check.problems) == before:
            check.report_problem(1, 1, f'the scenario has one agent and no list of them: leave "[{agent}]" out')
        return root, {"agent_name": ""}
    if not agent and len(each.agents) > 1:
        names = join_choices(each.agents, "and")
        if text is None:
            check.report_problem(*each.start, f"a test plays one agent at a time, not {names}: write dialect and mode")
            return root, {}
        example = f"{os.path.split(check.file)[1].removesuffix(_SCENARIO_FILE_SUFFIX)}[{next(iter(each.agents))}]"
        check.report_problem(
            *each.start, f"the scenario runs once for each of {names}: name one of them, as in {example}"
        )
        return root, {}
    agent = agent or next(iter(each.agents))
    if agent not in each.agents:
        check.report_problem(*each.start, describe_unknown_word("agent of this scenario", agent, each.agents))
        return root, {}
    narrowed = {} if text is None else {"text": narrow_text_to_agent(text, each, agent)}
    return choose_agent_in_file(root, each, agent), {"agent_name": agent, **narrowed}


def _read_file_with_open_values(root: YamlNode, found: tuple[OpenValue, ...], check: FileCheck) -> dict[str, Any]:
    """Read a file with each of its open values tried, the others being as they are by default."""
    if not found:
        return _read_file_without_open_values(root, check)
    default = {(opening.line, opening.column): (opening, opening.default_choice) for opening in found}
    for opening in found:
        for other in opening.list_other_choices():
            tried = FileCheck(check.file, check.folder, check.language, check.paths)
            try:
                _read_file_without_open_values(
                    close_open_values(root, {**default, (opening.line, opening.column): (opening, other)}), tried
                )
            finally:  # it gives up at the hundredth problem
                check.problems += [problem for problem in tried.problems if problem not in check.problems]
    return {**_read_file_without_open_values(close_open_values(root, default), check), "openings": found}


def _read_file_without_open_values(root: YamlNode, check: FileCheck) -> dict[str, Any]:
    values = SCENARIO_FILE_TYPE.read_node(root, WHOLE_SCENARIO_NAME, check) or {}
    keys = {key.text: key for key, _ in root.pairs} if isinstance(root, YamlMapping) else {}
    if "sessions" in keys:
        _check_session_file_keys(keys, check)
    else:
        require_script(root, WHOLE_SCENARIO_NAME, check)
    drive = values.get("drive", ())
    for session, own in values.get("sessions", {"": values}).items():
        for script in own.get("scripts", (own.get("script", ()),)) if drive else ():
            if (missing := find_unawaited_turn(drive, script, session)) and not check.problems:
                check.report_at(keys["drive"], missing)
        if (
            keys.keys() & {"drive", "expect"}
            and getattr(own.get("continues", {}).get("continues"), "how", "") != "load"
        ):
            for line in filter(None, map(find_history_without_load, own.get("scripts", (own.get("script", ()),)))):
                check.report_problem(
                    line, 1, "the history is printed when a session is loaded: write continues: {load: ID}, too"
                )
    if keys.keys() & {"drive", "expect"}:
        for node in check.files_of_sessions:
            remedy = "write it in the script of a run, or of a fake that your own test starts"
            check.report_at(node, f"write_file: the agent of a session runs in /, where it writes no file: {remedy}")
    if any(item.kind == "abandon" for item in drive):
        _check_results_of_abandoned_run(values.get("expect", ()), check)
    return values


def _check_results_of_abandoned_run(expected: tuple[UnboundExpectation, ...], check: FileCheck) -> None:
    """Report a value that a supervisor would have to give to a caller that has left."""
    for expectation in expected:
        if expectation.key.partition(".")[0] in (*_RUN_REPORT_FIELD_NAMES, "status"):
            message = f"a caller that has left gets no {expectation.key}: leave it out, and expect leaks instead"
            check.report_problem(expectation.line, expectation.column, message)


def _check_session_file_keys(keys: dict[str, YamlScalar], check: FileCheck) -> None:
    """Report what a file with sessions has at its top though each of them has it, and a drive that is missing."""
    for name in SESSION_KEY_BY_NAME:
        if name in keys:
            check.report_at(
                keys[name], f"a scenario with sessions has no {name} of its own: write it under sessions.NAME"
            )
    if "drive" not in keys:
        check.report_at(
            keys["sessions"], "a scenario with sessions needs the key drive: who is prompted in which session"
        )
