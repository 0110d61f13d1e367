"""Describe a fake's processes by /proc and a record: whose child, in which group and session. Expects nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.event_lines import list_lines

if TYPE_CHECKING:
    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.record import Record

__all__ = [
    "HOWS",
    "ProcessFacts",
    "describe_kinship",
    "drop_zombies",
    "list_ends_by_name",
    "list_leaks",
    "list_pids_by_name",
    "read_process_facts",
    "read_record",
]

HOWS = ("same_group", "own_group", "new_session", "double_fork", "daemon", "launcher", "refork")
KITS_OWN = 200
"""From this number on descriptors are the kit's."""


@dataclass(frozen=True)
class ProcessFacts:
    """A process as /proc has it; descriptors, by kind, are all between the standard streams and the kit's own."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    environ: bytes
    open: frozenset[str]


def read_process_facts(pid: int) -> ProcessFacts:
    """Read it."""
    folder = Path(f"/proc/{pid}")
    state, parent, group, session = (folder / "stat").read_text("ascii").rpartition(")")[2].split()[:4]
    links = {int(link.name): str(link.readlink()) for link in (folder / "fd").iterdir()} if state != "Z" else {}
    opened = frozenset(where for number, where in links.items() if 2 < number < KITS_OWN)
    environ = (folder / "environ").read_bytes() if state != "Z" else b""
    return ProcessFacts(pid, int(parent), int(group), int(session), state, environ, opened)


def list_pids_by_name(record: Record) -> dict[str, int]:
    """Give the pid of each process that was seen, by name."""
    return {event.data["process"]: event.data["pid"] for event in list_lines(record) if event.data.get("seen")}


def list_ends_by_name(record: Record) -> dict[str, Any]:
    """Give the end of each process that ended, by name, as the agents report it."""
    ends = [event for event in list_lines(record) if event.code == "x" and "by" not in event.data]
    return {event.data["process"]: event.data.get("signal", event.data.get("code")) for event in ends}


def drop_zombies(found: dict[str, ProcessFacts]) -> dict[str, ProcessFacts]:
    """Leave out the dead for whom their parent, init perhaps, has yet to wait."""
    return {name: who for name, who in found.items() if who.state not in "ZX"}


def describe_kinship(found: dict[str, ProcessFacts], child: str, above: str) -> tuple[str, str, str]:
    """Say whose child the process is, and in which group and session; a process of none of these is outside."""
    names = {who.pid: name for name, who in found.items()}
    leaders = {**names, found[child].pid: "own", found["agent"].pid: "agent"}
    process = found[child]
    parent = names.get(process.parent, "outside")
    assert parent in (above, "outside")
    return parent, leaders.get(process.group, "outside"), leaders.get(process.session, "outside")


def list_leaks(record: Record) -> dict[str, str]:
    """Give the processes that were left, and their states."""
    return {event.data["process"]: event.data["leaked"] for event in list_lines(record) if "leaked" in event.data}


def read_record(fake: FakeAgent) -> Record:
    """Give the record of a fake, up to now, with the processes left."""
    record: Record = fake.record
    fake.watch.collect(record)
    return record
