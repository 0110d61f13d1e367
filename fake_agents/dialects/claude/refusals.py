"""Claude's words about a tool that did not do its work: refused, stopped, never begun. Knows no turn and no line."""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects.claude.forms import REJECTED_TOOL_TEXT
from pytest_agentproc.fake_agents.questions import ANSWER_CANCELLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.questions import ClientQuestion, ClientQuestions


_STOPPED_TOOL_TEXT = (
    " Correction to the text above: this call was stopped while running, not refused before it ran. It may have run in "
    "part or in full, and its changes may have been written. No permission prompt was involved. Work it started "
    "elsewhere (a remote command, a background process) may still be running, so check before starting the same work "
    "again. The instruction to stop and wait still stands."
)


def _find_last_question_before_tool(call: str, questions: ClientQuestions) -> ClientQuestion | None:
    """Find the last question that was asked before that tool began."""
    before = [
        question for question in questions.asked if question.tool == call and question.fields["event"] == "PreToolUse"
    ]
    return before[-1] if before else None


def explain_tool_rejection(call: str, questions: ClientQuestions) -> str:
    """Give the output of a tool that an interrupt ended: had it begun, or was it still asked about?"""
    question = _find_last_question_before_tool(call, questions)
    return (
        REJECTED_TOOL_TEXT
        if question is not None and question.answer == ANSWER_CANCELLED
        else REJECTED_TOOL_TEXT + _STOPPED_TOOL_TEXT
    )


def describe_failed_tool(call: str, error: str, questions: ClientQuestions) -> dict[str, Any] | None:
    """Give the extra fields at the end of a failed tool; None: only the fields of any failure."""
    question = _find_last_question_before_tool(call, questions)
    if question is None or question.answer not in ("", ANSWER_CANCELLED):
        return None
    if question.given_up:
        return {"tool_use_result": f"Error: {error}"}
    return {"tool_use_result": error, "tool_result_meta": [{"id": call, "non_execution_kind": "cancelled"}]}
