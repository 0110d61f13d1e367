"""The limits that a supervisor states, against the needs of a scenario; the reference supervisor as a measure.

A file is written for some order of limits: silence is noticed before the longest run ends, a grace is longer than
nothing. If a supervisor's own limits have another order, the same script is another story, and the file's expectations
do not apply to it.

The fake plays the same program, bound to the defaults. The reference supervisor runs it in the model, with one of these
limits longer or shorter than its default each time. A change in the result depends on that limit.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import JumpRule, NextMove
from pytest_agentproc.errors import Spin
from pytest_agentproc.events import TimerEvent
from pytest_agentproc.harness._agent_launch import build_command_line
from pytest_agentproc.harness._supervise import explain_real_time_only
from pytest_agentproc.harness.model._in_memory_model import DEFAULT_REFERENCE_SUBJECT, InMemoryModel
from pytest_agentproc.harness.model._play import play_bound_scenario
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.vocabulary import (
    ALL_LIMIT_NAMES,
    REPORTED_EVENT_TEXTS,
    SIGNAL_NUMBER_BY_NAME,
    SIGNALS_THAT_BEGIN_ENDING,
    TIMEOUTS_THAT_ARE_NEVER_0,
    WAYS_TO_END_A_PROGRAM,
    Abilities,
    Policy,
    choose_reported_outcomes,
    find_needed_capabilities,
    read_abilities,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_agentproc.clock import HostState
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import BoundScenario, Expectation, Scenario, StatedLimits
    from pytest_agentproc.vocabulary import CallerAction, Subject


_MAX_MOVES_WITHOUT_LIMIT = 20_000
"""The steps that no limited run reaches: a flood of eight mebibytes takes two thousand."""


class StepLimitedJumpRule(JumpRule):
    """The jump rule for a run without an end: a limit is off, and an agent drips on, or restarts itself.

    The cost of a process's step is the number of its ancestors, since a process that always restarts itself gets
    nowhere.
    """

    def __init__(self) -> None:
        super().__init__()
        self._left = _MAX_MOVES_WITHOUT_LIMIT

    def choose_next_move(self, host: HostState) -> tuple[NextMove, Any]:
        move, target = super().choose_next_move(host)
        self._left -= len(target) if move is NextMove.GRANT else 1
        if self._left <= 0:
            raise Spin(f"it goes on and on: {_MAX_MOVES_WITHOUT_LIMIT} steps, and no limit ends it")
        return move, target


class StepLimitedModel(InMemoryModel):
    """The model of a run that no limit may ever end."""

    rule_type = StepLimitedJumpRule


def _read_limits(terms: StatedLimits) -> Any:
    """Give limits as values, whether or not all of them are stated."""
    if isinstance(terms, Policy):
        return terms.items()
    return {name: policy.items() for name, policy in terms.items()}


class ReferenceResults:
    """The results of the reference supervisor in a scenario, each computed when it is needed.

    Args:
        there: the scenario under the limits of the supervisor under test.
        here: the same scenario under the limits that the file is written for.
    """

    def __init__(self, there: BoundScenario, here: BoundScenario) -> None:
        self._there, self._here = there, here

    @classmethod
    def for_play(cls, scenario: Scenario, subject: Subject) -> ReferenceResults | None:
        """Give the reference of a play; None if there is nothing to measure.

        So it is if the subject is the reference supervisor, or keeps the limits of the file, or the file has a meaning
        under others alone, or the reference supervisor does not speak with its agents.
        """
        if hasattr(subject, "deciders") or scenario.served_agents:
            return None
        terms, own = scenario.request_limits(subject), scenario.request_limits(DEFAULT_REFERENCE_SUBJECT)
        try:
            return None if _read_limits(terms) == _read_limits(own) else cls(scenario.bind(terms), scenario.bind(own))
        except NotApplicable:
            return None

    @cached_property
    def under_subject_limits(self) -> PlayResult:
        """The result under the limits of the supervisor under test."""
        return play_bound_scenario(self._there, DEFAULT_REFERENCE_SUBJECT, model=StepLimitedModel)

    @cached_property
    def under_file_limits(self) -> PlayResult:
        """The result under the limits of the file."""
        return play_bound_scenario(self._here, DEFAULT_REFERENCE_SUBJECT, model=StepLimitedModel)


_DEFAULT_FIRST_SIGNAL = Abilities().first_signal
_CHECKS_BY_CANNOT_WORD = {
    "argv": (("received.argv", "received.stdin"), "command line of the order: it makes its own"),
    "env": (("received.env", "received.cwd"), "environment and folder of the order: it has its own"),
}
"""The checks of what the agent was given, where the supervisor does not hand on what the order gives."""


def restrict_to_abilities(bound: BoundScenario, subject: Subject) -> BoundScenario:
    """Limit the expectations to the abilities that a supervisor states."""
    abilities = read_abilities(subject)
    outcomes, first = tuple(abilities.outcomes), abilities.first_signal
    expect: Iterable[Expectation] = bound.expect
    for word in set(abilities.cannot) & _CHECKS_BY_CANNOT_WORD.keys():
        expect = [
            _mark_not_applicable(expectation, *_CHECKS_BY_CANNOT_WORD[word], is_session=bound.scenario.is_session)
            for expectation in expect
        ]
    if outcomes:
        expect = [_accept_substitute_outcomes(expectation, outcomes) for expectation in expect]
    if first != _DEFAULT_FIRST_SIGNAL:
        expect = [_expect_first_signal(expectation, first) for expectation in expect]
        parts = {name: _replace_first_signal(part, first) for name, part in bound.parts.items()}
        bound = replace(_replace_first_signal(bound, first), parts=parts)
    return replace(bound, expect=tuple(expect))


def _mark_not_applicable(
    expectation: Expectation, keys: tuple[str, ...], what: str, *, is_session: bool
) -> Expectation:
    """Make a check not applicable; the stdin of a session is its protocol, and no part of the command line."""
    head, _, leaf = expectation.key.partition(".")
    key = f"received.{leaf.rpartition('.')[2]}" if head == "processes" else expectation.key
    if key not in keys or (is_session and expectation.key == "received.stdin"):
        return expectation
    return replace(expectation, wanted=None, not_applicable=what)


def _accept_substitute_outcomes(expectation: Expectation, known: tuple[str, ...]) -> Expectation:
    """Have an outcome that a supervisor does not know be met by those that it reports in its place."""
    if (
        expectation.key.rpartition(".")[2] != "outcome"
        or expectation.key.startswith("artifacts")
        or expectation.wanted is None
    ):
        return expectation
    wanted = expectation.wanted
    if isinstance(wanted, str):
        wanted = {"any_of": (wanted,)}
    if "any_of" not in wanted or {*wanted["any_of"]} <= {*known}:
        return expectation
    met = [word for each in wanted["any_of"] for word in choose_reported_outcomes(each, known)]
    return replace(expectation, wanted={"any_of": tuple(dict.fromkeys([*wanted["any_of"], *met]))})


def _expect_first_signal(expectation: Expectation, first: str) -> Expectation:
    """Expect the first signal of a supervisor where a scenario says TERM."""
    leaf = expectation.key.rpartition(".")[2]
    if leaf == "signals" and expectation.wanted is not None:
        return replace(
            expectation,
            wanted=[(first if name == _DEFAULT_FIRST_SIGNAL else name, at) for name, at in expectation.wanted],
        )
    if (
        leaf in ("agent_status", "status")
        and isinstance(expectation.wanted, dict)
        and expectation.wanted.get("signal") == _DEFAULT_FIRST_SIGNAL
    ):
        return replace(expectation, wanted={**expectation.wanted, "signal": first})
    return expectation


def _replace_first_signal(bound: BoundScenario, first: str) -> BoundScenario:
    return replace(bound, program=_move_traps_to_signal(bound.program, first), first_signal=first)


def _move_traps_to_signal(program: Any, first: str) -> Any:
    """Have each process do at the first signal what its script does at TERM, and ignore the polite ones after it."""
    if isinstance(program, dict):
        return {key: _move_traps_to_signal(value, first) for key, value in program.items()}
    if not isinstance(program, list | tuple):
        return program
    steps: list[Any] = []
    default = SIGNAL_NUMBER_BY_NAME[_DEFAULT_FIRST_SIGNAL]
    for step in program:
        match step:
            case (int() as line, "when", ("signal", number, reaction)) if number == default:
                then = _move_traps_to_signal(reaction, first)
                steps += [
                    (line, "when", ("signal", SIGNAL_NUMBER_BY_NAME[name], then if name == first else []))
                    for name in SIGNALS_THAT_BEGIN_ENDING
                ]
            case _:
                steps.append(_move_traps_to_signal(step, first))
    return type(program)(steps)


def bind_to_subject(scenario: Scenario, subject: Subject) -> BoundScenario:
    """Bind a scenario to the limits that a subject states.

    Raises:
        NotApplicable: the scenario needs something that the subject says it does not have.
    """
    if scenario.is_session and not subject.holds_sessions:
        raise NotApplicable("sessions", 1)
    abilities = read_abilities(subject)
    if not (scenario.is_session or scenario.parts or abilities.takes_runs):
        raise NotApplicable("agents that get one prompt and end", 1)
    for part in scenario.parts.values() or (scenario,):
        variant = f"{part.dialect} {part.mode}"
        known = {variant} if variant in scenario.served_agents else {part.dialect, variant}  # HTTP is named by its mode
        if not known & set(abilities.dialects or (part.dialect,)):
            raise NotApplicable(f"agents of {variant}", 1)
    bound = scenario.bind(scenario.request_limits(subject))
    for bound_part in list_agent_scenarios(bound):
        if "host_tools" in bound_part.scenario.policy and not bound_part.scenario.has_same_host_tools(
            bound_part.policy
        ):
            raise NotApplicable("host_tools", bound_part.scenario.told_lines["host_tools"])
        is_outside = abilities.needs_keeper or bound_part.policy.containment == "keeper"
        if bound_part.scenario.simulates_failed_spawn and is_outside:
            raise NotApplicable("an agent that the process of pytest starts", 1)
    bound = restrict_to_abilities(bound, subject)
    if bound.abandoned is not None:
        bound = _require_cancellation_support(bound, subject, bound.abandoned.line)
    _require_abilities(bound, abilities.cannot)
    if scenario.is_session or scenario.parts:
        _require_capabilities(bound, abilities.actions)
    return bound


def list_agent_scenarios(bound: BoundScenario) -> list[BoundScenario]:
    """Give what there is a fake for: each of several sessions, or the one agent."""
    return [*bound.parts.values()] or [bound]


def _require_cancellation_support(bound: BoundScenario, subject: Subject, line: int) -> BoundScenario:
    """Have a cancelled run count for a subject that says it can be cancelled so, and inform where it says nothing."""
    left = bound.abandoned
    if left is not None and left.value in WAYS_TO_END_A_PROGRAM:
        if not read_abilities(subject).needs_keeper:
            raise NotApplicable(WAYS_TO_END_A_PROGRAM[left.value][1], line)
        return bound
    can = read_abilities(subject).cancellable
    if can is False or explain_real_time_only(subject):
        raise NotApplicable("a supervisor that is async, and can be cancelled", line)
    if can == "task" and left is not None and left.value == "scope":
        raise NotApplicable("a supervisor that a cancel scope of anyio's may cancel", line)
    if can:
        return bound
    expect = tuple(replace(expectation, level="info") for expectation in bound.expect)
    return replace(bound, expect=expect, scenario=replace(bound.scenario, level="info"))


def _require_capabilities(bound: BoundScenario, actions: Collection[str] | None) -> None:
    needed = find_needed_capabilities(bound.drive)
    for part in (bound, *bound.parts.values()):
        needed |= ({"permission": 1} if part.handler else {}) | ({"hook": 1} if part.hooks else {})
        needed |= {part.continues.how: 1} if part.continues and not _is_session_in_argv(part) else {}
    needed |= {"several": 1} if bound.parts else {}
    for action, line in needed.items():
        if actions is not None and action not in actions:
            raise NotApplicable(f"sessions with {action}", line)


def _is_session_in_argv(bound: BoundScenario) -> bool:
    """Say whether the agent learns from its arguments which session it continues, and not from the handshake."""
    return bound.continues is not None and bound.continues.id in build_command_line(bound.scenario)


def _require_abilities(bound: BoundScenario, cannot: Collection[str]) -> None:
    needed = dict(_find_needed_abilities(bound)) if cannot else {}
    for ability in cannot:
        if ability in needed:
            line, what = needed[ability]
            raise NotApplicable(what, line)


def _find_needed_abilities(bound: BoundScenario) -> Iterator[tuple[str, tuple[int, str]]]:
    """Give the `TEXTS_OF_OTHER_NEEDS` that a scenario needs, each with a line and its name there."""
    for part in list_agent_scenarios(bound):
        if part.scenario.prompt_by == "stdin" and not part.scenario.is_session:
            yield "stdin", (1, "a prompt on stdin")
        if _is_session_in_argv(part):
            yield "argv", (1, "the command line of the order, which names a session")
        if _needs_denial(part):
            yield "deny", (1, "a caller that denies, or that takes time to answer")
    sessions = dict.fromkeys(action.session for action in bound.drive)
    for line in (_find_long_pause([action for action in bound.drive if action.session == name]) for name in sessions):
        if line is not None:
            yield "pause", (line, "a pause between two prompts")


def _find_long_pause(drive: Sequence[CallerAction]) -> int | None:
    """Give the line where the caller of a session waits, between two prompts, for more than the turn before."""
    prompts = [place for place, action in enumerate(drive) if action.kind == "prompt"]
    between = drive[prompts[0] + 1 : prompts[-1] + 1] if prompts else []
    waits = ("wait", "status", "background", *REPORTED_EVENT_TEXTS)
    return next((action.line for action in between if action.kind in waits or action.at or action.after), None)


def _needs_denial(bound: BoundScenario) -> bool:
    """Say whether a question of the agent is not allowed at once: by its caller, or because there is no answer."""
    if bound.handler is not None:
        return bound.handler.allowed is not True or bound.handler.after > 0
    return _has_permission_request([bound.program.get("steps", ()), bound.program.get("then", ())])


def _has_permission_request(steps: Any) -> bool:
    """Say whether an agent asks for a permission in lists of steps, however deep."""
    match steps:
        case (int(), "ask", ({"kind": "permission"}, *_)):
            return True
        case [*deeper]:
            return any(_has_permission_request(step) for step in deeper)
        case {"steps": deeper}:
            return _has_permission_request(deeper)
    return False


_GRACE_FACTORS_TO_TRY = (0.0, 0.25, 4.0, 60.0)
"""A grace may be left out, or be much longer than the default."""

_TIMEOUT_FACTORS_TO_TRY = (1 / 30, 0.25, 4.0)
_BACKGROUND_FACTORS_TO_TRY = (10.0, 3600.0)
_LINE_BYTES_FACTORS_TO_TRY = (1 / 8, 4.0)


class UnstatedLimitResults:
    """The plays that show what depends on a limit which a supervisor does not state.

    Args:
        bound: the scenario as it was played, with the defaults of those limits.
    """

    def __init__(self, bound: BoundScenario) -> None:
        self._bound = bound
        parts = bound.parts.values() or (bound,)
        found = frozenset().union(*(part.policy.unstated for part in parts))
        self.names = tuple(name for name in ALL_LIMIT_NAMES if name in found)

    @classmethod
    def for_play(cls, bound: BoundScenario) -> UnstatedLimitResults | None:
        """Give them for what was played; None if every limit is stated, or the kit's own supervisor cannot play it."""
        plays = cls(bound)
        return plays if plays.names and not bound.scenario.served_agents else None

    @cached_property
    def default_result(self) -> PlayResult:
        """The result with the default of each limit."""
        return play_bound_scenario(self._bound, DEFAULT_REFERENCE_SUBJECT, model=StepLimitedModel)

    @cached_property
    def armed_limits(self) -> tuple[str, ...]:
        """The names of those limits that have a timer in that result."""
        if not self.names:
            return ()
        armed = {event.timer for event in self.default_result.record.events if isinstance(event, TimerEvent)}
        return tuple(name for name in self.names if name in armed)

    @cached_property
    def endless_results(self) -> Mapping[str, PlayResult]:
        """The result without each limit that has a timer: what it ends has no end then."""
        return {name: self._play_with(name, None) for name in self.armed_limits}

    @cached_property
    def varied_results(self) -> Mapping[str, tuple[PlayResult, ...]]:
        """The results with other values of each limit, without limits that never counted."""
        untimed = ("background_grace", "max_line_bytes")
        counted = [name for name in self.names if name in self.armed_limits or name in untimed]
        return {
            name: tuple(self._play_variant(name, place) for place in range(len(_list_factors_of_limit(name))))
            for name in counted
        }

    def _play_variant(self, name: str, place: int) -> PlayResult:
        """Run with another value of a limit; the expectations stay those of the default."""
        return self._play_with(name, _list_factors_of_limit(name)[place])

    def _play_with(self, name: str, factor: float | None) -> PlayResult:
        bound = self._bound
        parts = {key: _vary_limit(part, name, factor) for key, part in bound.parts.items()}
        played = play_bound_scenario(
            replace(_vary_limit(bound, name, factor), parts=parts), DEFAULT_REFERENCE_SUBJECT, model=StepLimitedModel
        )
        return replace(played, bound=bound)


def _vary_limit(bound: BoundScenario, name: str, factor: float | None) -> BoundScenario:
    """Give a scenario with another value of a limit, if it is not stated; a factor of None: without the limit."""
    if name not in bound.policy.unstated:
        return bound
    if factor is None:
        limits: dict[str, Any] = {name: None}
        return replace(bound, policy=replace(bound.policy, **limits))
    return replace(bound, policy=_scale_limit(bound.policy, name, factor))


def _scale_limit(policy: Policy, name: str, factor: float) -> Policy:
    value = getattr(policy, name)
    if name == "background_grace":
        value = factor
    elif name == "max_line_bytes":
        value = round(value * factor)
    else:
        value = (value or 1.0) * factor
    limits: dict[str, Any] = {name: value}
    return replace(policy, **limits)


def _list_factors_of_limit(name: str) -> tuple[float, ...]:
    if name == "background_grace":
        return _BACKGROUND_FACTORS_TO_TRY
    if name == "max_line_bytes":
        return _LINE_BYTES_FACTORS_TO_TRY
    return _TIMEOUT_FACTORS_TO_TRY if name in TIMEOUTS_THAT_ARE_NEVER_0 else _GRACE_FACTORS_TO_TRY
