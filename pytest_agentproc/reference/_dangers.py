"""Owns the table of dangers by agent: which bundled scenarios try each danger, and why a cell of the table is empty.

A danger that is tried with one agent alone lets a supervisor of another agent pass with the fault. So each danger has a
cell for each dialect and mode, and an empty cell has a reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_agentproc.corpus import split_agent
from pytest_agentproc.reference._bundled_scenarios import read_bundled_scenarios
from pytest_agentproc.vocabulary import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """Something that goes wrong with some supervisors, whatever agent they run.

    Args:
        name: what happens, in a clause.
        rule: the rule that a supervisor breaks if it does not expect this.
        files: the names of the bundled files that try it.
        reasons: why no scenario tries it, by agent as in `list_agents`, or `runs` for every agent of one prompt.
    """

    name: str
    rule: str
    files: tuple[str, ...]
    reasons: Mapping[str, str] = field(default_factory=dict)


_PLAIN_TEXT = "its output is plain text: there is no line of JSON that noise could be near"
_AS_RAW = "its output is the same plain text as that of raw"
_PLAIN_TEXT_IS_ANSWER = "all that it prints is its answer"
_NO_EMPTY_MESSAGE = "it prints no message without words: nothing shows that the answer is empty"
_NO_TOOLS = "its output does not name its tools"
_ONE_OBJECT = "it prints nothing before its one object"
_AS_STREAM = "the danger has nothing to do with the form of the output: gemini stream stands for it"
_AS_TEXT = "the danger has nothing to do with the form of the output: gemini text stands for it"
_SECOND_END = "it ends a turn with a second line, so a first one that is spoilt costs nothing"
_NO_QUESTION = "an agent of one prompt asks nothing"
_OWN_STDIN = "its prompts come on stdin, so a supervisor always gives it a pipe of its own"
_ONE_START = "an agent of one prompt is started once"
_TEXT_IDS = "its requests have texts as ids, and the ids of its client are texts of other forms"

DANGERS = (
    Danger(
        name="the answer has no words, and the agent has spoken before",
        rule="C2",
        files=("empty-answer-is-empty", "session-empty-answer-is-empty"),
        reasons={
            **dict.fromkeys(("raw text", "gemini text"), _PLAIN_TEXT_IS_ANSWER),
            "gemini json": _ONE_OBJECT,
            **dict.fromkeys(("codex exec", "opencode run", "gemini stream", "acp session"), _NO_EMPTY_MESSAGE),
            "codex app-server": _NO_EMPTY_MESSAGE,
        },
    ),
    Danger(
        name="a tool fails, and the agent goes on",
        rule="C1",
        files=("goes-on-after-a-failed-tool", "session-goes-on-after-a-failed-tool"),
        reasons={**dict.fromkeys(("raw text", "gemini text"), _NO_TOOLS), "gemini json": _NO_TOOLS},
    ),
    Danger(
        name="the agent inherits stdin",
        rule="C1",
        files=("stdin-ends-with-the-prompt", "stdin-is-not-the-users"),
        reasons={
            "gemini json": _AS_TEXT,
            "gemini stream": _AS_TEXT,
            **dict.fromkeys(("claude session", "pi rpc", "codex app-server", "acp session"), _OWN_STDIN),
        },
    ),
    Danger(
        name="the task of the supervisor is cancelled",
        rule="T4",
        files=(
            "run-is-cancelled",
            "claude-run-is-cancelled",
            "codex-run-is-cancelled",
            "pi-run-is-cancelled",
            "session-is-cancelled-in-a-turn",
        ),
        reasons={"gemini json": _AS_TEXT, "gemini stream": _AS_TEXT},
    ),
    Danger(
        name="a scope around the supervisor is cancelled",
        rule="T4",
        files=(
            "scope-of-a-run-is-cancelled",
            "scope-of-a-session-is-cancelled-in-a-turn",
            "session-is-cancelled-between-two-turns",
        ),
        reasons={"gemini text": _AS_STREAM, "gemini json": _AS_STREAM},
    ),
    Danger(
        name="a line is no JSON",
        rule="F2",
        files=(
            "noise-between-the-lines",
            "claude-noise-between-the-lines",
            "codex-noise-between-the-lines",
            "gemini-noise-between-the-lines",
            "gemini-json-after-a-brace",
            "session-noise-between-the-lines",
        ),
        reasons={"raw text": _PLAIN_TEXT, "gemini text": _PLAIN_TEXT},
    ),
    Danger(
        name="a line is JSON but no object",
        rule="F2",
        files=("json-that-is-no-object", "gemini-json-that-is-no-object", "session-json-that-is-no-object"),
        reasons={"raw text": _PLAIN_TEXT, "gemini text": _PLAIN_TEXT},
    ),
    Danger(
        name="noise is read at once with the answer",
        rule="F2",
        files=(
            "one-write-of-noise-and-the-answer",
            "gemini-json-one-write-of-noise-and-the-answer",
            "session-one-write-of-noise-and-the-answer",
        ),
        reasons={"raw text": _PLAIN_TEXT, "gemini text": _PLAIN_TEXT},
    ),
    Danger(
        name="half a line is all that the agent prints for a long time",
        rule="A1",
        files=("half-a-line", "byte-a-minute", "session-half-a-line-is-activity"),
        reasons={"gemini text": _AS_RAW, "gemini json": _ONE_OBJECT},
    ),
    Danger(
        name="a character is cut in two",
        rule="F1",
        files=(
            "split-utf8",
            "split-utf8-plain",
            "claude-in-pieces",
            "codex-in-pieces",
            "gemini-in-pieces",
            "gemini-json-cut-anywhere",
            "opencode-in-pieces",
            "session-in-pieces",
        ),
        reasons={"gemini text": _AS_RAW},
    ),
    Danger(
        name="stderr is full before the answer",
        rule="F4",
        files=("stderr-flood", "pi-stderr-flood", "session-stderr-flood"),
        reasons={"gemini text": _AS_STREAM, "gemini json": _AS_STREAM},
    ),
    Danger(
        name="an agent that must be ended ignores TERM",
        rule="T1",
        files=("silent-and-ignores-term", "session-close-kills-an-agent-that-ignores-term"),
        reasons={"gemini text": _AS_STREAM, "gemini json": _AS_STREAM},
    ),
    Danger(
        name="the machine sleeps while the agent works",
        rule="A1",
        files=(
            "machine-sleeps-while-the-agent-works",
            "machine-sleeps-within-the-longest-runtime",
            "session-machine-sleeps-in-a-turn",
        ),
        reasons={"gemini text": _AS_STREAM, "gemini json": _AS_STREAM},
    ),
    Danger(
        name="the event loop is blocked until after the limit",
        rule="A4",
        files=(
            "answers-while-the-loop-is-blocked",
            "exits-while-the-loop-is-blocked",
            "session-answers-while-the-loop-is-blocked",
            "session-acknowledges-while-the-loop-is-blocked",
        ),
        reasons={"gemini text": _AS_RAW, "gemini json": _AS_STREAM},
    ),
    Danger(
        name="a question is answered at once, within its turn",
        rule="P7",
        files=("session-question-is-allowed-at-once", "session-extension-asks"),
        reasons={"runs": _NO_QUESTION},
    ),
    Danger(
        name="the agent goes on, or dies, while its question is open",
        rule="P7",
        files=("session-agent-dies-while-it-asks", "session-turn-ends-while-it-asks"),
        reasons={"runs": _NO_QUESTION, "pi rpc": "a supervisor refuses its questions at once, so none is open"},
    ),
    Danger(
        name="a question offers its options in another order",
        rule="P7",
        files=("session-options-begin-with-a-refusal", "session-options-end-with-a-refusal"),
        reasons={
            "runs": _NO_QUESTION,
            "claude session": "its questions have no list of options: an answer is a word",
            "pi rpc": "a supervisor refuses its questions, and chooses no option",
        },
    ),
    Danger(
        name="a question has the id of the prompt at work",
        rule="P7",
        files=("acp-session-question-has-the-id-of-the-prompt",),
        reasons={
            "runs": _NO_QUESTION,
            "claude session": _TEXT_IDS,
            "pi rpc": _TEXT_IDS,
            "codex app-server": "it answers the request of a prompt at once, so none waits while it asks",
        },
    ),
    Danger(
        name="words on stderr without a line end come between the lines of the answer",
        rule="F4",
        files=(
            "stderr-before-the-end-of-the-answer",
            "claude-stderr-before-its-result",
            "session-stderr-before-the-end-of-the-answer",
        ),
        reasons={
            "raw text": _PLAIN_TEXT,
            "gemini text": _PLAIN_TEXT,
            "gemini json": _ONE_OBJECT,
            "pi rpc": _SECOND_END,
            "codex app-server": _SECOND_END,
        },
    ),
    Danger(
        name="an agent dies in half a line, and another one takes its place",
        rule="P6",
        files=("session-dies-in-half-a-line",),
        reasons={"runs": _ONE_START},
    ),
    Danger(
        name="a new agent is started without the environment of the first one",
        rule="P6",
        files=("session-restart-keeps-its-environment",),
        reasons={"runs": _ONE_START},
    ),
    Danger(
        name="the terminal of the supervisor is closed while the agent works",
        rule="T4",
        files=("run-loses-its-terminal", "session-loses-its-terminal-in-a-turn"),
        reasons={"gemini text": _AS_STREAM, "gemini json": _AS_STREAM},
    ),
)


def list_agents() -> tuple[str, ...]:
    """Give the name of each dialect and mode, as the key `agent` takes it."""
    return tuple(
        f"{name} {mode}"
        for name, dialect in DIALECTS.items()
        for mode in (*dialect.decoders, *dialect.session_protocols)
    )


def find_trials(danger: Danger) -> dict[str, tuple[str, ...]]:
    """Give the scenarios that try a danger, by agent."""
    tried = [scenario for scenario in read_bundled_scenarios() if split_agent(scenario.id)[0] in danger.files]
    found = {agent: tuple(scenario.id for scenario in tried if scenario.agent == agent) for agent in list_agents()}
    return {agent: those for agent, those in found.items() if those}


def find_reason(danger: Danger, agent: str) -> str:
    """Give the reason why no scenario tries a danger with an agent; "" if there is none."""
    dialect, _, mode = agent.partition(" ")
    is_session = mode in DIALECTS[dialect].session_protocols
    return danger.reasons.get(agent) or danger.reasons.get("" if is_session else "runs", "")
