"""Owns the hooks that other plugins may implement. Calls none of them, and loads nothing that they speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import pytest

    from pytest_agentproc.record import Record
    from pytest_agentproc.vocabulary import Order, Subject

__all__ = ["pytest_agentproc_record", "pytest_agentproc_subjects"]


def pytest_agentproc_subjects(config: pytest.Config) -> Iterable[Subject | Callable[[Order], Any]]:  # type: ignore[empty-body]
    """Give supervisors that scenarios judge in place of the core, unless `--agentproc-subject` names others.

    It is asked before anything is collected, so it belongs in the conftest.py of the rootdir or of a folder that is
    named on the command line, or in a plugin.

    Args:
        config: the session's.

    Returns:
        subjects, classes or factories of them without arguments, or functions of an order, which are taken as
        `subjects.Function(function)`.
    """


def pytest_agentproc_record(nodeid: str, record: Record) -> None:
    """Look at the record of a run, whatever its verdict, before the test is reported.

    Args:
        nodeid: the id of the test that played it; a test may play several.
        record: both sides of the run; `record.lines()` is its file, `record.digest()` its name.
    """
