"""Owns the hooks that other plugins may implement. Calls none of them, and loads nothing that they speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import pytest

    from pytest_agentproc.defects import Defect
    from pytest_agentproc.record import Record
    from pytest_agentproc.vocabulary import Dialect, RunRequest, ScriptStep, Subject

__all__ = [
    "pytest_agentproc_defects",
    "pytest_agentproc_dialects",
    "pytest_agentproc_record",
    "pytest_agentproc_steps",
    "pytest_agentproc_subjects",
]


def pytest_agentproc_subjects(config: pytest.Config) -> Iterable[Subject | Callable[[RunRequest], Any]]:  # type: ignore[empty-body]
    """Give supervisors that are judged in place of the reference one, unless `--agentproc-subject` names others.

    It is asked before anything is collected, so it belongs in the conftest.py of the rootdir or of a folder that is
    named on the command line, or in a plugin.

    Args:
        config: the session's.

    Returns:
        subjects, classes or factories of them without arguments, or functions of a `RunRequest`, which are taken as
        `subjects.Function(function)`.
    """


def pytest_agentproc_record(nodeid: str, record: Record) -> None:
    """Look at the record of a run, whatever its verdict, before the test is reported.

    Args:
        nodeid: the id of the test that played it; a test may play several.
        record: both sides of the run; `record.lines()` is its file, `record.digest()` its name.
    """


def pytest_agentproc_dialects(config: pytest.Config) -> Iterable[Dialect]:  # type: ignore[empty-body]
    """Give dialects that scenarios may name beside the kit's: `agent: {dialect: toy}`.

    A dialect is two halves that share no code: the encoder runs in the fake, the decoder in the supervisor. Both are
    named by their modules and load when the first scenario speaks of the dialect. What is wrong with one is a problem
    of that scenario, with its place and the name of the plugin; all other scenarios go on. Contributions hold for this
    session only. A program without pytest passes the `Dialect` itself: `run_once(argv, dialect=TOY)`, or
    `open_session(argv, dialect=TOY)` for a mode that holds sessions.

    All hooks that contribute are asked before anything is collected, as `pytest_agentproc_subjects`.

    Args:
        config: the session's.

    Returns:
        `pytest_agentproc.vocabulary.Dialect`s, whose docstring says what each half may use. A name that is taken is an
        error.
    """


def pytest_agentproc_steps(config: pytest.Config) -> Iterable[ScriptStep]:  # type: ignore[empty-body]
    """Give steps that scripts may use beside the kit's: one that stands for others, or one of a dialect's own.

    Args:
        config: the session's.

    Returns:
        `pytest_agentproc.vocabulary.ScriptStep`s, whose docstring tells the two kinds apart. A name that is taken is an
        error. What such a step does stands in records and failures on the line of the scenario that uses it.
    """


def pytest_agentproc_defects(config: pytest.Config) -> Iterable[Defect]:  # type: ignore[empty-body]
    """Give wrong supervisors for `--agentproc-defect=NAME`: the reference supervisor with one decider replaced.

    It is asked only if that option names none of the kit's.

    Args:
        config: the session's.

    Returns:
        `pytest_agentproc.defects.Defect`s; `supervisor.Deciders` and `SessionDeciders` list the judgements that can be
        replaced. A name that is taken is an error, and so is a rule that there is not.
    """
