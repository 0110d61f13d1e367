"""How near competing instants are, and what pace follows: from the model alone, without a process."""

from __future__ import annotations

import contextlib

import pytest

from pytest_agentproc.harness import NotForRealTime, RunForecast, forecast_run
from pytest_agentproc.harness._pace import LEAST_INSTANT_MARGIN_NS, choose_pace
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import Command
from pytest_agentproc.vocabulary import Policy
from tests.bundled import load_all_bundled, load_bundled

SECOND = 1_000_000_000
LIFETIME = 300.0


def compute_margin(script: str, agent: str = "raw", **policy: float | None) -> int | None:
    """Give the margin of an agent with a script, in nanoseconds."""
    scenario = loads(f"scenario: an agent\nagent: {agent}\nscript:\n{script}\n")
    return forecast_run(scenario, Policy(**policy)).margin  # type: ignore[arg-type]


def test_a_pause_competes_with_the_limit_on_silence() -> None:
    """Twenty seconds before its time is up the agent speaks."""
    assert compute_margin("  - silence: 100s\n  - say: done", inactivity_timeout=120) == 20 * SECOND


def test_a_tie_has_no_margin() -> None:
    """Which of the two comes first is virtual time's to say."""
    assert compute_margin("  - silence: 120s\n  - say: done", inactivity_timeout=120) == 0


def test_two_limits_of_one_run_compete() -> None:
    """The first of them says what the run was, and a timer may ring a moment late."""
    assert compute_margin("  - silence: for ever", inactivity_timeout=60, max_runtime=60) == 0
    assert compute_margin("  - silence: for ever", inactivity_timeout=60, max_runtime=61, kill_grace=2) == SECOND


@pytest.mark.parametrize("name", ["runs-over", "agent-runs-over[codex]", "codex-runs-over-in-a-command"])
@pytest.mark.parametrize(("silence", "longest"), [(60, 600), (100, 3000), (120, 3600), (90, 7200)])
def test_a_cap_that_is_a_multiple_of_the_silence_competes_with_no_output(
    name: str, silence: float, longest: float
) -> None:
    """Most supervisors have round limits; where output comes at the instant of the cap, no program can be judged."""
    policy = Policy(inactivity_timeout=silence, internal_tool_timeout=None, max_runtime=longest)
    assert forecast_run(load_bundled(name), policy).margin


def test_an_exit_after_an_answer_competes_with_the_grace() -> None:
    """In one virtual instant; in real time the supervisor has begun to count between the two."""
    assert compute_margin("  - answer: done", "pi", linger_grace=0.25) == SECOND // 4


def test_a_death_by_signal_competes_with_the_kill_that_would_follow() -> None:
    """TERM takes its time, too."""
    assert compute_margin("  - silence: for ever", inactivity_timeout=120, kill_grace=2) == 2 * SECOND


def test_two_processes_compete_with_one_another() -> None:
    """The order of the two may matter."""
    script = "  - spawn: {id: helper, script: [{silence: 3s}]}\n  - silence: 2s"
    assert compute_margin(script, leftover_kill_grace=10) == SECOND


@pytest.mark.parametrize("every", ["1ms", "0s"])
def test_what_reforks_competes_as_one_process(every: str) -> None:
    """Its forks change nothing for any other process, with a pause between them or with none."""
    script = f"  - spawn: {{id: helper, how: refork, every: {every}, for: 3s}}\n  - silence: 2s"
    assert compute_margin(script, leftover_kill_grace=10) == SECOND


def test_nothing_competes_in_an_agent_that_cannot_be_started() -> None:
    """And every pace is right."""
    scenario = loads("scenario: an agent\nagent: {dialect: raw, cannot_spawn: not_found}\n")
    assert forecast_run(scenario, Policy()) == RunForecast(None, 0)


@pytest.mark.parametrize(("silence", "runtime", "progress"), [(60, 900, 300), (120, 3600, 600), (180, 7200, 900)])
def test_round_limits_tie_only_in_scenarios_about_one_instant(silence: int, runtime: int, progress: int) -> None:
    """A program is not judged by a tie, and without these scenarios nobody sees that it has no limit on its runtime."""
    graces = dict.fromkeys(("kill_grace", "linger_grace", "linger_kill_grace", "leftover_kill_grace"), 5)
    limits = {"inactivity_timeout": silence, "max_runtime": runtime, "progress_timeout": progress, **graces}
    program = Command(["my-supervisor", "{agent}"], limits=limits)
    tied = set()
    for scenario in load_all_bundled():
        if {"A2", "A8", "C1"} & set(scenario.covers) and not scenario.is_session:
            with contextlib.suppress(NotApplicable):
                if forecast_run(scenario, scenario.request_limits(program)).margin == 0:
                    tied.add(scenario.id)
    assert tied <= {"exits-as-it-would-be-terminated"}


@pytest.mark.parametrize(
    ("foreseen", "scale", "expected"),
    [
        (RunForecast(None, 0), None, 100),
        (RunForecast(10 * SECOND, 100 * SECOND), None, 20),
        (RunForecast(100 * SECOND, 100 * SECOND), None, 100),
        (RunForecast(LEAST_INSTANT_MARGIN_NS, SECOND), None, 1),
        (RunForecast(2 * SECOND, 120 * SECOND), None, 6),
        (RunForecast(2 * SECOND, 180 * SECOND), None, 8),
        (RunForecast(10 * SECOND, 100 * SECOND), 40, 40),
        (RunForecast(10 * SECOND, 100 * SECOND), 1, 1),
    ],
)
def test_a_pace_leaves_the_margin(foreseen: RunForecast, scale: float | None, expected: float) -> None:
    """Chosen by itself it leaves twice as much as it must, or less where that takes long."""
    pace = choose_pace(foreseen, scale, LIFETIME)
    assert pace.scale == expected
    assert pace.tolerance == SECOND * expected
    assert pace.margin is None or pace.margin >= LEAST_INSTANT_MARGIN_NS


@pytest.mark.parametrize(
    ("foreseen", "scale", "reason"),
    [
        (RunForecast(0, SECOND), None, "two of its competing instants are at the same time, and 250 ms are needed"),
        (
            RunForecast(2 * SECOND, SECOND),
            20,
            "two of its competing instants are 2 s apart, and 5 s are needed at scale 20",
        ),
        (
            RunForecast(SECOND, 300 * SECOND),
            None,
            "it takes 75 s at scale 4, and 45 s are allowed",
        ),
        (RunForecast(SECOND, 300 * SECOND), 1, "it takes 300 s, and 150 s are allowed"),
        (
            RunForecast(None, 0, "deadlock"),
            None,
            "it ends in a deadlock, which virtual time alone can tell from a long wait",
        ),
    ],
)
def test_what_real_time_cannot_judge_is_said(foreseen: RunForecast, scale: float | None, reason: str) -> None:
    """With what would be needed, and what can be done."""
    with pytest.raises(NotForRealTime) as raised:
        choose_pace(foreseen, scale, LIFETIME)
    assert str(raised.value) == reason


def test_limits_in_the_code_of_a_program_are_judged_at_scale_1_or_not_at_all() -> None:
    """A faster pace would make each of them an adapter error, after its whole wait."""
    assert (
        choose_pace(RunForecast(LEAST_INSTANT_MARGIN_NS * 9, 40 * SECOND), None, LIFETIME, is_scaled=False).scale == 1
    )
    with pytest.raises(NotForRealTime) as raised:
        choose_pace(RunForecast(None, 185 * SECOND), None, LIFETIME, is_scaled=False)
    assert str(raised.value) == (
        "it takes 185 s, and 45 s are allowed, and the limits in its code do not follow {scale}"
    )


def test_a_program_under_given_limits_can_be_judged_in_real_time() -> None:
    """With graces of a quarter of a second no agent could be silent for minutes, and no supervisor was held to that."""
    words = ("inactivity_timeout", "internal_tool_timeout", "max_runtime", "linger_grace", "kill_grace", "agent")
    told = Command(["watch", *(f"{{{word}}}" for word in words)], limits={"max_runtime": 999})
    for name in ("claude-never-prints", "claude-tool-too-silent", "agent-runs-over[claude]"):
        scenario = load_bundled(name)
        pace = choose_pace(forecast_run(scenario, scenario.request_limits(told)), None, LIFETIME)
        assert pace.limit < 45
