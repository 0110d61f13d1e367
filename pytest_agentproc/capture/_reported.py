"""Owns what a reporter says of the end: a table of phrases and what each means. Knows no event, guesses nothing.

Of what is denied or asked (`does not hang`, `should exit 1`) nothing is taken. What the table does not know leaves the
neutral end: the log's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_agentproc.capture._instants import LONGEST
from pytest_agentproc.vocabulary import SIGNALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_agentproc.capture._paste import Pasted

__all__ = ["Reported", "reported_in"]

_SECOND = 1_000_000_000
_UNITS = {"ms": 1_000_000, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND}
_SIGNALLED = 128
_LARGEST_CODE = 255


@dataclass(frozen=True, slots=True)
class Reported:
    """What the reporter saw at the end.

    Args:
        kind: `hangs`, `killed` (by its supervisor), `exits`, `dies` or `missing`.
        line: the line of the log that says so; `words` are what it says.
        code: with which code it exits; `signal` of which signal it dies.
        after: how long until it was killed, in nanoseconds.
    """

    kind: str
    line: int
    words: str
    code: int = 0
    signal: str = ""
    after: int | None = None


def _exits(found: re.Match[str]) -> Reported | None:
    code = int(found["code"])
    name = next((name for name, number in SIGNALS.items() if number == code - _SIGNALLED), "")
    if name == "KILL":  # nobody can catch it, so nobody exits with its code: this is a shell's or a container's word
        return Reported("dies", 0, "", signal=name)
    return Reported("exits", 0, "", code=code) if code <= _LARGEST_CODE else None


def _dies(found: re.Match[str]) -> Reported | None:
    name = found["signal"].upper().removeprefix("SIG")
    return Reported("dies", 0, "", signal=name) if name in SIGNALS else None


def _killed(found: re.Match[str]) -> Reported | None:
    unit = found["unit"].lower()
    size = _UNITS["ms" if unit.startswith(("ms", "milli")) else unit[0]]
    after = float(re.sub(r"[ ,_]", "", found["time"])) * size
    return Reported("killed", 0, "", after=round(after)) if after <= LONGEST else None


_TIME = r"(?P<time>\d[\d ,_]*(?:\.\d+)?)\s*-?(?P<unit>ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b"
_CODE = r"[\s:=`*(\"']*(?P<code>\d{1,3})\b"
_ENDS = "killed|kills|terminated|terminates|timed out|times out|timeout"
_HANGS = (
    r"\b(?:hangs?|hung|hanging|gets? stuck|is stuck|stuck (?:for ?ever|here|there)|nothing happens"
    r"|never (?:exits?|returns?|finishes|ends|completes|terminates)"
    r"|(?:does not|doesn't|did not|didn't|won't|will not) (?:exit|return|terminate|finish|end)"
    r"|(?:blocks?|waits?) (?:for ?ever|indefinitely))\b"
)
_PHRASES: tuple[tuple[str, Callable[[re.Match[str]], Reported | None]], ...] = (
    (r"\bspawn\b.*\bENOENT\b|\bcommand not found\b", lambda _: Reported("missing", 0, "")),
    (rf"\b(?:{_ENDS})\b.{{0,40}}?\b(?:after|at)\s.{{0,12}}?{_TIME}", _killed),
    (r"\bsignal\b[\s=:\"'`]+(?P<signal>(?:SIG)?[A-Z]{3,6}[12]?)\b", _dies),
    (r"\b(?:killed|died|dies|crashed|crashes|terminated)\b.{0,20}?\b(?P<signal>SIG[A-Z]{3,6}[12]?)\b", _dies),
    (r"\b(?P<signal>SIGSEGV|SIGABRT|SIGBUS|SIGILL)\b", _dies),
    (r"\bsegmentation fault\b", lambda _: Reported("dies", 0, "", signal="SEGV")),
    (rf"\bexit(?:s|ed|ing)?(?:\s+(?:code|status|with|value))*{_CODE}", _exits),
    (rf"\b(?:exit[ _-]?code|return ?code|exit[ _-]?status|rc)\b[\"'`*]*(?:\s+(?:is|was|of))?{_CODE}", _exits),
    (_HANGS, lambda _: Reported("hangs", 0, "")),
)
_DENIED = re.compile(
    r"\b(?:no longer|not|never|without|should(?: not)?|expect(?:ed)?|would|could|instead of|if it|used to|fixed)"
    r"\W+(?:\w+\W+){0,2}$",
    re.IGNORECASE,
)
_ORDER = ("missing", "dies", "exits", "killed", "hangs")
"""Which of several is taken: what happened to the process, before what somebody felt."""


def reported_in(things: Iterable[Pasted]) -> Reported | None:
    """Find what the words of a log say of the end.

    Returns:
        the strongest of what is said; of several the last. None: nothing in the table's words.
    """
    found = [one for thing in things if thing.kind == "words" for one in _in_line(thing)]
    for kind in _ORDER:
        said = [one for one in found if one.kind == kind]
        if said:
            return said[-1]
    return None


def _in_line(thing: Pasted) -> list[Reported]:
    said: list[Reported] = []
    for pattern, meaning in _PHRASES:
        for found in re.finditer(pattern, thing.text, re.IGNORECASE):
            meant = None if _DENIED.search(thing.text[: found.start()]) else meaning(found)
            if meant is not None:
                said.append(replace(meant, line=thing.line, words=thing.text))
    return said
