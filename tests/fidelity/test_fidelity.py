"""The fakes do what the real CLIs do: each conversation is held with both, and only listed differences are allowed."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from tests.fidelity.allowed import ALLOWED
from tests.fidelity.app_server_schema import SCHEMA, format_schema, generate_release_schema
from tests.fidelity.comparing import list_differences
from tests.fidelity.conversations import CONVERSATIONS
from tests.fidelity.model_server import ModelServer
from tests.fidelity.running import CliRun, RealCLI, run_program
from tests.fidelity.table import PAGE, hold_conversation, write_page_text

if TYPE_CHECKING:
    from tests.fidelity.conversation import Conversation

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.id)
def test_a_fake_does_what_the_real_cli_does(conversation: Conversation) -> None:
    """A new difference is mended in the fake, or stands in the list with its reason."""
    allowed = hold_conversation(conversation).find_allowing_entries(conversation)
    assert [difference for difference, number in allowed.items() if number is None] == []


def test_each_allowed_difference_is_still_there() -> None:
    """An entry that allows nothing any more is removed."""
    used = {
        number
        for conversation in CONVERSATIONS
        for number in hold_conversation(conversation).find_allowing_entries(conversation).values()
    }
    assert [where for number, (where, _, _) in enumerate(ALLOWED, 1) if number not in used] == []
    assert [
        where
        for where, _, _ in ALLOWED
        if not any(fnmatchcase(conversation.id, where) for conversation in CONVERSATIONS)
    ] == []


def test_the_page_is_what_the_conversations_say() -> None:
    """A new release is one changed pin, and what it changes is read first: `python -m tests.fidelity.drift`."""
    assert write_page_text() == PAGE.read_text("utf-8")


def test_the_schema_of_the_app_server_is_that_of_the_pinned_release() -> None:
    """Mended by `python -m tests.fidelity.app_server_schema`, whose diff shows what a new release changes."""
    assert format_schema(generate_release_schema()) == SCHEMA.read_text("utf-8")


SHARED_SESSIONS = [
    ("claude", ("-p",), ("--continue",), "Bash"),
    ("codex", ("exec", "--skip-git-repo-check"), ("resume", "--last"), "command_execution"),
    ("pi", ("--provider", "fake", "--model", "m1", "-p"), ("--continue",), "bash"),
]


@pytest.mark.parametrize(("name", "run", "latest", "tool"), SHARED_SESSIONS, ids=[case[0] for case in SHARED_SESSIONS])
def test_the_real_cli_and_the_fake_share_a_session(name: str, run: list[str], latest: list[str], tool: str) -> None:
    """A file that the real CLI could not read, or in which the fake found no session, would be no session file."""
    call = f"{{tool: {json.dumps({'id': 'a', 'name': tool, 'input': {'command': 'ls'}})}}}"
    script = f"[{{say: look}}, {call}, {{tool_done: {{id: a, output: hi}}}}, {{answer: done}}]"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, ModelServer() as server:
        cli = RealCLI(name, Path(home), server.url)
        with ScenarioRunner() as runner:
            fake = runner.make_fake(loads(f"scenario: x\nagent: {name}\nscript: {script}\n", "x"))
            environ = {name: cli.environ[name] for name in ("HOME", "LANG")}
            done = [run_program([fake.path, *run, "first"], environ, cli.folder)]
            done.append(run_program([cli.path, *run, *latest, "second"], cli.environ, cli.folder))
            done.append(run_program([fake.path, *run, *latest, "third"], environ, cli.folder))
            fake.finish()
        assert [each.code for each in done] == [0, 0, 0], done
        (text,) = [file.read_text("utf-8") for file in Path(home).rglob("*.jsonl")]
        assert [word in text for word in ("first", "second", "third")] == [True, True, True]


EVENT = {"type": "result", "subtype": "success", "usage": {"input": 1}, "errors": ["a"]}
CHANGED = [
    ({**EVENT, "usage": {}}, ["result.success: the fake lacks usage.input (number)"]),
    ({**EVENT, "extra": None}, ["result.success: only the fake has extra (null)"]),
    ({**EVENT, "errors": "a"}, ["result.success: errors is list, in the fake str"]),
    ({**EVENT, "usage": {"input": 7.5}, "errors": ["b"]}, []),
    (
        {**EVENT, "subtype": "error"},
        ["after the start: the fake lacks result.success", "after the start: only the fake has result.error"],
    ),
]


@pytest.mark.parametrize(("changed", "found"), CHANGED)
def test_a_changed_key_or_type_is_a_difference(changed: dict[str, object], found: list[str]) -> None:
    """Values are not compared."""
    real = CliRun(0, json.dumps(EVENT) + "\n" + json.dumps({"type": "end"}) + "\n", "")
    fake = replace(real, stdout=json.dumps(changed) + "\n" + json.dumps({"type": "end"}) + "\n")
    assert list_differences(real, fake) == found


def test_code_text_and_the_first_line_of_stderr_are_compared() -> None:
    """The rest of stderr is not: it has stacks and help texts."""
    found = list_differences(CliRun(1, "a\n", "no\nmore"), CliRun(2, "b\n", "yes\nmore"))
    assert found == [
        "exit code: 1, the fake has 2",
        "first line of stderr: 'no', the fake has 'yes'",
        "text: 'a\\n', the fake has 'b\\n'",
    ]
