"""Holds each conversation with the real CLI and with the fake, and makes the page of what is the same.

`python -m tests.fidelity.drift --page` writes the page again.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from tests.clients.packages import NPM
from tests.fidelity.allowed import ALLOWED
from tests.fidelity.comparing import list_differences, list_kinds
from tests.fidelity.conversations import CONVERSATIONS
from tests.fidelity.model_server import ModelServer
from tests.fidelity.running import PACKAGES, RealCLI, run_program
from tests.fidelity.serve.client import run_server
from tests.fidelity.signals import read_measured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fidelity.conversation import Conversation
    from tests.fidelity.running import CliRun

__all__ = ["PAGE", "HeldConversation", "hold_conversation", "hold_with_real_cli", "write_page_text"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "fidelity.md"
_HEAD = """# What the fakes have in common with the real CLIs

`tests/fidelity` installs the pinned release of each CLI, and gives it a scripted model on the same machine. Then it has
the same conversation with the real CLI and with the fake. It compares the kinds and the order of all events, their keys
and types, the exit code, and the first line of stderr. A difference that is not in the list below fails the test. This
page is made by `python -m tests.fidelity.drift --page`.

| CLI | release | conversation | events | differences |
| --- | --- | --- | --- | --- |
"""
_SIGNALS = """
## Signals

`python -m tests.fidelity.signals` brings each CLI into a state, and sends it a signal. A dash as exit code means that
it lives on. A second signal changes nothing. The fakes do the same, except for that of ACP, which does what
`opencode acp` does; `claude-agent-acp` (here `claude acp`) exits by itself.

| CLI | mode | state | signal | exit code | the tool | what it still prints |
| --- | --- | --- | --- | --- | --- | --- |
"""
_LIST = """
## Allowed differences

| number | where | difference | why the fake differs |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class HeldConversation:
    """A conversation that was held twice.

    Args:
        events: the kinds of the real CLI's events.
        found: how the fake differs.
    """

    events: list[str]
    found: list[str]

    def find_allowing_entries(self, conversation: Conversation) -> dict[str, int | None]:
        """Give for each difference the entry of the list that allows it; None: none does."""
        entries = list(enumerate(ALLOWED, 1))
        return {
            difference: next(
                (
                    number
                    for number, (where, form, _) in entries
                    if fnmatchcase(conversation.id, where) and fnmatchcase(difference, form)
                ),
                None,
            )
            for difference in self.found
        }


@cache
def hold_conversation(conversation: Conversation) -> HeldConversation:
    """Hold a conversation with both."""
    real = hold_with_real_cli(conversation)
    agent = conversation.agent or conversation.cli
    with ScenarioRunner() as runner, tempfile.TemporaryDirectory() as folder:
        fake = runner.make_fake(loads(f"scenario: x\nagent: {agent}\nscript: {conversation.script}\n", "x"))
        work = Path(folder) / "work"
        work.mkdir()
        printed = _hold_with_server(conversation, fake.path, {"LANG": "C.UTF-8", "HOME": folder}, work, None)
        fault = fake.first_fault
        fake.finish()
    assert fault is None, fault
    return HeldConversation(list_kinds(real.stdout), list_differences(real, printed))


def hold_with_real_cli(conversation: Conversation, packages: Mapping[str, str] | None = None) -> CliRun:
    """Hold a conversation with the real CLI; `packages` as for `RealCLI`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, ModelServer() as server:
        cli = RealCLI(conversation.cli, Path(home), server.url, packages)
        return _hold_with_server(conversation, cli.path, dict(cli.environ), cli.folder, server)


def _hold_with_server(
    conversation: Conversation, path: str, environ: dict[str, str], folder: Path, server: ModelServer | None
) -> CliRun:
    session = ""
    if conversation.before:
        before = run_program([path, *conversation.before], environ, folder)
        session = _find_session_id(before.stdout)
    if server is not None:
        server.answer_with(*conversation.replies)
    argv = [word.replace("{session}", session) for word in conversation.argv]
    environ = {**environ, **conversation.environ}
    if conversation.requests:
        return run_server([path, *argv], environ, folder, conversation.requests, conversation.limit)
    run = run_program([path, *argv], environ, folder, conversation.stdin, conversation.talk, conversation.limit)
    return replace(run, stdout=_read_session_files(Path(environ["HOME"])), stderr="") if conversation.keeps else run


_ANY_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _read_session_files(home: Path) -> str:
    """Give the lines of all session files, each file after a line with its name: what differs in every run is `0`."""
    lines = []
    for file in sorted(home.rglob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns):
        name = str(file.relative_to(home))
        for own in (home.name, re.sub("[^a-zA-Z0-9]", "-", home.name)):
            name = name.replace(own, "HOME")
        name = re.sub("[0-9]+", "0", _ANY_ID.sub("ID", name))
        lines += [json.dumps({"type": name}), *_put_repeated_lines_last(file.read_text("utf-8").splitlines())]
    return "".join(f"{line}\n" for line in lines)


_REPEATED = ("last-prompt", "mode", "atis-latch")
"""The lines that claude repeats whenever it saves, which is a matter of real time."""


def _put_repeated_lines_last(lines: list[str]) -> list[str]:
    """Give the last one of each kind of repeated lines after all others."""
    kinds = [json.loads(line).get("type") for line in lines]
    last = {kind: line for kind, line in zip(kinds, lines, strict=True) if kind in _REPEATED}
    others = [line for kind, line in zip(kinds, lines, strict=True) if kind not in _REPEATED]
    return [*others, *(last[kind] for kind in _REPEATED if kind in last)]


def _find_session_id(stdout: str) -> str:
    """Give the id that the first event tells."""
    first = stdout.partition("\n")[0]
    event = json.loads(first) if first.startswith("{") and first.endswith("}") else {}
    return str(event.get("thread_id") or event.get("sessionID") or event.get("id") or "")


def write_page_text() -> str:
    """Make the page."""
    lines = []
    for conversation in CONVERSATIONS:
        result = hold_conversation(conversation)
        numbers = sorted({number or 0 for number in result.find_allowing_entries(conversation).values()})
        version = next(iter(NPM[PACKAGES[conversation.cli]].values()))
        text = ", ".join(str(number or "NOT ALLOWED") for number in numbers) or "none"
        lines.append(
            f"| {conversation.cli} | {version} | {conversation.name} | {len(result.events) or 'text'} | {text} |"
        )
    allowed = [f"| {number} | {where} | `{form}` | {why} |" for number, (where, form, why) in enumerate(ALLOWED, 1)]
    return "\n".join([_HEAD + "\n".join(lines), write_signal_table() + _LIST + "\n".join(allowed), ""])


def write_signal_table() -> str:
    """Make the section about signals from the measured facts."""
    rows = []
    for key, seen in read_measured().items():
        code, fate, *kinds = seen.split(" ")
        if "+" not in key[3]:
            rows.append(f"| {' | '.join(key)} | {code} | {fate} | {', '.join(kinds) or '-'} |")
    return _SIGNALS + "\n".join(rows) + "\n"
