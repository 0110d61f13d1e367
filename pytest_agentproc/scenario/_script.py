"""Owns scripts: a list of steps as it is read and compiled, and the step that starts a descendant."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._fields import (
    ChoiceType,
    DurationType,
    EitherType,
    FieldsType,
    FlagType,
    ListOfType,
    NameType,
    SignalType,
    TimeType,
    WholeNumberType,
)
from pytest_agentproc.scenario._file_check import Key, WrittenStep
from pytest_agentproc.scenario._suggestions import (
    describe_unknown_word,
    join_choices,
    shorten_text,
)
from pytest_agentproc.scenario._yaml import (
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    describe_node,
    format_node_inline,
    quote_for_message,
)
from pytest_agentproc.vocabulary import SIGNAL_NUMBER_BY_NAME, find_remedy, parse_signal_name

if TYPE_CHECKING:
    from pytest_agentproc.scenario._file_check import CompileContext, FileCheck, ProgramStep, StepEntry


@dataclass(frozen=True)
class ScriptStepsType:
    """A list of steps."""

    label: str = "steps"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> tuple[WrittenStep, ...]:
        """Read every item; an item after the end of a script is a mistake."""
        if not isinstance(node, YamlSequence):
            check.report_wrong_value(
                node, what, "a list of steps", _suggest_list_form(check) if isinstance(node, YamlMapping) else ""
            )
            return ()
        steps: list[WrittenStep] = []
        outside, beside = check.tools_done, check.tools_done_beside
        check.tools_done, check.tools_done_beside = dict(outside), {}
        for item in node.items:
            last = steps[-1] if steps else None
            if last is not None and last.name in ("exit", "die"):
                check.report_at(item, f"this step is never reached: {last.name} in line {last.line} ends the script")
            step = _read_step(item, check)
            if step is not None and check.steps[step.name].build is None:
                steps += [replace(member, line=step.line) for member in step.value]
            elif step is not None:
                steps.append(step)
        if not steps or steps[-1].name not in ("exit", "die"):  # else nothing is played after this branch
            beside |= {**check.tools_done_beside, **check.tools_done}
        check.tools_done, check.tools_done_beside = outside, beside
        return tuple(steps)


def _read_step(node: YamlNode, check: FileCheck) -> WrittenStep | None:
    if not isinstance(node, YamlMapping):
        check.report_at(
            node, f"a step is a name with a value, not {describe_node(node)}: {_suggest_step_form(node, check)}"
        )
        return None
    known = [(name, value) for name, value in node.pairs if name.text in check.steps]
    if not known:
        for name, _ in node.pairs[:1]:
            check.report_at(name, describe_unknown_word("step", name.text, check.steps, kind="step"))
        if not node.pairs:
            check.report_at(node, "a step is a name with a value, not an empty mapping")
        return None
    name, value = known[0]
    entry = check.steps[name.text]
    others = [(key, other) for key, other in node.pairs if key is not name]
    result = entry.kind.read_node(value, name.text, check)
    also = None
    for key, other in others:
        if entry.also is not None and key.text == entry.also.name:
            also = entry.also.kind.read_node(other, f"{name.text} ... {key.text}", check)
    extra = [pair for pair in others if entry.also is None or pair[0].text != entry.also.name]
    if extra:
        check.report_at(node, _describe_extra_keys(entry, (name, value), extra, check))
    elif entry.also is not None and entry.also.required and len(others) == 0:
        check.report_at(node, f"{name.text} needs the key {entry.also.name} beside it: {entry.also.doc}")
    return WrittenStep(name.line, name.text, result, also)


def _suggest_list_form(check: FileCheck) -> str:
    return 'write "- " before each step' if check.paths is None else "write [{...}, ...]"


def _suggest_step_form(node: YamlNode, check: FileCheck) -> str:
    """Say what to write in place of what is no mapping."""
    is_python = check.paths is not None
    is_script = isinstance(node, YamlSequence) and any(isinstance(item, YamlMapping) for item in node.items)
    if is_script or (isinstance(node, YamlScalar) and node.text.startswith("- ")):
        return find_remedy("step", "retry")
    found = re.fullmatch(r"(\w+)\s*[:=]?\s*(.*)", node.text, re.DOTALL) if isinstance(node, YamlScalar) else None
    word, rest = (found[1], found[2] or "...") if found else ("", "")
    if word not in check.steps:
        return find_remedy("step", word) or ('write {"name": value}' if is_python else 'write "name: value"')
    return (
        f'write {{"{word}": {quote_for_message(rest)}}}'
        if is_python
        else f"write {quote_for_message(f'{word}: {rest}')}"
    )


def _describe_extra_keys(
    entry: StepEntry, own: tuple[YamlScalar, YamlNode], extra: list[tuple[YamlScalar, YamlNode]], check: FileCheck
) -> str:
    name, value = own
    count = {1: "two", 2: "three"}.get(len(extra), str(len(extra) + 1))
    words = [name.text, *(key.text for key, _ in extra)]
    found = f"one step, {count} keys ({', '.join(words)})"
    long_form = entry.kind.mapping if isinstance(entry.kind, EitherType) else entry.kind
    own_keys = [key.name for key in long_form.keys] if isinstance(long_form, FieldsType) else []
    if all(key.text in own_keys for key, _ in extra) and isinstance(value, YamlScalar):
        pairs = [(own_keys[0], value), *((key.text, other) for key, other in extra)]
        if check.paths is not None:
            inner = ", ".join(f'"{key}": {format_node_inline(node)}' for key, node in pairs)
            return f'{found}: write {{"{name.text}": {{{inner}}}}}'
        inner = ", ".join(f"{key}: {format_node_inline(node)}" for key, node in pairs)
        return f"{found}: write {name.text}: {{{inner}}}"
    stray = [key.text for key, _ in extra if key.text not in check.steps]
    if stray:
        return f"{found}: {describe_unknown_word('key in a step', stray[0], [*check.steps, *own_keys])}"
    return f"{found}: write {join_choices([str(count)], 'and')} items, one for each"


_PARENT_NAME = "parent"
_RESERVED_PROCESS_NAMES = ("agent", "caller", "supervisor", "tree", _PARENT_NAME)


def compile_spawn_step(step: WrittenStep, scope: CompileContext) -> list[ProgramStep]:
    """Compile to `spawn`, with the child's own steps if it has a script."""
    value = step.value
    child = {
        "id": value["id"],
        "how": value.get("how", "same_group"),
        "inherits": list(value.get("inherits", ())),
        "ignores_signals": value.get("ignores_signals", False),
        "for": scope.evaluate_time(value.get("for")),
        **{flag: True for flag in _SPAWN_FLAG_NAMES if value.get(flag)},
    }
    if child["how"] == _REFORK_SPAWN_KIND:
        child["every"] = scope.evaluate_expression(value["every"]) if "every" in value else _DEFAULT_REFORK_INTERVAL_NS
        child["heads"] = value.get("heads", 1)
    steps = scope.compile_steps(value["script"]) if "script" in value else None
    return [(step.line, "spawn", (child, steps))]


_REFORK_SPAWN_KIND = "refork"
_ORPHANING_SPAWN_KINDS = ("double_fork", "daemon", "launcher", _REFORK_SPAWN_KIND)
_SPAWN_KINDS = ("same_group", "own_group", "new_session", *_ORPHANING_SPAWN_KINDS)
_MEANING_OF_SPAWN_KINDS = (
    ("same_group", "an ordinary child; a signal to the process group of the agent reaches it"),
    ("own_group", "the leader of a process group; a walk from parent to child finds it"),
    (
        "new_session",
        "the leader of a session; found by a walk from its living parents, later by containment subreaper or keeper",
    ),
    ("double_fork", "an orphan in the session of the agent; containment group finds it"),
    ("daemon", "an orphan in a session whose leader has exited; containment subreaper or keeper finds it"),
    ("launcher", "a program that another program started; containment subreaper or keeper finds it"),
    ("refork", "it forks itself again and again; containment keeper finds it"),
)
_DEFAULT_REFORK_INTERVAL_NS = 100_000_000
"""Nanoseconds between two forks of what re-forks, unless the file says otherwise."""

_INHERITABLE_STREAMS = ("stdout", "stderr", "stdin")
_SPAWN_FLAG_NAMES = ("closed_fds", "clear_env", "stopped", "zombie", "subreaper")


def _validate_spawn(values: dict[str, Any], node: YamlNode, what: str, check: FileCheck) -> dict[str, Any]:
    """Look for what does not go together."""
    how = values.get("how", _SPAWN_KINDS[0])
    for name in ("every", "heads"):
        if name in values and how != _REFORK_SPAWN_KIND:
            check.report_at(
                node, f"{what} has {name}, and how: {how} forks once: write how: refork, or leave {name} out"
            )
    for name in ("script", "stopped", "subreaper"):
        if how == _REFORK_SPAWN_KIND and values.get(name) not in (None, False):
            check.report_at(node, f"{what} has {name}, and what re-forks only forks and exits: leave {name} out")
    if values.get("zombie") and how in _ORPHANING_SPAWN_KINDS:
        alternatives = join_choices([how for how in _SPAWN_KINDS if how not in _ORPHANING_SPAWN_KINDS])
        check.report_at(
            node, f"{what} is a zombie at its end, and how: {how} has no parent then: write how: {alternatives}"
        )
    if "for" in values and "script" in values:
        check.report_at(node, f"{what} has both for and script: the end of its script is the end of the process")
    return values


SPAWN_FIELDS = FieldsType(
    (
        Key("id", NameType(), "its name in expect and in the timeline; child1, child2, ... if absent"),
        Key(
            "how",
            ChoiceType(_SPAWN_KINDS, "spawn kind", _MEANING_OF_SPAWN_KINDS),
            "how it leaves its parent; same_group if absent",
        ),
        Key(
            "every",
            TimeType(),
            "refork: how long each of it lives before the next; 100ms if absent, 0s is for real time",
        ),
        Key(
            "heads",
            WholeNumberType(1, 64),
            "refork: this many of it at a time, each with its own followers; 1 if absent",
        ),
        Key(
            "inherits",
            ListOfType(ChoiceType(_INHERITABLE_STREAMS), unique=True),
            "the streams that it has, too; none if absent",
        ),
        Key("ignores_signals", FlagType(), "whether it catches and ignores TERM, INT and HUP"),
        Key("closed_fds", FlagType(), "whether it closes all that it inherited beside the standard streams"),
        Key("clear_env", FlagType(), "whether its environment is empty"),
        Key("stopped", FlagType(), "whether it stops itself at its birth, as by SIGSTOP, until CONT or KILL"),
        Key("zombie", FlagType(), "whether its parent does not wait for it: it stays a zombie until its parent ends"),
        Key("subreaper", FlagType(), "whether it adopts what its descendants let go of"),
        Key("for", DurationType(), "how long it lives; for ever if absent"),
        Key("script", ScriptStepsType(), "the steps of the child, in place of `for`; their end ends the child"),
    ),
    finish=_validate_spawn,
    synonyms="spawn key",
)


class _SpawnValueType:
    """An id, or the long form. The name is given away before the child's own script is read: names follow the file."""

    label = f"ID or {SPAWN_FIELDS.label}"
    form = SPAWN_FIELDS
    shape = EitherType(NameType(), SPAWN_FIELDS, key="id")

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Read either form into the values of the long one, the id among them."""
        before = len(check.problems)
        if isinstance(node, YamlScalar):
            name = _register_process_name(NameType().read_node(node, what, check), node, what, check)
            if len(check.problems) == before:
                check.inherits[name] = (node, ())
            return {"id": name}
        # A list of one mapping is refused below, but the name in it is known.
        named = node.items[0] if isinstance(node, YamlSequence) and len(node.items) == 1 else node
        given = {key.text: value for key, value in named.pairs} if isinstance(named, YamlMapping) else {}
        own = given.get("id")
        word = own.text if isinstance(own, YamlScalar) else _choose_next_child_name(check)
        name = _register_process_name(word, own or node, what, check)
        check.depth += 1
        above, check.process = check.process, name
        values = SPAWN_FIELDS.read_node(node, what, check)
        check.process = above
        check.depth -= 1
        if values is None or len(check.problems) > before:
            return None
        if values.get("how") in _ORPHANING_SPAWN_KINDS:
            check.orphans[name] = values["how"]
        check.inherits[name] = (given.get("inherits", node), tuple(values.get("inherits", ())))
        return {**values, "id": name}


SPAWN_STEP_TYPE = _SpawnValueType()


def _register_process_name(name: str, node: YamlNode, what: str, check: FileCheck) -> str:
    if name in _RESERVED_PROCESS_NAMES:
        check.report_at(node, f'{what}.id cannot be "{name}": records call another by that name')
    elif name in check.sessions:
        check.report_at(
            node, f'{what}.id "{shorten_text(name)}" is taken by the session in line {check.sessions[name]}'
        )
    elif name in check.spawned:
        check.report_at(node, f'{what}.id "{shorten_text(name)}" is taken by the spawn in line {check.spawned[name]}')
    elif name:
        check.spawned[name] = node.line
        check.parents[name] = check.process or check.session
    return name


@dataclass(frozen=True)
class _ChildNameType(NameType):
    """A child of the process whose script it is; where it is spawned may come later in the file."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the name."""
        name = super().read_node(node, what, check)
        if name:
            check.meant.append((node, name, check.process or check.session))
        return name


@dataclass(frozen=True)
class _ChildOrParentNameType(_ChildNameType):
    """A child, or in a spawned process its parent."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the name."""
        if not (isinstance(node, YamlScalar) and node.text == _PARENT_NAME):
            return super().read_node(node, what, check)
        if not check.depth:
            check.report_at(node, f"{what}: the agent has no parent here: only a spawned process can name its parent")
        check.meant.append((node, _PARENT_NAME, check.process))
        return _PARENT_NAME


AWAITED_EXIT_VALUE_TYPE = _ChildOrParentNameType()
KILL_STEP_TYPE = EitherType(
    _ChildOrParentNameType(),
    FieldsType(
        (
            Key("id", _ChildOrParentNameType(), "the child, or in a spawned process its `parent`", required=True),
            Key("signal", SignalType((*SIGNAL_NUMBER_BY_NAME, "STOP", "CONT")), "the signal; KILL if absent"),
        )
    ),
    key="id",
)


def compile_kill_step(step: WrittenStep, _scope: CompileContext) -> list[ProgramStep]:
    """Compile to `kill`."""
    return [(step.line, "kill", (step.value["id"], parse_signal_name(step.value.get("signal", "KILL"))))]


def check_child_references(check: FileCheck) -> None:
    """Report each child that the script does not spawn or has lost by then, and each parent that a process has lost."""
    for node, name, process in check.meant:
        own = [child for child, parent in check.parents.items() if parent == process]
        is_parent = name == _PARENT_NAME
        orphan = process if is_parent else name
        if not is_parent and name not in own:
            check.report_at(node, _describe_unknown_child(name, own, check))
        elif orphan in check.orphans:
            trouble = f"{process} cannot name its parent" if is_parent else f'"{shorten_text(name)}" is no child'
            how = f"how: {check.orphans[orphan]} leaves it without a parent"
            alternatives = join_choices([how for how in _SPAWN_KINDS if how not in _ORPHANING_SPAWN_KINDS])
            check.report_at(node, f"{trouble}: {how}: write how: {alternatives}")
    check.meant.clear()


def check_inherited_streams(check: FileCheck) -> None:
    """Report every process that inherits a stream which its parent, a spawned process, does not have."""
    for name, (node, streams) in check.inherits.items():
        parent = check.parents.get(name)
        if parent not in check.inherits:  # the agent has every stream, and a spawn with mistakes is reported already
            continue
        held = check.inherits[parent][1]
        missing = [stream for stream in streams if stream not in held]
        if missing:
            needed = ", ".join(stream for stream in _INHERITABLE_STREAMS if stream in held or stream in missing)
            check.report_at(
                node,
                f"{name} inherits {join_choices(missing, 'and')}, but its parent {parent} has none: "
                f"write inherits: [{needed}] at {parent}, too",
            )
    check.inherits.clear()


def _describe_unknown_child(name: str, own: list[str], check: FileCheck) -> str:
    if name in check.parents:
        return f'"{shorten_text(name)}" is no child of this process, but another\'s'
    remedy = f": for its own death write die: {name}" if name.removeprefix("SIG") in SIGNAL_NUMBER_BY_NAME else ""
    return (
        describe_unknown_word("child", name, own)
        if own
        else f'"{shorten_text(name)}" is no child: this process spawns none'
    ) + remedy


def _choose_next_child_name(check: FileCheck) -> str:
    check.nameless += 1
    while f"child{check.nameless}" in (*check.spawned, *check.sessions):
        check.nameless += 1
    return f"child{check.nameless}"
