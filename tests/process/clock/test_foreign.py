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

from pytest_agentproc.errors import ClockError, ForeignProgram, Stall
from pytest_agentproc.harness import ScenarioRunner
from tests.process.stand import Stand, format_line_of

if TYPE_CHECKING:
    from collections.abc import Callable


BUSY = "n=0; while [ $n -lt 100000 ]; do n=$((n+1)); done"
"""Much longer than it takes until the clock looks at a silent child."""


@pytest.mark.slow
def test_a_program_that_is_no_fake_is_refused(stand: Stand, backend: str) -> None:
    """Virtual time cannot see its work; it is named, with a remedy, and does not live on."""
    path = str(shutil.which("cat"))

    async def host() -> None:
        await anyio.run_process([path], stdin=subprocess.PIPE)

    with pytest.raises(ForeignProgram) as refused:
        stand.run(host, backend=backend)
    first, second, place = str(refused.value).splitlines()
    assert first.startswith("'cat' (pid ")
    assert first.endswith(") is no fake agent, and virtual time cannot see what it does")
    assert second == ("declare it: @pytest.mark.virtual_time(allow=['cat']) on the test, or virtual_clock.allow('cat')")
    assert place == f"the supervising program is at {format_line_of(host)}"


@pytest.mark.parametrize("line", ["true", "exit 3", "echo told", BUSY])
def test_a_program_that_ends_by_itself_is_nobodys_trouble(stand: Stand, backend: str, line: str) -> None:
    """`ps`, `pkill`, `git`: the caller continues when the program has ended, and no time has passed."""

    async def host() -> tuple[int, bytes, float]:
        completed = await anyio.run_process(["sh", "-c", line], check=False)
        return completed.returncode, completed.stdout, stand.seconds

    told = b"told\n" if line == "echo told" else b""
    assert stand.run(host, backend=backend) == (3 if line == "exit 3" else 0, told, 0.0)


def test_what_a_helper_does_to_an_agent_is_done_when_the_helper_has_ended(stand: Stand) -> None:
    """Many supervisors have `pkill` end their agent's children, and look at them then."""
    argv = stand.fake("- silence: 1h")

    def started_and_ended() -> int | None:
        with subprocess.Popen(argv) as agent:
            subprocess.run(["kill", str(agent.pid)], check=True)
            return agent.poll()

    async def host() -> int | None:
        return started_and_ended()

    assert stand.run(host) == -signal.SIGTERM


@pytest.mark.parametrize("line", [f"{BUSY}; touch done", "touch done"], ids=["slow", "quick"])
@pytest.mark.parametrize("form", ["by its path", "by its name", "as a script"])
def test_a_real_cli_is_not_even_started(stand: Stand, tmp_path: Path, form: str, line: str) -> None:
    """Its command line is a fake's, but it is no fake: it would ask a real model. How fast it is decides nothing."""
    name = Path(stand.fake("- exit: 0")[0]).name
    real = write_shell_script(tmp_path / name, line)
    argv = {"by its path": [real], "by its name": [name], "as a script": ["/bin/sh", real]}[form]

    async def host() -> None:
        await anyio.run_process(argv, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, cwd=tmp_path)

    with pytest.raises(ForeignProgram) as refused:
        stand.run(host)
    assert str(refused.value) == (
        "'agent' is called like a fake agent and is none, so it was not started\n"
        "declare it: @pytest.mark.virtual_time(allow=['agent']) on the test, or virtual_clock.allow('agent')\n"
        f"the supervising program is at {format_line_of(host)}"
    )
    assert not (tmp_path / "done").exists()


def write_shell_script(path: Path, line: str) -> str:
    """Write a shell script."""
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


SLOW = {"computes": BUSY, "sleeps": "sleep 0.4", "waits in steps": "for i in 1 2 3 4 5 6 7 8; do sleep 0.05; done"}


@pytest.mark.slow
@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
def test_a_slow_shell_may_start_a_fake(stand: Stand, tmp_path: Path, slow: str) -> None:
    """However long it takes until a shell starts its agent, on a loaded machine above all, it is no foreign program."""
    fake = stand.fake("- silence: 1h\n- exit: 3")[0]

    async def host() -> tuple[int, float]:
        completed = await anyio.run_process(
            [write_shell_script(tmp_path / "wrapper", f"{slow}; exec {fake}")], check=False
        )
        return completed.returncode, stand.seconds

    assert stand.run(host) == (3, 3600.0)


@pytest.mark.parametrize("slow", [BUSY, ":"], ids=["slow", "quick"])
def test_a_shell_in_a_shell_may_be_called_like_the_fake_that_it_starts(stand: Stand, tmp_path: Path, slow: str) -> None:
    """A wrapper script around a CLI has the name of that CLI."""
    fake = stand.fake("- silence: 1h\n- exit: 3")[0]
    wrapper = write_shell_script(tmp_path / "agent", f"{slow}; exec {fake}")

    async def host() -> tuple[int, float]:
        completed = await anyio.run_process(["bash", "-c", f"exec {wrapper}"], check=False)
        return completed.returncode, stand.seconds

    assert stand.run(host) == (3, 3600.0)


def test_a_declared_script_may_be_called_like_the_fake_that_it_starts(
    make_stand: Callable[..., Stand], tmp_path: Path
) -> None:
    """The remedy that the refusal names works."""
    stand = make_stand()
    fake = stand.fake("- silence: 1h\n- exit: 3")[0]
    stand.clock.allow("agent")

    async def host() -> tuple[int, float]:
        completed = await anyio.run_process([write_shell_script(tmp_path / "agent", f"exec {fake}")], check=False)
        return completed.returncode, stand.seconds

    assert stand.run(host) == (3, 3600.0)


@pytest.mark.slow
def test_a_program_that_a_thread_starts_is_refused_too(stand: Stand, backend: str) -> None:
    """A start in a worker thread counts, and the program that waits for the thread gets the error."""

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
                completed = await anyio.run_process(["cat"], input=data)
                seen.append((stand.seconds, completed.stdout))
        return seen

    assert stand.run(host) == [(2.0, b"one\n"), (4.0, b"two\n")]


SERVER = """
import sys
for line in sys.stdin:
    sum(range(300_000))
    print(line.upper(), end="", flush=True)
"""


def test_time_passes_while_a_server_waits_for_requests(make_stand: Callable[..., Stand], backend: str) -> None:
    """An MCP server lives as long as its client: it holds time while it works, and its answers take none."""
    stand = make_stand()
    stand.clock.allow(Path(sys.executable).name)
    argv = stand.fake("- silence: 2s\n- say: one\n- silence: 1h\n- say: two")

    async def host() -> list[tuple[float, bytes, float]]:
        seen = []
        async with (
            await anyio.open_process([sys.executable, "-S", "-c", SERVER]) as server,
            await anyio.open_process(argv) as agent,
        ):
            assert agent.stdout is not None
            assert server.stdin is not None
            assert server.stdout is not None
            async for data in agent.stdout:
                at = stand.seconds
                await server.stdin.send(data)
                with anyio.fail_after(0.001):
                    seen.append((at, await server.stdout.receive(), stand.seconds))
            await server.stdin.aclose()
        return seen

    assert stand.run(host, backend=backend) == [(2.0, b"ONE\n", 2.0), (3602.0, b"TWO\n", 3602.0)]


@pytest.mark.slow
def test_a_declared_program_that_keeps_real_time_is_a_stall(make_stand: Callable[..., Stand], backend: str) -> None:
    """Time is held while it sleeps by the machine's clock: the guard ends that and names it."""
    stand = make_stand(allow=["sleep"], guard=0.2)

    async def host() -> None:
        async with await anyio.open_process(["sleep", "60"]):
            await anyio.sleep(5)

    with pytest.raises(Stall) as stalled:
        stand.run(host, backend=backend)
    first, place = str(stalled.value).splitlines()
    assert first.startswith("the declared program 'sleep' (pid ")
    assert first.endswith(") did not come to rest within 0.2 s, and time is held until then")
    assert place == f"the supervising program waits at {format_line_of(host, 2)}"


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
        completed = await anyio.run_process(argv, check=False, **options)  # type: ignore[arg-type]
        return completed.returncode, stand.seconds

    assert stand.run(host) == (3, 1.0)


@pytest.mark.parametrize("folder", ["x" * 200, "it's", 'a "quoted" one', "blank here"])
def test_a_fake_starts_from_whatever_folder_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """The kernel cuts a long first line; a shell reads it then, and reads quotes its own way."""
    (tmp_path / folder).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))
    with ScenarioRunner() as runner, contextlib.closing(Stand(runner)) as stand:
        path = stand.fake("- silence: 1s\n- exit: 3")

        async def host(command: list[str]) -> int:
            return (await anyio.run_process(command, check=False)).returncode

        assert stand.run(host, path) == 3
        assert stand.run(host, [sys.executable, "-IS", *path]) == 3


@pytest.mark.parametrize("missing", ["baked", "boot"])
def test_a_fake_that_cannot_even_begin_is_seen_as_the_exit_that_it_is(stand: Stand, missing: str) -> None:
    """A launcher without its files dies before its hello: that is an exit, no stall and no foreign program."""
    fake = stand.fake("- silence: 1s")
    folder = fake[0].rpartition("/")[0]
    Path(f"{folder}.{missing}").unlink()

    async def host() -> tuple[int, bytes]:
        done = await anyio.run_process(fake, check=False)
        return int(done.returncode), done.stderr

    assert stand.run(host) == (70, b"")
