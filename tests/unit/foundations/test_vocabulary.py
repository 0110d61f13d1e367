"""The shared words: what a policy accepts and says, and the exit code of every outcome."""

from __future__ import annotations

import copy
import math
import re
from dataclasses import replace
from typing import Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.vocabulary import (
    ALL_LIMIT_NAMES,
    CONTAINMENT_NAMES,
    LIMITS_IN_BYTES,
    LIMITS_IN_SECONDS,
    OUTCOME_TEXTS,
    RULES,
    Outcome,
    Policy,
    Rule,
    compute_exit_code,
    format_signal_name,
    mark_unstated_limits,
    parse_signal_name,
    to_nanoseconds,
)

EXIT_CODES = [
    # outcome, the agent's own status, forced, executable, the supervisor's exit code
    (Outcome.COMPLETED, 0, False, True, 0),
    (Outcome.COMPLETED, 143, True, True, 0),
    (Outcome.COMPLETED, 3, False, True, 0),
    (Outcome.FAILED, 3, False, True, 3),
    (Outcome.FAILED, 0, False, True, 1),
    (Outcome.FAILED, 143, True, True, 1),
    (Outcome.FAILED, -15, True, True, 1),
    (Outcome.FAILED, None, False, True, 1),
    (Outcome.TOOL_USE, -15, True, True, 0),
    (Outcome.CANCELLED, 0, False, True, 130),
    (Outcome.STOPPED, -9, True, True, 130),
    (Outcome.INACTIVE, -15, True, True, 124),
    (Outcome.STALLED, -15, True, True, 124),
    (Outcome.OVERRAN, -9, True, True, 124),
    (Outcome.TIMED_OUT, None, False, True, 124),
    (Outcome.INCOMPLETE, 5, False, True, 5),
    (Outcome.INCOMPLETE, 0, False, True, 1),
    (Outcome.INCOMPLETE, -9, False, True, 137),
    (Outcome.INCOMPLETE, None, False, True, 1),
    (Outcome.INPUT_FAILED, None, False, True, 74),
    (Outcome.SPAWN_FAILED, None, False, True, 127),
    (Outcome.SPAWN_FAILED, None, False, False, 126),
    (Outcome.HANDSHAKE_FAILED, 1, False, True, 69),
    (Outcome.PROTOCOL_ERROR, -15, True, True, 76),
    (Outcome.AGENT_LOST, 5, False, True, 5),
    (Outcome.AGENT_LOST, 0, False, True, 1),
    (Outcome.AGENT_LOST, -9, True, True, 137),
]


@pytest.mark.parametrize(("outcome", "agent_status", "forced", "executable", "code"), EXIT_CODES)
def test_an_outcome_has_the_exit_code_of_the_table(
    outcome: Outcome, agent_status: int | None, forced: bool, executable: bool, code: int
) -> None:
    """Scripts around a supervisor read nothing but its exit code."""
    assert compute_exit_code(outcome, agent_status, forced=forced, executable=executable) == code


def test_the_table_has_a_row_for_every_outcome() -> None:
    """An outcome without a row would have an exit code that was never chosen."""
    assert {row[0] for row in EXIT_CODES} == set(Outcome)


def test_outcomes_are_the_closed_set() -> None:
    """Users match on these words; a new or renamed one is a change of the contract."""
    assert " ".join(Outcome) == (
        "completed failed tool_use cancelled stopped inactive stalled overran timed_out incomplete input_failed "
        "spawn_failed handshake_failed protocol_error agent_lost"
    )


def test_every_outcome_says_its_cause_and_a_remedy() -> None:
    """A caller who meets one in a log looks it up here."""
    assert [*OUTCOME_TEXTS] == [*Outcome]
    assert all(text.endswith(".") for texts in OUTCOME_TEXTS.values() for text in texts)


def test_policy_defaults_are_the_documented_ones() -> None:
    """The numbers are promises: a changed default changes when a user's agent is killed."""
    assert dict(Policy().items()) == {
        "inactivity_timeout": 120.0,
        "internal_tool_timeout": 600.0,
        "progress_timeout": None,
        "max_runtime": None,
        "linger_grace": 0.25,
        "background_grace": 0.0,
        "linger_kill_grace": 0.25,
        "leftover_kill_grace": 0.25,
        "kill_grace": 2.0,
        "prompt_timeout": 3600.0,
        "cancel_grace": 300.0,
        "permission_timeout": 300.0,
        "hook_timeout": 60.0,
        "handshake_timeout": 30.0,
        "restart_backoff": 1.0,
        "close_grace": 2.0,
        "max_line_bytes": 16_777_216,
        "max_transcript_bytes": 16_777_216,
        "host_tools": (),
        "containment": "group",
    }
    assert Policy.for_dialect("claude") == Policy(inactivity_timeout=180.0)
    assert {Policy.for_dialect(dialect) for dialect in ("", "raw", "pi", "codex", "gemini")} == {Policy()}
    assert Policy.for_dialect("claude", inactivity_timeout=None) == Policy(inactivity_timeout=None)
    assert tuple(dict(Policy().items())) == ALL_LIMIT_NAMES


def test_policy_in_nanoseconds_is_exact_and_keeps_limits_that_are_off() -> None:
    """Clocks count whole nanoseconds, and an absent limit must not become a limit of zero."""
    policy = Policy(inactivity_timeout=None, linger_grace=0.1, kill_grace=3)
    assert policy.nanoseconds() == {
        "inactivity_timeout": None,
        "internal_tool_timeout": 600_000_000_000,
        "progress_timeout": None,
        "max_runtime": None,
        "linger_grace": 100_000_000,
        "background_grace": 0,
        "linger_kill_grace": 250_000_000,
        "leftover_kill_grace": 250_000_000,
        "kill_grace": 3_000_000_000,
        "prompt_timeout": 3_600_000_000_000,
        "cancel_grace": 300_000_000_000,
        "permission_timeout": 300_000_000_000,
        "hook_timeout": 60_000_000_000,
        "handshake_timeout": 30_000_000_000,
        "restart_backoff": 1_000_000_000,
        "close_grace": 2_000_000_000,
    }


def test_a_change_of_a_policys_nanoseconds_changes_a_copy() -> None:
    """They are counted once; a decider that is stricter with itself must not be so with all others."""
    policy = Policy(max_runtime=1)
    mine = policy.nanoseconds()
    mine["max_runtime"] = None
    assert policy.nanoseconds()["max_runtime"] == policy.to_whole_limits()["max_runtime"] == 1_000_000_000
    assert replace(policy, max_runtime=2).nanoseconds()["max_runtime"] == 2_000_000_000
    assert copy.copy(policy).nanoseconds() == policy.nanoseconds()


def test_silence_is_no_fault_in_a_session_unless_the_caller_says_so() -> None:
    """The default is a one-shot run's; a limit that was chosen is kept, also the same number."""
    assert Policy(kill_grace=3.0).adapt_to_session() == Policy(inactivity_timeout=None, kill_grace=3.0)
    assert Policy(inactivity_timeout=120.0).adapt_to_session().inactivity_timeout == 120.0
    assert Policy(inactivity_timeout=None).adapt_to_session().inactivity_timeout is None


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("kill_grace", -1, "policy kill_grace is -1, but must be seconds (0 or more) or None"),
        ("linger_grace", "250ms", "policy linger_grace is '250ms', but must be seconds (0 or more) or None"),
        ("linger_kill_grace", math.nan, "policy linger_kill_grace is nan, but must be seconds (0 or more) or None"),
        ("inactivity_timeout", math.inf, "policy inactivity_timeout is inf, but must be seconds (0 or more) or None"),
        ("max_runtime", True, "policy max_runtime is True, but must be seconds (0 or more) or None"),
    ],
)
def test_a_wrong_duration_is_reported_with_its_value_and_a_remedy(name: str, value: object, problem: str) -> None:
    """A caller reads this message instead of our source."""
    with pytest.raises(UsageError) as caught:
        Policy(**{name: value})  # type: ignore[arg-type]  # the point of the test
    assert str(caught.value) == f"{problem}\nwrite {name}=2.0, for example"
    assert (caught.value.message, caught.value.remedy) == (problem, f"write {name}=2.0, for example")


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "16 MiB"])
def test_a_wrong_size_is_reported_with_its_value_and_a_remedy(value: object) -> None:
    """Half a byte is a mistake."""
    with pytest.raises(UsageError) as caught:
        Policy(max_line_bytes=value)  # type: ignore[arg-type]  # the point of the test
    allowed = "bytes (a whole number, 1 or more) or None"
    assert caught.value.message == f"policy max_line_bytes is {value!r}, but must be {allowed}"


@pytest.mark.parametrize("name", [*LIMITS_IN_SECONDS, *LIMITS_IN_BYTES])
def test_each_limit_in_seconds_or_bytes_may_be_off(name: str) -> None:
    """A supervisor may wait for ever at any place, and then says so."""
    limits: dict[str, Any] = {name: None}
    assert Policy(**limits).to_whole_limits()[name] is None
    assert name not in mark_unstated_limits(Policy(**limits), {name}).unstated


def test_a_transcript_may_be_kept_whole_if_that_is_said() -> None:
    """A caller who knows the agent may want all of it; the limit is then none that a scenario could name."""
    assert Policy(max_transcript_bytes=None).to_whole_limits()["max_transcript_bytes"] is None
    assert Policy(max_transcript_bytes=1, kill_grace=1).to_whole_limits()["max_transcript_bytes"] == 1
    with pytest.raises(UsageError, match=r"max_transcript_bytes is 0, but must be bytes .* or None"):
        Policy(max_transcript_bytes=0)


@pytest.mark.parametrize("value", ["Read", [""], [1], None, {"Read"}])
def test_wrong_names_of_tools_are_reported_with_their_value_and_a_remedy(value: object) -> None:
    """One text would be taken for the names of its letters."""
    with pytest.raises(UsageError) as caught:
        Policy(host_tools=value)  # type: ignore[arg-type]  # the point of the test
    assert caught.value.message == f"policy host_tools is {value!r}, but must be a list of names"
    assert caught.value.remedy == 'write host_tools=["Read", "mcp__custom-tools__*"], for example'


def test_one_number_limits_silence_and_nothing_else() -> None:
    """A caller that gave a timeout before keeps an agent alive that works (A9)."""
    assert Policy.make_from_silence_limit(30) == Policy(inactivity_timeout=30, max_runtime=None)


def test_a_policy_takes_zero_and_none_where_a_limit_may_be_off() -> None:
    """Zero means at once, None means never; both are wanted."""
    policy = Policy(inactivity_timeout=None, max_runtime=0, kill_grace=0)
    assert (policy.inactivity_timeout, policy.max_runtime, policy.kill_grace) == (None, 0, 0)


def test_seconds_become_the_nearest_whole_nanosecond() -> None:
    """0.1 + 0.2 in floats must not miss an instant by a nanosecond."""
    assert to_nanoseconds(0.1 + 0.2) == 300_000_000
    assert to_nanoseconds(1e-9) == 1


def test_rule_ids_are_a_letter_and_a_number_and_rules_are_clauses() -> None:
    """Ids stand in scenario files for ever, and a rule is printed after its id."""
    assert [rule for rule in RULES if not re.fullmatch(r"[A-Z][1-9][0-9]*", rule)] == []
    assert [name for name, rule in RULES.items() if rule.demands.endswith(".") or rule.name != name] == []


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_a_rule_says_why_it_exists_and_cites_a_public_report(rule: Rule) -> None:
    """Its page and `agentproc explain` print these texts; a reader must understand each sentence at once."""
    assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", rule.report)
    for text in filter(None, (rule.why, rule.reference, rule.open)):
        assert text.endswith(".")
        assert [part for part in re.split(r"(?<=[.;:]) ", text) if len(part.split()) > 28] == []
    assert rule.why
    assert rule.reference


def test_containment_is_one_of_three_words_in_order() -> None:
    """A stronger hold on a tree keeps all promises of a weaker one."""
    assert [Policy(containment=word).has_containment("subreaper") for word in CONTAINMENT_NAMES] == [False, True, True]
    with pytest.raises(UsageError) as caught:
        Policy(containment="jail")
    assert caught.value.message == "policy containment is 'jail', but must be one of group, subreaper, keeper"
    assert caught.value.remedy == 'write containment="keeper", for example'


def test_a_scenario_that_asks_for_more_containment_than_there_is_does_not_apply() -> None:
    """A supervisor that never promised to find a process is not at fault."""
    text = "scenario: a tree\nagent: raw\npolicy: {containment: keeper}\nscript: []\n"
    scenario = loads(text)
    assert scenario.bind(Policy(containment="keeper")).policy.containment == "keeper"
    with pytest.raises(NotApplicable) as caught:
        scenario.bind(Policy(containment="subreaper"))
    assert (caught.value.name, caught.value.line) == ("containment keeper", 3)


def test_a_limit_between_two_nanoseconds_is_reported_as_it_is() -> None:
    """Twice a third of a second is two thirds, and not twice the nanosecond above a third."""
    assert Policy(kill_grace=2.1).to_exact_limits() == Policy(kill_grace=2.1).to_whole_limits()
    assert not Policy(kill_grace=0.7, linger_grace=0.1).has_fractional_nanoseconds
    parts = Policy(kill_grace=1 / 3)
    assert parts.has_fractional_nanoseconds
    assert parts.to_whole_limits()["kill_grace"] == 333_333_334
    assert abs(3 * float(parts.to_exact_limits()["kill_grace"] or 0) - 1_000_000_000) < 1e-6


def test_every_signal_has_a_name_and_keeps_its_number() -> None:
    """Realtime signals have numbers only, and an agent can die of one."""
    assert (format_signal_name(15), format_signal_name(40)) == ("TERM", "signal 40")
    assert [parse_signal_name(format_signal_name(number)) for number in range(1, 65)] == [*range(1, 65)]
