"""Owns the steps of background work: tasks that start and end, turns that the agent starts by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._events import is_told
from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Flag, Text, Whole
from pytest_agentproc.scenario._script import Steps
from pytest_agentproc.scenario._words import shorten, unknown

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check
    from pytest_agentproc.scenario._nodes import Node
    from pytest_agentproc.scenario._script import ProgramStep, Scope, Step

__all__ = ["BACKGROUND_TURN", "TASK", "TASK_DONE", "build_background_turn"]


def _task(values: dict[str, Any], node: Node, what: str, check: Check) -> dict[str, Any]:
    if is_told("task", node, check):
        number = values["id"]
        if number in check.tasks:
            check.at(node, f'{what}.id "{shorten(number)}" is taken by the task in line {check.tasks[number]}')
        check.tasks.setdefault(number, node.line)
        if "tool" in values and values["tool"] not in check.tools:
            known = unknown("tool", values["tool"], check.tools) if check.tools else "no tool was started before"
            check.at(node, f"{what}.tool: {known}")
        if values.get("foreground"):
            check.foreground.setdefault(number, node.line)
            if "tool" not in values:
                check.at(node, "a task in the foreground is a tool that takes long: write which, tool: ID")
    return {"kind": "local_bash", **values}


def _is_known(number: str, node: Node, check: Check) -> None:
    if number not in check.tasks:
        check.at(node, unknown("task", number, check.tasks) if check.tasks else "no task was started before")


def _task_done(values: dict[str, Any], node: Node, _what: str, check: Check) -> dict[str, Any]:
    if is_told("task_done", node, check):
        _is_known(values["id"], node, check)
        if values.get("folded"):
            _check_folded(values["id"], node, check)
        if "exit_code" in values and values.get("status") == "stopped":
            check.at(node, "a task that was stopped has no exit code: leave exit_code out")
    return {"status": "completed", "folded": False, **values}


def _check_folded(number: str, node: Node, check: Check) -> None:
    if not check.tools:
        check.at(node, "a task is folded into a turn while a tool runs: no tool was started before")
    check.folded.setdefault(number, node.line)


def _background_turn(values: dict[str, Any], node: Node, _what: str, check: Check) -> dict[str, Any]:
    if is_told("background_turn", node, check):
        number = values["task"]
        _is_known(number, node, check)
        if number in check.folded:
            line = check.folded[number]
            check.at(node, f'no turn follows the task "{shorten(number)}": line {line} has it folded into another')
        if number in check.foreground:
            line = check.foreground[number]
            check.at(node, f'no turn follows the task "{shorten(number)}": line {line} has it in the foreground')
    return {"empty_result_first": False, **values}


def build_background_turn(step: Step, scope: Scope) -> list[ProgramStep]:
    """Compile to the turn's beginning and what is told in it."""
    value = step.value
    begin = {"task": value["task"], "empty_result_first": value["empty_result_first"]}
    told = [(step.line, "answer", (value["answer"],))] if "answer" in value else scope.steps(value["do"])
    return [(step.line, "event", (step.name, begin)), *told]


_ID = Text("ID", may_be_empty=False)

TASK = Either(
    _ID,
    Fields(
        (
            Key("id", _ID, "what task_done and background_turn call it", required=True),
            Key("kind", Choice(("local_bash", "local_agent")), "a command or a sub-agent; local_bash if absent"),
            Key("tool", _ID, "the tool that starts it, whose end is told apart; one of its own if absent"),
            Key("foreground", Flag(), "whether it is that tool itself, which takes long; false if absent"),
        ),
        finish=_task,
    ),
    key="id",
)
TASK_DONE = Either(
    _ID,
    Fields(
        (
            Key("id", _ID, "the task's id", required=True),
            Key("status", Choice(("completed", "failed", "stopped")), "how it ended; completed if absent"),
            Key("exit_code", Whole(0, 255, "CODE"), "the command's; 0 if it completed, 1 if it failed, if absent"),
            Key("signalled", Flag(), "whether a signal to the agent ended it, too; false if absent"),
            Key("folded", Flag(), "whether the turn in which a tool runs takes it up: no background turn follows"),
        ),
        finish=_task_done,
    ),
    key="id",
)
BACKGROUND_TURN = Fields(
    (
        Key("task", _ID, "the task that it is about", required=True),
        Key("answer", Text(), "its text and completion"),
        Key("do", Steps(), "its steps instead, a completion among them"),
        Key("empty_result_first", Flag(), "whether a turn with an empty result comes first; false if absent"),
    ),
    one_of=("answer", "do"),
    finish=_background_turn,
)
