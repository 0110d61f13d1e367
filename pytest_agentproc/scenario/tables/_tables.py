"""Owns the list of all tables of the language, and finds where a file uses their keys. Refuses to check a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.scenario._drive_keys import (
    CONTINUES_VALUE_TYPE,
    DRIVE_KEY_BY_NAME,
    HANDLER_VALUE_TYPE,
    PROMPT_VALUE_TYPE,
)
from pytest_agentproc.scenario._expect import (
    EXPECT_KEY_BY_NAME,
    PROCESS_EXPECT_KEY_BY_NAME,
    RECEIVED_EXPECT_KEY_BY_NAME,
)
from pytest_agentproc.scenario._expect_keys import (
    ARTIFACT_EXPECT_KEY_BY_NAME,
    ASKED_QUESTION_KEYS,
    RESULT_EXPECT_KEY_BY_FIELD,
    TEXT_MATCHER_KEYS,
    TURN_EXPECT_KEY_BY_NAME,
    VIEWER_EXPECT_KEY_BY_NAME,
)
from pytest_agentproc.scenario._fields import AnyOfType, EitherType, FieldsType, ListOfType, MapOfType
from pytest_agentproc.scenario._file import (
    AGENT_VALUE_TYPE,
    CANNOT_SPAWN_VALUE_TYPE,
    HOST_VALUE_TYPE,
    LOOP_BLOCKED_VALUE_TYPE,
    SCENARIO_FILE_TYPE,
    SESSION_KEY_BY_NAME,
    SLEEPS_VALUE_TYPE,
    PolicyLimitsType,
)
from pytest_agentproc.scenario._script import SPAWN_FIELDS as SPAWN_FORM
from pytest_agentproc.scenario._script import ScriptStepsType
from pytest_agentproc.scenario._steps import STEP_ENTRY_BY_NAME
from pytest_agentproc.scenario._yaml import YamlMapping, YamlScalar, YamlSequence, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.scenario._file_check import Key
    from pytest_agentproc.scenario._yaml import YamlNode


class KeyTable(NamedTuple):
    """Keys that stand together.

    Args:
        kind: what each of them is: `step`, `expect key`, `limit`, `drive item`, `file key`.
        path: the key that they stand below; empty: none.
        keys: name, type of value and text of each.
    """

    kind: str
    path: str
    keys: tuple[Key, ...]


class KeyUse(NamedTuple):
    """One place of a file that uses a key.

    Args:
        key: the entry of the table.
        words: its value, if that is a word, or the words of which each is right.
        line: the line, from 1 on.
    """

    key: Key
    words: tuple[str, ...]
    line: int


def list_key_tables() -> list[KeyTable]:
    """List every table of the language."""
    return [
        KeyTable("file key", "", SCENARIO_FILE_TYPE.keys),
        KeyTable("file key", "agent", AGENT_VALUE_TYPE.mapping.keys),
        KeyTable("file key", "cannot_spawn", CANNOT_SPAWN_VALUE_TYPE.mapping.keys),
        KeyTable("file key", "host", HOST_VALUE_TYPE.keys),
        KeyTable("file key", "loop_blocked", LOOP_BLOCKED_VALUE_TYPE.keys),
        KeyTable("file key", "sleeps", SLEEPS_VALUE_TYPE.keys),
        KeyTable("file key", "sessions", tuple(SESSION_KEY_BY_NAME.values())),
        KeyTable("file key", "handler", HANDLER_VALUE_TYPE.keys),
        KeyTable("file key", "continues", CONTINUES_VALUE_TYPE.keys),
        KeyTable("limit", "", PolicyLimitsType.shape.keys),
        KeyTable("drive item", "", tuple(DRIVE_KEY_BY_NAME.values())),
        KeyTable("drive item", "prompt", PROMPT_VALUE_TYPE.mapping.keys),
        KeyTable("step", "", tuple(STEP_ENTRY_BY_NAME.values())),
        *(KeyTable("step", name, fields.keys) for name, fields in _list_step_mappings()),
        KeyTable("expect key", "", tuple(EXPECT_KEY_BY_NAME.values())),
        KeyTable("expect key", "TEXT", TEXT_MATCHER_KEYS),
        KeyTable("expect key", "asked", ASKED_QUESTION_KEYS),
        KeyTable("expect key", "processes", tuple(PROCESS_EXPECT_KEY_BY_NAME.values())),
        KeyTable("expect key", "received", tuple(RECEIVED_EXPECT_KEY_BY_NAME.values())),
        KeyTable("expect key", "turns", tuple(TURN_EXPECT_KEY_BY_NAME.values())),
        KeyTable("expect key", "viewers", tuple(VIEWER_EXPECT_KEY_BY_NAME.values())),
        KeyTable("expect key", "artifacts", tuple(ARTIFACT_EXPECT_KEY_BY_NAME.values())),
        KeyTable("expect key", "result.json", tuple(RESULT_EXPECT_KEY_BY_FIELD.values())),
    ]


def _list_step_mappings() -> Iterator[tuple[str, FieldsType]]:
    for name, entry in STEP_ENTRY_BY_NAME.items():
        if entry.also is not None:
            yield name, FieldsType((entry.also,))
        if isinstance(entry.kind, EitherType):
            yield name, entry.kind.mapping
        elif isinstance(entry.kind, FieldsType):
            yield name, entry.kind
        elif name == "spawn":
            yield name, SPAWN_FORM


def find_key_uses(text: str) -> list[KeyUse]:
    """Find every use of a key in a file that is sound."""
    node = parse_yaml(text, lambda *_: None)
    return [] if node is None else [*_walk_key_uses(SCENARIO_FILE_TYPE, node)]


def _walk_key_uses(kind: Any, node: YamlNode) -> Iterator[KeyUse]:
    """Walk a value beside its type; a type of value that has a shape is read as that shape."""
    kind = getattr(kind, "shape", kind)
    if isinstance(kind, AnyOfType):
        fitting = (
            shape
            for shape in kind.shapes
            if isinstance(getattr(shape, "shape", shape), _TYPES_BY_NODE_CLASS[type(node)])
        )
        kind = next(fitting, None)
        kind = getattr(kind, "shape", kind)
    if isinstance(kind, EitherType) and isinstance(node, YamlMapping):
        kind = kind.mapping
    if isinstance(kind, FieldsType) and isinstance(node, YamlMapping):
        yield from _walk_mapping_keys({key.name: key for key in kind.keys}, node)
    elif isinstance(kind, MapOfType) and isinstance(node, YamlMapping):
        for _, value in node.pairs:
            yield from _walk_key_uses(kind.value, value)
    elif isinstance(node, YamlSequence):
        for item in node.items:
            if isinstance(kind, ListOfType):
                yield from _walk_key_uses(kind.kind, item)
            elif isinstance(kind, ScriptStepsType) and isinstance(item, YamlMapping):
                yield from _walk_mapping_keys(_STEP_KEY_BY_NAME, item)


def _walk_mapping_keys(keys: dict[str, Key], node: YamlMapping) -> Iterator[KeyUse]:
    for name, value in node.pairs:
        if name.text in keys:
            key = keys[name.text]
            yield KeyUse(key, _list_value_words(value), name.line)
            yield from _walk_key_uses(key.kind, value)


def _list_value_words(node: YamlNode) -> tuple[str, ...]:
    """Give the words of `completed` or `{any_of: [completed, failed]}`."""
    if isinstance(node, YamlMapping) and len(node.pairs) == 1 and isinstance(node.pairs[0][1], YamlSequence):
        return tuple(item.text for item in node.pairs[0][1].items if isinstance(item, YamlScalar))
    return (node.text,) if isinstance(node, YamlScalar) else ()


_TYPES_BY_NODE_CLASS: dict[type, Any] = {
    YamlMapping: (FieldsType, MapOfType, EitherType),
    YamlSequence: (ListOfType, ScriptStepsType),
    YamlScalar: (),
}
_STEP_KEY_BY_NAME: dict[str, Key] = {
    **STEP_ENTRY_BY_NAME,
    **{entry.also.name: entry.also for entry in STEP_ENTRY_BY_NAME.values() if entry.also},
}
