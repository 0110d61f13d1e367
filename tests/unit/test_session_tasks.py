"""Background commands in sessions: followed to their end, and named if that is never told (B2)."""

from __future__ import annotations

import pytest

from pytest_agentproc.supervisor import Policy, SessionDeciders, Tasks
from pytest_agentproc.supervisor import _intents as to
from pytest_agentproc.supervisor.dialects import TaskBegun, TaskOver
from tests.unit.session_stage import Stage


class Claude(Stage):
    """A claude that has greeted, and its tasks."""

    def __init__(self, deciders: SessionDeciders | None = None) -> None:
        super().__init__("claude", policy=Policy(), deciders=deciders)
        response = {"subtype": "success", "request_id": "greet-0", "response": {}}
        self.says({"type": "control_response", "response": response})

    def begins(self, name: str, kind: str = "local_bash", title: str = "") -> None:
        """Begin a task."""
        told = {"task_id": name, "task_type": kind, "description": title}
        self.says({"type": "system", "subtype": "task_started", **told})


@pytest.mark.parametrize("status", ["completed", "failed", "stopped"])
def test_a_task_is_followed_to_its_terminal_status(status: str) -> None:
    """Whichever it is, nothing is left to warn of."""
    stage = Claude()
    stage.begins("b")
    seen = [stage.session.tasks]
    stage.says({"type": "system", "subtype": "task_notification", "task_id": "b", "status": status})
    seen.append(stage.session.tasks)
    assert seen == [("b",), ()]
    stage.exits(0)
    assert stage.session.warnings == ()


@pytest.mark.parametrize(("status", "left"), [("running", ("b",)), ("completed", ()), ("failed", ()), ("killed", ())])
def test_an_update_tells_a_terminal_status_too(status: str, left: tuple[str, ...]) -> None:
    """It may be all that comes, and in words of its own."""
    stage = Claude()
    stage.begins("b")
    stage.says({"type": "system", "subtype": "task_updated", "task_id": "b", "patch": {"status": status}})
    assert stage.session.tasks == left


def test_a_task_that_never_ends_is_named_at_close_and_blocks_nothing() -> None:
    """The close goes its way, and the warning tells whose end nobody saw."""
    stage = Claude()
    stage.begins("b", title="sleep 1000")
    stage.begins("c")
    stage.tells(to.CloseIt())
    stage.exits(0)
    assert (stage.is_over, stage.now) == (True, 0)
    assert stage.session.warnings == ("background tasks never ended: b (sleep 1000), c",)
    assert [event.kind for event in stage.events][-2:] == ["warning", "exit"]


def test_a_task_that_never_ends_is_named_when_the_agent_dies() -> None:
    """And the next agent has none."""
    stage = Claude()
    stage.begins("b")
    stage.exits(1)
    stage.until(2)
    assert stage.session.warnings == ("background tasks never ended: b",)
    assert stage.session.tasks == ()


def test_a_background_agent_is_no_task() -> None:
    """The CLI itself defers the result until it has ended."""
    stage = Claude()
    stage.begins("a", "local_agent")
    stage.exits(0)
    assert stage.session.warnings == ()


def test_a_prompt_does_not_wait_for_a_task() -> None:
    """It goes out and ends as if there were none."""
    stage = Claude()
    stage.begins("b")
    stage.sent()
    stage.prompt()
    [line] = stage.sent()
    stage.says({"type": "result", "subtype": "success", "result": "x", "user_message_uuids": [line["uuid"]]})
    assert stage.ended(1) == ("completed", 0.0, "x")


def test_many_tasks_are_named_in_short() -> None:
    """A warning is one sentence, however many there are."""
    tasks = Tasks()
    for number in range(12):
        tasks.feed(TaskBegun(f"t{number}", "local_bash", "x" * 1000))
    tasks.feed(TaskOver("t0"))
    tasks.feed(TaskOver("unknown"))
    warning = tasks.warn()
    assert warning.startswith("background tasks never ended: t1 (xxx")
    assert warning.endswith(") and 1 more")
    assert len(warning) < 1000


def test_the_judgement_about_tasks_is_replaceable() -> None:
    """A defect may forget them."""

    class Forgetful(Tasks):
        def warn(self) -> str:
            return ""

    stage = Claude(SessionDeciders(tasks=Forgetful))
    stage.begins("b")
    stage.exits(0)
    assert stage.session.warnings == ()
