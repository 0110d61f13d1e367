"""Owns scripts: a list of steps as it is read, and as it is compiled. Refuses to know any single step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._elsewhere import STEP_WORDS
from pytest_agentproc.scenario._expressions import Expression, NotApplicable, Unfit, evaluate
from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._nodes import Mapping as MappingNode
from pytest_agentproc.scenario._nodes import Node, Scalar, Sequence, describe, inline
from pytest_agentproc.scenario._traps import quote
from pytest_agentproc.scenario._words import choices, unknown

if TYPE_CHECKING:
    from fractions import Fraction

    from pytest_agentproc.scenario._check import Check

__all__ = ["Entry", "Noting", "ProgramStep", "Scope", "Step", "Steps", "Table"]

ProgramStep = tuple[int, str, tuple[Any, ...]]


@dataclass(frozen=True)
class Step:
    """One step as the file has it: its line, its name, its value, and the value of its second key if it takes one."""

    line: int
    name: str
    value: Any
    also: Any = None


class Noting(dict[str, "int | Fraction | None"]):
    """Limits that note which of them are asked for."""

    def __init__(self, limits: Mapping[str, int | Fraction | None]) -> None:
        super().__init__(limits)
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> int | Fraction | None:
        """Give a limit."""
        self.used.add(name)
        return super().__getitem__(name)


@dataclass(frozen=True)
class Scope:
    """What compiling needs: the limits of the subject, the table of steps, and which limits it does not state."""

    limits: Mapping[str, int | Fraction | None]
    table: Table
    unstated: frozenset[str] = frozenset()
    _taken: list[int] = field(default_factory=list)

    def steps(self, steps: tuple[Step, ...]) -> list[ProgramStep]:
        """Compile a list of steps, in order."""
        return [compiled for step in steps for compiled in self._built(step)]

    def _built(self, step: Step) -> list[ProgramStep]:
        build = self.table[step.name].build
        assert build is not None, "what stands for other steps gave way to them as it was read"
        return build(step, self)

    def ns(self, time: Expression | str | None) -> int | None:
        """Give a time in nanoseconds; None for a word that stands for no end.

        Raises:
            NotApplicable: the subject lacks a limit that the time names, or under its limits it is no time.
        """
        return self.exact(time) if isinstance(time, Expression) else None

    def size(self, size: Expression | int) -> int:
        """Give a size in bytes; raises as `ns`."""
        return size if isinstance(size, int) else self.exact(size)

    def takes(self, size: int, most: int) -> bool:
        """Count the bytes that a script holds; return whether there are no more than `most`."""
        self._taken.append(size)
        return sum(self._taken) <= most

    def exact(self, time: Expression) -> int:
        """Give a time in nanoseconds, or a size in bytes; raises as `ns`."""
        try:
            return evaluate(time, self.limits)
        except Unfit as error:
            raise NotApplicable(f"other limits ({error})", time.line) from None


Build = Callable[[Step, Scope], list[ProgramStep]]


@dataclass(frozen=True, kw_only=True)
class Entry(Key):
    """The table's entry for a step: how it is compiled, and the second key that it takes.

    One that is not compiled stands for others: its value is those.
    """

    build: Build | None = None
    also: Key | None = None


Table = Mapping[str, Entry]


@dataclass(frozen=True)
class Steps:
    """A list of steps."""

    label: str = "steps"

    def read(self, node: Node, what: str, check: Check) -> tuple[Step, ...]:
        """Read every item; what stands behind the end of a script is a mistake."""
        if not isinstance(node, Sequence):
            check.wrong(
                node, what, "a list of steps", 'write "- " before each step' if isinstance(node, MappingNode) else ""
            )
            return ()
        steps: list[Step] = []
        outside, beside = check.tools_done, check.tools_done_beside
        check.tools_done, check.tools_done_beside = dict(outside), {}
        for item in node.items:
            last = steps[-1] if steps else None
            if last is not None and last.name in ("exit", "die"):
                check.at(item, f"this step is never reached: {last.name} in line {last.line} ends the script")
            step = _step(item, check)
            if step is not None and check.steps[step.name].build is None:
                steps += [replace(one, line=step.line) for one in step.value]
            elif step is not None:
                steps.append(step)
        if not steps or steps[-1].name not in ("exit", "die"):  # else nothing is played after this branch
            beside |= {**check.tools_done_beside, **check.tools_done}
        check.tools_done, check.tools_done_beside = outside, beside
        return tuple(steps)


def _step(node: Node, check: Check) -> Step | None:
    if not isinstance(node, MappingNode):
        check.at(node, f"a step is a name with a value, not {describe(node)}: write {_as_step(node, check)}")
        return None
    known = [(name, value) for name, value in node.pairs if name.text in check.steps]
    if not known:
        for name, _ in node.pairs[:1]:
            check.at(name, unknown("step", name.text, check.steps, STEP_WORDS))
        if not node.pairs:
            check.at(node, "a step is a name with a value, not an empty mapping")
        return None
    name, value = known[0]
    entry = check.steps[name.text]
    others = [(key, other) for key, other in node.pairs if key is not name]
    result = entry.kind.read(value, name.text, check)
    also = None
    for key, other in others:
        if entry.also is not None and key.text == entry.also.name:
            also = entry.also.kind.read(other, f"{name.text} ... {key.text}", check)
    extra = [pair for pair in others if entry.also is None or pair[0].text != entry.also.name]
    if extra:
        check.at(node, _too_many(entry, (name, value), extra, check))
    elif entry.also is not None and entry.also.required and len(others) == 0:
        check.at(node, f"{name.text} needs the key {entry.also.name} beside it: {entry.also.doc}")
    return Step(name.line, name.text, result, also)


def _as_step(node: Node, check: Check) -> str:
    found = re.fullmatch(r"(\w+)\s*[:=]?\s*(.*)", node.text, re.DOTALL) if isinstance(node, Scalar) else None
    if found is None or found[1] not in check.steps:
        return '"name: value"'
    return quote(f"{found[1]}: {found[2] or '...'}")


def _too_many(entry: Entry, own: tuple[Scalar, Node], extra: list[tuple[Scalar, Node]], check: Check) -> str:
    name, value = own
    count = {1: "two", 2: "three"}.get(len(extra), str(len(extra) + 1))
    words = [name.text, *(key.text for key, _ in extra)]
    found = f"one step, {count} keys ({', '.join(words)})"
    long_form = entry.kind.mapping if isinstance(entry.kind, Either) else entry.kind
    own_keys = [key.name for key in long_form.keys] if isinstance(long_form, Fields) else []
    if all(key.text in own_keys for key, _ in extra) and isinstance(value, Scalar):
        pairs = [(own_keys[0], value), *((key.text, other) for key, other in extra)]
        return f"{found}: write {name.text}: {{{', '.join(f'{key}: {inline(node)}' for key, node in pairs)}}}"
    stray = [key.text for key, _ in extra if key.text not in check.steps]
    if stray:
        return f"{found}: {unknown('key in a step', stray[0], [*check.steps, *own_keys])}"
    return f"{found}: write {choices([str(count)], 'and')} items, one for each"
