"""Owns pytest's command line: the options, node ids of bundled scenarios, and the command that runs a test again.

An option is a line of `_PLUGIN_OPTIONS`: `--agentproc-NAME` on the command line wins over `agentproc_NAME` in the ini
file.
"""

from __future__ import annotations

import os
import shlex
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _PluginOption(NamedTuple):
    """One option.

    Args:
        name: `NAME` of `--agentproc-NAME` (with hyphens there) and of `agentproc_NAME`.
        doc: its purpose, as `--help` shows it.
        read: makes the value of a text, or raises ValueError with the allowed values. None: it is a flag.
        default: the text that is read if the option is not given.
    """

    name: str
    doc: str
    read: Callable[[str], Any] | None = None
    default: str = ""


def _make_choice_reader(*words: str) -> Callable[[str], str]:
    def read_choice(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return text

    return read_choice


def _read_defect(name: str) -> str | None:
    return name or None


def _read_comma_list(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    if not all(names):
        raise ValueError("must be names with a comma between them")
    return names


def _read_rules(text: str) -> tuple[str, ...]:
    names = _read_comma_list(text)
    if names:
        from pytest_agentproc.vocabulary import RULES

        unknown = [name for name in names if name not in RULES]
        if unknown:
            raise ValueError(f"there is no rule {unknown[0]}, only {', '.join(RULES)}")
    return names


def _read_option_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _read_scale(text: str) -> float | None:
    if text == "auto":
        return None
    try:
        scale = float(text)
    except ValueError:
        scale = 0
    if not 1 <= scale <= _LARGEST_SCALE:
        raise ValueError(f"must be auto, or a number from 1 to {_LARGEST_SCALE}")
    return scale


def _read_setting_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > len(str(_MAX_SEARCH_SETTINGS)):
        raise ValueError(f"must be a whole number, at most {_MAX_SEARCH_SETTINGS}; 0: no search")
    return min(int(text), _MAX_SEARCH_SETTINGS)


_MAX_SEARCH_SETTINGS = 1_000_000


def _read_positive_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("must be a whole number from 1")
    return int(text)


_LARGEST_SCALE = 1000
_BACKEND_NAMES = ("asyncio", "trio")
_CLOCK_NAMES = ("virtual", "real")
_DEFAULT_BASELINE_FILE_NAME = "agentproc-baseline.yaml"
_PLUGIN_OPTIONS = (
    _PluginOption("corpus", "run the scenarios that come with pytest-agentproc; other tests only if they are named"),
    _PluginOption(
        "backend",
        "event loop of supervisors: asyncio, trio or both",
        _make_choice_reader(*_BACKEND_NAMES, "both"),
        "asyncio",
    ),
    _PluginOption(
        "clock",
        "time in which scenarios are played: virtual, real or both; or model: virtual "
        "without a process, the reference supervisor only",
        _make_choice_reader(*_CLOCK_NAMES, "both", "model"),
        "virtual",
    ),
    _PluginOption(
        "repeat",
        "run each scenario this many times in virtual time; report a difference as a kit error",
        _read_positive_count,
        "1",
    ),
    _PluginOption(
        "search", "try this many settings of each scenario's open values; report each failure", _read_setting_count, "0"
    ),
    _PluginOption(
        "explore", "vary scenarios without open values, in this many settings of each", _read_setting_count, "0"
    ),
    _PluginOption(
        "scale", "in real time every duration is divided by it; auto: as fast as can be judged", _read_scale, "auto"
    ),
    _PluginOption(
        "virtual_sync",
        "be ready for sync tests in virtual time from the start: pytest-xdist needs it, and a session without it "
        "starts again once such a test is collected",
    ),
    _PluginOption("process_tree", "fail every test that leaves a process behind, as if it had asked for process_tree"),
    _PluginOption(
        "subject",
        "supervisors that are judged in place of the reference supervisor, with commas: null, "
        "spawn-and-forget, subprocess.run, kill-at-once, reference (the reference supervisor), those of the hook "
        "pytest_agentproc_subjects, package.module:attribute, or a TOML file that describes a program",
        _read_comma_list,
    ),
    _PluginOption(
        "level",
        "lowest level at which a failed check fails the run: should; or must: a failed should is counted only",
        _make_choice_reader("should", "must"),
        "should",
    ),
    _PluginOption("rule", "collect only scenarios that cover one of these rules, with commas: C1,T1", _read_rules),
    _PluginOption(
        "command",
        "program that is judged in place of the reference supervisor: my-supervisor "
        "--timeout {inactivity_timeout} {agent}; several on a line each",
        _read_option_lines,
    ),
    _PluginOption(
        "baseline",
        f"file of known failures; without a word {_DEFAULT_BASELINE_FILE_NAME} beside the ini file, if it is there",
        str,
    ),
    _PluginOption("update_baseline", "write that file: list what fails now, and nothing else"),
    _PluginOption("results", "file for the results of all scenarios as one JSON object", str),
    _PluginOption("report", "folder for an HTML page of each scenario that is played, and an index of them", str),
    _PluginOption(
        "timeline",
        "which scenarios are kept as a page: on-failure, always, off; auto: all if there is a report, else failures",
        _make_choice_reader("auto", "on-failure", "always", "off"),
        "auto",
    ),
    _PluginOption(
        "defect", "judge the reference supervisor with this defect built in, to see what catches it", _read_defect
    ),
)
_NAMES_OF_REPORT_OPTIONS = ("corpus", "rule", "update_baseline", "results", "report", "timeline")
FLAGS_THAT_CHANGE_PLAYS = tuple(
    f"--agentproc-{option.name.replace('_', '-')}"
    for option in _PLUGIN_OPTIONS
    if option.name not in _NAMES_OF_REPORT_OPTIONS
)
"""The options that change what a single test runs or says."""
_OPTION_BY_NAME = {option.name: option for option in _PLUGIN_OPTIONS}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare what the command line and the ini file may say."""
    group = parser.getgroup("agentproc", "agent supervisors (pytest-agentproc)")
    for name, doc, read, default in _PLUGIN_OPTIONS:
        flag, key = f"--agentproc-{name.replace('_', '-')}", f"agentproc_{name}"
        if read is None:
            group.addoption(flag, action="store_true", help=doc)
            parser.addini(key, f"the default of {flag}", type="bool", default=False)
        else:
            group.addoption(flag, metavar=name.upper(), help=f"{doc}; default: {default or 'none'}")
            parser.addini(key, f"the default of {flag}", type="string", default=None)


def get_option(config: pytest.Config, name: str) -> Any:
    """Give the value of an option: what the command line says, else the ini file, else the default.

    Raises:
        pytest.UsageError: it cannot be that; the message says where it was asked for, and what is allowed.
    """
    read = _OPTION_BY_NAME[name].read
    if read is None:
        key = f"agentproc_{name}"
        return config.getoption(key) or _read_ini_value(config, key, "write true or false")
    place, text = find_option_source(config, name)
    try:
        return read(text)
    except ValueError as error:
        raise pytest.UsageError(f"{place}{text}: {error}") from None


def find_option_source(config: pytest.Config, name: str) -> tuple[str, str]:
    """Give the place where an option with a value is set, and its text there: `--agentproc-clock=`, `real`."""
    key = f"agentproc_{name}"
    given = config.getoption(key)
    if given is not None:
        return f"--agentproc-{name}=", given
    text = _read_ini_value(config, key, "write it in quotes")
    return f"{key} = ", _OPTION_BY_NAME[name].default if text is None else text


def validate_options(config: pytest.Config) -> None:
    """Read every option once.

    Raises:
        pytest.UsageError: one of them cannot be that; see `get_option`.
    """
    for name in _OPTION_BY_NAME:
        get_option(config, name)


def is_option_given(config: pytest.Config, name: str) -> bool:
    """Say whether the command line or the ini file says anything of an option that takes a value."""
    key = f"agentproc_{name}"
    return config.getoption(key) is not None or config.getini(key) is not None


def _read_ini_value(config: pytest.Config, key: str, remedy: str) -> Any:
    try:
        return config.getini(key)
    except (TypeError, ValueError, pytest.UsageError) as error:  # which of them depends on pytest's version
        raise pytest.UsageError(f"{key}: {error}: {remedy}") from None


def get_backends(config: pytest.Config) -> tuple[str, ...]:
    """List the backends on which every scenario runs."""
    chosen = get_option(config, "backend")
    return _BACKEND_NAMES if chosen == "both" else (chosen,)


def list_clocks_and_backends(config: pytest.Config, *, is_real: bool = False) -> list[tuple[str, str]]:
    """List the clocks and event loops with which every scenario is played; the model has no loop, and stands for both.

    Args:
        config: the session's.
        is_real: whether it is for a subject of real time only, which goes without saying.
    """
    chosen = "real" if is_real and not is_option_given(config, "clock") else get_option(config, "clock")
    if chosen == "model":
        return [("model", "model")]
    return list(product(_CLOCK_NAMES if chosen == "both" else (chosen,), get_backends(config)))


CORPUS_NODE_ID_PREFIX = "agentproc-corpus"
"""The beginning of the node ids of bundled scenarios, wherever these are installed."""


def parse_corpus_node_id(config: pytest.Config, word: str) -> str | None:
    """Give what follows `agentproc-corpus/` in a node id; None if the word is no node id of a bundled scenario.

    pytest prints a node id relative to the rootdir, and in its summary relative to the directory of the call.
    """
    path, colons, name = word.partition("::")
    if CORPUS_NODE_ID_PREFIX not in path:
        return None
    here = config.invocation_params.dir
    file = Path(os.path.normpath(here / path))
    folder = next(
        (
            base / CORPUS_NODE_ID_PREFIX
            for base in (config.rootpath, here)
            if file.is_relative_to(base / CORPUS_NODE_ID_PREFIX)
        ),
        None,
    )
    return None if folder is None or file.exists() else f"{file.relative_to(folder).as_posix()}{colons}{name}"


_FLAGS_REPEATED_IN_RERUN = (
    "-p",
    "-c",
    "-o",
    "--override-ini",
    "--rootdir",
    "--confcutdir",
    "--import-mode",
    *FLAGS_THAT_CHANGE_PLAYS,
)


def format_rerun_command(item: pytest.Item, file: str = "") -> str:
    """Give the command that runs a test again from the directory in which pytest was called.

    Args:
        item: the test.
        file: a scenario file in that directory, which is run in place of the test.
    """
    config, here = item.config, item.config.invocation_params.dir
    path, colons, name = item.nodeid.partition("::")
    is_here = bool(file) or path.startswith(CORPUS_NODE_ID_PREFIX)
    place = file or (path if is_here else os.path.relpath(config.rootpath / path, here)) + colons + name
    conftests = _find_conftests(config, here if is_here else item.path.parent)
    return shlex.join(["pytest", *conftests, place, *_select_play_options(config.invocation_params.args)])


def _find_conftests(config: pytest.Config, folder: Path) -> Iterator[str]:
    """Name the conftest files with supervisors that pytest does not load for a test in a folder."""
    from pytest_agentproc.foreign import read_attribute

    for impl in config.hook.pytest_agentproc_subjects.get_hookimpls():
        file = Path(str(read_attribute(impl.plugin, "__file__", "")))
        if file.name == "conftest.py" and file.parent not in (folder, *folder.parents):
            yield os.path.relpath(file, config.invocation_params.dir)


def _select_play_options(words: tuple[str, ...] | list[str]) -> Iterator[str]:
    """Give the words of a command line that choose the supervisor, the clock, or what pytest loads."""
    left = iter(map(str, words))
    for word in left:
        if word in _FLAGS_REPEATED_IN_RERUN:
            value = next(left, "")
            yield from () if (word, value[:3]) == ("-p", "no:") else (word, value)
        elif word.startswith(tuple(f"{flag}=" if flag.startswith("--") else flag for flag in _FLAGS_REPEATED_IN_RERUN)):
            yield word
