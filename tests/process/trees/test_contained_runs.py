"""Runs and sessions hold the tree of their agent as their policy says, in virtual and in real time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.clock import SystemClock
from pytest_agentproc.errors import ClockError
from pytest_agentproc.supervisor import Outcome, Policy, open_session, run_once
from pytest_agentproc.vocabulary import CONTAINMENT_NAMES
from tests.process.escapes import WAYS, build_escape_command
from tests.process.stand import SECOND, is_gone, list_open_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor import Result
    from tests.process.stand import Stand

HELPERS = """
- spawn: {id: tool}
- spawn: {id: deaf, ignores_signals: true}
- wait_for: eof
- say: hello
- silence: for ever
"""
HOST = """
import sys, anyio
from pytest_agentproc.supervisor import Policy, run_once
class Tell:
    def begin(self, name): pass
    finish = drop = begin
    def write(self, name, data):
        if name == "stdout.log":
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
async def main():
    policy = Policy(containment="keeper", inactivity_timeout=float(sys.argv[1]))
    result = await run_once(sys.argv[2:], policy=policy, artifacts=Tell())
    print(result.outcome.value, result.containment, result.agent_status)
anyio.run(main)
"""


@pytest.mark.parametrize("containment", CONTAINMENT_NAMES)
def test_a_run_in_virtual_time_is_the_same_at_every_containment(
    stand: Stand, backend: str, containment: str, tmp_path: Path
) -> None:
    """The starter of the agent is no event: instants, outcome and status are those of a child of ours."""
    argv = stand.fake(HELPERS)
    policy = Policy(containment=containment, inactivity_timeout=60.0, kill_grace=2.0)

    async def host() -> Result:
        return await run_once(argv, policy=policy, artifacts=tmp_path)

    result = stand.run(host, backend=backend)
    assert (result.outcome, result.agent_status, result.forced) == (Outcome.INACTIVE, -signal.SIGTERM, True)
    assert (result.elapsed, result.returned) == (60 * SECOND, 62 * SECOND)
    assert result.containment == containment
    assert json.loads(tmp_path.joinpath("result.json").read_text("utf-8"))["containment"] == containment
    assert [is_gone(pid, 0) for pid in stand.pids()] == [True] * 3


@pytest.mark.parametrize("containment", CONTAINMENT_NAMES)
def test_a_cancelled_run_leaves_nobody_at_any_containment(stand: Stand, backend: str, containment: str) -> None:
    """The keeper is ended with its processes, in the cleanup of the caller (T4)."""
    argv = stand.fake(HELPERS)

    async def host() -> None:
        with anyio.move_on_after(5):
            await run_once(argv, policy=Policy(containment=containment))

    stand.run(host, backend=backend)
    assert [is_gone(pid, 0) for pid in stand.pids()] == [True] * 3
    assert stand.seconds == 5


@pytest.mark.slow
def test_agents_of_a_keeper_are_numbered_in_the_order_of_their_starts(stand: Stand) -> None:
    """The keeper itself is no agent, and takes no number."""
    first, second, third = (stand.fake("- say: hello", name=name) for name in ("one", "two", "three"))

    async def host() -> list[Outcome]:
        return [
            (await run_once(argv, policy=Policy(containment=word))).outcome
            for argv, word in ((first, "keeper"), (second, "group"), (third, "keeper"))
        ]

    assert stand.run(host) == [Outcome.COMPLETED] * 3
    assert [participant.path for participant in stand.clock.hub.registry.list_in_spawn_order()] == [(0,), (1,), (2,)]


def test_a_program_that_is_no_fake_is_one_of_a_keepers_too(make_stand: Callable[..., Stand]) -> None:
    """Virtual time cannot see its work, whichever program starts it."""
    stand = make_stand(guard=5.0)

    async def host() -> None:
        await run_once(["sleep", "60"], policy=Policy(containment="keeper"))

    with pytest.raises(ClockError, match=r"'sleep' .* is no fake agent"):
        stand.run(host)


@pytest.mark.parametrize("containment", CONTAINMENT_NAMES)
def test_a_start_that_fails_is_an_outcome_at_every_containment(stand: Stand, containment: str) -> None:
    """Nothing holds what never ran."""
    before = list_open_descriptors()

    async def host() -> Result:
        return await run_once(["/nope/agent"], policy=Policy(containment=containment))

    result = stand.run(host)
    assert (result.outcome, result.exit_code, result.containment) == (Outcome.SPAWN_FAILED, 127, None)
    assert "/nope/agent" in result.error
    assert len(list_open_descriptors()) == len(before)


@pytest.mark.parametrize("containment", CONTAINMENT_NAMES)
def test_a_session_reports_which_containment_holds(stand: Stand, backend: str, containment: str) -> None:
    """While it has an agent, and of the last one afterwards."""
    argv = stand.fake("- wait_for: prompt 1\n- answer: hello\n- silence: for ever", "{dialect: pi, mode: rpc}")

    async def host() -> None:
        async with open_session(argv, dialect="pi", policy=Policy(containment=containment)) as session:
            assert (await session.prompt("hi")).text == "hello"
            assert session.containment == containment
        assert session.containment == containment

    stand.run(host, backend=backend)


def test_a_session_that_starts_nobody_holds_nobody(stand: Stand) -> None:
    """There is no word for what holds none."""

    async def host() -> None:
        async with open_session(["/nope/agent"], dialect="pi") as session:
            await session.prompt("hi")
            assert session.containment is None

    stand.run(host)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["host", "keeper"])
def test_after_any_kill_the_agent_and_its_escapees_go(victim: str) -> None:
    """A supervisor that is killed takes its agents along; one whose keeper is killed ends them itself."""
    patience = "600" if victim == "host" else "0.5"
    command = [
        sys.executable,
        "-c",
        HOST,
        patience,
        *build_escape_command("stay", *WAYS.values(), "session orphan deaf"),
    ]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        escapees = [int(word) for word in host.stdout.readline().split()]
        assert len(escapees) == len(WAYS) + 1
        (keeper,) = Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text("ascii").split()
        (agent,) = [
            pid
            for pid in Path(f"/proc/{keeper}/task/{keeper}/children").read_text("ascii").split()
            if int(pid) not in escapees
        ][:1]
        os.kill(host.pid if victim == "host" else int(keeper), signal.SIGKILL)
        begin = time.monotonic()
        told = host.stdout.read().decode().split()
        host.wait()
        end = max(begin + 1, time.monotonic())
        alive = [
            pid for pid in (int(agent), int(keeper), *escapees) if not is_gone(pid, max(end - time.monotonic(), 0))
        ]
    assert alive == []
    assert told == ([] if victim == "host" else ["inactive", "subreaper", "-15"])


class Refusing(SystemClock):
    """A clock that refuses every fake."""

    def await_child(self, pid: int) -> None:
        """Refuse."""
        raise ClockError(f"{pid} may not be met")


def test_an_agent_that_a_clock_refuses_is_abandoned() -> None:
    """The keeper ends with it: no other code knows of either yet."""
    before = list_open_descriptors()

    async def host() -> None:
        await run_once(["sleep", "60"], policy=Policy(containment="keeper"), clock=Refusing())

    with pytest.raises(ClockError, match="may not be met"):
        anyio.run(host)
    assert list_open_descriptors() == before
