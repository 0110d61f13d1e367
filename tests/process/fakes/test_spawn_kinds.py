"""Every kind of descendant is as its name says, by /proc: whose child, in which group and session."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.clock._participant import read_process_state
from tests.event_lines import list_lines
from tests.process.kinds import (
    HOWS,
    describe_kinship,
    drop_zombies,
    list_ends_by_name,
    list_leaks,
    list_pids_by_name,
    read_process_facts,
)
from tests.process.stand import is_gone, start_and_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.process.kinds import ProcessFacts
    from tests.process.stand import Stand


@pytest.fixture
def meet(stand: Stand, backend: str) -> Callable[..., dict[str, ProcessFacts]]:
    """Give a function that runs a script for a second, performs an action, and looks at all processes after it."""

    def meeting(script: str, does: Callable[[dict[str, int]], None] = len, **options: Any) -> dict[str, ProcessFacts]:  # type: ignore[assignment]
        argv = stand.fake(script)
        found: dict[str, ProcessFacts] = {}

        async def host() -> None:
            with subprocess.Popen(argv, start_new_session=True, **options) as process:
                await anyio.sleep(1)
                does(list_pids_by_name(stand.fakes[0].record))
                await anyio.sleep(0.01)
                everyone = list_pids_by_name(stand.fakes[0].record)
                found.update(
                    {name: read_process_facts(pid) for name, pid in everyone.items() if read_process_state(pid)}
                )
                process.kill()

        stand.run(host, backend=backend)
        return found

    return meeting


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("same_group", ("tool", "agent", "agent")),
        ("own_group", ("tool", "own", "agent")),
        ("new_session", ("tool", "own", "own")),
        ("double_fork", ("outside", "agent", "agent")),
        ("daemon", ("outside", "outside", "outside")),
        ("launcher", ("outside", "own", "own")),
    ],
)
def test_a_kind_has_its_parent_group_and_session(
    meet: Callable[..., dict[str, ProcessFacts]], how: str, expected: tuple[str, str, str]
) -> None:
    """A search for a tree in the kernel's terms finds or misses it by these three."""
    found = meet(
        f"- spawn: {{id: tool, script: [{{spawn: {{id: x, how: {how}}}}}, {{silence: for ever}}]}}\n- silence: 5s"
    )
    assert describe_kinship(found, "x", "tool") == expected
    if how == "daemon":
        assert found["x"].group == found["x"].session
        assert read_process_state(found["x"].session) == ""  # its leader has ended


def test_what_reforks_is_a_chain_of_orphans_with_sessions_of_their_own(
    meet: Callable[..., dict[str, ProcessFacts]], stand: Stand
) -> None:
    """Each lives for its time, and two heads are two chains; the record knows every one of them."""
    found = meet("- spawn: {id: x, how: refork, every: 300ms, heads: 2, for: 2s}\n- silence: 5s")
    assert sorted(drop_zombies(found)) == ["agent", "x 7", "x 8"]
    for name in ("x 7", "x 8"):
        assert describe_kinship(found, name, "agent") == ("outside", "own", "own")
    parents = {
        event.data["process"]: event.data["parent"]
        for event in list_lines(stand.fakes[0].record)
        if "seen" in event.data
    }
    assert parents == {
        "agent": "supervisor",
        **dict.fromkeys(("x", "x 2"), "agent"),
        **{f"x {number}": "x" if number == 3 else f"x {number - 2}" for number in range(3, 9)},
    }


def test_closed_descriptors_are_closed_and_others_are_inherited(meet: Callable[..., dict[str, ProcessFacts]]) -> None:
    """A pipe that a host watches for a tree's end is held by the one kind and not by the other."""
    reader, writer = os.pipe()
    script = "- spawn: plain\n- spawn: {id: closed, closed_fds: true}\n- silence: 5s"
    try:
        found = meet(script, pass_fds=(writer,))
        pipe = str(Path(f"/proc/self/fd/{writer}").readlink())
    finally:
        os.close(reader)
        os.close(writer)
    assert {name for name, who in found.items() if pipe in who.open} == {"agent", "plain"}
    assert found["closed"].open <= {"anon_inode:[eventpoll]"}


@pytest.mark.parametrize("how", HOWS)
def test_a_cleared_environment_is_empty_for_good(meet: Callable[..., dict[str, ProcessFacts]], how: str) -> None:
    """Also where it is re-forked; the processes that it starts have none either."""
    script = "" if how == "refork" else "script: [{spawn: below}, {silence: for ever}], "
    extra = "every: 400ms, " if how == "refork" else ""
    found = meet(
        f"- spawn: {{id: x, {script}{extra}how: {how}, clear_env: true}}\n- spawn: plain\n- silence: 5s",
        env={"COOKIE": "1"},
    )
    assert found["agent"].environ == found["plain"].environ == b"COOKIE=1\0"
    cleared = {name: who.environ for name, who in drop_zombies(found).items() if name not in ("agent", "plain")}
    assert cleared == dict.fromkeys(cleared, b"")
    assert len(cleared) == (1 if how == "refork" else 2)


@pytest.mark.parametrize("how", [how for how in HOWS if how != "refork"])
def test_a_stopped_process_takes_term_only_once_it_is_continued(
    meet: Callable[..., dict[str, ProcessFacts]], stand: Stand, how: str
) -> None:
    """That is why CONT follows every TERM; a process that ignores TERM continues and begins its script."""

    def signals(found: dict[str, int]) -> None:
        for name in ("x", "deaf"):
            os.kill(found[name], signal.SIGTERM)
            assert read_process_state(found[name]) == "T"
            os.kill(found[name], signal.SIGCONT)
        assert read_process_state(found["killed"]) == "T"
        os.kill(found["killed"], signal.SIGKILL)

    spawns = "\n".join(
        f"- spawn: {{id: {name}, how: {how}, stopped: true, ignores_signals: {str(name == 'deaf').lower()}}}"
        for name in ("x", "deaf", "killed", "left")
    )
    found = meet(f"{spawns}\n- silence: 5s", signals)
    assert {name: who.state == "T" for name, who in drop_zombies(found).items()} == {
        "agent": False,
        "deaf": False,
        "left": True,
    }
    ended = list_ends_by_name(stand.fakes[0].record)
    assert (ended["x"], ended["killed"], ended.get("deaf")) == ("TERM", "KILL", None)
    heard = [event.at for event in list_lines(stand.fakes[0].record) if event.code == "s"]
    assert heard == [1_000_000_000]


def test_a_stopped_group_that_loses_its_parent_is_hung_up_by_the_kernel(stand: Stand, backend: str) -> None:
    """One in the agent's session dies of HUP with the agent; one in a session of its own stays stopped."""
    argv = stand.fake(
        "- spawn: {id: group, how: own_group, stopped: true}\n"
        "- spawn: {id: session, how: new_session, stopped: true}\n- silence: 1s"
    )

    async def host() -> None:
        with subprocess.Popen(argv, start_new_session=True):
            await anyio.sleep(2)

    stand.run(host, backend=backend)
    assert list_ends_by_name(stand.fakes[0].record) == {"agent": 0, "group": "HUP"}
    assert read_process_facts(list_pids_by_name(stand.fakes[0].record)["session"]).state == "T"


def test_a_zombie_stays_until_its_parent_ends(meet: Callable[..., dict[str, ProcessFacts]]) -> None:
    """Its sibling is reaped at once, and so is a child that ends later; the agent, too, may run: it looks out."""
    found = meet(
        "- spawn: {id: zombie, zombie: true, for: 100ms}\n"
        "- spawn: {id: plain, for: 100ms}\n- spawn: {id: late, for: 500ms}\n- silence: 5s"
    )
    assert {name: who.state == "Z" for name, who in found.items()} == {"agent": False, "zombie": True}
    assert is_gone(found["zombie"].pid)


def test_a_nested_subreaper_adopts_what_is_let_go_of_below_it(meet: Callable[..., dict[str, ProcessFacts]]) -> None:
    """It comes neither to init, nor to a supervisor that adopts, too."""
    spawned = "{spawn: {id: x, how: daemon, closed_fds: true, clear_env: true}}"
    found = meet(f"- spawn: {{id: reaper, subreaper: true, script: [{spawned}, {{silence: for ever}}]}}\n- silence: 5s")
    assert found["x"].parent == found["reaper"].pid


@contextmanager
def adopt_orphans_below() -> Iterator[None]:
    """Have this process adopt the orphans below it."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(36, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        prctl(36, 0, 0, 0, 0)


def test_a_dead_orphan_that_was_adopted_is_nobodys_neglect(stand: Stand) -> None:
    """Other code may have made this process a subreaper: a false accusation is worse than a miss."""
    argv = stand.fake("- spawn: {id: x, how: daemon, for: 100ms}\n- spawn: {id: y, for: 100ms}\n- silence: 5s")
    with adopt_orphans_below():
        stand.run(start_and_wait, argv)
        stand.fakes[0].watch.collect(stand.fakes[0].record)
        left = list_leaks(stand.fakes[0].record)
        os.waitpid(list_pids_by_name(stand.fakes[0].record)["x"], 0)
    assert left == {}


def start_through_another(argv: list[str]) -> int:
    """Start a program as the child of a process that exits at once; give its pid."""
    reader, writer = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = os.fork()
        if pid:
            os.write(writer, pid.to_bytes(4, "little"))
            os._exit(0)
        os.execv(argv[0], argv)  # noqa: S606  # a fake
    os.waitpid(middle, 0)
    pid = int.from_bytes(os.read(reader, 4), "little")
    os.close(reader)
    os.close(writer)
    return pid


def test_an_agent_that_is_not_the_harness_own_child_reports_its_death(stand: Stand) -> None:
    """Only its parent, a keeper perhaps, can ask the kernel for the signal that ended it."""
    argv = stand.fake("- silence: 5s")

    async def host() -> None:
        pid = start_through_another(argv)
        registry = stand.clock.hub.registry
        registry.expect_hello(pid, registry.number_next_root())
        await anyio.sleep(1)
        os.kill(pid, signal.SIGTERM)

    stand.run(host)
    stand.clock.hub.settle_participants()
    assert list_ends_by_name(stand.fakes[0].record) == {"agent": "TERM"}
