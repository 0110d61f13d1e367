"""Owns the steps that only some dialects can tell: thoughts, tools, events as they stand. Knows no wire format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Data, Flag, ListOf, Text, Whole
from pytest_agentproc.scenario._words import choices, shorten, unknown

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check
    from pytest_agentproc.scenario._nodes import Node
    from pytest_agentproc.scenario._script import ProgramStep, Scope, Step

__all__ = [
    "BEGIN",
    "DELTA",
    "EVENT",
    "EVENTS",
    "NOTICE",
    "PLAN",
    "THINK",
    "TOOL",
    "TOOL_DONE",
    "build_event",
    "check_dialects",
    "is_told",
]

EVENTS = {
    ("claude", "print"): (
        *("nested", "delta", "think", "tool", "tool_done", "event"),
        *("task", "task_done", "background_turn"),
    ),
    ("claude", "session"): (
        *("nested", "delta", "think", "tool", "tool_done", "event"),
        *("task", "task_done", "background_turn", "ask"),
    ),
    ("pi", "json"): ("begin", "delta", "think", "tool", "tool_done", "event"),
    ("pi", "rpc"): ("delta", "think", "tool", "tool_done", "event", "ask"),
    ("acp", "session"): ("delta", "think", "plan", "tool", "tool_done", "event", "ask", "request"),
    ("codex", "exec"): ("begin", "notice", "think", "plan", "tool", "tool_done", "event"),
    ("gemini", "stream"): ("begin", "delta", "tool", "tool_done", "event"),
}
"""Every dialect and mode that has such steps, with their names; `nested` is what a sub-agent says."""

_DIALECTS = {"parent": "claude", "more": "claude", "allowed_by": "claude", "kind": "acp", "locations": "acp"}
"""What only one dialect can tell of a tool."""

_TOOL: dict[str, Any] = {"input": {}}
_TOOL_DONE: dict[str, Any] = {"output": "", "error": None}


def build_event(step: Step, _scope: Scope) -> list[ProgramStep]:
    """Compile to `event`: what is told, and its value; a thought of the agent's own is its text alone."""
    is_own = step.name == "think" and "parent" not in step.value
    return [(step.line, "event", (step.name, step.value["text"] if is_own else step.value))]


def is_told(name: str, node: Node, check: Check) -> bool:
    """Say whether the dialect has the step; report it if not. Of a dialect that is itself wrong nothing is said."""
    able = [f"{dialect} {mode}" for (dialect, mode), names in EVENTS.items() if name in names]
    for added in check.language.dialects.values():
        able += [f"{added.dialect.name} {mode}" for mode, names in added.events.items() if name in names]
    if not check.mode or f"{check.dialect} {check.mode}" in able:
        return True
    known = f"known by {choices(able)}" if able else "no dialect here has it"
    check.at(node, f"the dialect {check.dialect} has no {name} in mode {check.mode}: {known}")
    return False


@dataclass(frozen=True)
class _Told(Text):
    """A text, in a dialect that has the step."""

    step: str = ""

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the text."""
        return super().read(node, what, check) if is_told(self.step, node, check) else ""


@dataclass(frozen=True)
class _Begin(Choice):
    """A turn, in a dialect that has something to print as it begins."""

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the word."""
        return super().read(node, what, check) if is_told("begin", node, check) else ""


@dataclass(frozen=True)
class _Plan(ListOf):
    """A list of entries, in a dialect that tells plans."""

    def read(self, node: Node, what: str, check: Check) -> list[Any]:
        """Read every entry."""
        return super().read(node, what, check) if is_told("plan", node, check) else []


@dataclass(frozen=True)
class _Event(Data):
    """An event, in a dialect of events."""

    def read(self, node: Node, what: str, check: Check) -> Any:
        """Read the mapping."""
        return super().read(node, what, check) if is_told("event", node, check) else {}


def _tool(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    if is_told("tool", node, check):
        number = values["id"]
        if number in check.tools:
            check.at(node, f'{what}.id "{shorten(number)}" is taken by the tool in line {check.tools[number]}')
        check_dialects(values, node, what, check)
        check.tools.setdefault(number, node.line)
    return {**_TOOL, **values}


def check_dialects(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    """Report what only another dialect has, and a parent that is no tool."""
    for key in [key for key, dialect in _DIALECTS.items() if key in values and check.dialect != dialect]:
        check.at(node, f"the dialect {check.dialect} cannot tell it: leave {key} out of {what}")
    if check.dialect == "claude" and "parent" in values and values["parent"] not in check.tools:
        known = unknown("tool", values["parent"], check.tools) if check.tools else "no tool was started before"
        check.at(node, f"{what}.parent: {known}")
    return values


def _entry(values: dict[str, Any], node: Node, what: str, check: Check) -> str | dict[str, Any]:
    """Make an entry of a plan: its text, unless there is more to tell."""
    if len(values) == 1:
        return str(values["content"])
    if check.dialect != "acp":
        check.at(node, f"the dialect {check.dialect} cannot tell it: write the text of {what} alone")
    return values


def _tool_done(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    if is_told("tool_done", node, check):
        if values["id"] not in check.tools:
            check.at(node, unknown("tool", values["id"], check.tools) if check.tools else "no tool was started before")
        own = check.tools_done.setdefault(values["id"], node.line)
        if (line := check.tools_done_beside.get(values["id"], own)) != node.line:
            check.at(
                node, f'the tool "{shorten(values["id"])}" has ended in line {line}: write an event for a second end'
            )
        if "refused" in values and check.dialect != "claude":
            check.at(node, f"the dialect {check.dialect} cannot tell it: leave refused out of {what}")
        elif values.get("refused") and values.get("error") is None:
            check.at(node, f"{what} is refused without a word: write error, too")
    return {**_TOOL_DONE, **values}


_ID = Text("ID", may_be_empty=False)
_STATUSES = ("pending", "in_progress", "completed")
_TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
_LOCATION = Either(
    Text("PATH", may_be_empty=False),
    Fields(
        (
            Key("path", Text(may_be_empty=False), "the file", required=True),
            Key("line", Whole(0, 2**31 - 1), "a line in it"),
        )
    ),
    key="path",
)

BEGIN = _Begin(("turn",))
NOTICE = _Told(step="notice")
DELTA = _Told(step="delta")
_PARENT = Key("parent", _ID, "the tool whose sub-agent thinks it; the agent itself if absent (claude)")
THINK = Either(
    _Told(step="think"),
    Fields((Key("text", _Told(step="think"), "the thought", required=True), _PARENT), finish=check_dialects),
    key="text",
)
PLAN = _Plan(
    Either(
        Text("ENTRY", may_be_empty=False),
        Fields(
            (
                Key("content", Text(may_be_empty=False), "what is to be done", required=True),
                Key("status", Choice(_STATUSES), "how far it is; pending if absent (acp)"),
                Key("priority", Choice(("high", "medium", "low")), "how urgent it is; medium if absent (acp)"),
            ),
            finish=_entry,
        ),
        key="content",
    )
)
EVENT = _Event()
TOOL = Fields(
    (
        Key("id", _ID, "what tool_done calls it", required=True),
        Key("name", Text("NAME", may_be_empty=False), "the tool's name", required=True),
        Key("input", Data(), "its arguments; {} if absent"),
        Key("parent", _ID, "the tool whose sub-agent uses it; the agent itself if absent (claude)"),
        Key("allowed_by", Choice(("rule", "subcommands")), "why nobody is asked; rule if absent (claude)"),
        Key("more", Flag(), "whether the next tool is asked for by the same message; false if absent (claude)"),
        Key("kind", Choice(_TOOL_KINDS), "what it does; other if absent (acp)"),
        Key("locations", ListOf(_LOCATION), "the files that it is about; none if absent (acp)"),
    ),
    finish=_tool,
)
TOOL_DONE = Either(
    _ID,
    Fields(
        (
            Key("id", _ID, "the tool's id", required=True),
            Key("output", Text(), "what it gave"),
            Key("error", Text(), "why it failed"),
            Key("refused", Flag(), "whether it refused its input, and never ran; false if absent (claude)"),
        ),
        finish=_tool_done,
    ),
    key="id",
)
