"""Whether a supervisor would notice a difference between two releases. Starts nothing.

A difference in a line is tried out on the reference supervisor. It reads the output with the difference and without it.
If it reads the same, it does not notice. Another supervisor may still read what is gone, so that is "maybe".
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import yaml

from pytest_agentproc.supervisor.dialects import Finished, Noise, Other, Resumed, Setting
from pytest_agentproc.vocabulary import DIALECTS
from tests.fidelity.comparing import find_kind, parse_events

if TYPE_CHECKING:
    from tests.fidelity.comparing import Difference
    from tests.fidelity.conversation import Conversation
    from tests.fidelity.running import CliRun

__all__ = ["judge_difference"]

_SAMPLES: dict[str, Any] = {"null": None, "number": 1, "str": "x", "bool": True, "list": [], "dict": {}}


def judge_difference(conversation: Conversation, found: Difference, first: CliRun, second: CliRun) -> str:
    """Say whether a supervisor notices: "yes", "maybe" or "no", and why."""
    if found.what == "exit code":
        return "yes: it is how the run ended"
    if found.what == "text":
        return "yes: it is the whole output"
    if found.what == "first line of stderr":
        return "yes: it says why the run failed" if second.code else "no: the run succeeds all the same"
    if _read_with(conversation, found, first, second) != _read_without(conversation, found, first, second):
        return "yes: the reference supervisor reads it"
    if found.change == "new":
        return "no: the reference supervisor passes over it"
    return "maybe: the reference supervisor does not read it, another may"


def _read_with(conversation: Conversation, found: Difference, first: CliRun, second: CliRun) -> list[str]:
    return _read_meanings(conversation, _choose_events(found, first, second))


def _read_without(conversation: Conversation, found: Difference, first: CliRun, second: CliRun) -> list[str]:
    events = copy.deepcopy(_choose_events(found, first, second))
    if found.what == "line":
        del events[found.index]
    for event in events:
        if found.what == "key" and find_kind(event) == found.kind:
            _change_key(event, _split_path(found.place), found)
    return _read_meanings(conversation, events)


def _choose_events(found: Difference, first: CliRun, second: CliRun) -> list[dict[str, Any]]:
    return parse_events((second if found.change == "new" else first).stdout) or []


def _split_path(path: str) -> list[str]:
    return [part for part in path.replace("[]", ".[]").split(".") if part]


def _change_key(value: Any, path: list[str], found: Difference) -> None:
    """Leave a key out; if it has another type in the second output, give it a value of that type."""
    name, rest = path[0], path[1:]
    if name in ("[]", "*"):
        keys: list[Any] = [*range(len(value))] if isinstance(value, list) else [*value]
    else:
        keys = [name] if isinstance(value, dict) and name in value else []
    for key in reversed(keys):
        if rest:
            _change_key(value[key], rest, found)
        elif found.change == "different":
            value[key] = _SAMPLES[found.second]
        else:
            del value[key]


def _read_meanings(conversation: Conversation, events: list[dict[str, Any]]) -> list[str]:
    """Give what the reference supervisor reads, but for signs of life, and for what goes on though it had not ended."""
    agent = yaml.safe_load(conversation.agent or conversation.cli)
    given = agent if isinstance(agent, dict) else {"dialect": agent}
    dialect = DIALECTS[given["dialect"]]
    mode = given.get("mode") or _find_mode(conversation, dialect.name)
    if mode in dialect.session_modes:
        reader = dialect.make_session_protocol(mode, Setting())
        reader.encode_greeting()
        reader.encode_prompt(1, "hi")
    else:
        reader = dialect.make_decoder(mode)
    meanings = [meaning for event in events for meaning in reader.decode(json.dumps(event).encode())]
    meanings += [] if mode in dialect.session_modes else reader.end(b"")
    ends = [isinstance(meaning, Finished) for meaning in meanings]
    return [
        repr(meaning)
        for index, meaning in enumerate(meanings)
        if not isinstance(meaning, Other | Noise) and (not isinstance(meaning, Resumed) or any(ends[:index]))
    ]


def _find_mode(conversation: Conversation, name: str) -> str:
    """Find the mode that the arguments ask for."""
    words = DIALECTS[name].identifying_words
    return next((mode for mode, word in words.items() if word in conversation.argv), "")
