"""A session without a process: an agent in memory that the test plays, and a clock that the test turns."""

from __future__ import annotations

import json
from typing import Any

from pytest_agentproc.clock import SystemClock
from pytest_agentproc.supervisor import (
    ContinuedSession,
    Conversation,
    Policy,
    Session,
    SessionDeciders,
    SessionDriver,
    SessionEvent,
    SessionSettings,
)
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor.dialects import Setting

__all__ = ["SECOND", "Stage"]

SECOND = 1_000_000_000


class _Agent:
    """One agent process in memory, as its driver sees it (`AgentProcess`)."""

    pid = 7
    descriptor = -1
    containment = "group"

    def __init__(self) -> None:
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.stdin = bytearray()
        self.is_reading = True
        self.is_deaf = False
        self.is_full = False
        self.has_eof = False
        self.signals: list[str] = []
        self.exit: int | None = None
        self.is_reaped = False
        self.was_killed = False
        self.left: int = 0
        self._watched: set[str] = set()
        self._saw_exit = False

    def poll(self) -> set[str]:
        ready = {name for name in self._watched if (not self.is_full if name == "stdin" else self.output[name])}
        if self.exit is not None and not self._saw_exit:
            ready.add("exit")
        return ready

    def watch_stream(self, name: str, *, wanted: bool) -> None:
        (self._watched.add if wanted else self._watched.discard)(name)

    def read(self, name: str, limit: int) -> bytes | None:
        data = bytes(self.output[name][:limit])
        del self.output[name][:limit]
        return data or None

    def write(self, data: memoryview) -> int | None:
        if self.exit is not None or not self.is_reading:
            raise BrokenPipeError
        if self.is_full:
            return None
        self.stdin += data
        return len(data)

    def close_stdin(self) -> None:
        assert not self.has_eof
        self.has_eof = True

    def read_exit_status(self) -> int:
        self._saw_exit = True
        assert self.exit is not None
        return self.exit

    def terminate(self, reach: str = "tree") -> None:
        self.signals.append("TERM")
        if not self.is_deaf and self.exit is None:
            self.exit = -15

    def kill(self, reach: str = "tree") -> None:
        self.signals.append("KILL")
        self.exit = -9 if self.exit is None else self.exit

    def is_alone(self) -> bool:
        return True

    def reap(self) -> None:
        assert self.exit is not None
        self.is_reaped = True

    def kill_and_reap(self) -> int:
        self.kill()
        self.reap()
        return self.read_exit_status()

    def list_survivors(self) -> list[int]:
        return []

    def close(self) -> None:
        """Nothing is open."""


class _InMemoryWakeup:
    """The session's wakeup in memory."""

    descriptor = -1

    def __init__(self) -> None:
        self.is_set = False

    def set(self) -> None:
        self.is_set = True

    def clear(self) -> None:
        self.is_set = False

    def watch(self, descriptor: int) -> None: ...
    def unwatch(self, descriptor: int) -> None: ...
    def close(self) -> None: ...


class Stage:
    """A session whose agents the test plays.

    Args:
        dialect: what they speak.
        policy: the limits.
        handler: whether the caller answers questions.
        failures: the errors of the first starts.
        deciders: the judgements.
        continues: the session that it opens; None: a new one.
    """

    def __init__(
        self,
        dialect: str = "pi",
        *,
        policy: Policy | None = None,
        handler: bool = False,
        failures: list[OSError] | None = None,
        deciders: SessionDeciders | None = None,
        continues: ContinuedSession | None = None,
    ) -> None:
        self.now = 0
        self.agents: list[_Agent] = []
        self.starts: list[int] = []
        self.events: list[SessionEvent] = []
        self.failures = failures or []
        self.wakeup = _InMemoryWakeup()
        self.is_over = False
        setting = Setting("/work", "key", continues=continues)
        task = SessionSettings(["agent"], dialect, "", policy or Policy(), setting, has_handler=handler)
        self.machine = Conversation(task, deciders)
        self.session = Session(self.machine, SystemClock(), None)
        self.driver = SessionDriver(self.machine, self._spawn, self.wakeup, lambda: self.now, self._receive_event)
        self._count = 0
        self._read = 0
        self.look()

    def _receive_event(self, event: SessionEvent) -> None:
        self.events.append(event)
        self.session.receive_event(event)

    def _spawn(self, _containment: str) -> _Agent:
        if self.failures:
            raise self.failures.pop(0)
        assert all(agent.is_reaped for agent in self.agents), "two alive"
        self.agents.append(_Agent())
        self.starts.append(self.now)
        self._read = 0
        return self.agents[-1]

    # Time.

    def look(self) -> None:
        """Look once, and on, until nothing is ready."""
        for _ in range(1000):
            self.is_over = self.is_over or self.driver.look()
            agent, deadline = self.driver.agent, self.machine.deadline
            ready = agent is not None and bool(agent.poll())
            if self.is_over or not (ready or self.wakeup.is_set or (deadline is not None and deadline <= self.now)):
                return
        raise AssertionError("the session looks for ever")

    def advance_to(self, seconds: float) -> None:
        """Turn the clock to an instant, firing what is due on the way."""
        goal = round(seconds * SECOND)
        while not self.is_over and (deadline := self.machine.deadline) is not None and deadline <= goal:
            self.now = max(self.now, deadline)
            self.look()
        self.now = goal

    # The agent.

    @property
    def agent(self) -> _Agent:
        """The agent of the day."""
        return self.agents[-1]

    def print_lines(self, *values: dict[str, Any]) -> None:
        """Have the agent print JSON lines, in one chunk."""
        self.agent.output["stdout"] += b"".join(json.dumps(value).encode() + b"\n" for value in values)
        self.look()

    def exit_agent(self, status: int) -> None:
        """Have the agent exit."""
        self.agent.exit = status
        self.look()

    def take_sent(self) -> list[dict[str, Any]]:
        """Give what was written to the agent of the day since the last call."""
        data = bytes(self.agent.stdin[self._read :])
        self._read += len(data)
        return [json.loads(line) for line in data.splitlines()]

    # The caller.

    def send_intents(self, *intents: machine_events.CallerIntent) -> None:
        """Have the caller say something."""
        for intent in intents:
            self.driver.queue_intent(intent)
        self.look()

    def prompt(self, text: str = "ask") -> int:
        """Ask; give the turn's number."""
        self._count += 1
        self.send_intents(machine_events.QueuePrompt(self._count, text))
        return self._count

    @property
    def status(self) -> str:
        """Where the session stands."""
        return self.machine.state.value

    @property
    def unacknowledged(self) -> bool:
        """Whether a cancel is unacknowledged."""
        return self.machine.turns.unacknowledged is not None

    def describe_end(self, number: int) -> tuple[str, float, str | None] | None:
        """Give a turn's outcome, its instant in seconds and its text; None while it has none."""
        for event in self.events:
            if event.kind == "outcome" and event.turn == number:
                assert event.result is not None
                return event.text, event.at / SECOND, event.result.text
        return None

    def list_background_texts(self) -> list[str | None]:
        """Give the texts of the background turns."""
        return [event.result.text for event in self.events if event.kind == "background" and event.result]

    def list_statuses(self) -> list[str]:
        """Give every status after the first, in order."""
        return [event.text for event in self.events if event.kind == "status"]

    # pi, as it speaks.

    def greet_as_pi(self) -> None:
        """Have pi answer the handshake."""
        assert self.take_sent() == [{"id": "greet-0", "type": "get_state"}]
        self.print_lines({"id": "greet-0", "type": "response", "command": "get_state", "success": True, "data": {}})

    def accept_prompt(self, number: int) -> None:
        """Have pi take a prompt."""
        taken = {"id": f"prompt-{number}", "type": "response", "command": "prompt", "success": True}
        self.print_lines(taken, {"type": "agent_start"})

    def end_message(self, text: str, stop: str = "stop") -> None:
        """Have pi end a message of the assistant."""
        self.print_lines({"type": "message_end", "message": {"role": "assistant", "content": text, "stopReason": stop}})

    def answer_and_settle(self, text: str, stop: str = "stop") -> None:
        """Have pi answer and end its run."""
        self.end_message(text, stop)
        self.print_lines({"type": "agent_end"})

    def answer_abort(self, number: int) -> None:
        """Have pi answer the abort of a turn."""
        self.print_lines({"id": f"abort-{number}", "type": "response", "command": "abort", "success": True})
