"""Writes the scenario of a recording, runs it again, and says where it is not the same; so for the draft of a log.

The draft of a log is played in the model, with the reference supervisor as the client. Each event of the agent in the
log must be among the events that the fake printed. Ids, times and counts may differ, and so may the order. The fake may
print more, since a report leaves things out: of that only kinds of events are named that the log never has.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._guesses import StepGuesser, are_lines_equivalent
from pytest_agentproc.capture._identity import AgentIdentity, find_prompts_in_stdin
from pytest_agentproc.capture._meaning import get_nested
from pytest_agentproc.capture._moments import (
    MIN_NOTICEABLE_PAUSE_NS,
    RecordedMoment,
    ScriptBuilder,
    join_stream_bytes,
    list_recorded_moments,
)
from pytest_agentproc.capture._paste import parse_pasted_log
from pytest_agentproc.capture._paste_content import list_agent_events
from pytest_agentproc.capture._replay import AgentInput, contains_wanted_value, replay_agent
from pytest_agentproc.capture._targets import write_private_file
from pytest_agentproc.capture._wording import format_comment_text, format_inline_yaml, format_time, format_yaml_text
from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.events import ProcessEnded, ProcessGone, ProcessStarted, SignalCaught
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import NotApplicable, Scenario, load, loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.vocabulary import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pytest_agentproc.events import Event


_MAX_PAUSE_WITHIN_STEP_NS = 250_000_000
"""Lines that one step prints come without a longer pause."""
_MAX_SIGNAL_REACTION_NS = 5_000_000_000
"""What a program does so soon behind a signal that it caught, it does because of it."""
_MIN_DESCENDANT_LIFETIME_NS = 200_000_000
"""A descendant that lived shorter is no step: it is seen in one recording and not in the next."""
_AGENT_ACTION_KINDS = ("out", "err", "close", "exit")
"""What the program does by itself."""
_CLIENT_ANSWER_MARKERS = (b'"control_response"', b'"extension_ui_response"', b'"result"')
"""What an answer of the client's says of itself, dialect by dialect."""


class FakeReplyMismatch(Exception):
    """The dialect's fake answers otherwise than was recorded: only bytes can express it."""


class _RecordingScriptMaker:
    """Make the steps of one script."""

    def __init__(
        self,
        found: Sequence[RecordedMoment],
        deaths: Mapping[str, int],
        guesser: StepGuesser | None,
        keep: Callable[[bytes], str],
        *,
        begins: bool = False,
    ) -> None:
        self._found = found
        self._guesser = guesser
        self._keep = keep
        self._begins = begins
        self.script = ScriptBuilder(keep, says=guesser is None)
        self._printed = 0
        self._prompts = 0
        self._input = b""
        self._is_busy = self._waited = False
        self._has_input = self._has_output = False
        self._deaths = deaths
        self._living: dict[str, int] = {}
        self.end: RecordedMoment | None = next((moment for moment in found if moment.kind == "exit"), None)

    def make_script_steps(self) -> list[str]:
        """Give the steps."""
        handlers = {
            "out": self._add_stdout_bytes,
            "err": self._add_stderr_bytes,
            "in": self._handle_stdin_bytes,
            "eof": self._add_wait_for_stdin_end,
            "close": self._add_stream_close,
            "seen": self._add_descendant_spawn,
            "signal": self._add_nothing_for_signal,
            "exit": self._add_agent_exit,
        }
        for index, moment in enumerate(self._found):
            if moment.kind in _AGENT_ACTION_KINDS:
                self._add_waits_for_earlier_exits(moment)
            if moment.kind == "out" and self._guesser is not None:
                self._add_steps_for_stdout_line(index, moment)
            else:
                handlers[moment.kind](index, moment)
        steps = self.script.steps
        is_late = self._begins and steps[:1] and steps[0].startswith("silence") and "begin: turn" not in steps
        return ["begin: late", *steps] if is_late else steps

    def _add_waits_for_earlier_exits(self, moment: RecordedMoment) -> None:
        """Wait for those who were gone before the program did this: a descendant may begin late, and so end late.

        The program may have seen it before we did.
        """
        for name, death in sorted(self._living.items(), key=lambda pair: pair[1]):
            if death - moment.at < MIN_NOTICEABLE_PAUSE_NS:
                del self._living[name]
                self.script.steps.append(f"wait_for: {{exit: {name}}}")
                self.script.now = max(self.script.now, death)

    @property
    def has_recorded_exit(self) -> bool:
        """Whether what was recorded has an end."""
        return self.end is not None

    def _add_steps_for_stdout_line(self, index: int, moment: RecordedMoment) -> None:
        """Tell a line of stdout, unless a step before it has printed it."""
        assert self._guesser is not None
        self._has_output = True
        self._printed += 1
        if self._printed <= self._guesser.at:
            return
        if (
            self._guesser.serves
            and not self._is_busy
            and self._begin_turn_of_next_prompt(moment)
            and self._printed <= self._guesser.at
        ):
            return
        step = None
        if not moment.parts:
            step = self._guesser.guess_next_step(self._count_lines_before_pause(index))
        else:
            self._guesser.skip_line()
        if step is not None:
            self.script.add_step(step.written, moment.at)
            self._is_busy = self._is_busy and not step.ends_turn
            return
        if not moment.parts:
            self._guesser.skip_line()
        for at, data in moment.parts or ((moment.at, moment.data),):
            self.script.add_output_bytes(data, at)

    def _count_lines_before_pause(self, index: int) -> int:
        """Count the lines from here on that one step may print."""
        last = self._found[index]
        count = 1
        for moment in self._found[index + 1 :]:
            if moment.kind != "out" or moment.parts or moment.at - last.at >= _MAX_PAUSE_WITHIN_STEP_NS:
                break
            last, count = moment, count + 1
        return count

    def _add_stdout_bytes(self, _index: int, moment: RecordedMoment) -> None:
        self._has_output = True
        self.script.add_output_bytes(moment.data, moment.at)

    def _add_stderr_bytes(self, _index: int, moment: RecordedMoment) -> None:
        self.script.add_output_bytes(moment.data, moment.at, "stderr")

    def _handle_stdin_bytes(self, index: int, moment: RecordedMoment) -> None:
        self._has_input = True
        *lines, self._input = (self._input + moment.data).split(b"\n")
        is_last = all(later.kind not in ("out", "err") for later in self._found[index + 1 :])
        for line in lines:
            if self._guesser is not None and self._guesser.serves:
                self._handle_stdin_line(line, moment)
            elif self._guesser is None and not is_last:
                self.script.add_step('wait_for: {stdin: "*"}', moment.at)
                self.script.now = max(self.script.now, moment.at)

    def _handle_stdin_line(self, line: bytes, moment: RecordedMoment) -> None:
        """Have the dialect hear a line, and say so in the script if it waits for it."""
        assert self._guesser is not None
        reply, event = self._guesser.receive_stdin_line(line)
        if not self._guesser.match_fake_output(reply):
            raise FakeReplyMismatch
        is_prompt = not self._is_busy and self._begin_turn_of_next_prompt(moment)
        if event == "cancel":
            self._add_wait_for_caller("wait_for: cancel", moment)
            encoded = self._guesser.acknowledge_cancel()
            self._is_busy = False
            self.script.steps.append("acknowledge: cancel")
            if not self._guesser.match_fake_output(encoded):
                raise FakeReplyMismatch
        answers = next((word for word in _CLIENT_ANSWER_MARKERS if word in line), None)
        if answers is not None and not is_prompt and not reply and not event:
            self._add_wait_for_caller(f"wait_for: {{stdin: '*{answers.decode()}*'}}", moment)

    def _begin_turn_of_next_prompt(self, moment: RecordedMoment) -> bool:
        """Take the next prompt in hand, if there is one; say whether there was."""
        assert self._guesser is not None
        encoded = self._guesser.begin_prompt(self._prompts + 1)
        if encoded is None:
            return False
        self._prompts += 1
        self._is_busy = True
        self._add_wait_for_caller(f"wait_for: prompt {self._prompts}", moment)
        if not self._guesser.match_fake_output(encoded):
            raise FakeReplyMismatch
        return True

    def _add_wait_for_caller(self, step: str, moment: RecordedMoment) -> None:
        """Wait for the caller: from here on time counts from what it does."""
        self.script.steps.append(step)
        self.script.now = max(self.script.now, moment.at)

    def _add_wait_for_stdin_end(self, index: int, moment: RecordedMoment) -> None:
        is_session = self._guesser is not None and self._guesser.serves
        speaks = any(later.kind in ("out", "err") for later in self._found[index + 1 :])
        if (self._has_input or self._has_output) and (speaks or not is_session):
            self._add_wait_for_caller("wait_for: eof", moment)
            self._waited = True

    def _add_stream_close(self, _index: int, moment: RecordedMoment) -> None:
        if self.end is not None and self.end.at - moment.at >= MIN_NOTICEABLE_PAUSE_NS:
            self.script.add_step(f"close: {moment.data}", moment.at)

    def _add_descendant_spawn(self, _index: int, moment: RecordedMoment) -> None:
        started: ProcessStarted = moment.data
        death = self._deaths.get(started.process)
        if death is not None and death - moment.at < _MIN_DESCENDANT_LIFETIME_NS:
            return
        fields: dict[str, Any] = {"id": started.process.replace(" ", "-"), "how": started.how}
        if not started.inherits:
            fields["closed_fds"] = True
        lasts = "" if death is None else f", for: {format_time(death - moment.at)}"
        if death is not None:
            self._living[fields["id"]] = death
        self.script.add_step(f"spawn: {format_inline_yaml(fields)[:-1]}{lasts}}}", moment.at)

    def _add_nothing_for_signal(self, _index: int, _moment: RecordedMoment) -> None:
        """It stands on top of the script."""

    def _add_agent_exit(self, _index: int, moment: RecordedMoment) -> None:
        self.script.add_silence_until(moment.at)
        end: ProcessEnded = moment.data
        if died := end.signal:
            was_sent = any(moment.kind == "signal" and moment.data.signal == died for moment in self._found)
            self.script.steps.append("silence: for ever" if was_sent or died == "KILL" else f"die: {died}")
        elif end.code or (self._guesser is not None and self._guesser.serves and not self._has_stdin_end()):
            if self._guesser is not None and self._guesser.serves and self._has_stdin_end() and not self._waited:
                self.script.steps.append("wait_for: eof")
            self.script.steps.append(f"exit: {end.code}")

    def _has_stdin_end(self) -> bool:
        return any(moment.kind == "eof" for moment in self._found)


def convert_recording_to_steps(
    events: Sequence[Event], identity: AgentIdentity, keep: Callable[[bytes], str]
) -> list[str]:
    """Give the steps of a script that does what was recorded.

    Args:
        events: those of a record, redacted.
        identity: in whose dialect; raw: in bytes.
        keep: takes bytes that are too many for the file, and gives the name of one beside it.

    Raises:
        FakeReplyMismatch: the fake of the dialect answers otherwise than was recorded.
    """
    by_line = identity.mode in DIALECTS[identity.dialect].steps  # all others print no events
    found = sorted(list_recorded_moments(events, by_line=by_line), key=lambda moment: moment.at)
    deaths = {event.process: event.at for event in events if isinstance(event, ProcessGone)}
    before, reactions, after = _split_at_last_signal(found)
    whole = [moment.data for moment in found if moment.kind == "out"]
    guesser = StepGuesser(_make_fake_program(identity), whole) if by_line else None
    begins = identity.mode in DIALECTS[identity.dialect].begins
    maker = _RecordingScriptMaker(before, deaths, guesser, keep, begins=begins)
    steps = maker.make_script_steps()
    if not after and not maker.has_recorded_exit:
        steps.append("silence: for ever")
    if after:
        then = _RecordingScriptMaker(after, deaths, guesser, keep)
        then.script.now = after[0].at
        then._printed = maker._printed  # noqa: SLF001  # one script, told in two
        done = then.make_script_steps()
        if after[-1].kind == "exit" and after[-1].data.code == 0 and done[-1:] != ["exit: 0"]:
            done.append("exit: 0")
        name = after[0].data.signal
        reactions = [reaction for reaction in reactions if reaction[0] != name]
        if any(step.startswith("tool_done") for step in done):
            steps.append(_format_signal_reaction(name, done))  # what it ends must have begun above
        else:
            reactions.append((name, done))
        steps.append("silence: for ever")
    return [*(_format_signal_reaction(name, done) for name, done in reactions), *steps]


def _format_signal_reaction(name: str, steps: Sequence[str]) -> str:
    written = "".join(f"\n      - {step}" for step in steps) or " []"
    return f"when: {{signal: {name}}}\n    do:{written}"


def _split_at_last_signal(
    found: list[RecordedMoment],
) -> tuple[list[RecordedMoment], list[tuple[str, list[str]]], list[RecordedMoment]]:
    """Part what the program does by itself from what it does because of the last signal; name what it ignores."""
    signals = [index for index, moment in enumerate(found) if moment.kind == "signal"]
    end = next((moment for moment in found if moment.kind == "exit"), None)
    ignored: dict[str, list[str]] = {}
    for index in signals:
        caught: SignalCaught = found[index].data
        is_death = end is not None and end.data.signal == caught.signal
        if (
            caught.met == "caught"
            and index == signals[-1]
            and end
            and end.at - found[index].at <= _MAX_SIGNAL_REACTION_NS
        ):
            return found[:index], list(ignored.items()), found[index:]
        if not is_death:
            ignored[caught.signal] = []
    return found, list(ignored.items()), []


def _make_fake_program(identity: AgentIdentity) -> dict[str, Any]:
    newest = DIALECTS[identity.dialect]
    record = newest.find_version(identity.version) or newest
    program: dict[str, Any] = {
        "format": 1,
        "dialect": identity.dialect,
        "encoder": list(record.list_encoder_modules(identity.mode)),
        "mode": identity.mode,
        "name": "agent",
        "code": 0,
        "newline": "lf",
        "bom": False,
        "serves": identity.is_session,
        "steps": [],
        "argv": list(identity.argv),
        "environ": {name.encode(): value.encode() for name, value in record.states.items() if identity.states},
        "prompt": identity.prompt,
    }
    return {**program, "model": identity.model} if identity.model else program


_MAX_SHOWN_CHARACTERS = 60
_SIGNAL_NUMBER_BY_NAME = {"HUP": 1, "INT": 2, "TERM": 15}


@dataclass
class ScenarioDraft:
    """A scenario, as it is written.

    Args:
        path: where it goes.
        text: what is in it.
        files: what goes beside it, by name.
        notes: where it is not what was recorded, one sentence each.
    """

    path: Path
    text: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add_file(self, data: bytes) -> str:
        """Take bytes that go beside the file, and give their file's name."""
        stem = self.path.name.removesuffix(".yaml").removesuffix(".scenario")
        name = f"{stem}.{len(self.files) + 1}.bin"
        self.files[name] = data
        return name

    def write_files(self) -> None:
        """Write the file and those beside it; its owner alone may read them."""
        for name, data in self.files.items():
            write_private_file(self.path.parent / name, data)
        write_private_file(self.path, self.text.encode())


def draft_scenario_from_recording(
    path: Path, events: Sequence[Event], identity: AgentIdentity, comments: Sequence[str], claim: str
) -> ScenarioDraft:
    """Write the scenario of a recording beside which it will stand, and play it again to see that it is the same.

    The dialect's words are tried first; if they cannot express it, the whole is written in bytes.

    Args:
        path: where the scenario goes; it is written there, and its files beside it.
        events: those of the record, redacted.
        identity: who was recorded.
        comments: what stands above it.
        claim: the sentence behind `scenario:`.
    """
    draft = _write_and_check_draft(path, events, identity, comments, claim)
    if draft.notes and identity.dialect != "raw":
        plain = AgentIdentity("raw", "text", identity.argv, identity.prompt)
        in_bytes = _write_and_check_draft(path, events, plain, comments, claim)
        if len(in_bytes.notes) < len(draft.notes):
            reason = f"the fake of {identity.dialect} cannot print it: {draft.notes[0]}"
            in_bytes.notes.insert(0, f"{reason}; so the script writes its bytes (agent: raw)")
            draft = in_bytes
    draft.text = draft.text.replace(
        _NOTES_PLACEHOLDER_LINE, "".join(f"# not faithful: {note}\n" for note in draft.notes), 1
    )
    draft.write_files()
    return draft


_NOTES_PLACEHOLDER_LINE = "# (notes)\n"


def _write_and_check_draft(
    path: Path, events: Sequence[Event], identity: AgentIdentity, comments: Sequence[str], claim: str
) -> ScenarioDraft:
    draft = ScenarioDraft(path)
    try:
        steps = convert_recording_to_steps(events, identity, draft.add_file)
    except FakeReplyMismatch:
        draft.notes.append("it answers its input with other words")
        return draft
    head = [
        *(f"# {line}" for line in comments),
        _NOTES_PLACEHOLDER_LINE.rstrip("\n"),
        f"scenario: {format_yaml_text(claim)}",
        f"agent: {identity.agent_yaml}",
    ]
    drive = _format_drive_section(events, identity)
    body = [*drive, "script:" if steps else "script: []", *(f"  - {step}" for step in steps)]
    draft.text = "\n".join([*head, *body]) + "\n"
    draft.write_files()
    try:
        scenario = load(path)
    except ScenarioError as error:
        draft.notes.append(f"the file is refused: {error.problems[0].message}")
        return draft
    draft.notes += _find_replay_differences(scenario, events, identity)
    draft.text += _format_expect_section(scenario)
    return draft


def _format_drive_section(events: Sequence[Event], identity: AgentIdentity) -> list[str]:
    """Give what the caller does: the prompts that were seen."""
    sent = join_stream_bytes(events, "stdin")
    if identity.is_session:
        prompts = find_prompts_in_stdin(identity.dialect, sent.splitlines())
        return ["drive:", *(f"  - prompt: {format_yaml_text(prompt)}" for prompt in prompts)] if prompts else []
    if identity.by_stdin:
        return [f"drive: [{{prompt: {format_inline_yaml(sent.decode(errors='replace'))}}}]"]
    return [f"drive: [{{prompt: {format_inline_yaml(identity.prompt)}}}]"] if identity.prompt else []


def _format_expect_section(scenario: Scenario) -> str:
    """Say what the reference supervisor makes of it, if it comes to an end."""
    try:
        answer = run_in_model(scenario, reference_supervisor()).answer
    except NotApplicable:
        return ""
    if answer is None:
        return ""
    if answer.turns is not None:
        turns = [
            format_inline_yaml({"outcome": str(turn.outcome), **_make_text_expectation(turn)}) for turn in answer.turns
        ]
        return "expect:  # what the reference supervisor makes of it\n  turns:\n" + "".join(
            f"    - {turn}\n" for turn in turns
        )
    rows = {"outcome": str(answer.outcome), **_make_text_expectation(answer)}
    return "expect:  # what the reference supervisor makes of it\n" + "".join(
        f"  {key}: {format_yaml_text(value)}\n" for key, value in rows.items()
    )


def _make_text_expectation(answer: Any) -> dict[str, str]:
    return (
        {"text": answer.text}
        if answer.text and len(answer.text) < _MAX_SHOWN_CHARACTERS and "\n" not in answer.text
        else {}
    )


def _find_replay_differences(scenario: Scenario, events: Sequence[Event], identity: AgentIdentity) -> list[str]:
    """Play it, given what was given, and name what comes out otherwise."""
    played = replay_agent(
        scenario.bind(scenario.request_limits(reference_supervisor())),
        identity.argv,
        identity.prompt,
        list_agent_input(events),
    )
    notes = []
    for stream, data in (("stdout", played.out), ("stderr", played.err)):
        notes += _describe_stream_difference(stream, join_stream_bytes(events, stream), bytes(data))
    ends = (event.code for event in events if isinstance(event, ProcessEnded) and event.process == "agent")
    wanted = next(ends, None)
    if wanted is not None and played.ended != wanted:
        notes.append(f"it exited with {wanted}, and the fake {_describe_exit_status(played.ended)}")
    return notes


def _describe_exit_status(ended: int | None) -> str:
    return "lives on" if ended is None else f"exits with {ended}" if ended >= 0 else f"dies of signal {-ended}"


def _describe_stream_difference(stream: str, recorded: bytes, played: bytes) -> list[str]:
    if recorded == played:
        return []
    pairs = zip_longest(recorded.split(b"\n"), played.split(b"\n"), fillvalue=b"")
    for number, (line, other) in enumerate(pairs, 1):
        if not are_lines_equivalent(line, other):
            return [
                f"{stream} differs in line {number}: {_clip_line(line)} was recorded, {_clip_line(other)} is played"
            ]
    return []


def _clip_line(line: bytes) -> str:
    shown = line.decode(errors="replace")
    return format_inline_yaml(shown if len(shown) <= _MAX_SHOWN_CHARACTERS else shown[:_MAX_SHOWN_CHARACTERS] + "...")


def list_agent_input(events: Sequence[Event]) -> list[AgentInput]:
    """Give the agent's input, each line after the lines that it had printed before."""
    given, lines = [], 0
    for moment in list_recorded_moments(events, by_line=False):
        if moment.kind == "out":
            lines += moment.data.count(b"\n")
        elif moment.kind in ("in", "eof"):
            given.append(AgentInput(moment.data or b"", lines, moment.at))
        elif moment.kind == "signal" and moment.data.signal in _SIGNAL_NUMBER_BY_NAME:
            given.append(AgentInput(_SIGNAL_NUMBER_BY_NAME[moment.data.signal], lines, moment.at))
    return given


def find_draft_differences(draft: str, log: str, dialect: str) -> list[str]:
    """Play a draft, and compare what its fake prints with the log.

    Args:
        draft: the text of the scenario.
        log: the log that it was made of.
        dialect: whose log it is.

    Returns:
        a sentence for each event of the log that the fake does not print, and one about the events that it adds.
    """
    if dialect == "raw":
        return []  # each line of the log is a step of its own
    try:
        played = run_in_model(loads(draft), reference_supervisor())
    except NotApplicable as error:
        return [f"the draft was not played: {error}"]
    printed = _read_printed_events(list(played.record.events))
    wanted = list_agent_events(parse_pasted_log(log), dialect)
    unmatched, notes, last = dict(enumerate(printed)), [], -1
    for item in wanted:
        event = _strip_details(item.event)
        places = [place for place, said in unmatched.items() if contains_wanted_value(said, event)]
        if places:
            last = max(last, places[0])
            del unmatched[places[0]]
        elif not any(contains_wanted_value(said, event) for said in printed):
            # What the fake prints once may be in the log twice, as the beginning of a session is.
            text = format_comment_text(json.dumps(item.event, ensure_ascii=False))
            notes.append(f"the fake does not print line {item.line} of the log: {text}")
    known = {_find_event_kind(item.event) for item in wanted} | _KINDS_LEFT_OUT
    between = [_find_event_kind(said) for place, said in unmatched.items() if place < last]
    added = [kind for kind in dict.fromkeys(between) if kind and kind not in known]
    is_session = played.bound.scenario.is_session
    return [*notes, *([f"the fake prints besides: {', '.join(added)}"] if added and not is_session else [])]


_DETAILS_OF_RUN = """
    cwd exitCode durationMs processId toolCallId tool_use_id turnId itemId prompt_id startedAtMs completedAtMs time
"""
_DETAILS_OF_FORM = (
    "status kind options rawInput commandActions data code permission_suggestions metadata title snapshot"
)
_DETAILS = frozenset((_DETAILS_OF_RUN + _DETAILS_OF_FORM).split())
"""Fields about which the fake need not say what the log says."""
_KINDS_LEFT_OUT = frozenset(
    {"init", "message_start", "message_update", "session", "stream_event", "system init", "system status"}
)
"""Events that a report leaves out: the first of all, and those that repeat others."""


def _strip_details(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip_details(member) for key, member in value.items() if key not in _DETAILS}
    return [_strip_details(member) for member in value] if isinstance(value, list) else value


def _read_printed_events(events: list[Event]) -> list[Any]:
    """Read the events that the agent wrote to stdout; an object may be printed over many lines."""
    data = join_stream_bytes((event for event in events if event.process == "agent"), "stdout")
    text, decoder, found, at = data.decode(errors="replace"), json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("\n", at)
            if at < 0:
                break
        else:
            found.append(value)
    return found


def _find_event_kind(event: Any) -> str:
    """Give the word for the kind of an event; an answer of JSON-RPC has none."""
    kind = get_nested(event, "method") or get_nested(event, "type")
    update = get_nested(event, "params", "update", "sessionUpdate") or get_nested(event, "subtype")
    return f"{kind} {update}" if kind and update else str(kind or "")
