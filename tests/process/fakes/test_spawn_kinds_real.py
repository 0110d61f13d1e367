"""Every kind of descendant in real time, and its lifeline in both: nothing of a fake outlives its runner."""

from __future__ import annotations

import select
import subprocess
import sys

import pytest

from pytest_agentproc.harness import ScenarioRunner
from tests.event_lines import list_lines
from tests.process.kinds import (
    HOWS,
    describe_kinship,
    list_ends_by_name,
    list_leaks,
    list_pids_by_name,
    read_process_facts,
    read_record,
)
from tests.process.stand import CEILING, build_scenario, is_gone, list_open_descriptors, start_and_wait


@pytest.mark.slow
@pytest.mark.parametrize("is_virtual", [True, False], ids=["virtual", "real"])
def test_every_kind_keeps_its_lifeline(is_virtual: bool) -> None:
    """It ends within a second of the harness, whatever it closes, clears or leaves."""
    spawns = "".join(
        f"- spawn: {{id: {how}-{number}, how: {how}, closed_fds: true, clear_env: true, ignores_signals: true}}\n"
        for how in HOWS
        for number in (1, 2)
    )
    stopped = "- spawn: {id: stopped, how: daemon, stopped: true, clear_env: true}"
    script = f"{spawns}{stopped}\n- say: ready\n- silence: for ever"
    before = list_open_descriptors()
    with ScenarioRunner() as runner:
        clock = runner.virtual_clock() if is_virtual else None
        fake = runner.make_fake(build_scenario(script), clock=clock)
        if clock is not None:
            clock.run(start_and_wait, fake.argv)
            record = fake.record
        else:
            with subprocess.Popen(fake.argv, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == b"ready\n"
                record = read_record(fake)
                process.kill()
        everyone = list_pids_by_name(record)
        assert len(everyone) >= 2 * len(HOWS) + 2
        runner.close()
        assert [name for name, pid in everyone.items() if not is_gone(pid, 1.0)] == []
        if clock is not None:
            clock.close()
    assert list_open_descriptors() == before


@pytest.mark.slow
def test_kinds_are_the_same_in_real_time(runner: ScenarioRunner) -> None:
    """The logs of all processes that a fake starts are one record; a daemon's parent there is its spawner."""
    up = "script: [{say: up}, {silence: for ever}], inherits: [stdout]"
    spawns = "".join(f"- spawn: {{id: {how}, how: {how}, {up}}}\n" for how in HOWS if how != "refork")
    fake = runner.make_fake(
        build_scenario(f"{spawns}- spawn: {{id: cleared, how: daemon, clear_env: true, {up}}}\n- silence: 9s")
    )
    with subprocess.Popen(fake.argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in HOWS] == [b"up\n"] * len(HOWS)
        record = read_record(fake)
        found = {name: read_process_facts(pid) for name, pid in list_pids_by_name(record).items()}
        process.kill()
    fake.watch.end()
    assert {how: describe_kinship(found, how, "agent") for how in HOWS if how != "refork"} == {
        "same_group": ("agent", "agent", "agent"),
        "own_group": ("agent", "own", "agent"),
        "new_session": ("agent", "own", "own"),
        "double_fork": ("outside", "agent", "agent"),
        "daemon": ("outside", "outside", "outside"),
        "launcher": ("outside", "own", "own"),
    }
    assert (found["cleared"].environ, found["daemon"].environ != b"") == (b"", True)
    above = {event.data["parent"] for event in list_lines(record) if "seen" in event.data}
    assert above == {"supervisor", "agent"}


_FAMILY = """
- when: {signal: TERM}
  do: [{kill: {id: node, signal: TERM}}]
- spawn:
    id: node
    inherits: [stdout]
    script:
      - when: {signal: TERM}
        do: [{kill: tool}, {exit: 0}]
      - spawn: {id: tool, how: new_session, script: [{spawn: {id: below, ignores_signals: true}}, {silence: for ever}]}
      - spawn:
          id: bound
          how: own_group
          clear_env: true
          inherits: [stdout]
          script: [{say: up}, {wait_for: {exit: parent}}, {die: HUP}]
      - silence: for ever
- wait_for: {exit: node}
- say: followed
- exit: 3
"""


@pytest.mark.slow
def test_ends_are_followed_and_signals_sent_in_real_time_too(runner: ScenarioRunner) -> None:
    """A launcher hands a signal on and exits after its child, whose tools end by a signal or with their parent."""
    fake = runner.make_fake(build_scenario(_FAMILY.strip()))
    with subprocess.Popen(fake.argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        everyone = list_pids_by_name(read_record(fake))
        process.terminate()
        assert process.stdout.read() == b"followed\n"
        assert process.wait(CEILING) == 3
        assert [name for name, pid in everyone.items() if not is_gone(pid, 1.0)] == []
        record = read_record(fake)
    fake.watch.end()
    assert list_ends_by_name(record) == {"node": 0, "tool": "KILL", "below": "KILL", "bound": "HUP", "agent": 3}


@pytest.mark.slow
def test_forks_without_a_pause_end_with_their_time_or_with_the_lab(runner: ScenarioRunner) -> None:
    """Only real time can play them: each is there for as long as it takes to fork the next."""
    bounded = runner.make_fake(
        build_scenario("- spawn: {id: x, how: refork, every: 0s, for: 300ms}\n- say: on\n- silence: 400ms")
    )
    completed = subprocess.run(bounded.argv, capture_output=True, check=True, timeout=CEILING)
    names = list_pids_by_name(bounded.finish())
    assert (completed.stdout, completed.stderr, "x 2" in names) == (b"on\n", b"", True)
    assert [name for name, pid in names.items() if not is_gone(pid, 1.0)] == []
    endless = runner.make_fake(
        build_scenario(
            "- spawn: {id: x, how: refork, every: 0s, heads: 2, closed_fds: true, inherits: [stdout]}\n- say: on"
        )
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
    assert "alive" in list_leaks(record).values()


_LATE = """
import posix, select, signal, sys
from pytest_agentproc.fake_agents import birth

heard, told = posix.pipe()
gone_on = select.poll()
gone_on.register(heard, select.POLLIN)
for name in ("setsid", "setpgid"):
    leave = getattr(posix, name)
    setattr(posix, name, lambda *group, leave=leave: (gone_on.poll(50), leave(*group)))
pid = birth.fork_descendant(sys.argv[1])
if not pid:
    signal.alarm(9)
    signal.pause()
is_out = posix.getpgid(pid) == pid
posix.write(told, b"!")
posix.kill(pid, 9)
sys.exit(not is_out)
"""
"""A descendant that leaves its group late: after its spawner has gone on, if that does not wait for it."""


@pytest.mark.parametrize("how", ["own_group", "new_session", "launcher", "refork"])
def test_a_spawn_is_over_when_the_descendant_is_out(how: str) -> None:
    """A signal to the group right after the spawn cannot reach a descendant that leads its own."""
    assert subprocess.run([sys.executable, "-c", _LATE, how], timeout=CEILING, check=False).returncode == 0
