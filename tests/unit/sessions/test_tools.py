"""Tools in sessions: the agent's own, which bear a longer silence (A6), and the host's, which end turns."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.supervisor import Policy, SessionDeciders, ToolTracker, TurnWatchdog
from pytest_agentproc.supervisor.dialects import Asked, Setting, ToolEnded, ToolStarted, make_session_protocol
from tests.unit.session_stage import Stage

POLICY = Policy(inactivity_timeout=10, internal_tool_timeout=40, host_tools=("Read", "mcp__*"))


class Answering(Stage):
    """An agent of any dialect that has greeted, and what it prints.

    Args:
        dialect: what it speaks.
        more: limits beside those above.
    """

    def __init__(self, dialect: str, deciders: SessionDeciders | None = None, **more: Any) -> None:
        limits = {"inactivity_timeout": 10, "internal_tool_timeout": 40, "host_tools": POLICY.host_tools, **more}
        super().__init__(dialect, policy=Policy(**limits), deciders=deciders)
        if dialect == "pi":
            self.greet_as_pi()
        elif dialect == "acp":
            self.take_sent()
            self.print_lines(
                {"jsonrpc": "2.0", "id": 0, "result": {}}, {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}
            )
        else:
            self.respond("greet-0")
        self.take_sent()
        assert self.status == "ready"

    def respond(self, name: str) -> None:
        """Have claude answer a request."""
        response = {"subtype": "success", "request_id": name, "response": {}}
        self.print_lines({"type": "control_response", "response": response})

    def begin_turn(self, number: int = 1) -> None:
        """Begin a turn."""
        [line] = self.take_sent()
        self.mark = line.get("uuid")
        if self.machine.task.dialect == "pi":
            self.accept_prompt(number)
        elif self.machine.task.dialect == "claude":
            self.print_lines({"type": "system", "subtype": "init", "user_message_uuids": [self.mark]})

    def ask_for_tools(self, *names: str, parent: str | None = None) -> None:
        """End a message that asks for tools, each by its name, and begin them."""
        dialect = self.machine.task.dialect
        if dialect == "pi":
            calls = [{"type": "toolCall", "id": name, "name": name} for name in names]
            message = {"role": "assistant", "content": calls, "stopReason": "toolUse"}
            self.print_lines({"type": "message_end", "message": message})
            self.print_lines(
                *({"type": "tool_execution_start", "toolCallId": name, "toolName": name} for name in names)
            )
        elif dialect == "acp":
            for name in names:
                self.send_update(sessionUpdate="tool_call", toolCallId=name, title=name, status="pending")
        else:
            blocks = [{"type": "tool_use", "id": name, "name": name, "input": {}} for name in names]
            line = {"type": "assistant", "parent_tool_use_id": parent, "message": {"id": "m", "content": blocks}}
            stop = {"type": "stream_event", "parent_tool_use_id": parent, "event": {"type": "message_stop"}}
            self.print_lines(line, stop)

    def send_update(self, **update: str) -> None:
        """Have an ACP agent tell something."""
        self.print_lines({"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}})

    def end_turn(self, number: int, *, good: bool) -> None:
        """End a turn, after a cancel with its acknowledgement."""
        dialect = self.machine.task.dialect
        if dialect == "pi":
            self.answer_and_settle("x", "stop" if good else "aborted")
            self.answer_abort(number)
        elif dialect == "acp":
            stop = "end_turn" if good else "cancelled"
            self.print_lines({"jsonrpc": "2.0", "id": number + 1, "result": {"stopReason": stop}})
        else:
            fields = {"subtype": "success" if good else "error_during_execution", "user_message_uuids": [self.mark]}
            self.print_lines({"type": "result", "result": "x", **fields})


DIALECTS = pytest.mark.parametrize("dialect", ["pi", "acp", "claude"])


@DIALECTS
def test_a_tool_without_end_ends_the_turn_at_the_longer_limit(dialect: str) -> None:
    """And the viewers see that a tool ran."""
    stage = Answering(dialect)
    stage.prompt()
    stage.begin_turn()
    stage.ask_for_tools("Bash")
    stage.advance_to(60)
    assert stage.describe_end(1) == ("inactive", 40.0, None)
    [error] = [event.text for event in stage.events if event.kind == "error"]
    assert error == "no output for 40 s while a tool ran: the turn was cancelled, the agent lives on"


@DIALECTS
def test_a_turn_ends_at_a_tool_of_the_hosts(dialect: str) -> None:
    """As `tool_use`: the agent lives, gets a cancel, and the next prompt goes out when it has (A7)."""
    stage = Answering(dialect)
    stage.prompt()
    stage.begin_turn()
    stage.advance_to(1)
    stage.ask_for_tools("Bash", "mcp__fs__list")
    assert stage.describe_end(1) == ("tool_use", 1.0, None)
    [result] = [event.result for event in stage.events if event.kind == "outcome"]
    assert result is not None
    assert (result.exit_code, result.error, stage.status, stage.agent.signals) == (0, "", "ready", [])
    [cancel] = stage.take_sent()
    assert "abort" in str(cancel) or "cancel" in str(cancel)
    stage.prompt()
    assert stage.take_sent() == []
    stage.end_turn(1, good=False)
    stage.begin_turn(2)
    stage.end_turn(2, good=True)
    told = stage.describe_end(2)
    assert told is not None
    assert told[0] == "completed"


def test_a_message_without_partial_ones_ends_at_the_next() -> None:
    """Nothing else marks its end, in a session as in a run."""
    stage = Answering("claude")
    stage.prompt()
    stage.begin_turn()
    block = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}
    stage.print_lines({"type": "assistant", "message": {"id": "m", "content": [block]}})
    assert stage.describe_end(1) is None
    stage.print_lines({"type": "assistant", "message": {"id": "n", "content": [{"type": "text", "text": "on"}]}})
    assert stage.describe_end(1) == ("tool_use", 0.0, None)


def test_the_judgement_about_tools_is_replaceable() -> None:
    """A defect may mistake every tool for the host's."""

    class AnyTools(ToolTracker):
        def is_handed_over(self, meaning: object) -> bool:
            return isinstance(meaning, Asked)

    stage = Answering("pi", SessionDeciders(tools=AnyTools))
    stage.prompt()
    stage.begin_turn()
    stage.ask_for_tools("Bash")
    assert stage.describe_end(1) == ("tool_use", 0.0, None)


def test_the_order_of_deadlines_stands_when_tools_come_and_go() -> None:
    """At one instant the gentlest is first: progress, prompt, silence, max_runtime (A3)."""
    watchdog = TurnWatchdog(Policy(progress_timeout=9, prompt_timeout=9, inactivity_timeout=8, max_runtime=9))
    watchdog.start(0)
    watchdog.note_work(busy=True)
    assert list(watchdog.deadlines) == ["progress_timeout", "prompt_timeout", "internal_tool_timeout", "max_runtime"]
    watchdog.note_work(busy=False)
    assert list(watchdog.deadlines) == ["progress_timeout", "prompt_timeout", "inactivity_timeout", "max_runtime"]


@pytest.mark.parametrize(("inactivity", "tools"), [(None, 40.0), (50.0, 40.0), (50.0, None)])
def test_tools_make_the_limit_longer_and_never_shorter(inactivity: float | None, tools: float | None) -> None:
    """And where there is none for silence, there is none for tools."""
    watchdog = TurnWatchdog(Policy(inactivity_timeout=inactivity, internal_tool_timeout=tools, prompt_timeout=None))
    watchdog.start(0)
    watchdog.note_work(busy=True)
    assert list(watchdog.deadlines) == (["inactivity_timeout"] if inactivity and tools else [])
    watchdog.disarm()
    watchdog.note_work(busy=False)
    assert watchdog.deadlines == {}


def test_an_acp_tool_that_is_first_reported_at_its_end_is_not_in_flight() -> None:
    """Some agents report a tool once, afterwards."""
    speech = make_session_protocol("acp", "", Setting("/work", "key"))
    update = b'{"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Read", "status": "completed"}'
    meanings = speech.decode(b'{"jsonrpc": "2.0", "method": "session/update", "params": {"update": ' + update + b"}}")
    assert meanings == [ToolEnded("t", "Read", ends_message=True)]
    assert not any(isinstance(meaning, ToolStarted | Asked) for meaning in meanings)
