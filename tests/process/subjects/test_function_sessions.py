"""A function that holds sessions: forty lines of a user, driven by the same caller as the reference supervisor."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import CheckedSubject, Function
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from pytest_agentproc.vocabulary import Caller
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import RunRequest


class Conversation:
    """One pi, its turns one after the other; the agent that lingers at the end is terminated."""

    def __init__(self, order: RunRequest) -> None:
        self.order, self.clock = order, order.clock
        self.caller = Caller(order.drive, lambda action: order.trace(action.make_event(self.clock.instant())))
        self.news = anyio.Event()
        self.turns: list[dict[str, Any]] = []
        self.queue: list[tuple[int, str]] = []
        self.since = 0.0

    def tell(self, kind: str, turn: int | None, text: str) -> None:
        """Let the caller know."""
        self.caller.note_event(kind, turn, text)
        self.news.set()

    async def hold(self) -> dict[str, Any]:
        """Be driven until the drive is through."""
        order = self.order
        async with await anyio.open_process(order.argv, env=order.env, start_new_session=True) as agent:
            self.agent = agent
            async with anyio.create_task_group() as group:
                group.start_soon(self.listen)
                self.tell("status", None, "ready")
                while True:
                    for action in self.caller.act(self.clock.instant()):
                        await self.do(action.kind, action.value)
                    if self.caller.is_done:
                        break
                    due = self.caller.deadline
                    left = None if due is None else (due - self.clock.instant()) / 1e9 / order.scale
                    with anyio.move_on_after(left):
                        await self.news.wait()
                    self.news = anyio.Event()
                await agent.wait()
        return {"turns": self.turns}

    async def do(self, kind: str, value: Any) -> None:
        """Do the caller's actions."""
        if kind == "prompt":
            self.turns.append({})
            self.queue.append((len(self.turns), value))
            await self.deliver()
        elif kind == "cancel":
            await self.send({"id": "c", "type": "abort"})
        elif kind == "close":
            assert self.agent.stdin is not None
            await self.agent.stdin.aclose()

    async def deliver(self) -> None:
        """Send the first prompt of the queue, if no other is in flight."""
        if len(self.queue) and not self.turns[self.queue[0][0] - 1]:
            number, text = self.queue[0]
            self.turns[number - 1] = {"outcome": None}
            self.since = anyio.current_time()
            self.tell("status", None, "prompting")
            await self.send({"id": f"p{number}", "type": "prompt", "message": text})

    async def send(self, command: dict[str, Any]) -> None:
        """Write a line."""
        assert self.agent.stdin is not None
        with suppress(anyio.BrokenResourceError):
            await self.agent.stdin.send(f"{json.dumps(command)}\n".encode())

    async def listen(self) -> None:
        """Read events to the end of the stream."""
        assert self.agent.stdout is not None
        rest, text, stop = b"", "", ""
        async for data in self.agent.stdout:
            *lines, rest = (rest + data).split(b"\n")
            for event in map(json.loads, lines):
                if event["type"] == "message_end" and event["message"]["role"] == "assistant":
                    message = event["message"]
                    text, stop = "".join(part.get("text", "") for part in message["content"]), message["stopReason"]
                elif event["type"] == "agent_end":
                    await self.end(text, "cancelled" if stop == "aborted" else "completed")

    async def end(self, text: str, outcome: str) -> None:
        """Note the outcome of a turn."""
        number, _ = self.queue.pop(0)
        code = 130 if outcome == "cancelled" else 0
        self.turns[number - 1] = {
            "outcome": outcome,
            "exit_code": code,
            "text": text,
            "elapsed": anyio.current_time() - self.since,
        }
        self.tell("outcome", number, outcome)
        self.tell("status", None, "ready")
        await self.deliver()


async def talk_to_pi(order: RunRequest) -> dict[str, Any]:
    """Hold a session with pi."""
    return await Conversation(order).hold()


SUBJECT = Function(talk_to_pi, sessions=["prompt", "queue", "cancel", "close"], dialects=["pi"])


def load_corpus_file(name: str) -> Scenario:
    """Load a bundled scenario."""
    return load_bundled(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pi-session-two-prompts", "pi-session-cancel"])
def test_a_function_holds_a_session_from_end_to_end(runner: ScenarioRunner, name: str, backend: str) -> None:
    """Prompts that wait their turn, and turns that are cancelled: the bundled scenarios as they stand."""
    rows = judge_all_expectations(runner.play(load_corpus_file(name), SUBJECT, backend=backend))
    assert choose_overall_verdict(rows) is Verdict.PASSED, [row for row in rows if row.verdict is not Verdict.PASSED]


@pytest.mark.slow
def test_a_function_that_sends_the_second_prompt_too_early_is_red(runner: ScenarioRunner) -> None:
    """Its actions are judged, and not the caller's: pi refuses a prompt while it works."""

    class Eager(Conversation):
        async def deliver(self) -> None:
            for number, text in self.queue:
                if not self.turns[number - 1]:
                    self.turns[number - 1] = {"outcome": None}
                    self.since = anyio.current_time()
                    await self.send({"id": f"p{number}", "type": "prompt", "message": text})

    async def eager(order: RunRequest) -> dict[str, Any]:
        return await Eager(order).hold()

    subject = Function(eager, sessions=True, dialects=["pi"])
    assert (
        choose_overall_verdict(judge_all_expectations(runner.play(load_corpus_file("pi-session-two-prompts"), subject)))
        is Verdict.FAILED
    )


VIEWED = "scenario: s\nagent: {dialect: pi, mode: rpc}\ndrive: [{attach: v}]\nscript: [say: x]\n"


@pytest.mark.parametrize("subject", [SUBJECT, CheckedSubject(SUBJECT)], ids=["function", "guarded"])
@pytest.mark.parametrize(
    ("scenario", "action"),
    [
        (loads(VIEWED), "sessions with attach"),
        (load_corpus_file("sessions-crash-stays-in-one"), "sessions with several"),
    ],
)
def test_what_it_cannot_have_done_is_not_applicable(
    runner: ScenarioRunner, subject: Any, scenario: Scenario, action: str
) -> None:
    """A supervisor without viewers is not an adapter error a hundred times."""
    with pytest.raises(NotApplicable, match=action):
        runner.play(scenario, subject)


def test_a_deed_that_does_not_exist_is_refused() -> None:
    """With the nearest that does."""
    with pytest.raises(UsageError, match="there is no deed 'promt', did you mean prompt"):
        Function(talk_to_pi, sessions=["promt"])
