"""Each value that passes from room to room in a record has a type. No mapping says by its keys what it is."""

from __future__ import annotations

import ast
import sys
from typing import Any, get_args, get_type_hints

from pytest_agentproc import events
from tests.architecture.sources import find_package, find_product_files, parse_file

CODERS = {"encode_event", "decode_event", "EventLine"}
MAY_CODE = {
    "events": "it owns the form",
    "record": "it writes the file, and compares runs",
    "clock": "a fake, which imports nothing of this package, tells some things as mappings",
    "capture": "its recorder passes events to another process",
}


def _list_parts(hint: Any) -> list[Any]:
    """Give a type and all types within it."""
    inner = [part for one in get_args(hint) for part in _list_parts(one)]
    own = get_type_hints(hint).values() if hint in (events.Payload, events.StartFacts) else ()
    return [hint, *inner, *(part for one in own if one is not hint for part in get_args(one) or [one])]


def test_no_event_has_a_field_of_any_type() -> None:
    """A checker is blind where `Any` passes, and a reader must guess the keys."""
    hints = [(kind, name, hint) for kind in events.EVENT_TYPES for name, hint in get_type_hints(kind).items()]
    assert [f"{kind.__name__}.{name}" for kind, name, hint in hints if Any in _list_parts(hint)] == []


def test_every_event_is_one_of_the_known_types() -> None:
    """The set is closed: readers, words and the page of the format are made for all of it."""
    found, waiting = set(), [events.Event]
    while waiting:
        kind = waiting.pop()
        below = kind.__subclasses__()
        waiting += below
        # A dataclass with slots replaces the class that was written, which Python removes some time later.
        is_replaced = getattr(sys.modules[kind.__module__], kind.__name__, None) is not kind
        found |= set() if below or is_replaced else {kind.__name__}
    assert found == {kind.__name__ for kind in events.EVENT_TYPES}


def test_only_the_border_reads_an_event_as_a_mapping() -> None:
    """Elsewhere a reader asks for a type of `events`, so that a misspelt key is an error of the checker."""
    users = {
        find_package(file)
        for file in find_product_files()
        for node in ast.walk(parse_file(file))
        if isinstance(node, ast.Name | ast.Attribute)
        and (node.id if isinstance(node, ast.Name) else node.attr) in CODERS
    }
    assert users == set(MAY_CODE)
