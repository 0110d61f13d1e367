"""A scenario under the limits of a supervisor: as long, as much, or not for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.vocabulary import Policy


def test_a_size_follows_the_policy_of_the_subject() -> None:
    """A supervisor that keeps less gets less; one without such a limit cannot be asked at all."""
    scenario = loads("scenario: a\nagent: raw\nscript:\n  - flood: {stdout: max_transcript_bytes + 1 B}\n")
    assert scenario.bind(Policy(max_transcript_bytes=9)).program["steps"] == [(4, "flood", ("stdout", 10))]
    with pytest.raises(NotApplicable) as caught:
        scenario.bind(Policy(max_transcript_bytes=None))
    assert (caught.value.name, caught.value.line) == ("max_transcript_bytes", 4)


def test_bytes_that_a_subjects_limits_make_too_many_are_not_applicable() -> None:
    """One step is not, and all together are not: a file cannot count them, as it does not know the limits."""
    step = '{raw: {text: "ab", size: max_transcript_bytes}}'
    scenario = loads(f"scenario: a\nagent: raw\nscript:\n  [{step}, {step}, {step}]\n")
    assert len(scenario.bind(Policy(max_transcript_bytes=9)).program["steps"]) == 3
    with pytest.raises(NotApplicable, match=r"line 4 needs smaller limits \(the raw steps would have more than 1342"):
        scenario.bind(Policy(max_transcript_bytes=50 * 1024**2))


@pytest.mark.parametrize(
    ("outcome", "limit"),
    [("inactive", "inactivity_timeout"), ("stalled", "progress_timeout"), ("overran", "max_runtime")],
)
def test_an_outcome_needs_the_limit_that_brings_it_about(outcome: str, limit: str) -> None:
    """A supervisor may wait for ever, and say so. Then it is not expected to end a silent agent."""
    scenario = loads(f"scenario: a\nagent: raw\nscript: [{{silence: for ever}}]\nexpect: {{outcome: {outcome}}}\n")
    every = Policy(progress_timeout=9, max_runtime=9)
    assert scenario.bind(every).expect[0].wanted == outcome
    with pytest.raises(NotApplicable) as caught:
        scenario.bind(replace(every, **{limit: None}))  # type: ignore[arg-type]
    assert (caught.value.name, caught.value.line) == (limit, 4)


def test_a_scenario_that_makes_no_sense_under_a_limit_is_no_mistake_of_its_own() -> None:
    """Nor of the supervisor's that has the limit: no silence is shorter than none."""
    scenario = loads(
        "scenario: a\nagent: raw\nscript: [{silence: inactivity_timeout - 1s}]\n"
        "expect: {elapsed: inactivity_timeout - 2s}\n"
    )
    with pytest.raises(NotApplicable, match=r'line 3 needs other limits .*"inactivity_timeout - 1s" is -0.5s'):
        scenario.bind(Policy(inactivity_timeout=0.5))
    (elapsed, _) = scenario.bind(Policy(inactivity_timeout=1.5)).expect
    assert str(elapsed.not_applicable).startswith('other limits ("inactivity_timeout - 2s" is -0.5s')
