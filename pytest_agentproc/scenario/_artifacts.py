"""Owns what a scenario expects of the files that a supervisor keeps. Refuses to know where they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._fields import Either, Fields, Key
from pytest_agentproc.scenario._kinds import Choice, Data, Flag, ListOf, Text, Time, Whole
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar
from pytest_agentproc.scenario._shapes import AnyOf
from pytest_agentproc.scenario._wanted import MATCHER, TEXT_FORMS, Expected, Wanted, exact_time, key_of
from pytest_agentproc.vocabulary import ARTIFACTS, RESULT_FIELDS, Outcome

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check, Kind

__all__ = ["ARTIFACT_KEYS", "RESULT_KEYS", "Artifacts"]

_RESULT = "result.json"


@dataclass(frozen=True)
class _OrNone:
    """A value of some kind, or the bare word `none` for one that is not there."""

    kind: Kind

    @property
    def shape(self) -> AnyOf:
        """Show both."""
        return AnyOf((Choice(("none",)), self.kind))

    @property
    def label(self) -> str:
        """Name both."""
        return f"{self.kind.label} / none"

    def read(self, node: Node, what: str, check: Check) -> Any:
        """Take None for the word; in quotes it is a value."""
        is_none = isinstance(node, Scalar) and node.plain and node.text == "none"
        return None if is_none else self.kind.read(node, what, check)


class _Hex(Text):
    """Bytes as hexadecimal digits."""

    def read(self, node: Node, what: str, check: Check) -> str:
        """Take the digits without blanks, in small letters."""
        text = super().read(node, what, check)
        try:
            return bytes.fromhex(text).hex()
        except ValueError:
            check.at(node, f"{what} cannot be decoded: it looks like e2 82 ac")
            return ""


class _Outcome(Choice):
    """One of the outcomes, which the reference lists with the run's own key."""

    label = "OUTCOME"


_TEXT_OR_NONE = _OrNone(Text())
_KINDS: dict[str, Kind] = {
    "run_id": MATCHER,
    "argv": ListOf(Text()),
    "cwd": MATCHER,
    "started_at": MATCHER,
    "ended_at": MATCHER,
    "elapsed": Time(),
    "returned": Time(),
    "outcome": _Outcome(tuple(str(outcome) for outcome in Outcome)),
    "exit_code": Whole(0, 255, "CODE"),
    "agent_status": _OrNone(Whole(-64, 255, "CODE")),
    "forced": Flag(),
    "text": _OrNone(MATCHER),
    "stop_reason": _OrNone(Text("REASON")),
    "requested_model": _TEXT_OR_NONE,
    "resolved_model": _TEXT_OR_NONE,
    "usage": _OrNone(Data()),
    "error": MATCHER,
    "warnings": ListOf(Text()),
    "leaks": ListOf(Whole(1, 2**22)),
    "containment": _TEXT_OR_NONE,
    "unwritten": Data("{FILE: REASON, ...}"),
}
_TIMES = ("elapsed", "returned")
_DOCS = RESULT_FIELDS | {"argv": "the agent's arguments, without the command itself"}
RESULT_KEYS = {
    name: Wanted(name, kind, _DOCS[name], bind=exact_time) if name in _TIMES else Wanted(name, kind, _DOCS[name])
    for name, kind in _KINDS.items()
}

_FILE = Either(
    Text(),
    Fields(
        (*TEXT_FORMS, Key("hex", _Hex("HEX"), "all of its bytes, as pairs of hexadecimal digits")),
        one_of=("exact", "contains", "matches", "hex"),
    ),
    key="exact",
)


class _Result:
    """Checks on the fields of result.json."""

    form = shape = Fields(tuple(RESULT_KEYS.values()))
    label = "{FIELD: ...}"

    def read(self, node: Node, what: str, check: Check) -> list[Expected]:
        """Read into one expectation per leaf."""
        return _leaves(self.form, node, what, check)


_FILES = tuple(Wanted(name, _OrNone(_Result() if name == _RESULT else _FILE), doc) for name, doc in ARTIFACTS.items())
ARTIFACT_KEYS = {key.name: key for key in _FILES}


class Artifacts:
    """Checks on the files of a run; `none` for no file at all."""

    form = Fields(_FILES)
    shape = AnyOf((Choice(("none",)), form))
    label = "none or {FILE: ...}"

    def read(self, node: Node, what: str, check: Check) -> list[Expected] | None:
        """Read into one expectation per leaf; None for none."""
        if isinstance(node, Scalar):
            if node.text != "none":
                check.wrong(node, what, "none, or a mapping such as {result.json: {outcome: completed}}")
            return None
        found: list[Expected] = []
        for leaf in _leaves(self.form, node, what, check):
            found += leaf.value if isinstance(leaf.value, list) else [leaf]
        return found


def _leaves(form: Fields, node: Node, what: str, check: Check) -> list[Expected]:
    found: list[Expected] = []
    if isinstance(node, Mapping) and not node.pairs:
        check.at(node, f"{what} says nothing: give a key of it, or none")
    for key, place, leaf in form.pairs(node, what, check):
        path = f"{what}.{key.name}"
        value = key.kind.read(leaf, path, check)
        found.append(Expected(key_of(path), place.line, place.column, value))
    return found
