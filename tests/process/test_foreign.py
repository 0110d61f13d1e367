"""Processes that are no fakes under the virtual clock: refused with a message, or declared and waited for."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from pytest_agentproc.errors import ClockError, Foreign, Stall
from pytest_agentproc.harness import Lab
from tests.process.stand import Stand

if TYPE_CHECKING:
    from collections.abc import Callable


BUSY = "n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done"
"""Much longer than it takes until somebody looks who a silent child is."""


def test_a_program_that_is_no_fake_is_refused(stand: Stand, backend: str) -> None:
    """Virtual time cannot see what it does; it is named, with what to do about it, and does not live on."""
    path = str(shutil.which("cat"))

    async def host() -> None:
        await anyio.run_process([path], stdin=subprocess.PIPE)

    with pytest.raises(Foreign) as refused:
        stand.run(host, backend=backend)
    first, second = str(refused.value).splitlines()
    assert first.startswith("'cat' (pid ")
    assert first.endswith(") is no fake agent, and virtual time cannot see what it does")
    assert second == "declare it: virtual_clock(allow=['cat']) holds time while it runs"


@pytest.mark.parametrize("line", ["true", "exit 3", "echo told", BUSY])
def test_a_program_that_ends_by_itself_is_nobodys_trouble(stand: Stand, backend: str, line: str) -> None:
    """`ps`, `pkill`, `git`: whoever starts it goes on when it has ended, and no time has gone by."""

    async def host() -> tuple[int, bytes, float]:
        done = await anyio.run_process(["sh", "-c", line], check=False)
        return done.returncode, done.stdout, stand.seconds

    told = b"told\n" if line == "echo told" else b""
    assert stand.run(host, backend=backend) == (3 if line == "exit 3" else 0, told, 0.0)


def test_what_a_helper_does_to_an_agent_is_done_when_the_helper_has_ended(stand: Stand) -> None:
    """Many a supervisor has `pkill` end its agent's children, and looks at them then."""
    argv = stand.fake("- silence: 1h")

    def started_and_ended() -> int | None:
        with subprocess.Popen(argv) as agent:
            subprocess.run(["kill", str(agent.pid)], check=True)
            return agent.poll()

    async def host() -> int | None:
        return started_and_ended()

    assert stand.run(host) == -signal.SIGTERM


def test_a_real_cli_is_refused_before_it_does_anything(stand: Stand, tmp_path: Path) -> None:
    """It is called like a fake, and is none: it would ask a real model, and it is not waited for as others are."""
    name = Path(stand.fake("- exit: 0")[0]).name
    real = tmp_path / name
    real.write_text(f"#!/bin/sh\n{BUSY}; touch {tmp_path}/done\n")
    real.chmod(0o755)

    async def host() -> None:
        await anyio.run_process([str(real)])

    with pytest.raises(Foreign, match=r"is no fake agent"):
        stand.run(host)
    assert not (tmp_path / "done").exists()


def test_a_program_that_a_thread_starts_is_refused_too(stand: Stand, backend: str) -> None:
    """A start in a worker thread counts, and the program that waits for the thread is told."""

    async def host() -> None:
        await anyio.to_thread.run_sync(lambda: subprocess.run(["cat"], check=False, stdin=subprocess.PIPE))
        await anyio.sleep(3600)

    with pytest.raises(ClockError, match=r"^'cat' \(pid \d+\) is no fake agent"):
        stand.run(host, backend=backend)
    assert stand.seconds == 0.0


def test_time_is_held_while_a_declared_program_runs(make_stand: Callable[..., Stand], backend: str) -> None:
    """A declared program works in real time, and no virtual time passes meanwhile."""
    name = sys.executable.rpartition("/")[2]
    stand = make_stand(allow=[name])
    argv = stand.fake("- silence: 1h\n- say: done")

    async def host() -> tuple[bytes, float, float]:
        with anyio.fail_after(0.001):
            told = await anyio.run_process([sys.executable, "-S", "-c", "print(sum(range(1000)))"])
        at = stand.seconds
        await anyio.run_process(argv)
        return told.stdout, at, stand.seconds

    assert stand.run(host, backend=backend) == (b"499500\n", 0.0, 3600.0)


def test_a_declared_program_between_agents_keeps_their_order(make_stand: Callable[..., Stand]) -> None:
    """Bytes go through a real `cat` between two instants of an agent."""
    stand = make_stand(allow=["cat"])
    argv = stand.fake("- silence: 2s\n- say: one\n- silence: 2s\n- say: two")

    async def host() -> list[tuple[float, bytes]]:
        seen = []
        async with await anyio.open_process(argv) as agent:
            assert agent.stdout is not None
            async for data in agent.stdout:
                done = await anyio.run_process(["cat"], input=data)
                seen.append((stand.seconds, done.stdout))
        return seen

    assert stand.run(host) == [(2.0, b"one\n"), (4.0, b"two\n")]


@pytest.mark.slow
def test_a_declared_program_that_does_not_end_is_a_stall(make_stand: Callable[..., Stand], backend: str) -> None:
    """It waits for us and we wait for time, which it holds: the guard ends that and names it."""
    stand = make_stand(allow=["cat"], guard=0.2)

    async def host() -> None:
        async with await anyio.open_process(["cat"]):
            await anyio.sleep(5)

    with pytest.raises(Stall) as stalled:
        stand.run(host, backend=backend)
    assert str(stalled.value).startswith("the declared program 'cat' (pid ")
    assert str(stalled.value).endswith(") did not end within 0.2 s, and time is held until then")


@pytest.mark.parametrize("form", ["bare name", "relative path", "link", "through an interpreter"])
def test_a_fake_is_known_whatever_it_is_called_by(stand: Stand, tmp_path: Path, form: str) -> None:
    """Clients find their CLI by PATH, by cwd, by a link in node_modules, or run it under an interpreter."""
    path = stand.fake("- silence: 1s\n- exit: 3")[0]
    folder, _, name = path.rpartition("/")
    commands = {
        "bare name": ([name], {"env": {"PATH": folder}}),
        "relative path": ([f"./{name}"], {"cwd": folder}),
        "link": ([f"{tmp_path}/linked"], {}),
        "through an interpreter": ([sys.executable, "-IS", path], {}),
    }
    (argv, options) = commands[form]
    if form == "link":
        (tmp_path / "linked").symlink_to(path)

    async def host() -> tuple[int, float]:
        done = await anyio.run_process(argv, check=False, **options)  # type: ignore[arg-type]
        return done.returncode, stand.seconds

    assert stand.run(host) == (3, 1.0)


@pytest.mark.parametrize("folder", ["x" * 200, "it's", 'a "quoted" one', "blank here"])
def test_a_fake_starts_from_whatever_folder_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """The kernel cuts a long first line; a shell reads it then, and reads quotes its own way."""
    (tmp_path / folder).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))
    with Lab() as lab, contextlib.closing(Stand(lab)) as stand:
        path = stand.fake("- silence: 1s\n- exit: 3")

        async def host(command: list[str]) -> int:
            return (await anyio.run_process(command, check=False)).returncode

        assert stand.run(host, path) == 3
        assert stand.run(host, [sys.executable, "-IS", *path]) == 3


def test_a_fake_that_cannot_even_begin_is_seen_as_the_exit_that_it_is(stand: Stand) -> None:
    """A launcher whose files are gone dies before its hello: that is an exit, no stall and no foreign program."""
    fake = stand.fake("- silence: 1s")
    folder = fake[0].rpartition("/")[0]
    Path(f"{folder}.baked").unlink()

    async def host() -> int:
        return int((await anyio.run_process(fake, check=False)).returncode)

    assert stand.run(host) == 1
