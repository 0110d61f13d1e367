"""The fake of pi 1.x: it prints what the real release 1.6.0 printed, and a scenario may choose the older one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import loads
from pytest_agentproc.vocabulary import DIALECTS
from tests.architecture.sources import ROOT
from tests.unit.conversations import Conversation, list_key_paths
from tests.unit.encoders import make_encoder

SECOND = 1_000_000_000


def _read_real_events() -> list[dict[str, Any]]:
    rows = map(json.loads, (ROOT / "tests" / "data" / "drift-recordings.jsonl").read_text("utf-8").splitlines())
    [row] = [row for row in rows if (row["conversation"], row["release"]) == ("pi: hello", "1.6.0")]
    return [json.loads(line) for line in row["stdout"].splitlines()]


def _list_known_paths(event: dict[str, Any]) -> set[str]:
    """List the keys, but for those of the parameters of tools."""
    return {path for path in list_key_paths(event) if ".parameters" not in path}


def test_a_run_has_the_lines_and_keys_of_the_real_one() -> None:
    """The message of the system comes first, and the run is settled at its end."""
    fake = make_encoder({"dialect": "pi", "mode": "json", "prompt": "hi"})
    made = [json.loads(line) for line in fake.encode_answer("hello", 0).splitlines()]
    real = _read_real_events()
    assert [event["type"] for event in made] == [event["type"] for event in real]
    assert [_list_known_paths(event) for event in made] == [_list_known_paths(event) for event in real]


def test_a_message_and_a_tool_have_their_durations() -> None:
    """They are those of the script."""
    fake = make_encoder({"dialect": "pi", "mode": "json", "prompt": "hi"})
    data = fake.events["tool"]({"id": "a", "name": "bash", "input": {"command": "x"}}, 0)
    data += fake.events["tool_done"]({"id": "a", "output": "", "error": "no"}, 3 * SECOND)
    data += fake.events["delta"]("do", 4 * SECOND) + fake.encode_answer("ne", 6 * SECOND)
    made = [json.loads(line) for line in data.splitlines()]
    [end] = [event for event in made if event["type"] == "tool_execution_end"]
    assert (end["durationMs"], end["result"]["structuredContent"]["exit_code"]) == (3000, 1)
    assert end["result"]["structuredContent"]["wall_time_seconds"] == 3
    ends = [event["message"] for event in made if event["type"] == "message_end"]
    assert ends[-1]["durationMs"] == 2000
    assert [message.get("rawStopReason") for message in ends if message["role"] == "assistant"] == [
        "tool_calls",
        "stop",
    ]


def test_a_resumed_session_has_no_message_of_the_system() -> None:
    """It is in the file of the session."""
    program = {"dialect": "pi", "mode": "json", "prompt": "hi", "argv": ("--session", "x", "--mode", "json")}
    made = [json.loads(line) for line in make_encoder(program).encode_answer("hello", 0).splitlines()]
    assert [event["message"]["role"] for event in made if event["type"] == "message_start"] == ["user", "assistant"]


def test_a_prompt_is_started_or_queued_and_an_aborted_run_settles_as_aborted() -> None:
    """The client of pi 1.x reads `data.disposition` of each response."""
    talk = Conversation("pi", "rpc")
    talk.send_requests(b'{"id": "p", "type": "prompt", "message": "hi"}')
    talk.tell("tool", {"id": "a", "name": "bash", "input": {}})
    talk.send_requests(b'{"id": "f", "type": "follow_up", "message": "more"}', b'{"id": "c", "type": "abort"}')
    talk.tell("acknowledge")
    made = talk.take_printed()
    responses = {event["id"]: event.get("data") for event in made if event["type"] == "response"}
    assert responses == {"p": {"disposition": "started"}, "f": {"disposition": "queued"}, "c": None}
    assert made[-2] == {"type": "agent_settled", "aborted": True}
    errors = [event["message"].get("errorMessage") for event in made if event["type"] == "message_end"]
    assert errors[-1] == "This operation was aborted"


@pytest.mark.parametrize(("version", "found"), [("", "1.6.0"), ("1.6", "1.6.0"), ("0.73", "0.73.1"), ("0.7", None)])
def test_a_version_may_be_short_but_not_a_part_of_a_number(version: str, found: str | None) -> None:
    """The absent version is the present one."""
    record = DIALECTS["pi"].find_version(version)
    assert (record and record.version) == found


def test_a_scenario_chooses_among_the_versions_that_there_are() -> None:
    """A number without quotes is a version, too."""
    for version, module in (("0.73", "pi"), ("1.6.0", "pi_1")):
        scenario = loads(f"scenario: a\nagent: {{dialect: pi, version: {version}}}\nscript: []\n")
        assert scenario.dialect_record.list_encoder_modules("json")[-1].endswith(f".{module}")


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("pi, version: 2.0.0", "the fake of pi imitates no version 2.0.0: known are 1.6.0 or 0.73.1"),
        ("gemini, version: 1.0.0", "the fake of gemini imitates no version 1.0.0: known is 0.61.0"),
        ("raw, version: 1.0.0", "the fake of raw imitates no version 1.0.0: leave version out"),
    ],
)
def test_a_version_that_no_fake_imitates_is_a_mistake(agent: str, words: str) -> None:
    """The message names those that there are."""
    with pytest.raises(ScenarioError, match=words):
        loads(f"scenario: a\nagent: {{dialect: {agent}}}\nscript: []\n")
