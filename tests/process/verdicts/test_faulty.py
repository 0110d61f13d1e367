"""Supervisors of other people with one fault each: red on the check that names it, where one without it is green."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.scenario import loads
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from tests.bundled import find_bundled_path, load_bundled
from tests.plugin.examples import careful, faulty, faulty_streams, polling, streaming

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import Subject

PLAIN = {
    "StderrIsNoActivity": "stderr-only: outcome",
    "NothingIsActivity": "output-at-the-deadline: outcome",
    "OnlyWholeLinesAreActivity": "byte-a-minute: outcome",
    "ClosedOutputIsTheEnd": "closes-stdout-talks-on: elapsed",
    "WaitsForTheEndOfOutput": "grandchild-inherits-stdout: outcome",
    "PollsNowAndThen": "silent-then-output: elapsed",
    "TimerBeatsExit": "fails-at-the-deadline: outcome",
    "KillsTheAgentAlone": "silent-with-a-child-that-ignores-term: leaks",
    "KillsTheGroupAlone": "leftover-in-its-own-group: leaks",
    "NeverKills": "silent-and-ignores-term[raw]: leaks",
    "KillsAtOnce": "silent-and-ignores-term[raw]: signals",
    "DoesNotContinue": "stopped-child-is-continued: processes.child.signals",
    "DoesNotReap": "slow-death-is-waited-for: leaks",
    "ReturnsBeforeTheTreeIsGone": "slow-death-is-waited-for: leaks",
    "LeavesLeftovers": "leftover-without-a-parent: leaks",
    "DoesNotReadStderr": "talks-before-it-reads: outcome",
    "StderrIsText": "stderr-only: text",
    "ReadsAfterItWrote": "talks-before-it-reads: outcome",
    "LeavesStdinOpen": "stdin-ends-with-the-prompt[raw]: outcome",
    "LosesLastWords": "last-output-at-the-deadline: text",
    "DecodesEachChunk": "split-utf8-plain: text",
    "ReadsLinesAsAShellDoes": "split-utf8-plain: text",
    "SwallowsTheExitCode": "fails-at-the-deadline: exit_code",
    "AnyExitIsCode1": "fails-at-the-deadline: exit_code",
    "SignalIsSuccess": "killed-from-outside: outcome",
    "TimeoutIsTheAgentsStatus": "silent-past-the-limit: outcome",
    "SpawnFailureRaises": "cannot-be-found: answer",
    "SpawnFailureIsNotFound": "cannot-be-executed[raw]: exit_code",
    "OwnEnvironment": "sees-its-command-line-plain: received.env",
    "OwnFolder": "sees-its-command-line-plain: received.cwd",
    "PromptGetsANewline": "sees-its-prompt-plain: received.stdin",
}
OF_PI = {
    "DecodesEachChunk": "split-utf8: text",
    "ParsesEachChunk": "split-utf8: outcome",
    "DoesNotCountNoise": "noise-between-the-lines[pi]: noise",
    "OneObjectALine": "two-events-on-one-line: outcome",
    "BomIsNoise": "crlf-and-bom: noise",
    "DropsTheLastLine": "last-line-without-newline: outcome",
    "AnyStopEnds": "tool-stop-is-not-completion: text",
    "NothingTakesBack": "goes-on-after-an-error: outcome",
    "FirstWordsStay": "tool-stop-is-not-completion: text",
    "ErrorIsAnAnswer": "lingers-after-an-error: outcome",
    "ExitOverrules": "exits-3-after-a-good-result: outcome",
    "Exit0IsSuccess": "error-with-exit-0: outcome",
    "ExitCodeIsTheAgents": "pi-traps-term-exits-143: exit_code",
    "CrashIsSuccess": "crashes-and-is-not-tried-again: outcome",
    "WaitsForTheExit": "lingers-after-its-answer: returned",
    "NoTimeAfterTheAnswer": "exits-inside-the-grace: signals",
    "ToolsHaveNoTime": "pi-runs-a-long-tool: outcome",
}
CASES = [
    *((f"{faulty.__name__}:{name}", caught) for name, caught in PLAIN.items()),
    *((f"{faulty_streams.__name__}:{name}", caught) for name, caught in OF_PI.items()),
]


def list_failed_checks(runner: ScenarioRunner, name: str, subject: Subject) -> list[str]:
    """List the checks of a bundled scenario that did not pass."""
    rows = judge_all_expectations(runner.play(load_bundled(name), subject))
    return [row.key for row in rows if row.verdict not in (Verdict.PASSED, Verdict.NOT_APPLICABLE)]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize(("fault", "caught"), CASES, ids=[f"{name.rpartition('.')[2]}" for name, _ in CASES])
def test_a_fault_is_red_on_the_check_that_names_it(runner: ScenarioRunner, fault: str, caught: str) -> None:
    """A supervisor that does one thing wrong must not be called conformant: the kit exists for that."""
    module, _, name = fault.partition(":")
    scenario, _, key = caught.partition(": ")
    if module == faulty.__name__:
        assert key in list_failed_checks(runner, scenario, careful.of_plain(getattr(faulty, name)))
    else:
        assert key in list_failed_checks(runner, scenario, streaming.of_pi(getattr(faulty_streams, name)))


LOOKED_AT = [
    *("StderrIsNoActivity", "OnlyWholeLinesAreActivity", "KillsTheAgentAlone", "KillsTheGroupAlone", "NeverKills"),
    *("KillsAtOnce", "DoesNotContinue", "DoesNotReap", "ReturnsBeforeTheTreeIsGone", "LeavesLeftovers"),
    *("DoesNotReadStderr", "StderrIsText", "LeavesStdinOpen", "SignalIsSuccess", "TimeoutIsTheAgentsStatus"),
    *("SpawnFailureRaises", "OwnEnvironment", "PromptGetsANewline"),
]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_fault_is_red_though_its_supervisor_looks_in_turns(runner: ScenarioRunner, name: str) -> None:
    """A delay that comes from its way of looking is forgiven, and nothing else."""
    scenario, _, key = PLAIN[name].partition(": ")
    fault = type(name, (getattr(faulty, name), polling.Polling), {})
    assert key in list_failed_checks(runner, scenario, careful.of_plain(fault))


def test_a_crash_may_be_called_a_failure(runner: ScenarioRunner) -> None:
    """Both words are right for an agent that exits above 0 without a result, and the user loses nothing by either."""
    assert (
        list_failed_checks(runner, "crashes-and-is-not-tried-again", streaming.of_pi(faulty_streams.CrashIsFailure))
        == []
    )


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize(
    ("subject", "table"),
    [
        (careful.subject, PLAIN),
        (streaming.subject, OF_PI),
        (polling.subject, PLAIN),
        (polling.pi, OF_PI),
        (polling.at_the_end, PLAIN),
    ],
    ids=["plain", "pi", "polling", "polling pi", "polling the end"],
)
def test_without_the_fault_it_is_green_there(runner: ScenarioRunner, subject: Subject, table: dict[str, str]) -> None:
    """A check that is red for every supervisor catches no fault."""
    names = dict.fromkeys(caught.partition(": ")[0] for caught in table.values())
    assert {name: checks for name in names if (checks := list_failed_checks(runner, name, subject))} == {}


LATE = [*LOOKED_AT, "PollsNowAndThen", "ClosedOutputIsTheEnd", "TimerBeatsExit", "LosesLastWords", "AnyExitIsCode1"]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("name", LATE)
def test_a_fault_is_red_though_its_supervisor_looks_at_the_end(runner: ScenarioRunner, name: str) -> None:
    """Its actions before the first look are exact, and the later ones are late only by its looks."""
    scenario, _, key = PLAIN[name].partition(": ")
    fault = type(name, (getattr(faulty, name), polling.PollingTheEnd), {})
    assert key in list_failed_checks(runner, scenario, careful.of_plain(fault))


@pytest.mark.slow
def test_a_prompt_that_takes_many_looks_may_decide_nothing(runner: ScenarioRunner) -> None:
    """Its last byte comes half a second late to an agent that speaks 250 ms before the limit on its silence."""
    file = find_bundled_path("talks-before-it-reads")
    text = file.read_text("utf-8").replace("  - stdin: read\n", "  - silence: 59750ms\n  - stdin: read\n")
    late = loads(text.replace("elapsed: 0", "elapsed: 59750ms"), str(file))
    verdicts = {row.key: row.verdict for row in judge_all_expectations(runner.play(late, polling.subject))}
    assert verdicts["outcome"] is Verdict.NOT_APPLICABLE
    assert verdicts["leaks"] is Verdict.PASSED
    assert all(row.verdict is Verdict.PASSED for row in judge_all_expectations(runner.play(late, careful.subject)))
