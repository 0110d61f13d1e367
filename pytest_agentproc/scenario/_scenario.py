"""Owns a loaded scenario and what binding it to a policy gives. Refuses to read files, and to run anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.scenario._drive import Item, bind_drive, bind_handler, bind_hooks
from pytest_agentproc.scenario._expect import Expected, bind_value
from pytest_agentproc.scenario._expressions import NotApplicable
from pytest_agentproc.scenario._script import ProgramStep, Scope, Step
from pytest_agentproc.scenario._sessions import SESSIONS
from pytest_agentproc.scenario._steps import STEPS
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.vocabulary import Deed, Handler, HookUse, Policy

__all__ = ["Bound", "Expectation", "Scenario"]

_FORMAT = 1

_LIMITS: dict[str, str] = {
    Outcome.INACTIVE: "inactivity_timeout",
    Outcome.STALLED: "progress_timeout",
    Outcome.OVERRAN: "max_runtime",
    Outcome.TIMED_OUT: "prompt_timeout",
}
"""The limit behind an outcome: who has none waits for ever, and says so."""


class _States(Protocol):
    """Who states limits: a subject, and what stands for one in the model."""

    def policy(self, overrides: Mapping[str, Any], dialect: str) -> Policy: ...


@dataclass(frozen=True, slots=True)
class Expectation:
    """One check: a key, where it stands, and the normal form of what it wants.

    `not_applicable` names the limit that the check needs and the subject does not have; `wanted` is None then.
    Line and column are 0 for the check on leaks that every scenario has without saying so.
    """

    key: str
    line: int
    column: int
    wanted: Any
    not_applicable: str | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A scenario under one policy: the program for the fake, and the checks, all times in whole nanoseconds.

    `drive`, `handler` and `hooks` are those of a session's caller; a run has none.
    """

    scenario: Scenario
    program: dict[str, Any]
    policy: Policy
    expect: tuple[Expectation, ...]
    drive: tuple[Deed, ...] = ()
    handler: Handler | None = None
    hooks: tuple[HookUse, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario file that was found without mistake.

    Args:
        id: the file's name without `.scenario.yaml`.
        path: the name that messages carry.
        claim: the sentence behind `scenario:`.
        catches: each defect with the expect key that it turns red.
        policy: the limits that the file gives, in seconds, bytes or names; None is switched off.
        partials: whether its command line asks for partial messages.
        prompt_by: `argv` or `stdin`.
        disk: how the disk of the artifacts is: "", "read_only" or "full"; `host_line` says where.
        drive: what the caller does, a run's one prompt among it; `handlers` how it answers, and what it has hooks do.
        text: the file's own text.
        scripts: what each invocation of the fake plays, the last one all further ones too.
    """

    id: str
    path: str
    claim: str
    source: str
    covers: tuple[str, ...]
    catches: Mapping[str, str]
    tier: str
    dialect: str
    mode: str
    prompt_by: str
    cannot_spawn: str | None
    newline: str
    bom: bool
    partials: bool
    policy: Mapping[str, Any]
    disk: str
    host_line: int
    drive: tuple[Item, ...]
    handlers: tuple[dict[str, Any], ...]
    text: str = field(repr=False)
    scripts: tuple[tuple[Step, ...], ...] = field(repr=False)
    expected: tuple[Expected, ...] = field(repr=False)

    @property
    def is_session(self) -> bool:
        """Whether the agent lives on for further prompts."""
        return (self.dialect, self.mode) in SESSIONS

    @property
    def prompt(self) -> str:
        """What the agent of a run is asked; a session's is asked in the course of it."""
        return "" if self.is_session else str(self.drive[0].value)

    def terms(self, subject: _States) -> Policy:
        """Give the limits that a subject states for this scenario."""
        policy = subject.policy(self.policy, self.dialect)
        return policy.in_session() if self.is_session else policy

    @property
    def asks_for_artifacts(self) -> bool:
        """Whether the supervisor is told to keep any."""
        return bool(self.disk) or any(one.key.partition(".")[0] == "artifacts" for one in self.expected)

    def bind(self, policy: Policy) -> Bound:
        """Evaluate every time under the policy that the subject states for this scenario.

        Raises:
            NotApplicable: the script, or the outcome that is expected, needs a limit that the policy switches off, or
                a time of the script is none under it (negative, not a whole number of nanoseconds).
        """
        for expected in self.expected:
            head, _, leaf = expected.key.rpartition(".")
            is_outcome = leaf == "outcome" and not head.startswith("artifacts")
            limit = _LIMITS.get(str(expected.value)) if is_outcome else None
            if limit is not None and policy.whole()[limit] is None:
                raise NotApplicable(limit, expected.line)
        scope = Scope(policy.whole(), STEPS)
        asked = _asked(self.expected)
        first, *then = [[*asked, *scope.steps(script)] for script in self.scripts]
        program = {
            "format": _FORMAT,
            "dialect": self.dialect,
            "mode": self.mode,
            "name": "agent",
            "code": 0,
            "newline": self.newline,
            "bom": self.bom,
            "serves": self.is_session,
            "steps": first,
        }
        if then:
            program["then"] = then
        expect = [_expectation(expected, scope) for expected in self.expected]
        if all(expectation.key != "leaks" for expectation in expect):
            expect.append(Expectation("leaks", 0, 0, []))
        if not self.is_session:
            return Bound(self, program, policy, tuple(expect))
        caller = bind_drive(self.drive, scope), bind_handler(self.handlers, scope), bind_hooks(self.handlers, scope)
        return Bound(self, program, policy, tuple(expect), *caller)


def _asked(expected: tuple[Expected, ...]) -> list[ProgramStep]:
    """Give the step that tells what the agent was given, if a check needs it; variables by name, as few as need be."""
    given = [one for one in expected if one.key in ("saw.argv", "saw.env", "saw.cwd")]
    names = [name for one in given if one.key == "saw.env" for name in one.value]
    return [(given[0].line, "tell", (names,))] if given else []


def _expectation(expected: Expected, scope: Scope) -> Expectation:
    wanted, missing = None, None
    try:
        wanted = bind_value(expected, scope)
    except NotApplicable as limit:
        missing = limit.name
    return Expectation(expected.key, expected.line, expected.column, wanted, missing)
