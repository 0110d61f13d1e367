"""Owns the checks of what the agent was given, as it told by itself; refuses to ask the subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.record import Payload
from pytest_agentproc.verdict._facts import was_started
from pytest_agentproc.verdict._rows import Finding, Played, Verdict
from pytest_agentproc.verdict._words import listed, matches, quoted, show_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["SAW_CHECKS"]


def _given(played: Played) -> Mapping[str, Any] | None:
    told = (event.data["given"] for event in played.record.events if _is_told(event.data))
    return next(told, None)


def _is_told(data: Mapping[str, Any]) -> bool:
    return "given" in data and data["process"] == "agent"


def _of_given(check: Callable[[Mapping[str, Any], Any], Finding]) -> Callable[[Played, Any], Finding]:
    def checked(played: Played, wanted: Any) -> Finding:
        given = _given(played)
        return Finding(Verdict.NOT_EXERCISED, "no agent was started") if given is None else check(given, wanted)

    return checked


def _cut(given: Mapping[str, Any], word: str) -> str:
    """Cut a word where the agent cuts what it tells."""
    return word.encode()[: given["longest"]].decode(errors="replace")


def _found(*, fits: bool, seen: str, hint: str) -> Finding:
    return Finding(Verdict.PASSED, seen) if fits else Finding(Verdict.FAILED, seen, hint)


_OWN_ARGV = "a supervisor that makes the command line itself states cannot=['argv']"
_OWN_ENV = "a supervisor with an environment and folder of its own states cannot=['env']"


def _argv(given: Mapping[str, Any], wanted: Sequence[str]) -> Finding:
    fits = given["argv"] == [_cut(given, word) for word in wanted]
    return _found(fits=fits, seen=listed(quoted(word) for word in given["argv"]), hint=_OWN_ARGV)


def _env(given: Mapping[str, Any], wanted: Mapping[str, str | None]) -> Finding:
    seen = {name: given["env"].get(name) for name in wanted}
    fits = all(seen[name] == (None if value is None else _cut(given, value)) for name, value in wanted.items())
    return _found(fits=fits, seen=show_variables(seen), hint=_OWN_ENV)


def _cwd(given: Mapping[str, Any], wanted: Mapping[str, str]) -> Finding:
    return _found(fits=matches(given["cwd"], wanted), seen=quoted(given["cwd"]), hint=_OWN_ENV)


def _stdin(played: Played, wanted: Mapping[str, str]) -> Finding:
    if not was_started(played.record):
        return Finding(Verdict.NOT_EXERCISED, "no agent was started")
    read = [event.data["bytes"] for event in played.record.events if event.code == "i" and _is_read(event.data)]
    if any(isinstance(data, Payload) for data in read):
        size = sum(len(data) for data in read)
        return Finding(Verdict.NOT_EXERCISED, f"{size} bytes, more than the record keeps of one instant")
    text = b"".join(read).decode(errors="replace")
    hint = "" if played.bound.scenario.is_session else _OWN_ARGV
    return _found(fits=matches(text, wanted), seen=quoted(text), hint=hint)


def _is_read(data: Mapping[str, Any]) -> bool:
    return data["process"] == "agent" and "bytes" in data


SAW_CHECKS: dict[str, Callable[[Played, Any], Finding]] = {
    "saw.argv": _of_given(_argv),
    "saw.env": _of_given(_env),
    "saw.cwd": _of_given(_cwd),
    "saw.stdin": _stdin,
}
