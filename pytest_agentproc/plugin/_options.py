"""Owns the options and what a whole pytest session shares: backends, subject, lab. Runs nothing itself."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_agentproc.harness import Lab
    from pytest_agentproc.vocabulary import Subject

__all__ = [
    "backends_of",
    "clocks_of",
    "lab_of",
    "pytest_addhooks",
    "pytest_addoption",
    "pytest_configure",
    "pytest_unconfigure",
    "scale_of",
    "subject_of",
]

_BACKENDS = ("asyncio", "trio")
_CHOICES = (*_BACKENDS, "both")
_CLOCKS = ("virtual", "real")
_CLOCK_CHOICES = (*_CLOCKS, "both")
_LARGEST_SCALE = 1000
_LAB: pytest.StashKey[Lab] = pytest.StashKey()
_SUBJECT: pytest.StashKey[Subject] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare what the command line and the ini file may say."""
    group = parser.getgroup("agentproc", "agent supervisors (pytest-agentproc)")
    group.addoption(
        "--agentproc-corpus",
        action="store_true",
        help="run the scenarios that come with pytest-agentproc; other tests only if they are named",
    )
    group.addoption(
        "--agentproc-backend",
        choices=_CHOICES,
        help="the event loop that supervisors run on; default: agentproc_backend of the ini file, else asyncio",
    )
    group.addoption(
        "--agentproc-clock",
        choices=_CLOCK_CHOICES,
        help="the time in which scenarios are played; default: agentproc_clock of the ini file, else virtual",
    )
    group.addoption(
        "--agentproc-scale",
        metavar="N",
        help="in real time every duration is divided by N; auto: each scenario is as fast as can be judged; "
        "default: agentproc_scale of the ini file, else auto",
    )
    group.addoption(
        "--agentproc-defect",
        metavar="NAME",
        help="judge the supervisor core with this defect built in, to see what catches it",
    )
    parser.addini("agentproc_backend", "the default of --agentproc-backend", default="asyncio")
    parser.addini("agentproc_clock", "the default of --agentproc-clock", default="virtual")
    parser.addini("agentproc_scale", "the default of --agentproc-scale", default="auto")


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins may implement."""
    from pytest_agentproc import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot be run, in one sentence each, before anything is collected."""
    config.addinivalue_line(
        "markers",
        "wall_clock(start): datetime.now() and time.time() of the test follow virtual_clock from this date on",
    )
    if "trio" in backends_of(config) and importlib.util.find_spec("trio") is None:
        raise pytest.UsageError(
            f"agentproc backend {_chosen(config)} needs trio, which is not installed: "
            "run pip install 'pytest-agentproc[trio]' or choose --agentproc-backend=asyncio"
        )
    clocks_of(config)
    scale_of(config)
    defect = config.getoption("agentproc_defect")
    if defect is not None:
        _refuse_unknown_defect(defect)
    if config.getoption("agentproc_corpus"):
        from pytest_agentproc.plugin._corpus import add_corpus

        add_corpus(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the lab, and with it every fake that may be left."""
    lab = config.stash.get(_LAB, None)
    if lab is not None:
        del config.stash[_LAB]
        lab.close()


def backends_of(config: pytest.Config) -> tuple[str, ...]:
    """List the backends on which every scenario runs.

    Raises:
        pytest.UsageError: the ini file names none that exists.
    """
    chosen = _chosen(config)
    if chosen not in _CHOICES:
        raise pytest.UsageError(f"agentproc_backend is {chosen!r}, but must be one of {', '.join(_CHOICES)}")
    return _BACKENDS if chosen == "both" else (chosen,)


def clocks_of(config: pytest.Config) -> tuple[str, ...]:
    """List the clocks under which every scenario is played.

    Raises:
        pytest.UsageError: the ini file names none that exists.
    """
    chosen = str(config.getoption("agentproc_clock") or config.getini("agentproc_clock"))
    if chosen not in _CLOCK_CHOICES:
        raise pytest.UsageError(f"agentproc_clock is {chosen!r}, but must be one of {', '.join(_CLOCK_CHOICES)}")
    return _CLOCKS if chosen == "both" else (chosen,)


def scale_of(config: pytest.Config) -> float | None:
    """Give the number by which durations are divided in real time; None: what suits each scenario.

    Raises:
        pytest.UsageError: it is no number from 1 on.
    """
    given = str(config.getoption("agentproc_scale") or config.getini("agentproc_scale"))
    if given == "auto":
        return None
    try:
        scale = float(given)
    except ValueError:
        scale = 0
    if not 1 <= scale <= _LARGEST_SCALE:
        allowed = f"auto or a number from 1 to {_LARGEST_SCALE}"
        raise pytest.UsageError(f"agentproc_scale is {given!r}, but must be {allowed}")
    return scale


def lab_of(config: pytest.Config) -> Lab:
    """Give the session's lab; the first to ask makes it."""
    lab = config.stash.get(_LAB, None)
    if lab is None:
        from pytest_agentproc.harness import Lab

        lab = config.stash[_LAB] = Lab()
    return lab


def subject_of(config: pytest.Config) -> Subject:
    """Give the supervisor under test: the core, or the core with the defect that the command line names."""
    subject = config.stash.get(_SUBJECT, None)
    if subject is None:
        defect = config.getoption("agentproc_defect")
        if defect is None:
            from pytest_agentproc import subjects

            subject = subjects.core()
        else:
            from pytest_agentproc import defects, subjects

            subject = subjects.Core(defect, defects.defect(defect).deciders)
        config.stash[_SUBJECT] = subject
    return subject


def _chosen(config: pytest.Config) -> str:
    return str(config.getoption("agentproc_backend") or config.getini("agentproc_backend"))


def _refuse_unknown_defect(name: str) -> None:
    from pytest_agentproc import defects

    if name not in defects.NAMES:
        raise pytest.UsageError(f"--agentproc-defect={name}: there is no such defect, only {', '.join(defects.NAMES)}")
