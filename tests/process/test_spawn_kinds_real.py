"""Every kind of descendant in real time, and what virtual time cannot play: forks without a pause."""

from __future__ import annotations

import select
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.process.kin import HOWS, kinship, leaks, look, pids, read_diaries
from tests.process.stand import CEILING, is_gone, scenario_of

if TYPE_CHECKING:
    from pytest_agentproc.harness import Lab


@pytest.mark.slow
def test_kinds_are_the_same_in_real_time(lab: Lab) -> None:
    """The diaries of all that a fake starts are one record, and a daemon's parent there is whoever spawned it."""
    up = "script: [{say: up}, {silence: for ever}], holds: [stdout]"
    spawns = "".join(f"- spawn: {{id: {how}, how: {how}, {up}}}\n" for how in HOWS if how != "refork")
    fake = lab.fake(scenario_of(f"{spawns}- spawn: {{id: cleared, how: daemon, clear_env: true, {up}}}\n- silence: 9s"))
    with subprocess.Popen(fake.argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in HOWS] == [b"up\n"] * len(HOWS)
        record = read_diaries(fake)
        found = {name: look(pid) for name, pid in pids(record).items()}
        process.kill()
    fake.watch.end()
    assert {how: kinship(found, how, "agent") for how in HOWS if how != "refork"} == {
        "same_group": ("agent", "agent", "agent"),
        "own_group": ("agent", "own", "agent"),
        "new_session": ("agent", "own", "own"),
        "double_fork": ("outside", "agent", "agent"),
        "daemon": ("outside", "outside", "outside"),
        "launcher": ("outside", "own", "own"),
    }
    assert (found["cleared"].environ, found["daemon"].environ != b"") == (b"", True)
    above = {event.data["parent"] for event in record.events if "seen" in event.data}
    assert above == {"supervisor", "agent"}


@pytest.mark.slow
def test_forks_without_a_pause_end_with_their_time_or_with_the_lab(lab: Lab) -> None:
    """Only real time can play them: each is there for as long as it takes to fork the next."""
    bounded = lab.fake(scenario_of("- spawn: {id: x, how: refork, every: 0s, for: 300ms}\n- say: on\n- silence: 400ms"))
    done = subprocess.run(bounded.argv, capture_output=True, check=True, timeout=CEILING)
    names = pids(bounded.finish())
    assert (done.stdout, done.stderr, "x 2" in names) == (b"on\n", b"", True)
    assert [name for name, pid in names.items() if not is_gone(pid, 1.0)] == []
    endless = lab.fake(
        scenario_of("- spawn: {id: x, how: refork, every: 0s, heads: 2, closed_fds: true, holds: [stdout]}\n- say: on")
    )
    with subprocess.Popen(endless.argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        process.wait(CEILING)
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        assert poll.poll(0) == []  # the heads hold it
        record = endless.finish()
        assert process.stdout.read() == b""
    assert "alive" in leaks(record).values()
