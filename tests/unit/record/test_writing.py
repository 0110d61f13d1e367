"""The one record: cheap to write, exact to read, equal for equal runs."""

from __future__ import annotations

import hashlib
import json

import pytest

from pytest_agentproc.record import Record, compute_normal_form, format_duration, format_instant
from tests.event_lines import add_line

SECOND = 1_000_000_000


def record_flood(chunk: int, total: int = 12_000) -> Record:
    """Write the same bytes in one instant, in chunks of one size, read and re-armed chunk by chunk."""
    record = Record({"clock": "virtual"})
    add_line(record, 0, "p", {"process": "agent", "seen": True, "pid": 1000 + chunk, "parent": None, "line": 0})
    for start in range(0, total, chunk):
        size = min(chunk, total - start)
        add_line(record, 5, "o", {"process": "agent", "bytes": b"x" * size, "line": 7})
        add_line(record, 5, "o", {"process": "agent", "by": "supervisor", "size": size})
        add_line(record, 5, "t", {"process": "supervisor", "timer": "inactivity_timeout", "armed": 5 + 120 * SECOND})
    add_line(record, 5, "o", {"process": "agent", "by": "supervisor", "eof": True})
    add_line(record, 5, "x", {"process": "agent", "code": 0})
    return record


def test_a_programs_stderr_does_not_count() -> None:
    """It may name folders, pids and addresses of memory, which no two runs have in common."""
    quiet, noisy, worse = Record(), Record(), Record()
    for record, folder, status in ((quiet, "a", 1), (noisy, "b", 1), (worse, "a", 2)):
        end = {"program": f"exits with code {status}", "status": status, "stderr": f"spawn /tmp/{folder}/agent ENOENT"}
        add_line(record, 5, "m", {"process": "supervisor", **end})
    assert quiet.digest() == noisy.digest() != worse.digest()


def test_chunking_and_pids_do_not_count() -> None:
    """The kernel may cut a stream as it likes: that is no difference between two runs."""
    coarse, fine = record_flood(4096), record_flood(1000)
    assert compute_normal_form(coarse) == compute_normal_form(fine)
    assert coarse.digest() == fine.digest()
    assert compute_normal_form(fine) == [
        (0, "p", "agent", "", (("parent", None), ("seen", True))),
        (5, "o", "agent", "", (("bytes", b"x" * 12_000), ("line", 7))),
        (5, "o", "agent", "supervisor", (("size", 12_000),)),
        (5, "t", "supervisor", "", (("armed", 5 + 120 * SECOND), ("timer", "inactivity_timeout"))),
        (5, "o", "agent", "supervisor", (("eof", True),)),
        (5, "x", "agent", "", (("code", 0),)),
    ]


def test_bytes_of_two_instants_stay_apart() -> None:
    """Joining is allowed within one instant only: when a byte came is what the kit is about."""
    record = Record()
    for at in (1, 1, 2):
        add_line(record, at, "o", {"process": "agent", "bytes": b"a", "line": 3})
    assert [(entry[0], dict(entry[4])["bytes"]) for entry in compute_normal_form(record)] == [(1, b"aa"), (2, b"a")]


def test_bytes_of_two_processes_and_streams_stay_apart() -> None:
    """The writer of the bytes, and their stream, are facts."""
    record = Record()
    for process, code in (("agent", "o"), ("child1", "o"), ("agent", "e"), ("agent", "o")):
        add_line(record, 1, code, {"process": process, "bytes": b"a", "line": 3})
    assert [(code, process, dict(rest)["bytes"]) for _, code, process, _, rest in compute_normal_form(record)] == [
        ("o", "agent", b"aa"),
        ("o", "child1", b"a"),
        ("e", "agent", b"a"),
    ]


def test_a_timer_that_was_off_is_armed_anew() -> None:
    """Only a re-arm for the same instant collapses; a timer that fired or was taken off in between does not."""
    record = Record()
    for what in ({"armed": 9}, {"armed": 9}, {"off": True}, {"armed": 9}, {"armed": 8}, {"armed": 9}):
        add_line(record, 1, "t", {"process": "supervisor", "timer": "linger_grace", **what})
    assert [rest[0] for *_, rest in compute_normal_form(record)] == [
        ("armed", 9),
        ("off", True),
        ("armed", 9),
        ("armed", 8),
        ("armed", 9),
    ]


@pytest.mark.parametrize(
    ("at", "code", "data"),
    [
        (6, "x", {"process": "agent", "code": 0}),
        (5, "x", {"process": "agent", "code": 1}),
        (5, "x", {"process": "child1", "code": 0}),
        (5, "x", {"process": "agent", "code": 0, "by": "supervisor"}),
    ],
)
def test_any_other_difference_changes_the_digest(at: int, code: str, data: dict[str, object]) -> None:
    """A digest that misses a nanosecond, a code, a process or a side proves nothing."""
    first, second = Record(), Record()
    add_line(first, 5, "x", {"process": "agent", "code": 0})
    add_line(second, at, code, data)
    assert first.digest() != second.digest()


def test_the_wording_of_a_fault_is_not_part_of_the_digest() -> None:
    """The model and the lockstep name different descriptors for one deadlock."""
    first, second = Record(), Record()
    add_line(first, 5, "m", {"process": "supervisor", "fault": "deadlock", "message": "fd 7"})
    add_line(second, 5, "m", {"process": "supervisor", "fault": "deadlock", "message": "fd 9"})
    assert first.digest() == second.digest()


def test_an_integer_parent_is_a_pid_and_a_name_is_a_fact() -> None:
    """Pids differ from run to run, parents do not."""
    first, second, third = Record(), Record(), Record()
    for record, parent in ((first, 12), (second, 13), (third, "agent")):
        add_line(record, 0, "p", {"process": "child1", "seen": True, "pid": 1, "parent": parent, "line": 4})
    assert first.digest() == second.digest() != third.digest()


def test_lines_are_a_header_and_exact_intervals() -> None:
    """Floats lose nanoseconds after some days; the text does not."""
    record = Record({"clock": "virtual", "subject": "reference"})
    add_line(record, 0, "o", {"process": "agent", "bytes": "héllo\n".encode(), "line": 3})
    add_line(record, 10_000_000 * SECOND + 1, "x", {"process": "agent", "code": 0})
    add_line(record, 10_000_000 * SECOND + 250_000_001, "m", {"process": "supervisor", "returned": True})
    assert list(record.lines()) == [
        '{"version": 3, "format": "agentproc", "clock": "virtual", "subject": "reference"}',
        '[0.000000000, "o", {"process": "agent", "bytes": "héllo\\n", "line": 3}]',
        '[10000000.000000001, "x", {"process": "agent", "code": 0}]',
        '[0.250000000, "m", {"process": "supervisor", "returned": true}]',
    ]


def test_lines_join_what_one_step_wrote_and_keep_pids() -> None:
    """A flood is one line for its reader, and a pid is what one looks for in other logs."""
    lines = [json.loads(line) for line in record_flood(4096).lines()]
    assert lines[1][2]["pid"] == 5096
    assert [line[1] for line in lines[1:]] == ["p", "o", "o", "t", "o", "x"]
    assert lines[2][2]["bytes"] == "x" * 12_000


def test_bytes_that_are_no_text_are_base64() -> None:
    """JSON has no bytes, and nothing may be lost."""
    record = Record()
    add_line(record, 0, "o", {"process": "agent", "bytes": b"\xff\x00", "line": 3})
    assert json.loads(list(record.lines())[1])[2]["bytes"] == {"b64": "/wA="}


def test_a_large_payload_is_kept_as_length_hash_head_and_tail() -> None:
    """A record of a flood must not be the flood; 64 KiB themselves are still whole."""
    kept, cut = b"k" * 65_536, b"a" + b"b" * 65_536
    record = Record()
    add_line(record, 0, "o", {"process": "agent", "bytes": kept, "line": 3})
    add_line(record, 1, "o", {"process": "agent", "bytes": cut, "line": 3})
    first, second = (json.loads(line)[2]["bytes"] for line in list(record.lines())[1:])
    assert first == kept.decode()
    assert second == {
        "length": 65_537,
        "sha256": hashlib.sha256(cut).hexdigest(),
        "head": "a" + "b" * 4095,
        "tail": "b" * 4096,
    }


@pytest.mark.parametrize(
    ("ns", "as_instant", "as_duration"),
    [
        (0, "0 s", "0 s"),
        (120 * SECOND, "120 s", "120 s"),
        (120 * SECOND + 1, "120.000000001 s", "120.000000001 s"),
        (250_000_000, "0.25 s", "250 ms"),
        (1_500, "0.0000015 s", "1.5 us"),
        (1, "0.000000001 s", "1 ns"),
        (-1_500_000_000, "-1.5 s", "-1.5 s"),
    ],
)
def test_times_are_readable_and_exact(ns: int, as_instant: str, as_duration: str) -> None:
    """A rounded time would show two different instants as equal."""
    assert (format_instant(ns), format_duration(ns)) == (as_instant, as_duration)
