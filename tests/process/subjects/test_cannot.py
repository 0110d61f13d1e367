"""A supervisor states in words which things it cannot do; scenarios that need them are not applicable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.harness._limit_binding import bind_to_subject
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import Client, Command, Driven, Function, as_subject, load_command_file
from pytest_agentproc.vocabulary import TEXTS_OF_OTHER_NEEDS, LimitsRequest, Policy, RunReport

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

PI = "scenario: x\nagent: {dialect: pi, mode: rpc}\n"
TWICE = "script: [{wait_for: prompt 1}, {answer: a}, {wait_for: prompt 2}, {answer: b}]\n"
ASKS = "script: [{wait_for: prompt 1}, {ask: {permission: rm}}, {answer: a}]\ndrive: [{prompt: x}]\n"


async def supervise_nothing(_order: RunRequest) -> RunReport:
    """Do nothing."""
    return RunReport()


def list_unmet_needs(text: str, *cannot: str) -> str:
    """Give the needs of a scenario that a supervisor of sessions and runs does not meet; nothing if it meets all."""
    try:
        bind_to_subject(loads(text), Function(supervise_nothing, sessions=True, cannot=cannot))
    except NotApplicable as limit:
        return limit.reason()
    return ""


@pytest.mark.parametrize(
    ("drive", "line"),
    [
        ("[{prompt: x}, {prompt: y}]", 0),
        ("[{prompt: x}, {wait_for: turn 1}, {prompt: y}]", 0),
        ("[{prompt: x}, {prompt: y}, {wait: 5s}, {close: {}}]", 0),
        ("[{prompt: x, at: 5s}, {prompt: y}]", 0),
        ("\n  - {prompt: x}\n  - {wait: 5s}\n  - {prompt: y}", 6),
        ("\n  - {prompt: x}\n  - {wait_for: turn 1}\n  - {prompt: y, after: 1s}", 7),
        ("\n  - {prompt: x}\n  - {prompt: y, at: 1s}", 6),
        ("\n  - {prompt: x}\n  - {wait_for: status prompting}\n  - {prompt: y}", 6),
    ],
)
def test_a_batch_client_knows_no_pause_between_prompts(drive: str, line: int) -> None:
    """Its actions after its last prompt, and the end of the turn before, are no pause."""
    text = f"{PI}{TWICE}drive: {drive}\n"
    assert list_unmet_needs(text) == ""
    reason = f"line {line} needs a pause between two prompts, which the subject does not have" if line else ""
    assert list_unmet_needs(text, "pause") == reason


@pytest.mark.parametrize(
    ("handler", "is_needed"),
    [
        ("", True),
        ("handler: {permission: deny}\n", True),
        ("handler: {permission: never}\n", True),
        ("handler: {permission: allow, after: 2s}\n", True),
        ("handler: {permission: allow}\n", False),
    ],
)
def test_a_client_that_always_allows_cannot_deny_or_wait(handler: str, is_needed: bool) -> None:
    """Without a handler a question is denied, which such a client does not do either."""
    text = f"{PI}{handler}{ASKS}"
    assert list_unmet_needs(text) == ""
    reason = "line 1 needs a caller that denies, or that takes time to answer, which the subject does not have"
    assert list_unmet_needs(text, "deny") == (reason if is_needed else "")


def test_an_agent_that_asks_nothing_needs_no_denial() -> None:
    """A question may stand deep in a script, in a second start, too."""
    assert list_unmet_needs(f"{PI}{TWICE}drive: [{{prompt: x}}, {{prompt: y}}]\n", "deny") == ""
    deep = PI + "script:\n  - wait_for: prompt 1\n  - meanwhile: [{ask: {permission: rm}}]\n  - answer: a\n"
    assert "denies" in list_unmet_needs(deep + "drive: [{prompt: x}]\n", "deny")


def test_a_prompt_on_stdin_is_one_ability() -> None:
    """A session's prompts go by its stdin in any case."""
    run = "scenario: x\nagent: {dialect: raw, prompt: stdin}\nscript: [{say: a}]\n"
    assert list_unmet_needs(run) == ""
    assert list_unmet_needs(run, "stdin") == "line 1 needs a prompt on stdin, which the subject does not have"
    assert list_unmet_needs(run.replace("stdin", "argv"), "stdin") == ""
    assert list_unmet_needs(f"{PI}{TWICE}drive: [{{prompt: x}}, {{prompt: y}}]\n", "stdin") == ""


class SubjectWithoutCapabilities:
    """A subject that is no function, and lacks everything."""

    name = "stated"
    keeps_artifacts, holds_sessions = False, True
    cannot = tuple(TEXTS_OF_OTHER_NEEDS)

    def policy(self, request: LimitsRequest) -> Policy:
        """Keep the defaults."""
        return Policy.for_dialect(request.dialect)

    async def run(self, order: RunRequest) -> RunReport:
        """Do nothing."""
        return await supervise_nothing(order)


def test_every_kind_of_subject_states_it(runner: ScenarioRunner, tmp_path: Path) -> None:
    """A client of sessions, an object, a program and its file."""
    file = tmp_path / "mine.toml"
    file.write_text("command = 'x {agent}'\ncannot = ['stdin']\n", "utf-8")
    run = loads("scenario: x\nagent: {dialect: raw, prompt: stdin}\nscript: [{say: a}]\n")
    for subject in (Command(["x", "{agent}"], cannot=["stdin"]), load_command_file(file)):
        with pytest.raises(NotApplicable, match="a prompt on stdin"):
            runner.play_real(run, subject)
    asks = loads(PI + ASKS)
    subjects: list[Any] = [as_subject(SubjectWithoutCapabilities()), Driven(Client, cannot=["deny"])]
    for subject in subjects:
        with pytest.raises(NotApplicable, match="a caller that denies"):
            runner.play(asks, subject)


def test_deeds_are_abilities_too() -> None:
    """One word names the missing part of a session, for every driver of it."""
    cancels = f"{PI}{TWICE}drive: [{{prompt: x}}, {{cancel: {{}}, after: 1s}}]\n"
    assert list_unmet_needs(cancels, "cancel") == "line 4 needs sessions with cancel, which the subject does not have"
    with pytest.raises(UsageError, match="there is no ability 'pauses', did you mean pause"):
        Function(supervise_nothing, cannot=["pauses"])
    assert Function(supervise_nothing, sessions=["prompt", "close"], cannot="close").actions == ("prompt",)
