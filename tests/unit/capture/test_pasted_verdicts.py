"""The draft of a pasted log passes where the supervisor is right, and fails where it has the bug of the report."""

from __future__ import annotations

import pytest

from pytest_agentproc.capture import draft_scenario_from_log, find_draft_differences
from pytest_agentproc.defects import find_defect
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import Scenario, loads
from pytest_agentproc.subjects import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from tests.unit.capture.test_paste import LOGS, PASTED

REPORTED = {
    "api-error.claude": "any-result-is-good",
    "app-server-asks.codex": "question-is-denied",
    "app-server-exits-in-a-turn.codex": "",
    "app-server-gets-no-answer.codex": "questions-wait-for-ever",
    "app-server-loses-its-end.codex": "prompts-never-time-out",
    "app-server-refuses-a-prompt.codex": "",
    "cancel-ignored.acp": "callers-cancel-waits-for-ever",
    "client-cannot-read.acp": "",
    "empty-response.gemini": "",
    "ended-by-the-shell.claude": "",
    "error-without-an-end.codex": "",
    "history-within-log-lines.acp": "history-answers-the-next-prompt",
    "killed-in-a-long-tool.claude": "internal-tools-ignored",
    "killed-while-a-tool-prints.pi": "duration-timeout",
    "killed-while-a-tool-runs.claude": "internal-tools-ignored",
    "killed-while-it-compacts.claude": "compaction-is-silence",
    "killed-while-it-streams.claude": "duration-timeout",
    "lingers-after-its-last-step.opencode": "waits-for-exit",
    "lingers-after-its-turn.codex": "waits-for-exit",
    "lingers-after-result.claude": "waits-for-exit",
    "no-descriptors-left.codex": "start-error-is-failed",
    "no-money.opencode": "any-result-is-good",
    "not-installed.claude": "start-error-is-failed",
    "notification-before-the-end.pi": "escape-costs-the-frame",
    "only-a-handshake.acp": "escape-costs-the-frame",
    "only-the-stdout-of-rpc.pi": "escape-costs-the-frame",
    "permission-asked.acp": "question-is-denied",
    "permission-never-answered.claude": "questions-wait-for-ever",
    "plain-text.raw": "signal-is-exit-0",
    "plan-question.claude": "questions-wait-for-ever",
    "prompt-after-a-cancel.acp": "cancel-stops-the-agent",
    "prompt-after-an-abort.pi": "prompts-never-time-out",
    "prompt-after-an-interrupt.claude": "cancel-stops-the-agent",
    "quota.gemini": "any-result-is-good",
    "quoted-json.gemini": "",
    "reconnects.codex": "error-is-the-end",
    "refusal-and-error.acp": "any-result-is-good",
    "rejected-by-the-server.codex": "any-result-is-good",
    "run-sync-hangs.pi": "waits-for-exit",
    "second-prompt-refused.acp": "any-result-is-good",
    "shell-session.raw": "exit-code-unread",
    "silent-exit.codex": "exit-0-is-success",
    "stalls-after-a-tool.opencode": "",
    "thread-and-nothing-more.codex": "",
    "timed-lines.raw": "",
    "title-before-the-handshake.acp": "escape-costs-the-frame",
    "tool-killed.pi": "any-stop-reason",
    "tries-again-in-a-session.pi": "",
    "tries-again.pi": "never-withdraws",
    "warning-in-a-turn.codex": "",
}
"""The logs, and the defect that each reports; empty: the fault is the agent's own, or no defect has it."""


def _find_failed_keys(scenario: Scenario, subject: ReferenceSupervisor) -> list[str]:
    return [row.key for row in judge_all_expectations(run_in_model(scenario, subject)) if row.verdict is Verdict.FAILED]


@pytest.mark.parametrize("name", REPORTED)
def test_a_draft_judges_what_its_report_is_about(name: str) -> None:
    """A draft that passes with the bug of its report is about something else."""
    text = (PASTED / f"{name}.txt").read_text("utf-8")
    scenario = loads(draft_scenario_from_log(text, name.rpartition(".")[2], f"{name}.txt"), f"{name}.scenario.yaml")
    assert _find_failed_keys(scenario, reference_supervisor()) == []
    if REPORTED[name]:
        defect = find_defect(REPORTED[name])
        assert _find_failed_keys(scenario, ReferenceSupervisor(defect.name, defect.deciders, defect.session_deciders))


def test_each_pasted_log_is_judged() -> None:
    """A draft that nobody judges may be about something else."""
    assert {*REPORTED} == {log.stem for log in LOGS}


_ITEM = '{"method":"item/completed","params":{"turnId":"u","item":{"type":"agentMessage","id":"i","text":"hello"}}}\n'
_RESULT = '{"type":"result","subtype":"success","is_error":false,"result":"a"}\n'


@pytest.mark.parametrize(
    ("dialect", "log", "found"),
    [
        ("codex", f'{{"method":"warning","params":{{"message":"lagged"}}}}\n{_ITEM}', []),
        ("codex", '{"type":"thread.started"}\n{"type":"item.completed","item":{"type":"agent_message","text":"a"}}\n',
         ["prints besides: turn.started"]),
        ("claude", f'{{"type":"user","message":{{"content":[{{"type":"image"}}]}}}}\n{_RESULT}', []),
        ("claude", _RESULT, []),
    ],
)  # fmt: skip
def test_what_the_fake_of_a_draft_prints_otherwise_is_named(dialect: str, log: str, found: list[str]) -> None:
    """A draft that loses an event without a word hides the bug that the event shows."""
    notes = find_draft_differences(draft_scenario_from_log(log, dialect, "log.txt"), log, dialect)
    assert len(notes) == len(found), notes
    assert all(part in note for part, note in zip(found, notes, strict=True))


KNOWN_DIFFERENCES = {
    "api-error.claude": 1,
    "app-server-asks.codex": 1,
    "app-server-gets-no-answer.codex": 1,
    "client-cannot-read.acp": 1,
    "killed-while-a-tool-prints.pi": 1,
    "prompt-after-an-abort.pi": 1,
    "prompt-after-an-interrupt.claude": 1,
    "tries-again.pi": 3,
}
"""How many differences each pasted log has; the others have none."""


@pytest.mark.parametrize("name", REPORTED)
def test_a_draft_prints_what_its_log_has(name: str) -> None:
    """Each event of a log is printed by its draft, or named."""
    log, dialect = (PASTED / f"{name}.txt").read_text("utf-8"), name.rpartition(".")[2]
    notes = find_draft_differences(draft_scenario_from_log(log, dialect, f"{name}.txt"), log, dialect)
    assert len(notes) == KNOWN_DIFFERENCES.get(name, 0), notes
