"""An option that a fake accepts does what it does in the real CLI; `tests/fidelity` compares both."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.process.fakes.test_flags import make_fake

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import FakeAgent, ScenarioRunner

EXEC = ["exec", "--skip-git-repo-check"]
SCHEMA = ["--json-schema", '{"type": "object"}']
STREAM = ["-p", "--output-format", "stream-json", "--verbose"]
TOOL = "[{tool: {id: a, name: Bash, input: {}}}, {tool_done: {id: a, output: x}}, {answer: done}]"
RAW = (
    '[{event: {type: item.completed, item: {type: agent_message, text: "raw"}}}, '
    "{event: {type: turn.completed, usage: {}}}]"
)
NO_MESSAGE = "Warning: no last agent message; wrote empty content to last.txt"
MESSAGES = [
    ("[{answer: done}]", ["--json"], "done", ""),
    ("[{answer: done}]", [], "done", ""),
    ("[{say: first}, {result: {}}]", ["--json"], "first", ""),
    (RAW, ["--json"], "raw", ""),
    ("[{result: {}}]", ["--json"], "", NO_MESSAGE),
    ("[{say: part}, {result: {is_error: true, text: no}}]", ["--json"], "old", ""),
    ("[{say: part}, {exit: 3}]", ["--json"], "old", ""),
]


def start(fake: FakeAgent, folder: Path, argv: list[str]) -> subprocess.CompletedProcess[str]:
    """Start it in a folder."""
    null = subprocess.DEVNULL
    command = [fake.path, *argv, "hi"]
    return subprocess.run(command, stdin=null, capture_output=True, text=True, check=False, timeout=60, cwd=folder)


@pytest.mark.parametrize(("script", "argv", "text", "warning"), MESSAGES)
def test_codex_writes_its_last_message_into_the_file(
    runner: ScenarioRunner, tmp_path: Path, script: str, argv: list[str], text: str, warning: str
) -> None:
    """A turn that fails or breaks off leaves the file as it was."""
    (tmp_path / "last.txt").write_text("old", "utf-8")
    completed = start(make_fake(runner, "codex", script), tmp_path, [*EXEC, *argv, "-o", "last.txt"])
    assert (tmp_path / "last.txt").read_text("utf-8") == text
    assert (NO_MESSAGE in completed.stderr) == bool(warning)


@pytest.mark.parametrize(
    ("path", "words"), [("no/x", "No such file or directory (os error 2)"), (".", "Is a directory (os error 21)")]
)
def test_codex_ends_if_the_file_cannot_be_opened(runner: ScenarioRunner, tmp_path: Path, path: str, words: str) -> None:
    """It has read stdin before, as the real one has."""
    completed = start(make_fake(runner, "codex"), tmp_path, [*EXEC, "--json", "--output-last-message", path])
    assert (completed.returncode, completed.stdout) == (1, "")
    assert completed.stderr.splitlines() == [
        "Reading additional input from stdin...",
        f'Error: Failed to open last message file "{path}": {words}',
    ]


def test_claude_gives_an_answer_in_json_as_the_structure_that_a_schema_asks_for(
    runner: ScenarioRunner, tmp_path: Path
) -> None:
    """The real one calls a tool with it."""
    fake = make_fake(runner, "claude", "[{answer: '{\"a\": 1}'}]")
    lines = [json.loads(line) for line in start(fake, tmp_path, [*STREAM, *SCHEMA]).stdout.splitlines()]
    assert lines[1]["message"]["content"][0]["name"] == "StructuredOutput"
    assert (lines[-1]["result"], lines[-1]["structured_output"]) == ('{"a":1}', {"a": 1})
    assert start(fake, tmp_path, ["-p", *SCHEMA]).stdout == '{"a":1}\n'


def test_claude_asks_once_more_for_a_structure_and_then_gives_the_text(runner: ScenarioRunner, tmp_path: Path) -> None:
    """A result of text has no `structured_output`."""
    fake = make_fake(runner, "claude", "[{answer: done}]")
    lines = [json.loads(line) for line in start(fake, tmp_path, [*STREAM, *SCHEMA]).stdout.splitlines()]
    assert [line["type"] for line in lines] == ["system", "assistant", "user", "assistant", "result"]
    assert "structured_output" not in lines[-1]


@pytest.mark.parametrize(
    ("most", "code", "text"), [("1", 1, "Error: Reached max turns (1)"), ("2", 0, "done\n"), ("0", 0, "done\n")]
)
def test_claude_asks_its_model_no_more_often_than_allowed(
    runner: ScenarioRunner, tmp_path: Path, most: str, code: int, text: str
) -> None:
    """The turn ends after the tools of the last message."""
    fake = make_fake(runner, "claude", TOOL)
    completed = start(fake, tmp_path, ["-p", "--max-turns", most])
    assert (completed.returncode, completed.stdout) == (code, text)
    last = json.loads(start(fake, tmp_path, [*STREAM, "--max-turns", most]).stdout.splitlines()[-1])
    assert last["subtype"] == ("error_max_turns" if code else "success")


def test_claude_begins_in_the_permission_mode_of_its_arguments(runner: ScenarioRunner, tmp_path: Path) -> None:
    """Its first event names the mode."""
    fake = make_fake(runner, "claude", "[{answer: done}]")
    asked = {(): "default", ("--permission-mode", "plan"): "plan"}
    asked[("--dangerously-skip-permissions",)] = "bypassPermissions"
    for options, mode in asked.items():
        first = json.loads(start(fake, tmp_path, [*STREAM, *options]).stdout.splitlines()[0])
        assert first["permissionMode"] == mode
