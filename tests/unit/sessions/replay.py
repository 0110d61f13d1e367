"""Replays a recorded conversation of a real CLI into the reference's decoder and router. Knows no expectation."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import TurnRouter
from pytest_agentproc.supervisor._turns import TurnAnswer
from pytest_agentproc.supervisor.dialects import (
    BACKGROUND_TURN_MARK,
    CancelAnswered,
    Finished,
    HandshakeDone,
    Noise,
    PromptDeclined,
    PromptNamed,
    Question,
    Setting,
    TurnBegun,
    TurnProgress,
    make_session_protocol,
)
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.supervisor.dialects import Meaning, SessionProtocol

__all__ = ["TIMED", "Replayed", "replay_file"]

TIMED = ROOT / "tests" / "data" / "transcripts" / "timed"


@dataclass
class Replayed:
    """The results: per prompt whether its result was good and its text; each background turn; the odd lines."""

    turns: dict[int, tuple[bool, str | None]] = field(default_factory=dict)
    background: list[str | None] = field(default_factory=list)
    declined: list[int] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    noise: int = 0
    is_welcome: bool = False


class _Replay:
    """Follow one conversation; the recorded names of prompts and cancels become those that the reference gives."""

    def __init__(self, dialect: str) -> None:
        self.talk: SessionProtocol = make_session_protocol(dialect, "", Setting("/work", "key"))
        self.router = TurnRouter(is_marked=self.talk.is_marked)
        self.seen = Replayed()
        self.count = 0
        self.names: dict[str, str] = {}
        self.said: dict[int, TurnAnswer] = {}

    def note_client_line(self, value: dict[str, Any]) -> None:
        """Take what the recorded client wrote."""
        kind = value.get("type")
        if kind in ("prompt", "user"):
            self.count += 1
            ours = json.loads(self.talk.encode_prompt(self.count, "text"))
            self._rename(value, ours)
            self.router.note_delivered(self.count, begins=self.talk.begins_at_once)
        elif kind == "abort":
            self._rename(value, json.loads(self.talk.encode_cancel(self.count)))
        elif kind == "control_request" and value["request"]["subtype"] == "initialize":
            self._rename(value, json.loads(self.talk.encode_greeting()))

    def _rename(self, value: dict[str, Any], ours: dict[str, Any]) -> None:
        for name in ("id", "uuid", "request_id"):
            if name in value:
                self.names[value[name]] = ours[name]

    def note_cli_line(self, value: object) -> None:
        """Take what the recorded CLI printed."""
        line = value if isinstance(value, str) else json.dumps(value)
        for recorded, ours in self.names.items():
            line = line.replace(json.dumps(recorded), json.dumps(ours))
        for meaning in self.talk.decode(line.encode()):
            self.note_meaning(meaning)

    def note_meaning(self, meaning: Meaning) -> None:
        """Take a meaning."""
        seen = self.seen
        if isinstance(meaning, HandshakeDone):
            seen.is_welcome = True
        elif isinstance(meaning, Noise):
            seen.noise += 1
        elif isinstance(meaning, PromptDeclined):
            seen.declined.append(meaning.number)
            self.router.forget_unstarted_turn(meaning.number)
        elif isinstance(meaning, CancelAnswered):
            seen.settled.append(meaning.number)
        elif isinstance(meaning, Question):
            seen.questions.append(meaning.title)
        elif isinstance(meaning, PromptNamed | TurnBegun | TurnProgress) or (
            isinstance(meaning, Finished) and meaning.final
        ):
            self.route_event(meaning)

    def route_event(self, meaning: PromptNamed | TurnBegun | TurnProgress | Finished) -> None:
        """Give an event to whom the router says."""
        owners = self.router.find_turns(meaning)
        for number in self.router.retracted:
            self.said[BACKGROUND_TURN_MARK] = self.said.pop(number, TurnAnswer())
        for number in owners:
            answered = self.said.setdefault(number, TurnAnswer())
            if isinstance(meaning, TurnProgress):
                answered.add_progress(meaning)
            elif isinstance(meaning, Finished):
                answered.note_end(meaning)
                del self.said[number]
                if number == BACKGROUND_TURN_MARK:
                    self.seen.background.append(answered.text)
                else:
                    assert number not in self.seen.turns
                    self.seen.turns[number] = (bool(meaning.ok), answered.text)


def replay_file(file: Path, dialect: str) -> Replayed:
    """Replay one file, line by line."""
    replaying = _Replay(dialect)
    for text in file.read_text("utf-8").splitlines():
        entry = json.loads(text)
        if entry["dir"] == ">>" and isinstance(entry["line"], dict):
            replaying.note_client_line(entry["line"])
        elif entry["dir"] == "<<":
            replaying.note_cli_line(entry["line"])
    return replaying.seen
