"""Processes that are no fakes under the virtual clock: refused with a message, or declared and waited for."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from pytest_agentproc.errors import ClockError, Stall
from pytest_agentproc.harness import Lab
from tests.process.stand import Stand

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("name", ["true", "cat"])
def test_a_program_that_is_no_fake_is_refused(stand: Stand, backend: str, name: str) -> None:
    """Virtual time cannot see what it does; it is named, with what to do about it, and does not live on."""
    path = str(shutil.which(name))

    async def host() -> None:
        await anyio.run_process([path], stdin=subprocess.PIPE)

    with pytest.raises(ClockError) as refused:
        stand.run(host, backend=backend)
    first, second = str(refused.value).splitlines()
    assert first.startswith(f"{name!r} (pid ")
    assert first.endswith(") is no fake agent, and virtual time cannot see what it does")
    assert second == f"declare it: virtual_clock(allow=[{name!r}]) holds time while it runs"


def test_a_program_is_refused_however_soon_it_ends(make_stand: Callable[..., Stand]) -> None:
    """A verdict that depends on who is faster is none: a program that is gone at once is refused as well."""
    refused = 0
    for _ in range(10):
        stand = make_stand()

        def start() -> None:
            subprocess.run(["true"], check=True)

        async def host() -> None:
            start()
            await anyio.sleep(1)

        with pytest.raises((ClockError, subprocess.CalledProcessError)):
            stand.run(host)
        refused += 1
    assert refused == 10


def test_a_program_that_a_thread_starts_is_refused_too(stand: Stand, backend: str) -> None:
    """A start in a worker thread counts, and the program that waits for the thread is told."""

    async def host() -> None:
        await anyio.to_thread.run_sync(lambda: subprocess.run(["cat"], check=False, stdin=subprocess.PIPE))
        await anyio.sleep(3600)

    with pytest.raises(ClockError, match=r"^'cat' \(pid \d+\) is no fake agent"):
        stand.run(host, backend=backend)
    assert stand.seconds == 0.0


def test_a_shell_line_is_the_shells(stand: Stand) -> None:
    """`shell=True` starts a shell, and a shell is no fake, whatever it starts in turn."""
    argv = stand.fake("- exit: 0")

    async def host() -> None:
        subprocess.Popen(f"{argv[0]}; :", shell=True)
        await anyio.sleep(1)

    with pytest.raises(ClockError, match=r"^'sh' \(pid \d+\) is no fake agent"):
        stand.run(host)


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


@pytest.mark.slow
def test_a_declared_shell_around_an_agent_is_a_stall_that_names_the_shell(make_stand: Callable[..., Stand]) -> None:
    """The shell waits for the agent, the agent for time, time for the shell."""
    stand = make_stand(allow=["sh"], guard=0.2)
    argv = stand.fake("- silence: 1s")

    async def host() -> None:
        await anyio.run_process(["sh", "-c", f"{argv[0]}; :"])

    with pytest.raises(Stall, match=r"^the declared program 'sh' \(pid \d+\) did not end within 0\.2 s"):
        stand.run(host)


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
