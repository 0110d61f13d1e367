"""Owns what a scenario expects of a session: of its turns, its background turns, its statuses, its viewers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_agentproc.scenario._drive import STATUSES
from pytest_agentproc.scenario._fields import Fields
from pytest_agentproc.scenario._kinds import Choice, Data, ListOf, Text, Time, Whole, Word
from pytest_agentproc.scenario._nodes import Node, Sequence
from pytest_agentproc.scenario._wanted import (
    MATCHER,
    OUTCOME,
    ByName,
    Expected,
    Instants,
    Wanted,
    exact_time,
    exact_times,
    key_of,
)

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check

__all__ = ["OF_A_RUN", "OF_A_SESSION", "TURN_KEYS", "VIEWER_KEYS"]

_ELAPSED = "from the delivery of its prompt to its outcome; a background turn: from its first event to its end"
_TURN = (
    Wanted("outcome", OUTCOME, "how it ended; {not: completed} is any other, {any_of: [...]} one of several"),
    Wanted("exit_code", Whole(0, 255, "CODE"), "the supervisor's exit code for it"),
    Wanted("text", MATCHER, "the final message"),
    Wanted("transcript", MATCHER, "all messages, each on a line of its own"),
    Wanted("stop_reason", Text("REASON"), "the last message's, in the dialect's words"),
    Wanted("model", Text(), "the model that answered"),
    Wanted("usage", Data(), "token counts, in the dialect's words"),
    Wanted("elapsed", Time(), _ELAPSED, bind=exact_time),
    Wanted("error", MATCHER, "the message of a bad end"),
)
TURN_KEYS = {key.name: key for key in _TURN}

_VIEWER = (
    Wanted("status", Choice(STATUSES), "the last status that it saw"),
    Wanted("transcript", MATCHER, "the messages and errors that it saw, each on a line of its own"),
)
VIEWER_KEYS = {key.name: key for key in _VIEWER}

OF_A_RUN = (
    "outcome",
    "exit_code",
    "text",
    "transcript",
    "stop_reason",
    "model",
    "usage",
    "elapsed",
    "artifacts",
)
"""Keys that are about a run, and say nothing of a session."""


@dataclass(frozen=True)
class _Turns:
    """Checks on turns, in their order; of background turns also how many there are."""

    is_counted: bool = False
    form = Fields(_TURN)
    label: str = "[{outcome, text, ...}, ...]"
    shape = ListOf(form)

    def read(self, node: Node, what: str, check: Check) -> list[Expected]:
        """Read into one expectation per leaf."""
        if not isinstance(node, Sequence):
            check.wrong(node, what, f"a list such as {self.label}", "write [] for none" if self.is_counted else "")
            return []
        head = key_of(what)
        found: list[Expected] = []
        if self.is_counted:
            found.append(Expected(head, node.line, node.column, len(node.items)))
        for number, item in enumerate(node.items, 1):
            for key, place, leaf in self.form.pairs(item, f"{what}.{number}", check):
                dotted = f"{head}.{number}.{key.name}"
                value = key.kind.read(leaf, f"{what}.{number}.{key.name}", check)
                found.append(Expected(dotted, place.line, place.column, value))
        return found


_VIEWERS = ByName("{VIEWER: {status, transcript}}", Word("VIEWER"), Fields(_VIEWER))
_CALLS = Instants("[{HOOK: T}, ...]", Text("HOOK"), "a hook with its time, such as {lint: 10s}")

OF_A_SESSION = (
    Wanted("turns", _Turns(), "the turns of a session's prompts, from the first on"),
    Wanted("background", _Turns(is_counted=True), "its background turns, all of them but those without a word"),
    Wanted("status", ListOf(Choice(STATUSES)), "where it stood, one after the other, starting first"),
    Wanted("viewers", _VIEWERS, "what its viewers saw"),
    Wanted("called", _CALLS, "whose callbacks were called when, in order; [] for none", bind=exact_times),
)
"""Keys that are about a session, and say nothing of a run."""
