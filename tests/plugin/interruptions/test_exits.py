"""`pytest.exit` in code of the user that the kit calls: the session ends with its exit code, and nobody is blamed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.scenarios import GREEN

if TYPE_CHECKING:
    from collections.abc import Callable

_CONFTEST = """
import anyio, pytest
from pytest_agentproc.subjects import Function

PLACE = {place!r}

def stop_at(place):
    if place == PLACE:
        pytest.exit("enough", returncode=7)

async def stop_in_task():
    stop_at("task")

async def supervise(order):
    stop_at("supervisor")
    async with anyio.create_task_group() as group:
        group.start_soon(stop_in_task)
    return "completed", "done"

class Mine:
    name, keeps_artifacts, holds_sessions = "mine", False, False

    def policy(self, request):
        stop_at("limits")

    async def run(self, order):
        pass

def make():
    stop_at("factory")
    return Mine() if PLACE == "limits" else Function(supervise, name="mine")

def pytest_agentproc_subjects():
    stop_at("subjects hook")
    return [make]

def pytest_agentproc_defects():
    stop_at("defects hook")
    return []

def pytest_agentproc_dialects():
    stop_at("dialects hook")
    return []
"""

_HANDLER = """
import pytest

def refuse(question):
    pytest.exit("enough", returncode=7)

def test_it(agent_session):
    script = [{"wait_for": "prompt 1"}, {"ask": {"permission": "p"}}, {"answer": "done"}]
    with agent_session({"agent": "acp", "script": script}, permission=refuse) as session:
        session.prompt("hi")
"""


def _write_subject(place: str) -> Callable[[pytest.Pytester], list[str]]:
    def write(pytester: pytest.Pytester) -> list[str]:
        pytester.makeconftest(_CONFTEST.format(place=place))
        pytester.path.joinpath("one.scenario.yaml").write_text(GREEN)
        return ["--agentproc-defect=none-such"] if place == "defects hook" else []

    return write


def _write_handler(pytester: pytest.Pytester) -> list[str]:
    pytester.makepyfile(_HANDLER)
    return []


_PLACES = ("supervisor", "task", "limits", "factory", "subjects hook", "defects hook", "dialects hook")
_WRITERS = {place: _write_subject(place) for place in _PLACES} | {"permission handler": _write_handler}


@pytest.mark.slow
@pytest.mark.parametrize("place", _WRITERS)
def test_an_exit_ends_the_session_with_its_code(pytester: pytest.Pytester, place: str) -> None:
    """It is no crash of the supervisor, no mistake of a hook, and no denial."""
    result = pytester.runpytest_subprocess(*_WRITERS[place](pytester), timeout=120)
    assert result.ret == 7
    printed = result.stdout.str() + result.stderr.str()
    assert "Exit: enough" in printed
    assert not {"crashed", "kit error", "UsageError", "Traceback"} & {*printed.replace(":", "").split()}
