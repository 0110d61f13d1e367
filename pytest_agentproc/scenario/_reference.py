"""Owns the reference's tables, made from the tables that check and compile. Refuses to say what they do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.scenario._agent import AGENT
from pytest_agentproc.scenario._artifacts import ARTIFACT_KEYS, RESULT_KEYS
from pytest_agentproc.scenario._asked import ASKED_KEYS
from pytest_agentproc.scenario._drive import DRIVE_KEYS, HANDLER, PROMPT
from pytest_agentproc.scenario._expect import EXPECT_KEYS, PROCESS_KEYS, SAW_KEYS, SESSION_EXPECT_KEYS
from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._file import BLOCKAGE, FILE, HOST
from pytest_agentproc.scenario._several import SESSION_KEYS
from pytest_agentproc.scenario._spawn import FORM as SPAWN_FORM
from pytest_agentproc.scenario._steps import STEPS
from pytest_agentproc.scenario._turns import TURN_KEYS, VIEWER_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["reference"]


def reference() -> str:
    """Write the tables of the language in Markdown."""
    parts = [
        _table("top key", FILE.keys),
        _table("agent", AGENT.mapping.keys),
        _table("host", HOST.keys),
        _table("loop_blocked: {...}", BLOCKAGE.keys),
        _table("sessions: {NAME: {...}}", SESSION_KEYS.values()),
        _table("handler", HANDLER.keys),
        _table("drive item", DRIVE_KEYS.values()),
        _table("prompt", PROMPT.mapping.keys),
        _table("script step", STEPS.values(), beside=True),
        *(_table(f"{name}: {{...}}", fields.keys) for name, fields in _long_forms()),
        _table("expect key", EXPECT_KEYS.values()),
        _table("asked: [{...}]", ASKED_KEYS),
        _table("processes: {ID: {...}}", PROCESS_KEYS.values()),
        _table("saw: {...}", SAW_KEYS.values()),
        _table("turns, background: [{...}]", TURN_KEYS.values()),
        _table("viewers: {VIEWER: {...}}", VIEWER_KEYS.values()),
        _of_each(),
        _table("artifacts: {...}", ARTIFACT_KEYS.values()),
        _table("result.json: {...}", RESULT_KEYS.values()),
    ]
    return "\n".join(parts)


def _of_each() -> str:
    listed = ", ".join(f"`{name}`" for name in SESSION_EXPECT_KEYS)
    return f"`sessions: {{NAME: {{...}}}}` under `expect` takes {listed}.\n"


def _long_forms() -> Iterator[tuple[str, Fields]]:
    for name, entry in STEPS.items():
        if isinstance(entry.kind, Either):
            yield name, entry.kind.mapping
        elif isinstance(entry.kind, Fields):
            yield name, entry.kind
        elif name == "spawn":
            yield name, SPAWN_FORM


def _table(title: str, keys: Iterable[Key], *, beside: bool = False) -> str:
    rows = [f"| {title} | value | what it is | since |", "|---|---|---|---|"]
    for key in keys:
        label = key.kind.label
        also = getattr(key, "also", None) if beside else None
        if also is not None:
            label = f"{label}, beside it `{also.name}:` {also.kind.label}"
        rows.append(f"| `{key.name}` | {_escape(label)} | {_escape(key.doc)} | {key.since} |")
    return "\n".join(rows) + "\n"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
