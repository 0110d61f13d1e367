"""Owns the list of all tables of the language, and finds where a file uses their keys. Refuses to check a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.scenario._drive import CONTINUES, DRIVE_KEYS, HANDLER, PROMPT
from pytest_agentproc.scenario._expect import EXPECT_KEYS, PROCESS_KEYS, SAW_KEYS
from pytest_agentproc.scenario._expect_keys import (
    ARTIFACT_KEYS,
    ASKED_KEYS,
    RESULT_KEYS,
    TEXT_FORMS,
    TURN_KEYS,
    VIEWER_KEYS,
)
from pytest_agentproc.scenario._fields import AnyOf, Either, Fields, ListOf, MapOf
from pytest_agentproc.scenario._file import AGENT, BLOCKAGE, CANNOT_SPAWN, FILE, HOST, SESSION_KEYS, SLEEP, PolicyLimits
from pytest_agentproc.scenario._script import FORM as SPAWN_FORM
from pytest_agentproc.scenario._script import Steps
from pytest_agentproc.scenario._steps import STEPS
from pytest_agentproc.scenario._yaml import Mapping, Scalar, Sequence, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.scenario._check import Key
    from pytest_agentproc.scenario._yaml import Node


class Table(NamedTuple):
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


def list_key_tables() -> list[Table]:
    """List every table of the language."""
    return [
        Table("file key", "", FILE.keys),
        Table("file key", "agent", AGENT.mapping.keys),
        Table("file key", "cannot_spawn", CANNOT_SPAWN.mapping.keys),
        Table("file key", "host", HOST.keys),
        Table("file key", "loop_blocked", BLOCKAGE.keys),
        Table("file key", "sleeps", SLEEP.keys),
        Table("file key", "sessions", tuple(SESSION_KEYS.values())),
        Table("file key", "handler", HANDLER.keys),
        Table("file key", "continues", CONTINUES.keys),
        Table("limit", "", PolicyLimits.shape.keys),
        Table("drive item", "", tuple(DRIVE_KEYS.values())),
        Table("drive item", "prompt", PROMPT.mapping.keys),
        Table("step", "", tuple(STEPS.values())),
        *(Table("step", name, fields.keys) for name, fields in _list_step_mappings()),
        Table("expect key", "", tuple(EXPECT_KEYS.values())),
        Table("expect key", "TEXT", TEXT_FORMS),
        Table("expect key", "asked", ASKED_KEYS),
        Table("expect key", "processes", tuple(PROCESS_KEYS.values())),
        Table("expect key", "received", tuple(SAW_KEYS.values())),
        Table("expect key", "turns", tuple(TURN_KEYS.values())),
        Table("expect key", "viewers", tuple(VIEWER_KEYS.values())),
        Table("expect key", "artifacts", tuple(ARTIFACT_KEYS.values())),
        Table("expect key", "result.json", tuple(RESULT_KEYS.values())),
    ]


def _list_step_mappings() -> Iterator[tuple[str, Fields]]:
    for name, entry in STEPS.items():
        if entry.also is not None:
            yield name, Fields((entry.also,))
        if isinstance(entry.kind, Either):
            yield name, entry.kind.mapping
        elif isinstance(entry.kind, Fields):
            yield name, entry.kind
        elif name == "spawn":
            yield name, SPAWN_FORM


def find_key_uses(text: str) -> list[KeyUse]:
    """Find every use of a key in a file that is sound."""
    node = parse_yaml(text, lambda *_: None)
    return [] if node is None else [*_walk_key_uses(FILE, node)]


def _walk_key_uses(kind: Any, node: Node) -> Iterator[KeyUse]:
    """Walk a value beside its type; a type of value that has a shape is read as that shape."""
    kind = getattr(kind, "shape", kind)
    if isinstance(kind, AnyOf):
        fitting = (shape for shape in kind.shapes if isinstance(getattr(shape, "shape", shape), _SHAPES[type(node)]))
        kind = next(fitting, None)
        kind = getattr(kind, "shape", kind)
    if isinstance(kind, Either) and isinstance(node, Mapping):
        kind = kind.mapping
    if isinstance(kind, Fields) and isinstance(node, Mapping):
        yield from _walk_mapping_keys({key.name: key for key in kind.keys}, node)
    elif isinstance(kind, MapOf) and isinstance(node, Mapping):
        for _, value in node.pairs:
            yield from _walk_key_uses(kind.value, value)
    elif isinstance(node, Sequence):
        for item in node.items:
            if isinstance(kind, ListOf):
                yield from _walk_key_uses(kind.kind, item)
            elif isinstance(kind, Steps) and isinstance(item, Mapping):
                yield from _walk_mapping_keys(_STEP_KEYS, item)


def _walk_mapping_keys(keys: dict[str, Key], node: Mapping) -> Iterator[KeyUse]:
    for name, value in node.pairs:
        if name.text in keys:
            key = keys[name.text]
            yield KeyUse(key, _list_words(value), name.line)
            yield from _walk_key_uses(key.kind, value)


def _list_words(node: Node) -> tuple[str, ...]:
    """Give the words of `completed` or `{any_of: [completed, failed]}`."""
    if isinstance(node, Mapping) and len(node.pairs) == 1 and isinstance(node.pairs[0][1], Sequence):
        return tuple(item.text for item in node.pairs[0][1].items if isinstance(item, Scalar))
    return (node.text,) if isinstance(node, Scalar) else ()


_SHAPES: dict[type, Any] = {Mapping: (Fields, MapOf, Either), Sequence: (ListOf, Steps), Scalar: ()}
_STEP_KEYS: dict[str, Key] = {**STEPS, **{entry.also.name: entry.also for entry in STEPS.values() if entry.also}}
