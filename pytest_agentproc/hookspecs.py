"""Owns the hooks that other plugins may implement. Calls none of them, and loads nothing that they speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentproc.record import Record

__all__ = ["pytest_agentproc_record"]


def pytest_agentproc_record(nodeid: str, record: Record) -> None:
    """Look at the record of a run, whatever its verdict, before the test is reported.

    Args:
        nodeid: the id of the test that played it; a test may play several.
        record: both sides of the run; `record.lines()` is its file, `record.digest()` its name.
    """
