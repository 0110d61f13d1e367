"""Hooks of claude and their callbacks, whichever is there first (B4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.clock import SystemClock
from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import (
    Conversation,
    Hook,
    HookTracker,
    Policy,
    Session,
    SessionDeciders,
    SessionEvent,
    SessionSettings,
    open_session,
)
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor.dialects import Setting, make_session_protocol
from tests.unit.session_stage import Stage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Claude(Stage):
    """A claude that has greeted, and its hooks."""

    def __init__(self, deciders: SessionDeciders | None = None) -> None:
        super().__init__("claude", policy=Policy(), deciders=deciders)
        self.greet()

    def greet(self) -> None:
        """Greet."""
        response = {"subtype": "success", "request_id": "greet-0", "response": {}}
        self.print_lines({"type": "control_response", "response": response})
        self.take_sent()

    def fire_hook(self, name: str, event: str = "PostToolUse", callback: str = "mine") -> None:
        """Have a hook fire."""
        fields = {"hook_event_name": event, "tool_name": "Bash", "tool_input": {}}
        request = {"subtype": "hook_callback", "callback_id": callback, "input": fields}
        self.print_lines({"type": "control_request", "request_id": name, "request": request})

    def take_answers(self) -> list[tuple[str, Any]]:
        """Give the answers since the last call."""
        return [(line["response"]["request_id"], line["response"]["response"]) for line in self.take_sent()]

    def list_calls(self) -> list[tuple[str, float]]:
        """Give the hooks whose callback was called, and when."""
        return [(event.hook.id, event.at / 10**9) for event in self.events if event.kind == "hook" and event.hook]


@pytest.mark.parametrize(("seconds", "called"), [(300, [("r", 300.0)]), (301, []), (1000, [])])
def test_a_hook_that_is_too_old_is_not_called(seconds: float, called: list[Any]) -> None:
    """Five minutes, also between two sweeps."""
    stage = Claude()
    stage.fire_hook("r")
    stage.advance_to(seconds)
    stage.send_intents(machine_events.RegisterHook("mine"))
    assert stage.list_calls() == called


def test_what_is_too_old_is_swept_every_minute_and_then_no_timer_runs() -> None:
    """The session keeps no word of it for longer than six minutes."""
    stage = Claude()
    stage.fire_hook("r")
    assert stage.machine.deadlines == {"hook_sweep": 60 * 10**9}
    stage.advance_to(359)
    assert stage.machine.deadlines == {"hook_sweep": 360 * 10**9}
    stage.advance_to(360)
    assert stage.machine.deadlines == {}


def test_what_is_kept_has_a_bound() -> None:
    """The oldest go first (F6)."""
    stage = Claude()
    for number in range(1100):
        stage.fire_hook(str(number))
    stage.send_intents(machine_events.RegisterHook("mine"))
    names = [name for name, _ in stage.list_calls()]
    assert (len(names), names[0]) == (1000, "100")


def test_what_is_kept_has_a_bound_in_size() -> None:
    """A hook tells all that its tool said; the newest is kept always."""
    calls: list[Hook] = []
    hooks = HookTracker(Policy(), lambda *_, hook: calls.append(hook))
    hooks.connect_to_agent(make_session_protocol("claude", "", Setting()))
    for number in range(3):
        hooks.handle_fired(Hook(str(number), "mine", "PostToolUse", detail={"x": "y" * 7 * 1024**2}), 0)
    hooks.handle_fired(Hook("last", "mine", "PostToolUse", detail={"x": "y" * 20 * 1024**2}), 0)
    hooks.register("mine", 0)
    assert [hook.id for hook in calls] == ["last"]


def test_a_hook_that_is_nested_too_deeply_is_kept_as_a_big_one() -> None:
    """It can be read, and not be written: nothing breaks at that (F2)."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    calls: list[Hook] = []
    hooks = HookTracker(Policy(), lambda *_, hook: calls.append(hook))
    hooks.connect_to_agent(make_session_protocol("claude", "", Setting()))
    hooks.handle_fired(Hook("first", "mine", "PostToolUse"), 0)
    hooks.handle_fired(Hook("deep", "mine", "PostToolUse", detail={"x": deep}), 0)
    hooks.register("mine", 0)
    assert [hook.id for hook in calls] == ["deep"]


@pytest.mark.parametrize("registered", [True, False])
def test_a_tool_is_denied_when_nobody_answers_in_time(*, registered: bool) -> None:
    """hook_timeout, whether no callback came or it does not end; its later word is not heard."""
    stage = Claude()
    if registered:
        stage.send_intents(machine_events.RegisterHook("mine"))
    stage.fire_hook("r", "PreToolUse")
    stage.advance_to(59)
    assert stage.take_answers() == []
    stage.advance_to(60)
    [(name, answer)] = stage.take_answers()
    assert (name, answer["hookSpecificOutput"]["permissionDecision"]) == ("r", "deny")
    stage.send_intents(machine_events.RegisterHook("mine"), machine_events.DecideTool("r", allowed=True))
    assert stage.take_answers() == []
    assert len(stage.list_calls()) == registered
    assert [event.hook.id for event in stage.events if event.kind == "withdrawn" and event.hook] == ["r"]


def test_a_tool_that_waits_dies_with_its_agent_and_what_happened_does_not() -> None:
    """The next agent is not told what it never asked; the callback stays registered."""
    stage = Claude()
    stage.fire_hook("r", "PreToolUse")
    stage.fire_hook("s")
    stage.exit_agent(1)
    stage.advance_to(2)
    stage.greet()
    stage.send_intents(machine_events.RegisterHook("mine"), machine_events.DecideTool("r", allowed=True))
    stage.fire_hook("t")
    assert (stage.take_answers(), stage.list_calls()) == ([("t", {})], [("s", 2.0), ("t", 2.0)])


def test_too_many_tools_that_wait_are_denied_at_once() -> None:
    """Waiting has a bound too (F6)."""
    stage = Claude()
    for number in range(1001):
        stage.fire_hook(str(number), "PreToolUse")
    assert [name for name, _ in stage.take_answers()] == ["1000"]


def test_the_handshake_announces_the_hooks() -> None:
    """For every tool, and without a timeout of the agent's own."""
    hooks = (("before", "PreToolUse"), ("after", "PostToolUse"), ("too", "PreToolUse"))
    [line] = make_session_protocol("claude", "", Setting(hooks=hooks)).encode_greeting().splitlines()
    assert b'"hooks": {"PreToolUse": [{"matcher": null, "hookCallbackIds": ["before"]}' in line
    assert b'{"matcher": null, "hookCallbackIds": ["too"]}], "PostToolUse": ' in line


def test_a_hook_that_does_not_say_what_happened_is_what_was_announced() -> None:
    """A hook that may forbid is never mistaken for a hook that may not."""
    speech = make_session_protocol("claude", "", Setting(hooks=(("mine", "PreToolUse"),)))
    request = b'{"subtype": "hook_callback", "callback_id": "mine"}'
    told = speech.decode(b'{"type": "control_request", "request_id": "r", "request": ' + request + b"}")
    assert told == [Hook("r", "mine", "PreToolUse")]


def test_hooks_are_refused_where_there_are_none() -> None:
    """A caller's mistake, told before anything is started."""

    async def host() -> None:
        async with open_session(["pi"], dialect="pi", hooks={"mine": "PreToolUse"}):
            raise AssertionError("it opened")

    with pytest.raises(UsageError, match="dialect 'pi' has none"):
        anyio.run(host)


def test_the_judgement_about_hooks_is_replaceable() -> None:
    """A defect may let every tool run."""

    class Careless(HookTracker):
        def handle_fired(self, hook: Hook, now: int) -> bytes:
            return self._protocol.encode_hook_answer(hook)

    stage = Claude(SessionDeciders(hooks=Careless))
    stage.fire_hook("r", "PreToolUse")
    assert stage.take_answers() == [("r", {})]


# The callbacks themselves.


class RememberingDriver:
    """A driver that keeps the events it was given."""

    def __init__(self) -> None:
        self.intents: list[machine_events.CallerIntent] = []

    def queue_intent(self, intent: machine_events.CallerIntent) -> None:
        """Keep it."""
        self.intents.append(intent)


def decide_with_callback(
    callback: Callable[[Hook], Awaitable[bool | None]], event: str = "PreToolUse", *, withdrawn: bool = False
) -> tuple[list[machine_events.CallerIntent], tuple[str, ...]]:
    """Have a callback called; give what the session then says, and its warnings."""
    session = Session(Conversation(SessionSettings(["agent"], "claude")), SystemClock(), None)
    driver = RememberingDriver()
    session.set_driver(driver)  # type: ignore[arg-type]
    hook = Hook("r", "mine", event)

    async def host() -> None:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(session.answer_agent, group)
                session.on_hook("mine", callback)
                session.receive_event(SessionEvent(0, "hook", hook=hook))
                await anyio.wait_all_tasks_blocked()
                if withdrawn:
                    session.receive_event(SessionEvent(0, "withdrawn", hook=hook))
                    await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()

    anyio.run(host)
    assert driver.intents.pop(0) == machine_events.RegisterHook("mine")
    return driver.intents, session.warnings


@pytest.mark.parametrize(("said", "allowed"), [(None, True), (True, True), (False, False)])
def test_a_callback_forbids_by_saying_no(said: bool | None, allowed: bool) -> None:
    """One that says nothing only looks on."""

    async def callback(hook: Hook) -> bool | None:
        assert hook.id == "r"
        return said

    assert decide_with_callback(callback) == ([machine_events.DecideTool("r", allowed=allowed)], ())


@pytest.mark.parametrize(
    ("event", "intents"), [("PreToolUse", [machine_events.DecideTool("r", allowed=False)]), ("PostToolUse", [])]
)
def test_a_callback_that_raises_is_a_warning(event: str, intents: list[machine_events.CallerIntent]) -> None:
    """And forbids, where it could have."""

    async def callback(_: Hook) -> None:
        raise LookupError("mine")

    assert decide_with_callback(callback, event) == (intents, ("the callback of hook mine broke: LookupError('mine')",))


def test_a_callback_is_cancelled_when_nobody_wants_its_word() -> None:
    """And what it says then goes nowhere."""
    ends: list[str] = []

    async def callback(hook: Hook) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ends.append(hook.id)

    assert decide_with_callback(callback, withdrawn=True) == ([], ())
    assert ends == ["r"]
