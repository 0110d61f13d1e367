"""Owns which settings tell a story that no agent tells: of these nothing is asked of other people's supervisors.

A real agent that gets one prompt is over with its last word: pi's `agent_end`, codex's `turn.completed`, the result of
claude and gemini. Its supervisor may listen on or not, and both are right. Only what claude has begun in the
background brings it to speak again. An agent of plain text has no last word: its exit is its result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_agentproc.harness import Played


_LAST_WORDS = ("answer", "result")
_WORDS = ("say", *_LAST_WORDS)
_BACKGROUND = ("event", "task", "task_done")
"""Events with which a task in the background begins and ends, by the step that has them or as they are."""


def speaks_past_its_end(played: Played) -> bool:
    """Say whether the agent of a run speaks on after its last word, without background work.

    Args:
        played: a run, or a session, whose agent speaks on with each prompt.
    """
    bound = played.bound
    if bound.scenario.is_session or bound.parts or not bound.scenario.dialect_record.says_its_end:
        return False
    has_tasks = "task" in bound.scenario.language.steps_of(bound.scenario.dialect, bound.scenario.mode)
    is_over = False
    for _line, kind, arguments in bound.program["steps"]:
        if kind == "event" and arguments[0] in _BACKGROUND and has_tasks:
            return False
        speaks = kind in _WORDS or kind == "event" or (kind == "drip" and arguments[1] is None)
        if is_over and speaks:
            return True
        is_over = is_over or kind in _LAST_WORDS
    return False
