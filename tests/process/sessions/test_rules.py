"""What no scenario says about sessions with real children: their holder, viewers, handlers, mistakes of callers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor import Policy, Question, Session, SessionEvent, TurnResult, open_session
from tests.process.pi_scripts import (
    ENDS,
    GREETS,
    end_message_step,
    print_line_step,
    take_prompt_steps,
)
from tests.process.stand import SECOND, is_gone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.process.stand import Stand

WAITS = "- wait_for: eof\n"
MINUTE = Policy(prompt_timeout=60.0, cancel_grace=300.0)


def summarize_result(result: TurnResult) -> tuple[str, str | None, float]:
    """Give what matters of a result, with seconds."""
    return result.outcome.value, result.text, result.elapsed / SECOND


def hold_session(
    stand: Stand, backend: str, script: str, talk: Callable[[Session], Awaitable[Any]], policy: Policy = MINUTE
) -> Any:
    """Open a session with a fake pi, talk, and close it."""
    argv = stand.fake(script)

    async def host() -> Any:
        async with open_session(argv, dialect="pi", policy=policy) as session:
            return await talk(session)

    return stand.run(host, backend=backend)


def test_stop_returns_when_the_whole_tree_is_gone(stand: Stand, backend: str) -> None:
    """A descendant that ignores signals is killed after kill_grace; then the next agent starts."""
    script = "- spawn: {id: tool, ignores_signals: true}\n" + GREETS + take_prompt_steps(1) + WAITS

    async def talk(session: Session) -> list[Any]:
        turn = session.prompt("one")
        await anyio.sleep(10)
        await session.stop()
        return [summarize_result(await turn), stand.seconds, [is_gone(pid, 0) for pid in stand.pids()[:2]]]

    assert hold_session(stand, backend, script, talk) == [("stopped", None, 10.0), 12.0, [True, True]]


def test_close_waits_its_graces(stand: Stand, backend: str) -> None:
    """EOF is ignored for close_grace, TERM for kill_grace (P8)."""
    script = "- when: {signal: TERM}\n  do: []\n" + GREETS + take_prompt_steps(1) + "- silence: 1000s\n"

    async def talk(session: Session) -> Any:
        turn = session.prompt("one")
        await anyio.sleep(1)
        await session.close()
        return [
            summarize_result(await turn),
            stand.seconds,
            session.status,
            (await session.prompt("too late")).outcome.value,
        ]

    assert hold_session(stand, backend, script, talk) == [("stopped", None, 1.0), 5.0, "closed", "stopped"]


def test_viewers_see_the_whole_transcript_whenever_they_attach(stand: Stand, backend: str) -> None:
    """A viewer from the beginning, a viewer that leaves and returns, a viewer after the end: all see the same (P4)."""
    script = GREETS + take_prompt_steps(1) + "- silence: 5s\n" + end_message_step("ONE") + ENDS + WAITS
    seen: dict[str, list[SessionEvent]] = {"early": [], "back": [], "late": []}

    async def host() -> None:
        async with (
            anyio.create_task_group() as group,
            open_session(stand.fakes[0].argv, dialect="pi", policy=MINUTE) as session,
        ):

            async def view(name: str) -> None:
                async for event in session.attach():
                    seen[name].append(event)

            group.start_soon(view, "early")
            gone = session.attach()
            assert (await anext(gone)).kind in ("prompt", "status")
            gone.detach()
            assert [event async for event in gone] == []
            await session.prompt("one")
            group.start_soon(view, "back")
        seen["late"] = [event async for event in session.attach()]

    stand.fake(script)
    stand.run(host, backend=backend)
    assert seen["early"] == seen["back"] == seen["late"]
    kinds = [(event.kind, event.text, event.at / SECOND) for event in seen["early"]]
    assert kinds[0] in [("status", "ready", 0.0), ("prompt", "one", 0.0)]
    assert ("message", "ONE", 5.0) in kinds
    assert kinds[-1][:2] == ("exit", "0")


ASKS = [
    "- wait_for: {stdin: '*initialize*'}",
    print_line_step({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}}),
    "- wait_for: {stdin: '*session/new*'}",
    print_line_step({"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}),
    "- wait_for: {stdin: '*session/prompt*'}",
    print_line_step(
        {
            "jsonrpc": "2.0",
            "id": 9,
            "method": "session/request_permission",
            "params": {"toolCall": {"title": "rm"}, "options": [{"optionId": "yes", "kind": "allow_once"}]},
        }
    ),
]


@pytest.mark.parametrize(
    ("handler", "answer", "seconds"),
    [
        ("allows", "selected", 100.0),
        ("denies", "cancelled", 100.0),
        ("breaks", "cancelled", 0.0),
        ("hangs", "cancelled", 300.0),
    ],
)
def test_the_callers_handler_answers_the_agent(
    stand: Stand, backend: str, handler: str, answer: str, seconds: float
) -> None:
    """It may take its time; a handler that raises or never returns is a no, and the turn continues (P7)."""
    ended = print_line_step({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}})
    argv = stand.fake("\n".join([*ASKS, f"- wait_for: {{stdin: '*\"{answer}\"*'}}", ended, WAITS]))

    async def answer_it(question: Question) -> bool:
        assert question.title == "rm"
        if handler == "breaks":
            raise LookupError("mine")
        await anyio.sleep(1000 if handler == "hangs" else 100)
        return handler == "allows"

    async def host() -> list[Any]:
        async with open_session(argv, dialect="acp", policy=MINUTE, permission=answer_it) as session:
            result = await session.prompt("one")
            warnings = [event.text for event in session.transcript if event.kind == "warning"]
            return [summarize_result(result), warnings]

    warned = ["the permission handler broke: LookupError('mine')"] if handler == "breaks" else []
    assert stand.run(host, backend=backend) == [("completed", None, seconds), warned]


def test_what_the_body_raises_comes_out_as_itself_after_the_end(stand: Stand, backend: str) -> None:
    """A caller's own error is not wrapped into a group, and the agent has ended when it arrives."""

    async def talk(session: Session) -> None:
        await anyio.sleep(1)
        assert session.status == "ready"
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        hold_session(stand, backend, GREETS + WAITS, talk)
    assert all(is_gone(pid, 0) for pid in stand.pids())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"argv": [], "dialect": "pi"}, "argv is empty"),
        ({"argv": ["x"], "dialect": "raw"}, "dialect is 'raw', but must be one of .* for a session"),
        ({"argv": ["x"], "dialect": "pi", "mode": "json"}, "mode is 'json', but pi has rpc for a session"),
    ],
)
def test_a_callers_mistake_is_an_error(backend: str, arguments: dict[str, Any], message: str) -> None:
    """An error that is no agent's doing is raised before anything is started."""

    async def host() -> None:
        async with open_session(**arguments):
            raise AssertionError("it opened")

    with pytest.raises(UsageError, match=message):
        anyio.run(host, backend=backend)
