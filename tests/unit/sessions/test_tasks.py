"""Background commands in sessions: followed to their end, and named if that is never told (B2)."""

from __future__ import annotations

import pytest

from pytest_agentproc.supervisor import BackgroundTaskTracker, Policy, SessionDeciders
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor.dialects import TaskBegun, TaskOver
from tests.unit.session_stage import Stage


class Claude(Stage):
    """A claude that has greeted, and its tasks."""

    def __init__(self, deciders: SessionDeciders | None = None) -> None:
        super().__init__("claude", policy=Policy(), deciders=deciders)
        response = {"subtype": "success", "request_id": "greet-0", "response": {}}
        self.print_lines({"type": "control_response", "response": response})

    def begin_task(self, name: str, kind: str = "local_bash", title: str = "") -> None:
        """Begin a task."""
        fields = {"task_id": name, "task_type": kind, "description": title}
        self.print_lines({"type": "system", "subtype": "task_started", **fields})


@pytest.mark.parametrize(
    ("status", "warnings"),
    [("completed", ()), ("failed", ()), ("stopped", ("background tasks were stopped: b",))],
)
def test_a_task_is_followed_to_its_terminal_status(status: str, warnings: tuple[str, ...]) -> None:
    """Its work is lost only if it was stopped."""
    stage = Claude()
    stage.begin_task("b")
    seen = [stage.session.tasks]
    stage.print_lines({"type": "system", "subtype": "task_notification", "task_id": "b", "status": status})
    seen.append(stage.session.tasks)
    assert seen == [("b",), ()]
    stage.exit_agent(0)
    assert stage.session.warnings == warnings


@pytest.mark.parametrize(("status", "left"), [("running", ("b",)), ("completed", ()), ("failed", ()), ("killed", ())])
def test_an_update_reports_a_terminal_status_too(status: str, left: tuple[str, ...]) -> None:
    """It may be all that comes, and in words of its own."""
    stage = Claude()
    stage.begin_task("b")
    stage.print_lines({"type": "system", "subtype": "task_updated", "task_id": "b", "patch": {"status": status}})
    assert stage.session.tasks == left


def test_a_task_that_never_ends_is_named_at_close_and_blocks_nothing() -> None:
    """The close proceeds, and the warning names the task whose end was not seen."""
    stage = Claude()
    stage.begin_task("b", title="sleep 1000")
    stage.begin_task("c")
    stage.send_intents(machine_events.CloseSession())
    stage.exit_agent(0)
    assert (stage.is_over, stage.now) == (True, 0)
    assert stage.session.warnings == ("background tasks never ended: b (sleep 1000), c",)
    assert [event.kind for event in stage.events][-2:] == ["warning", "exit"]


def test_a_task_that_never_ends_is_named_when_the_agent_dies() -> None:
    """And the next agent has none."""
    stage = Claude()
    stage.begin_task("b")
    stage.exit_agent(1)
    stage.advance_to(2)
    assert stage.session.warnings == ("background tasks never ended: b",)
    assert stage.session.tasks == ()


def test_a_background_agent_is_no_task_and_is_named_all_the_same() -> None:
    """It is followed as a tool is; if its end is never reported, its work is lost as that of a command is."""
    stage = Claude()
    stage.begin_task("a", "local_agent", "look around")
    assert stage.session.tasks == ()
    stage.exit_agent(0)
    assert stage.session.warnings == ("background tasks never ended: a (look around)",)


@pytest.mark.parametrize(
    ("tool", "key"), [("KillShell", "shell_id"), ("KillBash", "shell_id"), ("TaskStop", "task_id")]
)
def test_a_task_that_a_tool_was_to_stop_is_no_loss(tool: str, key: str) -> None:
    """The agent itself wanted it to end."""
    stage = Claude()
    stage.begin_task("b")
    stage.begin_task("c")
    block = {"type": "tool_use", "id": "t", "name": tool, "input": {key: "b"}}
    stage.print_lines({"type": "assistant", "message": {"id": "m", "content": [block]}, "parent_tool_use_id": None})
    for name in ("b", "c"):
        stage.print_lines({"type": "system", "subtype": "task_updated", "task_id": name, "patch": {"status": "killed"}})
        stage.print_lines({"type": "system", "subtype": "task_notification", "task_id": name, "status": "stopped"})
    stage.exit_agent(0)
    assert stage.session.warnings == ("background tasks were stopped: c",)


def test_what_is_no_call_of_a_tool_stops_nothing() -> None:
    """Lines of any shape are read."""
    stage = Claude()
    stage.begin_task("b")
    for content in (
        "KillShell",
        [None],
        [{"name": "KillShell"}],
        [{"name": ["KillShell"], "input": {"shell_id": "b"}}],
    ):
        stage.print_lines({"type": "assistant", "message": {"id": "m", "content": content}, "parent_tool_use_id": None})
    stage.print_lines({"type": "assistant", "message": None, "parent_tool_use_id": None})
    stage.print_lines({"type": "system", "subtype": "task_notification", "task_id": "b", "status": "stopped"})
    stage.exit_agent(0)
    assert stage.session.warnings == ("background tasks were stopped: b",)


def test_many_tasks_are_named_in_short() -> None:
    """A warning is one sentence, however many there are."""
    tasks = BackgroundTaskTracker()
    for number in range(12):
        tasks.feed(TaskBegun(f"t{number}", "local_bash", "x" * 1000))
    tasks.feed(TaskOver("t0"))
    tasks.feed(TaskOver("unknown"))
    [warning] = tasks.describe_lost()
    assert warning.startswith("background tasks never ended: t1 (xxx")
    assert warning.endswith(") and 1 more")
    assert len(warning) < 1000


def test_the_judgement_about_tasks_is_replaceable() -> None:
    """A defect may forget them."""

    class Forgetful(BackgroundTaskTracker):
        def describe_lost(self) -> list[str]:
            return []

    stage = Claude(SessionDeciders(tasks=Forgetful))
    stage.begin_task("b")
    stage.exit_agent(0)
    assert stage.session.warnings == ()
