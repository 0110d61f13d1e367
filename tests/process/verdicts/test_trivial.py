"""The scenarios that trivial supervisors pass: such a scenario asks for no more than they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.subjects import KillsAgentAtOnce, NeverStartsAgent, StartsAgentAndReturns, UsesSubprocessRun
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations
from tests.bundled import load_all_bundled, load_first_of_each_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject

pytestmark = pytest.mark.usefixtures("small_heap")

UNSTARTABLE = [
    "cannot-be-executed[raw]",
    "cannot-be-executed[pi]",
    "cannot-be-found",
    "interpreter-cannot-be-found[raw]",
    "interpreter-cannot-be-found[pi]",
]
UNSTARTABLE_FIRST = [name for name in UNSTARTABLE if not name.endswith("[pi]")]
_DIALECTS_OF_RUNS = ("raw", "claude", "codex", "pi", "opencode", "gemini")
_DIALECTS_OF_SESSIONS = ("acp", "claude", "codex", "pi")
NEED_A_PROGRAM = [
    f"session-loses-its-{what}[{dialect}]"
    for what in ("program-between-two-turns", "terminal-between-two-turns", "terminal-in-a-turn")
    for dialect in _DIALECTS_OF_SESSIONS
] + [f"run-loses-its-terminal[{dialect}]" for dialect in _DIALECTS_OF_RUNS]
SCORES: dict[str, dict[str, list[str]]] = {
    # verdict: scenarios; every scenario that is not named here fails, but for those that need a program
    "null": {
        "not exercised": [
            "codex-thinks-after-its-answer",
            *(
                f"{name}-is-empty[{dialect}]"
                for name in ("empty-answer", "session-empty-answer")
                for dialect in ("claude", "pi")
            ),
            "claude-run-is-cancelled",
            "codex-run-is-cancelled",
            "scope-of-a-run-that-ignores-term-is-cancelled",
            "run-that-ignores-term-is-cancelled",
            "run-is-cancelled[gemini]",
            "pi-run-is-cancelled",
            "run-in-a-scope-is-cancelled-as-it-ends-its-agent",
            "run-is-cancelled-as-it-ends-its-agent",
            "run-is-cancelled[raw]",
            "run-with-servers-in-a-scope-is-cancelled",
            "run-with-servers-is-cancelled",
            "sees-its-prompt",
            *(f"sees-its-prompt-on-stdin[{dialect}]" for dialect in ("claude", "codex", "opencode")),
            *(f"sees-a-large-prompt-on-stdin[{dialect}]" for dialect in ("claude", "codex", "opencode")),
            "run-is-cancelled[opencode]",
            *(f"scope-of-a-run-is-cancelled[{dialect}]" for dialect in _DIALECTS_OF_RUNS),
        ]
    },
    "subprocess.run": {
        "passed": [
            *UNSTARTABLE,
            "machine-sleeps-while-the-agent-works[raw]",
            "machine-sleeps-within-the-longest-runtime[raw]",
            "opencode-is-denied-its-tool",
            *(f"scope-of-a-run-is-cancelled[{dialect}]" for dialect in ("codex", "opencode", "pi")),
            "tree-launcher-is-gone-before-the-silence",
            "run-is-cancelled[opencode]",
            *(f"session-is-cancelled-between-two-turns[{dialect}]" for dialect in ("acp", "codex", "pi")),
            "stderr-flood[raw]",
            "big-prompt-late-reader",
            "claude-closes-stdin-and-lingers",
            "claude-half-a-surrogate-pair",
            *(f"ended-run-is-not-repeated[{dialect}]" for dialect in ("claude", "codex", "gemini", "opencode", "pi")),
            "claude-exits-before-it-reads",
            "codex-plan-is-no-tool",
            "codex-run-is-cancelled",
            "scope-of-a-run-that-ignores-term-is-cancelled",
            "run-that-ignores-term-is-cancelled",
            "exits-143-of-its-own-accord",
            "exits-at-the-deadline",
            "fails-at-the-deadline",
            "run-is-cancelled[gemini]",
            "gemini-text-exit-code",
            "killed-from-outside",
            "last-output-at-the-deadline",
            "line-as-long-as-can-be",
            "pi-run-is-cancelled",
            "run-in-a-scope-is-cancelled-as-it-ends-its-agent",
            "run-is-cancelled-as-it-ends-its-agent",
            "run-is-cancelled[raw]",
            "sees-its-prompt-plain",
            "sees-its-prompt",
            *(f"sees-its-prompt-on-stdin[{dialect}]" for dialect in ("claude", "codex", "opencode")),
            *(f"sees-a-large-prompt-on-stdin[{dialect}]" for dialect in ("claude", "codex", "opencode")),
            *(f"run-is-not-repeated[{dialect}]" for dialect in ("claude", "codex", "gemini", "opencode", "pi")),
            "split-utf8-plain",
            "stderr-tail-is-its-end",
            "talks-before-it-reads",
        ],
        "undecided": ["claude-subagent-has-another-model"],
    },
}


def _find_verdict(runner: ScenarioRunner, scenario: Scenario, subject: Subject) -> Verdict:
    try:
        return choose_overall_verdict(judge_all_expectations(runner.play(scenario, subject)))
    except NotApplicable:
        return Verdict.NOT_APPLICABLE


def _count_verdicts(runner: ScenarioRunner, subject: Subject, scenarios: Collection[Scenario]) -> dict[str, list[str]]:
    """Give the scenarios by verdict, without the failed ones; those that need a program are not applicable to all."""
    score: dict[str, list[str]] = {}
    for scenario in (candidate for candidate in scenarios if candidate.level != "info"):
        verdict = _find_verdict(runner, scenario, subject)
        if verdict is not Verdict.FAILED:
            score.setdefault(verdict.value, []).append(scenario.id)
    assert set(score.pop("not applicable")) == {*NEED_A_PROGRAM} & {scenario.id for scenario in scenarios}
    return score


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("make", [NeverStartsAgent, UsesSubprocessRun], ids=lambda make: str(make.name))
def test_a_trivial_subject_scores_what_it_is_worth(runner: ScenarioRunner, make: Callable[[], Subject]) -> None:
    """A scenario that becomes green for one of them has lost what made it worth playing."""
    subject = make()
    wanted = {verdict: sorted(names) for verdict, names in SCORES[subject.name].items()}
    found = _count_verdicts(runner, subject, load_all_bundled())
    assert {verdict: sorted(names) for verdict, names in found.items()} == wanted


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("make", [KillsAgentAtOnce, StartsAgentAndReturns], ids=lambda make: str(make.name))
def test_a_subject_that_hears_no_agent_passes_where_none_can_start(
    runner: ScenarioRunner, make: Callable[[], Subject]
) -> None:
    """What the agents of one file print makes no difference to it: one of them is played."""
    subject = make()
    score = _count_verdicts(runner, subject, load_first_of_each_file(load_all_bundled()))
    for process in getattr(subject, "forgotten", ()):
        process.wait()
    assert score == {"passed": UNSTARTABLE_FIRST}


def test_null_passes_no_scenario_that_decides() -> None:
    """A supervisor that starts nothing must never look conformant."""
    passed = SCORES["null"].get("passed", [])
    assert [scenario.id for scenario in load_all_bundled() if scenario.level == "must" and scenario.id in passed] == []
