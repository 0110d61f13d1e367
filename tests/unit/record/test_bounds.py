"""The record holds no flood (F6), and its readers get what one that keeps every chunk would give."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentproc.events import EventLine, Payload, Returned, decode_event
from pytest_agentproc.record import (
    NormalFormEntry,
    Record,
    _cells,
    _normal_form,
    _payload,
    _record,
    compute_normal_form,
)
from pytest_agentproc.record._normal_form import add_step_lines
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from pytest_agentproc.vocabulary import RunReport
from tests.event_lines import add_line, list_lines
from tests.unit.handmade import BoundScenario, Expected, play_by_hand
from tests.unit.supervisor.test_memory import sum_held_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


KIB, MIB = 1024, 1024**2
LIMIT, EDGE = 300, 130
Raw = tuple[int, str, Mapping[str, Any]]
NOTHING = Returned(0, "")


@contextmanager
def lower_limits() -> Iterator[None]:
    """Keep less whole and join sooner, so that a handful of chunks is a flood."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (_payload, _record):
            patch.setattr(module, "MAX_WHOLE_OUTPUT_BYTES", LIMIT)
        patch.setattr(_record, "_EXTRA_BYTES_COUNTED_PER_EVENT", 40)
        patch.setattr(_payload, "MAX_WHOLE_STDIN_BYTES", 2 * LIMIT)
        patch.setattr(_payload, "KEPT_BYTES_AT_EACH_END", EDGE)
        yield


def join_without_bounds(events: Iterable[Raw]) -> list[EventLine]:
    """Join the chunks of each instant, every byte of them kept: joining without a limit."""
    result: list[list[Any]] = []
    places: dict[tuple[Any, ...], list[Any]] = {}
    armed: dict[tuple[Any, ...], Any] = {}
    for at, code, data in events:
        if code == "t":
            timer = at, data["process"], data["timer"]
            if "armed" in data and armed.get(timer) == data["armed"]:
                continue
            armed[timer] = data.get("armed")
        kind = next((kind for kind in ("bytes", "size") if kind in data and code != "t"), None)
        line = data.get("line")
        first = places.get((at, data["process"], code, data.get("by"), kind, line)) if kind else None
        if first is not None and kind:
            first[2] = first[2] | {kind: first[2][kind] + data[kind]}
            continue
        result.append([at, code, dict(data)])
        if kind:
            places[at, data["process"], code, data.get("by"), kind, line] = result[-1]
    return [EventLine(at, code, data) for at, code, data in result]


def compute_unbounded_normal_form(events: Iterable[Raw]) -> list[NormalFormEntry]:
    """Give the normal form with every byte in it."""
    left_out = {"process", "by"}
    lines: list[NormalFormEntry] = []
    for at, code, data in join_without_bounds(events):
        rest = tuple((key, data[key]) for key in sorted(data) if key not in left_out)
        lines.append((at, code, data["process"], data.get("by", ""), rest))
    return lines


def show_value(code: str, rest: tuple[tuple[str, Any], ...]) -> list[Any]:
    """Write bytes as length and hash if they are too many."""
    limit = 2 * LIMIT if code == "i" else LIMIT
    lines = []
    for key, value in rest:
        if isinstance(value, Payload):
            assert value.size > limit
            lines.append((key, value.size, value.sha256))
        elif isinstance(value, bytes) and len(value) > limit:
            lines.append((key, len(value), hashlib.sha256(value).hexdigest()))
        else:
            lines.append((key, value, ""))
    return lines


def list_unbounded_lines(events: Iterable[Raw]) -> list[Any]:
    """Give the JSON lines of a record that keeps every chunk, read again, without their intervals."""
    lines = []
    for _, code, data in join_without_bounds(events):
        values = dict(data)
        payload = values.get("bytes", b"")
        if len(payload) > LIMIT:
            ends = {"head": payload[:EDGE].decode(), "tail": payload[-EDGE:].decode()}
            values["bytes"] = {"length": len(payload), "sha256": hashlib.sha256(payload).hexdigest(), **ends}
        elif payload:
            values["bytes"] = payload.decode()
        lines.append([code, values])
    return lines


def _build_run_strategy(*, with_lines: bool) -> st.SearchStrategy[list[Raw]]:
    process = st.sampled_from(["agent", "child"])
    payload = st.builds(lambda letter, size: letter * size, st.sampled_from([b"a", b"b"]), st.integers(1, 400))
    line = st.integers(1, 2) if with_lines else st.none()

    def of_bytes(code: str, process: str, data: bytes, line: int | None) -> tuple[str, dict[str, Any]]:
        return code, {"process": process, "bytes": data} | ({"line": line} if line else {})

    moments = st.one_of(
        st.builds(of_bytes, st.sampled_from("oei"), process, payload, line),
        st.builds(of_bytes, st.sampled_from("oe"), st.just("agent"), payload, line),
        st.builds(
            lambda code, size: (code, {"process": "agent", "by": "supervisor", "size": size}),
            st.sampled_from("oei"),
            st.integers(1, 9),
        ),
        st.builds(
            lambda due: ("t", {"process": "supervisor", "timer": "a"} | ({"armed": due} if due else {"off": True})),
            st.integers(0, 2),
        ),
        st.builds(
            lambda process, line, step: ("m", {"process": process, "line": line, "step": step}),
            process,
            st.integers(1, 2),
            st.sampled_from(["say", "drip", "meanwhile"]),
        ),
        st.builds(lambda process: ("o", {"process": process, "closed": True}), process),
    )
    return st.lists(st.tuples(st.integers(0, 4), moments), max_size=25).map(_spread_over_time)


def _spread_over_time(moments: list[tuple[int, tuple[str, dict[str, Any]]]]) -> list[Raw]:
    """Let time pass before some of the events."""
    now = 0
    events: list[Raw] = []
    for pause, (code, data) in moments:
        now += pause // 4
        events.append((now, code, data))
    return events


RUNS = st.one_of(_build_run_strategy(with_lines=False), _build_run_strategy(with_lines=True))


def build_record(events: Iterable[Raw]) -> Record:
    """Write events down."""
    record = Record()
    for event in events:
        add_line(record, *event)
    return record


@pytest.mark.slow
@settings(deadline=None, max_examples=150)  # the machine may be busy
@given(RUNS)
def test_the_normal_form_is_that_of_every_chunk(events: list[Raw]) -> None:
    """Too many bytes are known by length and hash; nothing else may be seen of the limit."""
    with lower_limits():
        seen = compute_normal_form(build_record(events))
    plain = compute_unbounded_normal_form(events)
    assert [entry[:4] for entry in seen] == [entry[:4] for entry in plain]
    assert [show_value(entry[1], entry[4]) for entry in seen] == [show_value(entry[1], entry[4]) for entry in plain]


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(RUNS)
def test_the_lines_are_those_of_every_chunk(events: list[Raw]) -> None:
    """The file of a run is the same to the byte."""
    with lower_limits():
        lines = [json.loads(line)[1:] for line in list(build_record(events).lines())[1:]]
    assert lines == list_unbounded_lines(events)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(RUNS)
def test_the_timeline_is_that_of_every_chunk(events: list[Raw]) -> None:
    """The writer of the bytes is known from the steps between the chunks, which joining must not hide."""
    with lower_limits():
        joined = _normal_form.join_chunks_of_instant(add_step_lines(build_record(events).events))
        seen = _cells.describe_events(joined, ())
    lines = list_lines(add_step_lines(decode_event(*event) for event in events))
    plain = _cells.describe_events([decode_event(*line) for line in join_without_bounds(lines)], ())
    assert [cell._replace(event=NOTHING) for cell in seen] == [cell._replace(event=NOTHING) for cell in plain]


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(RUNS, st.lists(st.integers(1, 150), min_size=1), st.integers(0, 25))
def test_neither_chunks_nor_a_look_between_them_change_the_digest(events: list[Raw], sizes: list[int], at: int) -> None:
    """Pipes cut where they like, and whoever looks at a record in the making leaves it as it was."""
    with lower_limits():
        record = build_record(events[:at])
        assert len(record.events) <= at
        for event in events[at:]:
            add_line(record, *event)
        finer = build_record(chunk for event in events for chunk in _cut_event(event, sizes))
        assert record.digest() == finer.digest() == build_record(events).digest()
        assert compute_normal_form(record) == compute_normal_form(finer)


def _cut_event(event: Raw, sizes: list[int]) -> list[Raw]:
    at, code, data = event
    if "bytes" not in data:
        return [event]
    places = [0]
    while places[-1] < len(data["bytes"]):
        places.append(places[-1] + sizes[len(places) % len(sizes)])
    return [(at, code, {**data, "bytes": data["bytes"][begin:end]}) for begin, end in pairwise(places)]


def test_a_report_is_not_changed() -> None:
    """Joining writes into the record's own events, never into what its caller handed over."""
    lines = [{"process": "agent", "bytes": b"x"}, {"process": "agent", "bytes": b"y"}]
    with lower_limits():
        record = build_record(
            [(0, "o", lines[0]), (0, "o", lines[1]), (0, "e", {"process": "agent", "bytes": b"z" * LIMIT})]
        )
        events = list_lines(record)
    assert [event.data["bytes"] for event in events] == [b"xy", b"z" * LIMIT]
    assert lines == [{"process": "agent", "bytes": b"x"}, {"process": "agent", "bytes": b"y"}]


@pytest.mark.slow
def test_a_flood_is_not_held() -> None:
    """Neither its bytes, nor an event for each of its chunks, reads and timers."""
    record, chunk = Record(), b"x" * 4095 + b"\n"
    for _ in range(64 * MIB // len(chunk)):
        add_line(record, 5, "o", {"process": "agent", "bytes": chunk})
        add_line(record, 5, "o", {"process": "agent", "by": "supervisor", "size": len(chunk)})
        add_line(record, 5, "t", {"process": "supervisor", "timer": "inactivity_timeout", "armed": 125})
    (written, _, _) = list_lines(record)
    assert written.data["bytes"] == Payload(64 * MIB, hashlib.sha256(chunk * 16384).hexdigest(), b"", b"")
    assert sum_held_sizes(record) < 64 * KIB
    assert len("".join(record.lines())) < 16 * KIB


def test_what_the_agent_read_is_kept_for_its_check() -> None:
    """Up to 16 MiB of one instant; of more there is no judgement, and never a green one."""
    text = "0123456789abcde\n" * MIB
    bound = BoundScenario(
        (Expected("received.stdin", {"exact": text}), Expected("received.stdin", {"contains": "f\n"}))
    )
    record = Record()
    for start in range(0, len(text), 65536):
        add_line(record, 0, "i", {"process": "agent", "bytes": text[start : start + 65536].encode()})
    assert [row.verdict for row in judge_all_expectations(play_by_hand(bound, record, RunReport()))] == [
        Verdict.PASSED,
        Verdict.FAILED,
    ]
    add_line(record, 0, "i", {"process": "agent", "bytes": b"f\n"})
    seen = "16777218 bytes, more than the record keeps of one instant"
    for row in judge_all_expectations(play_by_hand(bound, record, RunReport())):
        assert (row.verdict, row.seen) == (Verdict.NOT_EXERCISED, seen)
