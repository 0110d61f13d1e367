"""The table of what changed between two releases, with recorded outputs: no CLI is installed, and no registry asked."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fidelity.command_lines import Refusal
from tests.fidelity.conversations import CONVERSATIONS
from tests.fidelity.drift import Drift, Release, compare_plays, compare_refusals, format_drift, mask
from tests.fidelity.running import CliRun

RECORDINGS = Path(__file__).parents[1] / "data" / "drift-recordings.jsonl"
"""What two releases of claude, codex and pi printed; long texts and lists are cut."""


def _read_recordings(name: str) -> list[CliRun]:
    rows = [json.loads(line) for line in RECORDINGS.read_text("utf-8").splitlines()]
    return [CliRun(row["code"], row["stdout"], row["stderr"]) for row in rows if row["conversation"] == name]


def _compare(name: str) -> set[tuple[str, str, str]]:
    [conversation] = [conversation for conversation in CONVERSATIONS if conversation.id == name]
    return {
        (drift.change, drift.what, drift.notice.partition(":")[0])
        for drift in compare_plays(conversation, *_read_recordings(name))
    }


def test_a_new_key_that_no_supervisor_reads_is_new_and_not_noticed() -> None:
    """Claude 2.1.332 has one key more in its first line."""
    assert _compare("claude: hello") == {("new", "`sandbox_enabled` (bool) in `system.init`", "no")}


def test_new_keys_of_a_session_are_not_noticed_either() -> None:
    """The app server is read by the supervisor's half for sessions; codex 0.171.0 only has more keys."""
    found = _compare("codex: app-server: hello")
    assert ("new", "`params.item.startedAtMs` (number) in `item/started.agentMessage`", "no") in found
    assert {(change, notice) for change, _, notice in found} == {("new", "no")}


def test_new_lines_lost_lines_and_keys_that_are_read_are_told_apart() -> None:
    """Release 1.6.0 of pi has a message of the system, settles, counts reasoning, and repeats no message."""
    found = _compare("pi: hello")
    assert ("new", "line `agent_settled` after `agent_end`", "no") in found
    assert ("new", "`message.usage.reasoning` (number) in `message_end.assistant.text`", "yes") in found
    assert (
        "gone",
        "line `message_update.text_delta.assistant.text` after `message_start.assistant`",
        "maybe",
    ) in found


def test_the_same_output_has_no_row() -> None:
    """Values of events differ in each run, and are not compared."""
    assert _compare("pi: hello, as text") == set()
    assert _compare("pi: a session that does not exist") == set()


def test_a_lost_end_and_another_exit_code_are_noticed() -> None:
    """The reference supervisor is not told that the run is over."""
    [conversation] = [conversation for conversation in CONVERSATIONS if conversation.id == "claude: hello"]
    first = _read_recordings("claude: hello")[0]
    lines = first.stdout.splitlines(keepends=True)
    second = replace(first, stdout="".join(line for line in lines if '"type": "result"' not in line), code=1)
    found = compare_plays(conversation, first, second)
    assert [(drift.change, drift.what, drift.notice) for drift in found] == [
        ("different", "exit code: 0 to 1", "yes: it is how the run ended"),
        ("gone", "line `result.success` after `assistant.message.text`", "yes: the reference supervisor reads it"),
    ]


def test_a_key_with_another_type_is_noticed_if_it_is_read() -> None:
    """The answer of claude is a text; its number of turns is not read."""
    [conversation] = [conversation for conversation in CONVERSATIONS if conversation.id == "claude: hello"]
    first = _read_recordings("claude: hello")[0]
    for key, notice in (("result", "yes"), ("num_turns", "maybe")):
        rows = [json.loads(line) for line in first.stdout.splitlines()]
        rows[-1][key] = ["hello"]
        found = compare_plays(
            conversation, first, replace(first, stdout="".join(f"{json.dumps(row)}\n" for row in rows))
        )
        assert [(drift.change, drift.notice.partition(":")[0]) for drift in found if f"`{key}`" in drift.what] == [
            ("different", notice)
        ]


ANSWERS = Refusal(0, True, "", "")
REFUSED = Refusal(1, False, "", "Error: no")


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (ANSWERS, ANSWERS, []),
        (ANSWERS, REFUSED, [("exit code: 0 to 1", "yes"), ("model is asked: True to False", "yes")]),
        (REFUSED, replace(REFUSED, stderr="No"), [("first line of stderr: 'Error: no' to 'No'", "yes")]),
        (Refusal(0, False, "a", "b"), Refusal(0, False, "a", "c"), [("first line of stderr: 'b' to 'c'", "no")]),
        (Refusal(0, False, "a", ""), Refusal(0, False, "b", ""), [("first line of stdout: 'a' to 'b'", "yes")]),
    ],
)
def test_a_command_line_is_compared_by_its_end_its_prompt_and_its_words(
    first: Refusal, second: Refusal, found: list[tuple[str, str]]
) -> None:
    """Words on stderr beside a success are for a person."""
    drifts = compare_refusals("pi", "-p hi", first, second)
    assert [(drift.what, drift.notice.partition(":")[0]) for drift in drifts] == found


def test_what_differs_in_each_run_is_masked() -> None:
    """A version, an id, a port and a folder are no differences."""
    home = Path(tempfile.gettempdir(), "tmpab_1")
    ids = "11111111-2222-4333-8444-555555555555 at 127.0.0.1:80"
    text = f"pi 1.6.0: {ids} in {home}/x, 2026-11-29T06:03:28.750Z"
    assert mask(text, "1.6.0") == "pi <version>: <id> at <server> in <home>/x, <instant>"


def test_the_table_begins_with_what_a_supervisor_notices_and_has_each_difference_once() -> None:
    """What was not played for lack of time is named."""
    releases = [Release("claude", "@anthropic-ai/claude-code", "2.1.330", "2.1.332")]
    drifts = [
        Drift("claude", "new", "`a` (str) in `x`", "hello", "no: the reference supervisor passes over it"),
        Drift("claude", "new", "`a` (str) in `x`", "a tool", "no: the reference supervisor passes over it"),
        Drift("claude", "new", "`a` (str) in `x`", "an error", "no: the reference supervisor passes over it"),
        Drift("claude", "gone", "line `y` after `x`", "hello", "yes: the reference supervisor reads it"),
    ]
    assert format_drift(releases, drifts, ["claude: hello, as text"]) == (
        "# What changed in the newest releases\n\n"
        "| CLI or client | package | imitated | newest |\n"
        "| --- | --- | --- | --- |\n"
        "| claude | @anthropic-ai/claude-code | 2.1.330 | 2.1.332 |\n\n"
        "| name | change | what | where | would a supervisor notice? |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| claude | gone | line `y` after `x` | hello | yes: the reference supervisor reads it |\n"
        "| claude | new | `a` (str) in `x` | hello, a tool and 1 more | no: the reference supervisor passes over it |\n"
        "\n"
        "Not played, as the time was over: claude: hello, as text.\n"
    )
    assert format_drift(releases, []).endswith("\n\nNothing changed.\n")
