"""Owns the options and what a whole pytest session shares: backends, clocks, lab. Runs nothing itself.

An option is a line of `_OPTIONS`: `--agentproc-NAME` on the command line wins over `agentproc_NAME` in the ini file.
"""

from __future__ import annotations

import importlib.util
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_agentproc import machine
from pytest_agentproc.plugin._collect import place_in_corpus

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner

__all__ = [
    "PLAY_FLAGS",
    "asked",
    "backends_of",
    "is_asked",
    "is_fake",
    "lab_of",
    "pytest_addhooks",
    "pytest_addoption",
    "pytest_configure",
    "pytest_unconfigure",
    "ways_of",
]

_LAB: pytest.StashKey[ScenarioRunner] = pytest.StashKey()


class _Option(NamedTuple):
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


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return text

    return read


def _defect(name: str) -> str | None:
    return name or None


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    if not all(names):
        raise ValueError("must be names with a comma between them")
    return names


def _rules(text: str) -> tuple[str, ...]:
    names = _names(text)
    if names:
        from pytest_agentproc.vocabulary import RULES

        unknown = [name for name in names if name not in RULES]
        if unknown:
            raise ValueError(f"there is no rule {unknown[0]}, only {', '.join(RULES)}")
    return names


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _scale(text: str) -> float | None:
    if text == "auto":
        return None
    try:
        scale = float(text)
    except ValueError:
        scale = 0
    if not 1 <= scale <= _LARGEST_SCALE:
        raise ValueError(f"must be auto, or a number from 1 to {_LARGEST_SCALE}")
    return scale


def _settings(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > len(str(_MOST_SETTINGS)):
        raise ValueError(f"must be a whole number, at most {_MOST_SETTINGS}; 0: no search")
    return min(int(text), _MOST_SETTINGS)


_MOST_SETTINGS = 1_000_000


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("must be a whole number from 1")
    return int(text)


_LARGEST_SCALE = 1000
_BACKENDS = ("asyncio", "trio")
_CLOCKS = ("virtual", "real")
_BASELINE = "agentproc-baseline.yaml"
_OPTIONS = (
    _Option("corpus", "run the scenarios that come with pytest-agentproc; other tests only if they are named"),
    _Option("backend", "event loop of supervisors: asyncio, trio or both", _one_of(*_BACKENDS, "both"), "asyncio"),
    _Option(
        "clock",
        "time in which scenarios are played: virtual, real or both; or model: virtual "
        "without a process, the reference supervisor only",
        _one_of(*_CLOCKS, "both", "model"),
        "virtual",
    ),
    _Option(
        "repeat", "run each scenario this many times in virtual time; report a difference as a kit error", _count, "1"
    ),
    _Option("search", "try this many settings of each scenario's open values; report each failure", _settings, "0"),
    _Option("explore", "vary scenarios without open values, in this many settings of each", _settings, "0"),
    _Option("scale", "in real time every duration is divided by it; auto: as fast as can be judged", _scale, "auto"),
    _Option(
        "virtual_sync",
        "be ready for sync tests in virtual time from the start: pytest-xdist needs it, and a session without it "
        "starts again once such a test is collected",
    ),
    _Option("process_tree", "fail every test that leaves a process behind, as if it had asked for process_tree"),
    _Option(
        "subject",
        "supervisors that are judged in place of the reference supervisor, with commas: null, "
        "spawn-and-forget, subprocess.run, kill-at-once, core (the reference supervisor), those of the hook "
        "pytest_agentproc_subjects, package.module:attribute, or a TOML file that describes a program",
        _names,
    ),
    _Option("rule", "collect only scenarios that cover one of these rules, with commas: C1,T1", _rules),
    _Option(
        "command",
        "program that is judged in place of the reference supervisor, in real time: my-supervisor "
        "--timeout {inactivity_timeout} {agent}; several on a line each",
        _lines,
    ),
    _Option("baseline", f"file of known failures; without a word {_BASELINE} beside the ini file, if it is there", str),
    _Option("update_baseline", "write that file: list what fails now, and nothing else"),
    _Option("results", "file for the results of all scenarios as one JSON object", str),
    _Option("report", "folder for an HTML page of each scenario that is played, and an index of them", str),
    _Option(
        "timeline",
        "which scenarios are kept as a page: on-failure, always, off; auto: all if there is a report, else failures",
        _one_of("auto", "on-failure", "always", "off"),
        "auto",
    ),
    _Option("defect", "judge the reference supervisor with this defect built in, to see what catches it", _defect),
)
_OF_REPORTS = ("corpus", "rule", "update_baseline", "results", "report", "timeline")
PLAY_FLAGS = tuple(f"--agentproc-{one.name.replace('_', '-')}" for one in _OPTIONS if one.name not in _OF_REPORTS)
"""The options that change what a single test runs or says."""
_READ = {option.name: (option.read, option.default) for option in _OPTIONS}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare what the command line and the ini file may say."""
    group = parser.getgroup("agentproc", "agent supervisors (pytest-agentproc)")
    for name, doc, read, default in _OPTIONS:
        flag, key = f"--agentproc-{name.replace('_', '-')}", f"agentproc_{name}"
        if read is None:
            group.addoption(flag, action="store_true", help=doc)
            parser.addini(key, f"the default of {flag}", type="bool", default=False)
        else:
            group.addoption(flag, metavar=name.upper(), help=f"{doc}; default: {default or 'none'}")
            parser.addini(key, f"the default of {flag}", type="string", default=None)


def asked(config: pytest.Config, name: str) -> Any:
    """Give the value of an option: what the command line says, else the ini file, else the default.

    Raises:
        pytest.UsageError: it cannot be that; the message says where it was asked for, and what is allowed.
    """
    read, default = _READ[name]
    key = f"agentproc_{name}"
    given = config.getoption(key)
    if read is None:
        return given or _ini(config, key, "write true or false")
    place, text = f"--agentproc-{name}=", given
    if given is None:
        place, text = f"{key} = ", _ini(config, key, "write it in quotes")
        text = default if text is None else text
    try:
        value = read(text)
        if name == "defect" and value is not None:
            from pytest_agentproc.plugin._contributions import defect_named

            defect_named(config, value)
    except ValueError as error:
        raise pytest.UsageError(f"{place}{text}: {error}") from None
    return value


def is_asked(config: pytest.Config, name: str) -> bool:
    """Say whether the command line or the ini file says anything of an option that takes a value."""
    key = f"agentproc_{name}"
    return config.getoption(key) is not None or config.getini(key) is not None


def _ini(config: pytest.Config, key: str, remedy: str) -> Any:
    try:
        return config.getini(key)
    except (TypeError, ValueError, pytest.UsageError) as error:  # which of them depends on pytest's version
        raise pytest.UsageError(f"{key}: {error}: {remedy}") from None


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins may implement."""
    from pytest_agentproc import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot be run, in one sentence each, before anything is collected."""
    config.addinivalue_line(
        "markers",
        "virtual_time(start, backend, allow): the test runs in virtual time, which begins at this date; "
        "allow names programs that are no fakes and may run beside the agent",
    )
    config.addinivalue_line(
        "markers",
        "agentproc(name, ...): play these scenarios, files beside the test's or ids of bundled ones, before its body",
    )
    config.addinivalue_line("markers", "process_tree: the test fails if it leaves a process behind")
    for option in _OPTIONS:
        asked(config, option.name)
    if machine.preload() is not None:
        from pytest_agentproc.plugin._below import keep_real_durations

        keep_real_durations()
    if "trio" in backends_of(config) and importlib.util.find_spec("trio") is None:
        raise pytest.UsageError(
            f"agentproc backend {asked(config, 'backend')} needs trio, which is not installed: "
            "run pip install 'pytest-agentproc[trio]' or choose --agentproc-backend=asyncio"
        )
    hook = config.hook
    if hook.pytest_agentproc_dialects.get_hookimpls() or hook.pytest_agentproc_steps.get_hookimpls():
        from pytest_agentproc.plugin._contributions import language_of

        language_of(config)
    is_foreign = asked(config, "subject") or asked(config, "command") or hook.pytest_agentproc_subjects.get_hookimpls()
    if is_foreign:
        from pytest_agentproc.plugin._contributions import subjects_of

        subjects_of(config)
    if is_foreign or any(asked(config, name) for name in ("corpus", "baseline", "update_baseline", "results")):
        from pytest_agentproc.plugin._results_store import begin_account

        begin_account(config)
    if asked(config, "report") or asked(config, "timeline") == "always":
        from pytest_agentproc.plugin._report import begin_report

        begin_report(config)
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        from pytest_agentproc.plugin._corpus import require_node_ids

        require_node_ids(config)
    if asked(config, "corpus") or any(place_in_corpus(config, word) is not None for word in config.args):
        from pytest_agentproc.plugin._corpus import add_corpus

        add_corpus(config)


def pytest_enter_pdb(pdb: Any) -> None:
    """Switch the guards of real time off, and have virtual time wait for each command: a user debugs."""
    from pytest_agentproc.clock import note_debugger
    from pytest_agentproc.plugin._below import hold_at_prompts

    note_debugger()
    hold_at_prompts(pdb)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the lab, and with it every fake that may be left."""
    lab = config.stash.get(_LAB, None)
    if lab is not None:
        del config.stash[_LAB]
        lab.close()


def backends_of(config: pytest.Config) -> tuple[str, ...]:
    """List the backends on which every scenario runs."""
    chosen = asked(config, "backend")
    return _BACKENDS if chosen == "both" else (chosen,)


def ways_of(config: pytest.Config, *, is_real: bool = False) -> list[tuple[str, str]]:
    """List the clocks and event loops with which every scenario is played; the model has no loop, and stands for both.

    Args:
        config: the session's.
        is_real: whether it is for a subject of real time only, which goes without saying.
    """
    chosen = "real" if is_real and not is_asked(config, "clock") else asked(config, "clock")
    if chosen == "model":
        return [("model", "model")]
    return list(product(_CLOCKS if chosen == "both" else (chosen,), backends_of(config)))


def is_fake(config: pytest.Config, command: str) -> bool:
    """Say whether a command line is that of one of the session's fakes; makes no lab."""
    lab = config.stash.get(_LAB, None)
    return lab is not None and lab.is_fake(command)


def lab_of(config: pytest.Config) -> ScenarioRunner:
    """Give the session's lab; the first to ask makes it."""
    lab = config.stash.get(_LAB, None)
    if lab is None:
        from pytest_agentproc.harness import ScenarioRunner
        from pytest_agentproc.plugin._contributions import language_of

        added = language_of(config).dialects.values()
        lab = config.stash[_LAB] = ScenarioRunner(commands=[one.dialect.command for one in added])
    return lab
