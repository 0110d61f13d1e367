"""Cancelling the holder of a session at any point of its work leaves no process and nothing else (T4)."""

from __future__ import annotations

import gc
import sys
import warnings
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.supervisor import Policy, Session, open_session
from tests.process.pi_scripts import (
    ENDS,
    GREETS,
    PI,
    answer_abort_step,
    await_intent_step,
    end_message_step,
    take_prompt_steps,
)
from tests.process.stand import CEILING, is_gone, list_open_descriptors
from tests.process.stepwise import Stepwise

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.process.stand import Stand

POLICY = Policy(prompt_timeout=60.0, cancel_grace=300.0)
SCRIPT = (
    "- spawn: {id: tool, ignores_signals: true}\n"
    + GREETS
    + take_prompt_steps(1)
    + end_message_step("ONE")
    + ENDS
    + take_prompt_steps(2)
    + await_intent_step("abort-2")
    + end_message_step("part", "aborted")
    + ENDS
    + answer_abort_step(2)
    + "- wait_for: eof\n- silence: 1000s\n"
)


async def hold_full_conversation(argv: list[str], step: Callable[[], None]) -> None:
    """Have a conversation with everything in it: a good turn, a timeout, a viewer, a close that goes up to TERM."""

    def trace(_event: object) -> None:
        step()

    async with open_session(argv, dialect="pi", policy=POLICY, trace=trace) as session:
        await session.prompt("one")
        step()
        await session.prompt("two")
        step()
        async for event in session.attach():
            if event.kind == "outcome":
                break
        step()
        await session.close()
        step()


def cancel_at_point(stand: Stand, backend: str, point: int) -> int:
    """Cancel at one point; give how many points there were until then."""
    argv = stand.fake(SCRIPT)
    count = 0

    async def host() -> None:
        with anyio.CancelScope() as scope:

            def step() -> None:
                nonlocal count
                count += 1
                if count == point:
                    scope.cancel()

            await hold_full_conversation(argv, step)

    stand.run(host, backend=backend)
    assert all(is_gone(pid, 0) for pid in stand.pids())
    return count


@pytest.mark.slow
def test_cancelled_at_any_point_it_leaves_nobody(make_stand: Callable[..., Stand], backend: str) -> None:
    """Each action is a point: reads, writes, signals, timers, reports to viewers, waits of callers."""
    whole = make_stand(guard=10.0)
    points = cancel_at_point(whole, backend, 0)
    whole.close()
    assert points > 40
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for point in range(1, points + 1):
            stand = make_stand(guard=10.0)
            assert cancel_at_point(stand, backend, point) >= point
            stand.close()
        gc.collect()


@pytest.mark.parametrize("word", ["turn", "close", "stop"])
def test_cancelling_a_waiting_task_cancels_the_wait_and_nothing_else(stand: Stand, backend: str, word: str) -> None:
    """The turn continues and the order stands: a stopped agent is replaced, and gets the queued prompt."""
    argv = stand.fake(
        GREETS
        + take_prompt_steps(1)
        + "- silence: 10s\n"
        + end_message_step("ONE")
        + ENDS
        + "- wait_for: eof\n- silence: 1000s\n"
    )
    steps = 0

    async def host() -> tuple[object, ...]:
        async with open_session(argv, dialect="pi", policy=POLICY) as session:
            turn = session.prompt("one")
            waits = {"turn": turn.outcome, "close": session.close, "stop": session.stop}[word]
            with anyio.CancelScope() as scope:

                def step() -> None:
                    nonlocal steps
                    steps += 1
                    scope.cancel()

                await Stepwise(waits(), step)
            result = await turn
            if word == "close":
                await session.close()
            return scope.cancelled_caught, result.outcome, result.text, session.status

    expected = ("stopped", None, "closed") if word == "close" else ("completed", "ONE", "ready")
    seen = stand.run(host, backend=backend)
    assert (seen[0], steps) == (True, 1)
    assert (seen[1].value, *seen[2:]) == expected
    assert all(is_gone(pid, 0) for pid in stand.pids())


@pytest.mark.slow
def test_a_session_on_the_real_clock_and_an_ordinary_program(backend: str, tmp_path: Path) -> None:
    """Turns, a timeout, a crash and the end, in real time, without the kit's fakes; nothing stays open."""
    program = tmp_path / "pi.py"
    program.write_text(PI, "utf-8")
    policy = Policy(prompt_timeout=0.2, restart_backoff=0.05, close_grace=CEILING)

    async def converse(session: Session) -> list[Any]:
        lines = []
        for text in ("one", "think", "two", "die", "three"):
            result = await session.prompt(text).outcome()
            lines.append((result.outcome.value, result.text))
        return [*lines, session.status]

    async def host() -> list[Any]:
        with anyio.fail_after(CEILING):
            async with open_session([sys.executable, "-S", str(program)], dialect="pi", policy=policy) as session:
                return await converse(session)

    before = list_open_descriptors()
    assert anyio.run(host, backend=backend) == [
        ("completed", "ONE"),
        ("timed_out", None),
        ("completed", "TWO"),
        ("agent_lost", None),
        ("completed", "THREE"),
        "ready",
    ]
    gc.collect()
    assert list_open_descriptors() == before
