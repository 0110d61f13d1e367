"""Writes the scenario of a recording, plays it again, says where it is not the same. Owns the file's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._converter import Unfit, steps_of
from pytest_agentproc.capture._likeness import alike
from pytest_agentproc.capture._moments import moments
from pytest_agentproc.capture._quoting import flow, text
from pytest_agentproc.capture._replay import Given, replay
from pytest_agentproc.capture._speakers import Speaker, prompts_of
from pytest_agentproc.capture._targets import write_private
from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.harness import model_play
from pytest_agentproc.scenario import NotApplicable, Scenario, load
from pytest_agentproc.subjects import core

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_agentproc.record import Event

__all__ = ["Draft", "draft", "given_of"]

_SHOWN = 60
_SIGNALS = {"HUP": 1, "INT": 2, "TERM": 15}


@dataclass
class Draft:
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

    def keep(self, data: bytes) -> str:
        """Take bytes that go beside the file, and give their file's name."""
        stem = self.path.name.removesuffix(".yaml").removesuffix(".scenario")
        name = f"{stem}.{len(self.files) + 1}.bin"
        self.files[name] = data
        return name

    def write(self) -> None:
        """Write the file and those beside it; its owner alone may read them."""
        for name, data in self.files.items():
            write_private(self.path.parent / name, data)
        write_private(self.path, self.text.encode())


def draft(path: Path, events: Sequence[Event], speaker: Speaker, comments: Sequence[str], claim: str) -> Draft:
    """Write the scenario of a recording beside which it will stand, and play it again to see that it is the same.

    The dialect's words are tried first; where they cannot tell it, the whole is told in bytes.

    Args:
        path: where the scenario goes; it is written there, and its files beside it.
        events: those of the record, redacted.
        speaker: who was recorded.
        comments: what stands above it.
        claim: the sentence behind `scenario:`.
    """
    made = _attempt(path, events, speaker, comments, claim)
    if made.notes and speaker.dialect != "raw":
        plain = Speaker("raw", "text", speaker.argv, speaker.prompt)
        in_bytes = _attempt(path, events, plain, comments, claim)
        if len(in_bytes.notes) < len(made.notes):
            reason = (
                f"the fake of {speaker.dialect} cannot tell it: {made.notes[0]}; so it is told in bytes (agent: raw)"
            )
            in_bytes.notes.insert(0, reason)
            made = in_bytes
    made.text = made.text.replace(_MARK, "".join(f"# not faithful: {note}\n" for note in made.notes), 1)
    made.write()
    return made


_MARK = "# (notes)\n"


def _attempt(path: Path, events: Sequence[Event], speaker: Speaker, comments: Sequence[str], claim: str) -> Draft:
    made = Draft(path)
    try:
        steps = steps_of(events, speaker, made.keep)
    except Unfit:
        made.notes.append("it answers what it hears with other words")
        return made
    head = [
        *(f"# {line}" for line in comments),
        _MARK.rstrip("\n"),
        f"scenario: {text(claim)}",
        f"agent: {speaker.written}",
    ]
    drive = _drive(events, speaker)
    body = [*drive, "script:" if steps else "script: []", *(f"  - {step}" for step in steps)]
    made.text = "\n".join([*head, *body]) + "\n"
    made.write()
    try:
        scenario = load(path)
    except ScenarioError as error:
        made.notes.append(f"the file is refused: {error.problems[0].message}")
        return made
    made.notes += _differences(scenario, events, speaker)
    made.text += _expectation(scenario)
    return made


def _drive(events: Sequence[Event], speaker: Speaker) -> list[str]:
    """Give what the caller does: the prompts that were seen."""
    sent = b"".join(event.data["bytes"] for event in events if event.code == "i" and "bytes" in event.data)
    if speaker.is_session:
        prompts = prompts_of(speaker.dialect, sent.splitlines())
        return ["drive:", *(f"  - prompt: {text(one)}" for one in prompts)] if prompts else []
    if speaker.by_stdin:
        return [f"drive: [{{prompt: {flow(sent.decode(errors='replace'))}}}]"]
    return [f"drive: [{{prompt: {flow(speaker.prompt)}}}]"] if speaker.prompt else []


def _expectation(scenario: Scenario) -> str:
    """Say what the reference supervisor makes of it, if it comes to an end."""
    try:
        answer = model_play(scenario, core()).answer
    except NotApplicable:
        return ""
    if answer is None:
        return ""
    if answer.turns is not None:
        turns = [flow({"outcome": str(one.outcome), **_text_of(one)}) for one in answer.turns]
        return "expect:  # what the reference supervisor makes of it\n  turns:\n" + "".join(
            f"    - {turn}\n" for turn in turns
        )
    rows = {"outcome": str(answer.outcome), **_text_of(answer)}
    return "expect:  # what the reference supervisor makes of it\n" + "".join(
        f"  {key}: {text(value)}\n" for key, value in rows.items()
    )


def _text_of(answer: Any) -> dict[str, str]:
    return {"text": answer.text} if answer.text and len(answer.text) < _SHOWN and "\n" not in answer.text else {}


def _differences(scenario: Scenario, events: Sequence[Event], speaker: Speaker) -> list[str]:
    """Play it, given what was given, and name what comes out otherwise."""
    played = replay(scenario.bind(scenario.terms(core())), speaker.argv, speaker.prompt, given_of(events))
    recorded = {code: _bytes(events, code) for code in "oe"}
    notes = []
    for stream, code, data in (("stdout", "o", bytes(played.out)), ("stderr", "e", bytes(played.err))):
        notes += _difference(stream, recorded[code], data)
    ended = next((event.data for event in events if event.code == "x" and event.data["process"] == "agent"), None)
    wanted = None if ended is None else ended.get("code", ended.get("signal"))
    if isinstance(wanted, int) and played.ended != wanted:
        notes.append(f"it exited with {wanted}, and the fake {_ending(played.ended)}")
    return notes


def _ending(ended: int | None) -> str:
    return "lives on" if ended is None else f"exits with {ended}" if ended >= 0 else f"dies of signal {-ended}"


def _difference(stream: str, recorded: bytes, played: bytes) -> list[str]:
    if recorded == played:
        return []
    pairs = zip_longest(recorded.split(b"\n"), played.split(b"\n"), fillvalue=b"")
    for number, (one, other) in enumerate(pairs, 1):
        if not alike(one, other):
            return [f"{stream} differs in line {number}: {_clip(one)} was recorded, {_clip(other)} is played"]
    return []


def _clip(line: bytes) -> str:
    shown = line.decode(errors="replace")
    return flow(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "...")


def _bytes(events: Sequence[Event], code: str) -> bytes:
    return b"".join(event.data["bytes"] for event in events if event.code == code and "bytes" in event.data)


def given_of(events: Sequence[Event]) -> list[Given]:
    """Give what the agent was given, each behind the lines that it had printed."""
    given, lines = [], 0
    for moment in moments(events, by_line=False):
        if moment.kind == "out":
            lines += moment.data.count(b"\n")
        elif moment.kind in ("in", "eof"):
            given.append(Given(moment.data or b"", lines, moment.at))
        elif moment.kind == "signal" and moment.data["signal"] in _SIGNALS:
            given.append(Given(_SIGNALS[moment.data["signal"]], lines, moment.at))
    return given
