"""Agents that a random test plays: honest in their protocol, free in everything else. They judge what they are sent.

A player keeps its own view of what runs. A prompt must come alone, in order, once, and after every cancel was answered
(P3, P9); its words carry the turn's number, so that a word in the wrong turn shows (P5, B1).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.session_stage import Stage

__all__ = ["PLAYERS", "Player"]


class Player:
    """One agent after the other.

    `running` is the turn that runs (0: one of its own), `waiting` the prompts that came and have not begun, `cancels`
    the cancels that it has not answered.
    """

    dialect = ""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.seen: list[int] = []
        self.begin_life()

    def begin_life(self) -> None:
        """Be a new process."""
        self.life = len(self.stage.agents)
        self.is_greeted = False
        self.running: int | None = None
        self.waiting: deque[int] = deque()
        self.cancels: list[int] = []

    def read_written(self) -> None:
        """Read what was written."""
        if self.life != len(self.stage.agents):
            self.begin_life()
        while lines := self.stage.take_sent():
            for line in lines:
                self.read_line(line)

    def note_prompt(self, number: int) -> None:
        """Judge a prompt that came."""
        assert self.is_greeted, "a prompt before the handshake"
        assert not self.waiting, "two prompts wait"
        assert not self.running, "a prompt while another runs"
        assert not self.cancels, "a prompt before the cancel was answered"
        assert not self.seen or number > self.seen[-1], "out of order, or sent again"
        self.seen.append(number)
        self.waiting.append(number)

    def make_marked_text(self) -> str:
        """Give words that say whose they are."""
        return f"w{self.running}." if self.running else "bg."

    # The actions that a test may ask for, each only where `can_do` allows it.

    def can_do(self, action: str) -> bool:
        """Say whether an honest agent could do this now."""
        if action == "greet":
            return not self.is_greeted
        return self.is_greeted and {
            "begin": self.running is None and bool(self.waiting),
            "begin_own": self.running is None,
            "speak": self.running is not None,
            "end": self.running is not None,
            "settle": bool(self.cancels),
        }.get(action, True)

    def read_line(self, line: dict[str, Any]) -> None:
        """Take a line from the session."""
        raise NotImplementedError

    def act(self, action: str, *, good: bool) -> None:
        """Do something; `good` says whether a result is."""
        getattr(self, f"do_{action}")(good)


class PiPlayer(Player):
    """pi: refuses a prompt while it runs by itself, answers an abort after the end that it brings about."""

    dialect = "pi"

    def read_line(self, line: dict[str, Any]) -> None:
        number = int(line["id"].partition("-")[2])
        if line["type"] == "abort":
            self.cancels.append(number)
        elif line["type"] == "prompt" and self.running == 0:
            self.seen.append(number)
            self.stage.print_lines({"id": line["id"], "type": "response", "command": "prompt", "success": False})
        elif line["type"] == "prompt":
            self.note_prompt(number)

    def do_greet(self, good: bool) -> None:
        self.is_greeted = True
        self.stage.print_lines({"id": "greet-0", "type": "response", "command": "get_state", "success": True})

    def do_begin(self, good: bool) -> None:
        self.running = self.waiting.popleft()
        self.stage.accept_prompt(self.running)

    def do_begin_own(self, good: bool) -> None:
        if not self.waiting:
            self.running = 0
            self.stage.print_lines({"type": "agent_start"})

    def do_speak(self, good: bool) -> None:
        self.stage.end_message(self.make_marked_text(), "toolUse")

    def do_end(self, good: bool) -> None:
        words, self.running = self.make_marked_text(), None
        self.stage.answer_and_settle(words, "stop" if good else "error")

    def do_settle(self, good: bool) -> None:
        number = self.cancels.pop(0)
        if self.running is not None:
            words, self.running = self.make_marked_text(), None
            self.stage.answer_and_settle(words, "stop" if good else "aborted")
        self.stage.answer_abort(number)


class AcpPlayer(Player):
    """An ACP agent: a prompt runs when it comes, its response ends it, also after a cancel; it asks permissions."""

    dialect = "acp"

    def read_line(self, line: dict[str, Any]) -> None:
        method = line.get("method")
        if method == "session/new":
            self.stage.print_lines({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}})
        elif method == "session/prompt":
            self.note_prompt(line["id"] - 1)
            self.running = self.waiting.popleft()
        elif method == "session/cancel":
            assert self.running, "a cancel of nothing"
            self.cancels.append(self.running)

    def can_do(self, action: str) -> bool:
        """Say whether an honest agent could do this now."""
        return action not in ("begin", "begin_own", "settle") and super().can_do(action)

    def do_greet(self, good: bool) -> None:
        self.is_greeted = True
        self.stage.print_lines({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}})

    def do_speak(self, good: bool) -> None:
        content = {"type": "text", "text": self.make_marked_text()}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        self.stage.print_lines({"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}})

    def do_end(self, good: bool) -> None:
        number, self.running, self.cancels = self.running or 0, None, []
        self.stage.print_lines(
            {"jsonrpc": "2.0", "id": number + 1, "result": {"stopReason": "end_turn" if good else "cancelled"}}
        )

    def do_ask(self, good: bool) -> None:
        self.stage.print_lines({"jsonrpc": "2.0", "id": 77, "method": "session/request_permission", "params": {}})
        assert [line["id"] for line in self.stage.take_sent()] == [77]


class ClaudePlayer(Player):
    """claude: an interrupt hits what runs, and is acknowledged by that turn's result; turns of its own lie anywhere."""

    dialect = "claude"

    def begin_life(self) -> None:
        """Be a new process."""
        super().begin_life()
        self.marks: dict[int, str] = {}

    def read_line(self, line: dict[str, Any]) -> None:
        if line["type"] == "user":
            number = int(line["message"]["content"])
            self.marks[number] = line["uuid"]
            self.note_prompt(number)
            self.stage.print_lines({"type": "command_lifecycle", "command_uuid": line["uuid"], "state": "queued"})
        elif line["request"]["subtype"] == "interrupt":
            self._respond(line["request_id"])
            if self.running:
                self.cancels.append(self.running)

    def _respond(self, name: str) -> None:
        response = {"subtype": "success", "request_id": name, "response": {}}
        self.stage.print_lines({"type": "control_response", "response": response})

    def _build_prompt_names(self) -> dict[str, Any]:
        return {"user_message_uuids": [self.marks[self.running]]} if self.running else {}

    def can_do(self, action: str) -> bool:
        """Say whether an honest agent could do this now."""
        return action != "settle" and super().can_do(action)

    def do_greet(self, good: bool) -> None:
        self.is_greeted = True
        self._respond("greet-0")

    def do_begin(self, good: bool) -> None:
        self.running = self.waiting.popleft()
        self.stage.print_lines({"type": "system", "subtype": "init", "session_id": "s", **self._build_prompt_names()})

    def do_begin_own(self, good: bool) -> None:
        if self.marks:
            self.running = 0
            self.stage.print_lines({"type": "system", "subtype": "init", "session_id": "s"})

    def do_speak(self, good: bool) -> None:
        content = [{"type": "text", "text": self.make_marked_text()}]
        self.stage.print_lines({"type": "assistant", "message": {"content": content}})

    def do_end(self, good: bool) -> None:
        own = {} if self.running else {"origin": {"kind": "task-notification"}}
        subtype = "success" if good and not self.cancels else "error_during_execution"
        fields = {
            "subtype": subtype,
            "is_error": not good,
            "result": self.make_marked_text(),
            **self._build_prompt_names(),
            **own,
        }
        self.running, self.cancels = None, []
        self.stage.print_lines({**fields, "type": "result"})

    def do_ask(self, good: bool) -> None:
        request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
        self.stage.print_lines({"type": "control_request", "request_id": "q", "request": request})
        assert [line["response"]["request_id"] for line in self.stage.take_sent()] == ["q"]


PLAYERS: dict[str, type[Player]] = {player.dialect: player for player in (PiPlayer, AcpPlayer, ClaudePlayer)}
