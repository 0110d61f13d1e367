"""Owns a loaded scenario and what binding it to a policy gives. Refuses to read files, and to run anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

from pytest_agentproc.errors import NotApplicable
from pytest_agentproc.fake_agents.program import PROGRAM_FORMAT_VERSION
from pytest_agentproc.scenario._drive_keys import bind_caller_action, bind_hooks, bind_permission_handler
from pytest_agentproc.scenario._expect import bind_expected_value
from pytest_agentproc.scenario._expect_keys import UnboundExpectation, split_session_key
from pytest_agentproc.scenario._file_check import CompileContext, ProgramStep, UsedLimitsRecorder, WrittenStep
from pytest_agentproc.scenario._open_values import OpenValue, OpenValueChoice, fill_open_values
from pytest_agentproc.vocabulary import (
    ALL_LIMIT_NAMES,
    ERRNO_BY_RESOURCE_SHORTAGE,
    NANOSECONDS_PER_SECOND,
    SIGNAL_NUMBER_BY_NAME,
    CallerAction,
    LimitsRequest,
    Outcome,
    Policy,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.scenario._drive_keys import DriveItem
    from pytest_agentproc.scenario._file_check import ScenarioLanguage
    from pytest_agentproc.vocabulary import ContinuedSession, Dialect, Handler, HookReaction


def _find_outcome_limit(outcome: Any) -> str | None:
    """Give the limit that runs out for an outcome: a supervisor without it waits for ever, and says so."""
    return Outcome(outcome).limit if outcome in (*Outcome,) else None


StatedLimits = Policy | Mapping[str, Policy]
"""The limits that a subject states for a scenario; where it has several sessions, those of each by its name."""


class _LimitsSource(Protocol):
    """An object that states limits: a subject, or its stand-in in the model."""

    def policy(self, request: LimitsRequest) -> Policy: ...


@dataclass(frozen=True, slots=True)
class Expectation:
    """One check: a key, where it stands, and the normal form of what it wants.

    `not_applicable` names the limit that the check needs and the subject does not have; `wanted` is None then.
    `unstated` names the limits that the check depends on and that the subject does not state: `wanted` is then what
    it would be with their defaults. Line and column are 0 for the check on leaks that every scenario has without
    saying so.
    """

    key: str
    line: int
    column: int
    wanted: Any
    not_applicable: str | None = None
    level: str = "must"
    unstated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundScenario:
    """A scenario under one policy: the program for the fake, and the checks, all times in whole nanoseconds.

    `drive`, `handler`, `hooks` and `continues` are those of a session's caller; a run has none. Of several sessions
    `parts` has each, with its own actions; what the whole says of an agent is empty then.
    """

    scenario: Scenario
    program: dict[str, Any]
    policy: Policy
    expect: tuple[Expectation, ...]
    drive: tuple[CallerAction, ...] = ()
    handler: Handler | None = None
    hooks: tuple[HookReaction, ...] = ()
    continues: ContinuedSession | None = None
    parts: Mapping[str, BoundScenario] = field(default_factory=dict)
    abandoned: CallerAction | None = None
    """That the caller of a run goes away, and when."""
    blocked: CallerAction | None = None
    """That the supervisor's event loop is blocked, or its machine sleeps: from when on and for how long."""
    pauseless: int = 0
    """The line of a process that re-forks without a pause; 0: there is none."""
    first_signal: str = "TERM"
    """With which the escalation of the supervisor under test begins."""

    def require_virtual_time(self) -> BoundScenario:
        """Give this, if virtual time can play it.

        Raises:
            NotApplicable: a process re-forks without a pause, so that virtual time could never advance.
        """
        for part in (self, *self.parts.values()):
            if part.pauseless:
                raise NotApplicable("the real clock (every: 0s)", part.pauseless)
        return self


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario file that was found without mistake.

    Args:
        id: the file's name without `.scenario.yaml`, and `[NAME]` of the agent if the file has several.
        agent_name: the name of that agent; "" for a file with one agent.
        path: the name that messages carry.
        claim: the sentence behind `scenario:`.
        catches: each defect with the expect key that it turns red.
        level: how much the checks count that say nothing else.
        harm: what a user loses if the supervisor breaks it.
        policy: the limits that the file gives, in seconds, bytes or names; None is switched off.
        version: the version of the CLI that it imitates; "": the newest that there is.
        model: what the agent calls its model; "": as the fake has it.
        chunk: the most bytes that it writes at a time; 0: as the fake has it.
        takes_any_flags: whether its fake takes any arguments, and obeys none.
        needs_terminal: whether it ends with an error if its stdin or stdout is no terminal.
        partials: whether its command line asks for partial messages.
        states: whether its environment asks for the state of the session.
        prompt_by: `argv` or `stdin`.
        cannot_spawn: why no start of it succeeds; None: it starts.
        refused_start: which start alone fails, counted from 1, and why; 0: none.
        disk: how the disk of the artifacts is: "", "read_only" or "full"; `host_line` says where.
        blockage: when the supervisor's event loop is blocked, or its machine sleeps, and for how long.
        told_lines: the line of each limit that the supervisor is told.
        drive: what the caller does, a run's one prompt among it; `handlers` how it answers, and what it has hooks do.
        continues: the session that the caller continues; None: a new one.
        lacks_session: whether the agent has no such session.
        text: the file's own text; of Python data the lines of the call that gives it, at their places in its file.
        scripts: what each invocation of the fake plays, the last one all further ones too.
        session: what the session is called whose part of a file this is; "" if the file has one agent.
        parts: of a file with several sessions each as a scenario of its own; the whole says nothing of an agent then.
        language: the steps and the dialects that it speaks of.
        openings: the values that the file leaves open; this is the scenario with the default of each.
    """

    id: str
    path: str
    claim: str
    source: str
    covers: tuple[str, ...]
    catches: Mapping[str, str]
    level: str
    harm: str
    drive: tuple[DriveItem, ...]
    agent_name: str = ""
    dialect: str = ""
    mode: str = ""
    version: str = ""
    prompt_by: str = "argv"
    cannot_spawn: str | None = None
    refused_start: tuple[int, str] = (0, "")
    model: str = ""
    newline: str = "lf"
    bom: bool = False
    chunk: int = 0
    partials: bool = True
    states: bool = False
    takes_any_flags: bool = False
    needs_terminal: bool = False
    policy: Mapping[str, Any] = field(default_factory=dict)
    disk: str = ""
    host_line: int = 0
    blockage: DriveItem | None = None
    told_lines: Mapping[str, int] = field(default_factory=dict)
    handlers: tuple[dict[str, Any], ...] = ()
    continues: ContinuedSession | None = None
    lacks_session: bool = False
    text: str = field(repr=False)
    scripts: tuple[tuple[WrittenStep, ...], ...] = field(default=(), repr=False)
    expected: tuple[UnboundExpectation, ...] = field(repr=False)
    session: str = ""
    parts: Mapping[str, Scenario] = field(default_factory=dict, repr=False)
    language: ScenarioLanguage = field(repr=False, compare=False)
    openings: tuple[OpenValue, ...] = ()
    _bound: dict[Policy, BoundScenario] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What binding gave last: who plays a scenario again most often does so under the same limits."""

    def fill_open_values(self, choices: Sequence[OpenValueChoice]) -> str:
        """Give the file's text with every open value chosen: that of an ordinary scenario.

        Args:
            choices: one for each of `openings`.
        """
        return fill_open_values(self.text, self.openings, tuple(choices))

    @property
    def command_argument(self) -> str:
        """The argument that names this scenario to a command: its path, and the agent if the file has several."""
        return f"{self.path}[{self.agent_name}]" if self.agent_name else self.path

    @property
    def added_dialect(self) -> Dialect | None:
        """The agent's dialect if another package adds it; None: the kit has the dialect."""
        added = self.language.dialects.get(self.dialect)
        return None if added is None else added.dialect

    @property
    def dialect_record(self) -> Dialect:
        """The record of the agent's dialect in the version that it imitates, whoever has it."""
        record = self.language.all_dialects[self.dialect]
        return record.find_version(self.version) or record

    @property
    def simulates_failed_spawn(self) -> bool:
        """Whether the machine refuses a start of the agent, which no file can bring about."""
        return bool(self.refused_start[0]) or self.cannot_spawn in ERRNO_BY_RESOURCE_SHORTAGE

    @property
    def is_session(self) -> bool:
        """Whether the agent, or each of several, lives on for further prompts."""
        return bool(self.parts) or self.language.is_session_mode(self.dialect, self.mode)

    @property
    def served_agents(self) -> tuple[str, ...]:
        """Its agents that are servers, as `opencode serve`: the kit's own supervisor speaks with none of them."""
        parts = self.parts.values() or (self,)
        return tuple(f"{part.dialect} {part.mode}" for part in parts if part.mode in part.dialect_record.served)

    @property
    def prints_events(self) -> bool:
        """Whether each line on stdout is an event, and the output no plain text and no object over many lines."""
        return self.is_session or "event" in self.language.list_dialect_steps(self.dialect, self.mode)

    @property
    def prompt(self) -> str:
        """The prompt of a run; the agent of a session is prompted during the session."""
        return "" if self.is_session else str(self.drive[0].value)

    @property
    def has_stated_prompt(self) -> bool:
        """Whether the scenario says what the caller does, and so gives a prompt: otherwise it is `hi`."""
        return any(item.line for item in self.drive)

    def request_limits(self, subject: _LimitsSource) -> StatedLimits:
        """Give the limits that a subject states for this scenario."""
        if self.parts:
            return {name: part.request_agent_limits(subject) for name, part in self.parts.items()}
        return self.request_agent_limits(subject)

    def request_agent_limits(self, subject: _LimitsSource) -> Policy:
        """Give the limits that a subject states for the one agent of this scenario."""
        policy = subject.policy(LimitsRequest(self.policy, self.dialect, self.mode, self.is_session))
        return policy.adapt_to_session() if self.is_session else policy

    @property
    def asks_for_artifacts(self) -> bool:
        """Whether the supervisor has to keep any."""
        return bool(self.disk) or any(expectation.key.partition(".")[0] == "artifacts" for expectation in self.expected)

    def bind(self, terms: StatedLimits) -> BoundScenario:
        """Evaluate every time under the limits that the subject states for this scenario.

        Args:
            terms: what `request_limits` gives; one policy holds for all sessions.

        Raises:
            NotApplicable: the script, or the outcome that is expected, needs a limit that the policy switches off, a
                time of the script is none under it (negative, not a whole number of nanoseconds), the tree is held less
                strongly than the file asks for, or the outcome is `tool_use` and other tools are the host's.
        """
        if self.parts:
            return self._bind_sessions(
                {name: terms[name] if isinstance(terms, Mapping) else terms for name in self.parts}
            )
        assert isinstance(terms, Policy)
        bound = self._bound.get(terms)
        if bound is None:
            bound = self._bind_agent(terms)
            self._bound.clear()
            self._bound[terms] = bound
        return bound if bound.policy is terms else replace(bound, policy=terms)

    def _bind_sessions(self, terms: Mapping[str, Policy]) -> BoundScenario:
        parts = {name: part.bind(terms[name]) for name, part in self.parts.items()}
        scopes = {
            name: CompileContext(policy.to_exact_limits(), self.language.steps, policy.unstated)
            for name, policy in terms.items()
        }
        scopes[""] = CompileContext(Policy().to_whole_limits(), self.language.steps)
        drive = tuple(bind_caller_action(item, scopes[item.session]) for item in self.drive)
        blocked = self._bind_event_loop_block(scopes[""])
        return BoundScenario(self, {}, Policy(), self._bind_expectations(scopes), drive, parts=parts, blocked=blocked)

    def _bind_event_loop_block(self, scope: CompileContext) -> CallerAction | None:
        return None if self.blockage is None else bind_caller_action(self.blockage, scope)

    def _bind_expectations(self, scopes: Mapping[str, CompileContext]) -> tuple[Expectation, ...]:
        expect = []
        for expected in self.expected:
            session, key = split_session_key(expected.key)
            own = _bind_expectation(replace(expected, key=key), scopes[session])
            expect.append(replace(own, key=expected.key, level=expected.level or self.level))
        if all(expectation.key != "leaks" for expectation in expect):
            expect.append(Expectation("leaks", 0, 0, [], level=self.level))
        return tuple(expect)

    def has_same_host_tools(self, policy: Policy) -> bool:
        """Say whether each tool of the script is the host's for the supervisor exactly if it is in the file.

        A supervisor may have a fixed list: tools of it that the script does not use are no difference.
        """
        given = self.policy.get("host_tools", policy.host_tools)
        names = {*_find_tool_names(self.scripts)}
        if not names:
            return {*given} <= {*policy.host_tools}
        return all(_matches_any_pattern(name, given) == _matches_any_pattern(name, policy.host_tools) for name in names)

    def _describe_continued_session(self) -> dict[str, str]:
        return {"lacks" if self.lacks_session else "knows": self.continues.id} if self.continues else {}

    def _build_signal_reactions(self) -> dict[int, tuple[Any, ...]]:
        """Give what the real CLI does on signals, as a program has it."""
        reactions = self.dialect_record.signals.get(self.mode, {})
        return {SIGNAL_NUMBER_BY_NAME[name]: astuple(reaction) for name, reaction in reactions.items()}

    def _read_stdin_first(self, steps: Sequence[Any]) -> list[Any]:
        """Have the agent read its stdin before its script, as the real CLI does, unless the script itself says how."""
        reading = self.dialect_record.stdin
        if reading is None or self.is_session or self.cannot_spawn or _reads_stdin_itself(steps):
            return []
        if self.continues and self.prompt_by == "argv" and not reading.resumed:
            return []
        patience, notice, warning = reading.to_step_values(has_prompt=self.prompt_by == "argv")
        is_in_script = any(op == "bytes" and notice in args[1] for _, op, args in steps)  # a recorded one has it
        return [(0, "read_stdin", (patience, b"" if is_in_script else notice, warning, b"", None))]

    def _begin_before_waits(self, steps: list[ProgramStep]) -> list[ProgramStep]:
        """Have the agent print the first events of its turn before it waits for its model, as the real CLI does.

        A script that says itself when it begins, stops its stdin or writes its first events is left as it is.
        """
        if any(op == "event" and args[0] == "begin" for _, op, args in steps):
            return [step for step in steps if step[2] != ("begin", "late")]
        place = _find_first_wait(steps) if self.mode in self.dialect_record.begins else None
        if place is None:
            return steps
        return [*steps[:place], (0, "event", ("begin", "turn")), *steps[place:]]

    def _bind_agent(self, policy: Policy) -> BoundScenario:
        containment = self.policy.get("containment", "group")
        if not policy.has_containment(containment):
            raise NotApplicable(f"containment {containment}", self.told_lines["containment"])
        for expected in self.expected:
            head, _, leaf = expected.key.rpartition(".")
            is_outcome = leaf == "outcome" and not head.startswith("artifacts")
            limit = _find_outcome_limit(expected.value) if is_outcome else None
            if limit is not None and policy.to_whole_limits()[limit] is None:
                raise NotApplicable(limit, expected.line)
            if is_outcome and expected.value == Outcome.TOOL_USE and not self.has_same_host_tools(policy):
                raise NotApplicable("host_tools", expected.line)
        scope = CompileContext(policy.to_exact_limits(), self.language.steps, policy.unstated)
        asked = _build_input_report(self.expected)
        if self.needs_terminal:
            asked.append((0, "need_terminal", ()))
        compiled = [scope.compile_steps(script) for script in self.scripts]
        first, *then = [
            [*asked, *self._read_stdin_first(steps), *self._begin_before_waits(steps)] for steps in compiled
        ]
        program = {
            "format": PROGRAM_FORMAT_VERSION,
            "dialect": self.dialect,
            "mode": self.mode,
            "name": self.session or "agent",
            "code": 0,
            "newline": self.newline,
            "bom": self.bom,
            "serves": self.is_session,
            "steps": first,
        }
        obeys = self.dialect_record.command_line is not None and not self.takes_any_flags
        own = {"model": self.model, "chunk": self.chunk, "obeys": obeys, **self._describe_continued_session()}
        own["signals"] = self._build_signal_reactions()
        program |= {name: value for name, value in own.items() if value}
        if then:
            program["then"] = then
        has_tasks = _has_background_task([first, then])
        if has_tasks:
            program["tasks"] = True
        program["encoder"] = list(self.dialect_record.list_encoder_modules(self.mode, has_tasks=has_tasks))
        expect = self._bind_expectations({"": scope})
        pauseless, blocked = _find_pauseless_spawn([first, then]), self._bind_event_loop_block(scope)
        bound = BoundScenario(self, program, policy, expect, pauseless=pauseless, blocked=blocked)
        drive = tuple(bind_caller_action(item, scope) for item in self.drive)
        abandoned = drive[-1] if drive and drive[-1].kind == "abandon" else None
        if not self.is_session:
            return replace(bound, abandoned=abandoned, continues=self.continues)
        if abandoned is not None:
            bound = replace(bound, abandoned=abandoned)
            drive = (*drive[:-1], _make_wait_beyond(abandoned))
        handler, hooks = bind_permission_handler(self.handlers, scope), bind_hooks(self.handlers, scope)
        return replace(bound, drive=drive, handler=handler, hooks=hooks, continues=self.continues)


def _make_wait_beyond(abandoned: CallerAction) -> CallerAction:
    """Give what keeps the caller from closing its session before it leaves."""
    return CallerAction(0, "wait", (abandoned.at or 0) + NANOSECONDS_PER_SECOND)


def _build_input_report(expected: tuple[UnboundExpectation, ...]) -> list[ProgramStep]:
    """Give the step that reports the agent's input, if a check needs it; variables by name, as few as need be."""
    given = [
        expectation
        for expectation in expected
        if expectation.key.rpartition(".")[2] in ("argv", "env", "cwd", "prompt")
    ]
    given = [expectation for expectation in given if expectation.key.partition(".")[0] in ("received", "processes")]
    names = [name for expectation in given if expectation.key.endswith(".env") for name in expectation.value]
    return [(given[0].line, "report_start", (names,))] if given else []


def _bind_expectation(expected: UnboundExpectation, scope: CompileContext) -> Expectation:
    wanted, missing = None, None
    limits = UsedLimitsRecorder(scope.limits)
    try:
        wanted = bind_expected_value(expected, replace(scope, limits=limits))
    except NotApplicable as limit:
        missing = limit.name
    unstated = tuple(name for name in ALL_LIMIT_NAMES if name in limits.used & scope.unstated and missing is None)
    return Expectation(expected.key, expected.line, expected.column, wanted, missing, unstated=unstated)


def _find_pauseless_spawn(steps: Any) -> int:
    """Find the line of a spawn, in lists of steps however deep, whose process re-forks without a pause; 0 if none."""
    match steps:
        case (int(line), "spawn", ({"every": 0}, _)):
            return line
        case [*deeper]:
            return next((line for step in deeper if (line := _find_pauseless_spawn(step))), 0)
    return 0


def _find_first_wait(steps: Sequence[ProgramStep]) -> int | None:
    """Give the place of the step at which an agent first waits for its model; None: it prints or ends before."""
    for place, (_, op, args) in enumerate(steps):
        match op, args:
            case "sleep" | "burn_cpu" | "await_signal" | "drip", _:
                return place
            case "event", ("line", dict(fields)):
                if not str(fields.get("subtype") or fields["type"]).startswith(("hook", "keep")):
                    return place
            case ("event", ("notice", _)) | ("bytes", ("stderr", _)):
                pass
            case "await_eof" | "when" | "spawn" | "meanwhile" | "write_file", _:
                pass
            case _:
                return None
    return None


def _reads_stdin_itself(steps: Any) -> bool:
    """Say whether lists of steps, however deep, say how the agent reads its stdin, or what it does at its end."""
    match steps:
        case (
            (int(), "await_eof" | "await_stdin" | "stdin", _)
            | (int(), "close", ("stdin",))
            | (int(), "when", ("eof", *_))
        ):
            return True
        case [*deeper]:
            return any(_reads_stdin_itself(step) for step in deeper)
    return False


def _has_background_task(steps: Any) -> bool:
    """Say whether a background task starts in lists of steps, however deep."""
    match steps:
        case (int(), "event", ("task", _)):
            return True
        case [*deeper]:
            return any(_has_background_task(step) for step in deeper)
    return False


def _find_tool_names(value: Any) -> Iterator[str]:
    """Yield every name that a script, or a part of one, gives to a tool."""
    if isinstance(value, Mapping):
        if isinstance(value.get("name"), str):
            yield value["name"]
        value = tuple(value.values())
    if isinstance(value, WrittenStep):
        value = (value.value, value.also)
    if isinstance(value, tuple | list):
        for part in value:
            yield from _find_tool_names(part)


def _matches_any_pattern(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
