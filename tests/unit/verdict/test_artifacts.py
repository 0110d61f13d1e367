"""The expectations of a scenario for the files of a run, and the verdict on the files that are there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.record import Record
from pytest_agentproc.scenario import loads
from pytest_agentproc.scenario._expect_keys import ARTIFACT_EXPECT_KEY_BY_NAME, RESULT_EXPECT_KEY_BY_FIELD
from pytest_agentproc.verdict import judge_all_expectations
from pytest_agentproc.vocabulary import ARTIFACT_TEXTS, RESULT_FIELD_TEXTS, Policy, RunReport
from tests.event_lines import add_line
from tests.unit.handmade import SECOND, BoundScenario, Expected, play_by_hand

RESULT = "artifacts.result.json"
FIELDS = {
    "run_id": "r1",
    "argv": ["/bin/pi", "-p", "hi"],
    "elapsed": 1.000000001,
    "exit_code": 0,
    "agent_status": -15,
    "forced": True,
    "text": "done",
    "resolved_model": None,
    "usage": {"input": 3, "output": 5},
    "warnings": [],
    "unwritten": {"stdout.log": "No space left on device"},
}
FILES = {"result.json": json.dumps(FIELDS).encode(), "stdout.log": b"a\xff\n", "stderr.log": b""}


def bind_artifacts(artifacts: str) -> list[tuple[str, Any]]:
    """Bind what is expected of the artifacts."""
    text = f"scenario: a\nagent: raw\nscript: []\nexpect:\n  artifacts: {artifacts}\n"
    return [(check.key, check.wanted) for check in loads(text).bind(Policy()).expect if check.key != "leaks"]


def judge_artifact(
    key: str, value: Any, files: dict[str, bytes] | None, tolerance: int = 0, **header: Any
) -> tuple[str, str, str]:
    """Compare one key with files: its verdict, wanted and seen in words."""
    record = Record()
    record.header.update(header)
    add_line(record, 0, "p", {"process": "agent", "seen": True, "line": 0})
    (row,) = judge_all_expectations(
        play_by_hand(BoundScenario((Expected(key, value),)), record, RunReport(), None, tolerance, files)
    )
    return row.verdict.value, row.wanted, row.seen


def test_every_file_and_every_field_can_be_expected() -> None:
    """A scenario can check everything that the vocabulary names."""
    assert [*ARTIFACT_EXPECT_KEY_BY_NAME] == [*ARTIFACT_TEXTS]
    assert [*RESULT_EXPECT_KEY_BY_FIELD] == [*RESULT_FIELD_TEXTS]


def test_each_leaf_is_an_expectation_in_its_normal_form() -> None:
    """`catches` names a leaf, and a row of the verdict is one."""
    assert bind_artifacts("[]") == [("artifacts", None)]
    assert bind_artifacts('{result.json: none, stdout.log: "a\\n", stderr.log: {hex: "FF 0a"}}') == [
        ("artifacts.result.json", None),
        ("artifacts.stdout.log", {"exact": "a\n"}),
        ("artifacts.stderr.log", {"hex": "ff0a"}),
    ]
    assert bind_artifacts(
        "{result.json: {elapsed: kill_grace, outcome: failed, agent_status: -9, text: none, error: {contains: no}, "
        "usage: {input: 3}, stop_reason: stop, leaks: [], forced: false, resolved_model: 'none'}}"
    ) == [
        (f"{RESULT}.elapsed", 2 * SECOND),
        (f"{RESULT}.outcome", "failed"),
        (f"{RESULT}.agent_status", -9),
        (f"{RESULT}.text", None),
        (f"{RESULT}.error", {"contains": "no"}),
        (f"{RESULT}.usage", {"input": 3}),
        (f"{RESULT}.stop_reason", "stop"),
        (f"{RESULT}.leaks", []),
        (f"{RESULT}.forced", False),
        (f"{RESULT}.resolved_model", "none"),
    ]


@pytest.mark.parametrize(
    ("key", "value", "row"),
    [
        ("artifacts", None, ("failed", "none", "result.json, stderr.log, stdout.log")),
        ("artifacts.result.json", None, ("failed", "none", json.dumps(FILES["result.json"].decode())[:150])),
        ("artifacts.events.jsonl", None, ("passed", "none", "no such file")),
        ("artifacts.events.jsonl", {"contains": "x"}, ("failed", 'contains "x"', "no such file")),
        ("artifacts.stderr.log", {"exact": ""}, ("passed", '""', '""')),
        ("artifacts.stdout.log", {"exact": "a"}, ("failed", '"a"', '"a\ufffd\\n"')),
        ("artifacts.stdout.log", {"matches": "^a"}, ("passed", 'matches "^a"', '"a\ufffd\\n"')),
        ("artifacts.stdout.log", {"hex": "61ff0a"}, ("passed", 'hex "61ff0a"', '"61ff0a"')),
        ("artifacts.stdout.log", {"hex": "61efbfbd0a"}, ("failed", 'hex "61efbfbd0a"', '"61ff0a"')),
        (f"{RESULT}.argv", ["-p", "hi"], ("passed", '["-p", "hi"]', '["/bin/pi", "-p", "hi"]')),
        (f"{RESULT}.elapsed", SECOND + 1, ("passed", "1.000000001 s", "1.000000001 s")),
        (f"{RESULT}.elapsed", SECOND, ("failed", "1 s", "1.000000001 s")),
        (f"{RESULT}.exit_code", 0, ("passed", "0", "0")),
        (f"{RESULT}.exit_code", 1, ("failed", "1", "0")),
        (f"{RESULT}.forced", True, ("passed", "true", "true")),
        (f"{RESULT}.agent_status", None, ("failed", "none", "-15")),
        (f"{RESULT}.text", {"exact": "done"}, ("passed", '"done"', '"done"')),
        (f"{RESULT}.text", None, ("failed", "none", '"done"')),
        (f"{RESULT}.resolved_model", None, ("passed", "none", "none")),
        (f"{RESULT}.resolved_model", "m1", ("failed", '"m1"', "none")),
        (f"{RESULT}.usage", {"input": 3}, ("passed", "input: 3", "input: 3, output: 5")),
        (f"{RESULT}.usage", {"input": 4}, ("failed", "input: 4", "input: 3, output: 5")),
        (f"{RESULT}.warnings", [], ("passed", "[]", "[]")),
        (f"{RESULT}.unwritten", {}, ("failed", "{}", '{"stdout.log": "No space left on device"}')),
        (f"{RESULT}.stop_reason", None, ("failed", "none", "result.json has no stop_reason")),
    ],
)
def test_a_file_is_compared_as_it_was_found(key: str, value: Any, row: tuple[str, str, str]) -> None:
    """The subject's own words about its files count for nothing."""
    verdict, shown, seen = judge_artifact(key, value, FILES)
    assert (verdict, shown, seen[: len(row[2])]) == row


@pytest.mark.parametrize("data", [b"", b'{"exit_code": 0', b"[0]", b"\xff", b"[" * 100_000])
def test_a_result_that_cannot_be_read_fails_each_of_its_checks(data: bytes) -> None:
    """Half a result.json is what atomic writing is there to prevent."""
    assert judge_artifact(f"{RESULT}.exit_code", 0, {"result.json": data})[0] == "failed"


def test_a_subject_that_keeps_nothing_is_neither_good_nor_bad() -> None:
    """It never claimed to; nothing unseen is ever green."""
    for key, value in (("artifacts", None), ("artifacts.stdout.log", {"exact": ""}), (f"{RESULT}.exit_code", 0)):
        assert judge_artifact(key, value, None)[::2] == ("not applicable", "the subject keeps no artifacts")


def test_no_file_is_expected_of_an_agent_that_never_ran() -> None:
    """A supervisor that starts nothing keeps nothing, and must not look conformant for it."""
    (row,) = judge_all_expectations(
        play_by_hand(BoundScenario((Expected("artifacts", None),)), Record(), RunReport(), artifacts={})
    )
    assert row.verdict == "not exercised"


@pytest.mark.parametrize(
    ("elapsed", "verdict"), [(1.0, "passed"), (0.52, "passed"), (0.45, "passed"), (0.3, "failed"), (2.6, "failed")]
)
def test_in_real_time_a_file_may_say_what_its_writers_own_clock_said(elapsed: float, verdict: str) -> None:
    """A subject that divides its limits by the scale counts half of each second of the run, from its start."""
    files = {"result.json": json.dumps({"elapsed": elapsed}).encode()}
    assert judge_artifact(f"{RESULT}.elapsed", SECOND, files, SECOND, clock="real", scale=2)[0] == verdict
