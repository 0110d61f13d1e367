"""Owns a record's facts about each start of an agent: its arguments, its input, its signals and its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.record._payload import Payload
from pytest_agentproc.vocabulary import NANOSECONDS_PER_SECOND, parse_signal_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.record._record import Record


@dataclass(frozen=True, slots=True)
class AgentStart:
    """One start of a fake agent, as its own side reports it. Times are seconds of its clock.

    Args:
        name: `agent`, `agent 2`, ...
        at: the time of its start.
        argv: its arguments, without the command: the first 100, of each the first 1024 bytes.
        env: its environment, of each variable the first 1024 bytes, and 128 KiB of all in the order of their names.
        cwd: the folder of its start.
        stdin: the bytes that it has read so far. Of more than 16 MiB in one instant, it has the beginning.
        signals: the signals that it caught or died of: [("TERM", 120.0), ...].
        ended_at: the time of its end. None: it lives.
        status: its exit code, or minus the number of the signal that ended it. None: it lives, or it is unknown.
    """

    name: str
    at: float
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stdin: bytes
    signals: tuple[tuple[str, float], ...]
    ended_at: float | None
    status: int | None


def list_agent_starts(record: Record) -> tuple[AgentStart, ...]:
    """Give the starts of the agent in their order; its descendants are none."""
    born = [event for event in record.events if event.code == "p" and "seen" in event.data]
    roots = [event for event in born if "by" not in event.data and event.data.get("parent") == "supervisor"]
    return tuple(_read_agent_start(record, str(event.data["process"]), event.at) for event in roots)


def _read_agent_start(record: Record, name: str, at: int) -> AgentStart:
    given: Mapping[str, Any] = {}
    stdin: list[bytes] = []
    signals: list[tuple[str, float]] = []
    ended_at = status = None
    for when, code, data in record.events:
        if data["process"] != name or "by" in data:
            continue
        if "given" in data and not given:
            given = data["given"]
        if code == "i" and "bytes" in data:
            stdin.append(data["bytes"].head if isinstance(data["bytes"], Payload) else data["bytes"])
        if code in "sx" and "signal" in data:
            signals.append((data["signal"], when / NANOSECONDS_PER_SECOND))
        if code == "x":
            ended_at = when / NANOSECONDS_PER_SECOND
            status = -parse_signal_name(data["signal"]) if "signal" in data else data.get("code")
    env = {key: value for key, value in given.get("env", {}).items() if value is not None}
    return AgentStart(
        name=name,
        at=at / NANOSECONDS_PER_SECOND,
        argv=tuple(given.get("argv", ())),
        env=env,
        cwd=given.get("cwd", ""),
        stdin=b"".join(stdin),
        signals=tuple(signals),
        ended_at=ended_at,
        status=status,
    )
