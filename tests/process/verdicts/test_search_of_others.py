"""The search in a supervisor that is not the reference: asked what every supervisor is asked, with real processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.scenario import loads
from pytest_agentproc.search import confirm_failure, explore, search
from pytest_agentproc.subjects import Function
from tests.bundled import load_bundled
from tests.plugin.examples import at_once, careful, streaming

if TYPE_CHECKING:
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

_PLAIN = loads(
    """\
scenario: an agent that prints plain text is ended for its silence alone, and its exit is its result
agent: raw
script:
  - some_of: [{say: a}, {raw: {text: "e", to: stderr}}]
  - silence: {between: [0s, inactivity_timeout + 10s]}
  - some_of: [{raw: {text: half}}, {raw: {text: "e", to: stderr}}, {close: stdout}]
  - silence: {between: [0s, inactivity_timeout + 10s]}
  - one_of: [{exit: 0}, {exit: 3}, {die: KILL}, {silence: for ever}]
""",
    "plain.scenario.yaml",
)


async def _supervise_with_warnings(order: RunRequest) -> dict[str, Any]:
    """Warn of everything, as no other supervisor does."""
    return {**await careful.supervise(order, careful.Run), "warnings": ["the agent was run", "and has ended"]}


_SUPERVISOR_LIMITS = {
    "inactivity_timeout": careful.SILENCE,
    "kill_grace": careful.LADDER,
    "linger_kill_grace": careful.LADDER,
    "leftover_kill_grace": careful.LADDER,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subject", "backend"),
    [
        (Function(_supervise_with_warnings, limits=_SUPERVISOR_LIMITS, dialects=["raw"]), "asyncio"),
        (at_once.subject, "trio"),
    ],
    ids=["words-and-numbers-of-its-own", "kills-at-once-and-tells-little"],
)
def test_a_correct_supervisor_in_another_style_is_not_found_wrong(
    runner: ScenarioRunner, subject: Function, backend: str
) -> None:
    """It warns, signals and counts in its own way; a false find costs more than a missed one."""
    if backend == "trio":
        pytest.importorskip("trio")
    result = search(_PLAIN, subject, runs=8, seed=1, runner=runner, backend=backend)
    assert result.find is None, f"{result.find.reason}\n{result.find.scenario.text}"
    assert result.runs == 8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["open-run-activity", "open-run-ending"])
def test_a_correct_supervisor_of_pi_is_not_found_wrong(runner: ScenarioRunner, name: str) -> None:
    """It reads words after the agent's end as a new turn, which no pi has: these prove no supervisor wrong."""
    result = search(load_bundled(name), streaming.subject, runs=60, seed=1, runner=runner)
    assert result.find is None, f"{result.find.reason}\n{result.find.scenario.text}"
    assert result.runs > 40


class _Early(careful.Run):
    """Gives up a second early where only stderr was written."""

    def saw(self, pipe: Any, data: bytes) -> None:
        """Count the bytes on stdout from now, those on stderr from a second ago."""
        self.last = self.loop.time() - (pipe is self.agent.stderr)


@pytest.mark.slow
def test_the_same_supervisor_with_a_mistake_is_found(runner: ScenarioRunner) -> None:
    """The questions for every supervisor are enough: how it ended, with which code, and when."""
    result = search(_PLAIN, careful.of_plain(_Early), runs=20, seed=1, runner=runner)
    assert result.find is not None
    assert result.find.key in ("outcome", "elapsed")
    assert result.find.reason.startswith("it was ended as inactive 59")


async def _raise_at_vanished_process(order: RunRequest) -> dict[str, Any]:
    """Look for a process that has just ended, where the agent was killed or took long."""
    answer = await careful.supervise(order, careful.Run)
    if answer["exit_code"] == _KILLED or answer["elapsed"] > _LONG:
        raise ProcessLookupError(3, "No such process")
    return answer


_KILLED = 137
_LONG = 10.0


@pytest.mark.slow
def test_a_supervisor_that_raises_in_some_settings_is_found(runner: ScenarioRunner) -> None:
    """A search by hand tries only the settings in which it gives an answer."""
    subject = Function(_raise_at_vanished_process, limits=_SUPERVISOR_LIMITS, dialects=["raw"])
    result = search(_PLAIN, subject, runs=40, seed=1, runner=runner)
    assert result.find is not None
    assert (result.find.key, result.find.reason) == (
        "answer",
        "it raised ProcessLookupError: [Errno 3] No such process",
    )
    assert confirm_failure(result.find, subject, runner).repeats


@pytest.mark.slow
def test_a_supervisor_that_raises_where_a_time_is_moved_is_found(runner: ScenarioRunner) -> None:
    """The file as it stands is green on it."""
    subject = Function(_raise_at_vanished_process, limits=_SUPERVISOR_LIMITS, dialects=["raw"])
    text = "scenario: x\nagent: raw\nscript:\n  - silence: 1s\n  - exit: 3\nexpect: {outcome: failed}\n"
    result = explore(loads(text, "x.scenario.yaml"), subject, runs=40, seed=1, runner=runner)
    assert result.find is not None
    assert result.first > 1
    assert (result.find.key, result.find.reason) == (
        "answer",
        "it raised ProcessLookupError: [Errno 3] No such process",
    )
    assert confirm_failure(result.find, subject, runner).repeats
