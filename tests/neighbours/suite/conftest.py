"""Notes the outcome of each test, and has two supervisors judged: a function and a program. Knows no plugin."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.subjects import Command, Function

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_agentproc.vocabulary import RunRequest

_NOTES = Path("notes.json")
_FAILED = Path("one-has-failed")
"""A file that is there as soon as pytest knows of the first failure."""

_notes: dict[str, dict[str, list[str]]] = {}


async def supervise(order: RunRequest) -> dict[str, str]:
    """Run an agent and take its text."""
    done = await anyio.run_process(order.argv, env=order.env, check=False)
    return {"outcome": "failed" if done.returncode else "completed", "text": done.stdout.decode().strip()}


def pytest_agentproc_subjects() -> list[Any]:
    """Give the supervisors."""
    outcome = {"exit_code": {0: "completed", "other": "failed"}}
    program = Command(["timeout", "60", "{agent}"], says={"text": "stdout", "outcome": outcome})
    return [Function(supervise, dialects=["raw"]), program]


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how a part of a test ended, after the terminal did; a part that is run again counts once."""
    # pytest-rerunfailures adds that outcome. A worker of pytest-xdist knows of a failure before pytest itself does.
    if str(report.outcome) == "rerun" or "PYTEST_XDIST_WORKER" in os.environ:
        return
    reason = ""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = str(report.longrepr if crash is None else crash.message).strip().partition("\n")[0]
        _FAILED.touch()
    _notes.setdefault(report.nodeid, {})[report.when] = [report.outcome, reason]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the order of `interrupt.py`, whatever shuffles the others."""
    if all(item.path.name == "interrupt.py" for item in items):
        items.sort(key=lambda item: item.name)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Generator[None]:
    """Write the notes after all teardowns; a worker of pytest-xdist has none, and a session that starts again."""
    try:
        return (yield)
    finally:
        if _notes:
            _NOTES.write_text(json.dumps(_notes), "utf-8")
