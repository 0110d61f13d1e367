"""A keeper holds whatever is below it, ends it with its host, and is outlived without loss, with ordinary programs."""

from __future__ import annotations

import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.tree import Keeper, KeeperDied, _keeper
from tests.process.escapes import HYDRA, WAYS, build_escape_command, build_program_command
from tests.process.stand import CEILING, is_gone, list_open_descriptors

if TYPE_CHECKING:
    from collections.abc import Iterator

SHOW = "import os; print(os.getcwd(), os.environ['A'], os.getsid(0) == os.getpid(), *os.listdir('/proc/self/fd'))"
SIGNALS = (
    "for line in open('/proc/self/status'):\n"
    "    name, word = line.split()[:2] if ':' in line and len(line.split()) > 1 else ('', '')\n"
    "    if name in ('SigBlk:', 'SigIgn:', 'SigCgt:'): print(name, int(word, 16) & ~(3 << 31))"
)
"""Without the two signals that a C library keeps for itself, which some of its ways to start a program ignore."""


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    """Give a keeper that ends with the test."""
    keeper = Keeper()
    yield keeper
    keeper.close()


def start_program(
    keeper: Keeper, argv: list[str], cwd: str | None = None, env: dict[str, str] | None = None
) -> tuple[int, int]:
    """Start a program; give its pid and the end of a pipe that is its stdout."""
    reader, writer = os.pipe()
    nothing = os.open("/dev/null", os.O_RDWR)
    try:
        return keeper.start(argv, cwd, env, (nothing, writer, nothing)), reader
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
        os.close(nothing)


def read_pipe(descriptor: int, *, line: bool = False) -> bytes:
    """Read a pipe to its end, or one line of it, and close it."""
    data = b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not (line and data.endswith(b"\n")):
        assert poll.poll(CEILING * 1000)
        if not (part := os.read(descriptor, 65536)):
            break
        data += part
    os.close(descriptor)
    return data


def test_what_it_starts_is_what_subprocess_starts(keeper: Keeper, tmp_path: Path) -> None:
    """Folder, environment, streams and the treatment of signals are the host's word, not the keeper's habits."""
    pid, shown = start_program(keeper, build_program_command(SHOW), str(tmp_path), {"A": "b"})
    assert read_pipe(shown) == f"{tmp_path} b True 0 1 2 3\n".encode()
    assert is_gone(pid)
    assert keeper.read_status(pid) == 0
    _, shown = start_program(keeper, build_program_command(SIGNALS))
    assert (
        read_pipe(shown).decode()
        == subprocess.run(build_program_command(SIGNALS), capture_output=True, text=True, check=True).stdout
    )


def test_nobody_else_can_reach_it(keeper: Keeper) -> None:
    """SECURITY.md promises it: its socket has no name."""
    assert (keeper._socket.getsockname(), keeper._socket.getpeername()) == ("", "")  # noqa: SLF001


def test_its_environment_is_ours_and_the_cookie(keeper: Keeper) -> None:
    """A keeper of a keeper adds its own: neither hides what belongs to the other."""
    _, shown = start_program(keeper, ["/bin/sh", "-c", "echo $AGENTPROC_TREE"], None, {"AGENTPROC_TREE": "outer"})
    assert read_pipe(shown).decode().split() == ["outer", keeper.cookie]
    _, shown = start_program(keeper, ["/usr/bin/env"])
    fields = dict(line.split("=", 1) for line in read_pipe(shown).decode().split("\n") if "=" in line)
    assert {name: fields.get(name) for name in ("PATH", "HOME")} == {
        name: os.environ.get(name) for name in ("PATH", "HOME")
    }


@pytest.mark.parametrize(
    ("argv", "cwd", "error"),
    [
        (["nope"], None, FileNotFoundError(2, "No such file or directory", "nope")),
        (["/usr"], None, PermissionError(13, "Permission denied", "/usr")),
        (["sh"], "/nope", FileNotFoundError(2, "No such file or directory", "/nope")),
        (["sh", "x" * 200_000], None, OSError(7, "Argument list too long", "sh")),
        (["sh", "x" * 100_000, "x" * 100_000, "x" * 100_000], None, None),
    ],
    ids=["not found", "not executable", "no folder", "too long", "more than a socket's message"],
)
def test_a_start_fails_as_one_of_subprocess_does(
    keeper: Keeper, argv: list[str], cwd: str | None, error: OSError | None
) -> None:
    """The caller's message is made of errno, words and the name of the missing thing."""
    if error is None:
        assert keeper.read_status(start_program(keeper, ["/bin/sh", "-c", "exit 3", *argv])[0]) in (None, 3)
        return
    with pytest.raises(OSError, match=error.strerror) as caught:
        start_program(keeper, argv, cwd, {"PATH": "/nope:/bin"})
    assert (type(caught.value), *caught.value.args, caught.value.filename) == (type(error), *error.args, error.filename)


def test_an_end_is_reported_until_it_is_reaped_and_after(keeper: Keeper) -> None:
    """The pid is not given away until the host says so; the way it ended is never lost."""
    pid, _ = start_program(keeper, ["sh", "-c", "exit 7"])
    assert is_gone(pid)
    assert (keeper.read_status(pid), keeper.read_status(pid)) == (7, 7)
    os.kill(pid, 0)
    assert (keeper.reap(pid), keeper.read_status(pid), keeper.reap(pid)) == (7, 7, 7)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    killed, _ = start_program(keeper, ["sleep", "60"])
    assert keeper.read_status(killed) is None
    os.kill(killed, signal.SIGTERM)
    assert is_gone(killed)
    assert keeper.read_status(killed) == -signal.SIGTERM


@pytest.mark.parametrize("way", WAYS)
def test_each_process_that_leaves_is_listed_and_ended(keeper: Keeper, way: str) -> None:
    """Everything stays below it, whatever it did."""
    pid, reported = start_program(keeper, build_escape_command("stay", WAYS[way]))
    escapee = int(read_pipe(reported, line=True))
    left = keeper.find_remaining_processes()
    assert left.is_sure
    assert {pid, escapee} <= left.commands.keys()
    assert "sleep" in left.commands[escapee]
    ended = keeper.end_all()
    assert (ended.refused, ended.is_over) == ({}, True)
    assert keeper.find_remaining_processes().commands == {}
    assert is_gone(pid, 0)
    assert is_gone(escapee, 0)
    assert keeper.read_status(pid) == -signal.SIGKILL


def test_an_orphan_is_reaped_as_it_dies(keeper: Keeper) -> None:
    """A zombie would be there until the keeper ends, and a pid each."""
    pid, reported = start_program(keeper, build_escape_command("stay", "session orphan"))
    orphan = int(read_pipe(reported, line=True))
    os.kill(orphan, signal.SIGKILL)
    assert is_gone(orphan)
    assert keeper.find_remaining_processes().commands.keys() == {pid}
    with pytest.raises(ProcessLookupError):
        os.kill(orphan, 0)


def test_it_receives_no_signal_that_is_meant_for_its_host(keeper: Keeper) -> None:
    """A terminal's Ctrl-C and a hang-up end the host first, and it with the host."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(keeper.pid, signum)
    assert keeper.find_remaining_processes().commands == {}
    assert os.getsid(keeper.pid) == keeper.pid


@pytest.mark.slow
@pytest.mark.parametrize("patience", ["0.5", "0.0"], ids=["as they come", "all stopped first"])
def test_many_heads_are_ended_within_a_second(monkeypatch: pytest.MonkeyPatch, patience: str) -> None:
    """Killing converges in either way."""
    folder = Path(_keeper.__file__).parent
    sources = [folder.joinpath(f"{name}.py").read_text("utf-8") for name in ("_kernel", "_keeper_server")]
    assert "_SECONDS_BEFORE_STOPPING_ALL = 0.5\n" in sources[1]
    sources[1] = sources[1].replace(
        "_SECONDS_BEFORE_STOPPING_ALL = 0.5\n", f"_SECONDS_BEFORE_STOPPING_ALL = {patience}\n"
    )
    codes = marshal.dumps([compile(source, "keeper", "exec", dont_inherit=True) for source in sources])
    monkeypatch.setattr(_keeper, "_compile_keeper_program", lambda: codes)
    keeper = Keeper()
    try:
        _, reported = start_program(keeper, build_program_command(HYDRA, "16"))
        read_pipe(reported, line=True)
        begin = time.monotonic()
        assert keeper.end_all(5.0).is_over
        assert time.monotonic() - begin < 1
        assert keeper.find_remaining_processes().commands == {}
    finally:
        keeper.close()


def test_it_leaves_nothing_behind() -> None:
    """No descriptor, no zombie, and this process adopts orphans no longer than before."""
    before = list_open_descriptors()
    keeper = Keeper()
    pid, reported = start_program(keeper, build_escape_command("stay", "session orphan closed bare"))
    escapee = int(read_pipe(reported, line=True))
    keeper.close()
    keeper.close()
    assert list_open_descriptors() == before
    for gone in (keeper.pid, pid, escapee):
        with pytest.raises(ProcessLookupError):
            os.kill(gone, 0)
    with pytest.raises(KeeperDied, match=f"the keeper \\(pid {keeper.pid}\\) is gone"):
        keeper.find_remaining_processes()


def test_what_a_killed_keeper_leaves_is_ended() -> None:
    """It is adopted here, and known by the mark that a cleared environment and closed streams cannot take away."""
    bystander = subprocess.Popen(["sleep", "60"], start_new_session=True)
    keeper = Keeper()
    try:
        pid, reported = start_program(keeper, build_escape_command("stay", *WAYS.values()))
        escapees = [int(word) for word in read_pipe(reported, line=True).split()]
        os.kill(keeper.pid, signal.SIGKILL)
        assert is_gone(keeper.pid)
        assert not is_gone(escapees[-1], 0)
        with pytest.raises(KeeperDied):
            keeper.find_remaining_processes()
    finally:
        keeper.close()
    assert [process_id for process_id in (pid, *escapees) if not is_gone(process_id, 0)] == []
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


HOST = """
import os, sys
from pytest_agentproc.tree import Keeper
keeper = Keeper()
nothing = os.open("/dev/null", os.O_RDWR)
print(keeper.pid, flush=True)
pid = keeper.start(sys.argv[1:], None, None, (nothing, 1, nothing))
if os.fork() == 0:
    os.close(1)
sys.stdin.read()
"""


@pytest.mark.slow
def test_the_death_of_the_host_ends_everything() -> None:
    """Also while a fork of the host holds the socket open: the keeper sees the process die, too."""
    command = [sys.executable, "-c", HOST, *build_escape_command("stay", *WAYS.values())]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        keeper = int(host.stdout.readline())
        escapees = [int(word) for word in host.stdout.readline().split()]
        assert len(escapees) == len(WAYS)
        host.kill()
        host.wait()
        end = time.monotonic() + 1
        alive = [
            process_id for process_id in (keeper, *escapees) if not is_gone(process_id, max(end - time.monotonic(), 0))
        ]
    assert alive == []


@pytest.mark.parametrize("is_heard", [True, False])
def test_a_keeper_whose_host_is_gone_before_it_starts_goes_without_a_trace(tmp_path: Path, is_heard: bool) -> None:
    """A host may be killed at any instant, and a fork of it may hold the socket open."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    stub, code = _keeper._KEEPER_START_CODE, tmp_path / "program"  # noqa: SLF001  # what a host starts
    code.write_bytes(_keeper._compile_keeper_program())  # noqa: SLF001  # as above
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, code.open("rb") as stdin:
        if not is_heard:
            ours.close()
        line = [sys.executable, "-I", "-S", "-c", stub, str(theirs.fileno()), str(gone.pid)]
        completed = subprocess.run(
            line, stdin=stdin, pass_fds=(theirs.fileno(),), capture_output=True, check=False, timeout=CEILING
        )
    assert (completed.returncode, completed.stderr) == (0, b"")
