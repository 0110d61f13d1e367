"""The events of a record: a closed set of types, each with its words and its form in a file."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast, get_type_hints

import pytest

from pytest_agentproc import events
from pytest_agentproc.events import EVENT_TYPES, Event, decode_event, encode_event
from pytest_agentproc.record import _cells

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES: dict[Any, Any] = {
    str: "stderr",
    int: 7,
    int | None: 7,
    bool: True,
    bool | None: True,
    list[str]: ["a"],
    tuple[str, ...]: ("a",),
    events.KeptBytes: b"x",
    events.StartFacts: {"argv": ["a"]},
}


def make_sample(kind: Callable[..., Event]) -> Event:
    """Make an event whose every field says something."""
    hints = get_type_hints(kind)
    return kind(**{part.name: SAMPLES[hints[part.name]] for part in fields(cast("type[Event]", kind))})


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
def test_an_event_is_read_back_from_its_line(kind: type[Event]) -> None:
    """A recording passes its events to another process so. Two types with one form would be one there."""
    event = make_sample(kind)
    assert decode_event(*encode_event(event)) == event


def test_each_event_has_words_for_the_timeline() -> None:
    """A type without words would break the first text that shows it."""
    assert set(_cells._DESCRIBERS) | {events.StepBegun} == set(EVENT_TYPES)  # noqa: SLF001  # the table is the claim


def test_a_line_that_no_event_has_is_refused() -> None:
    """A misspelt key must not become some other event."""
    with pytest.raises(ValueError, match="no event has the code 'p' and the keys"):
        decode_event(0, "p", {"process": "agent", "sene": True})
