"""The sockets of the hub and of the lifeline broker: another user of the machine can neither connect nor stall them."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.clock import _hub_socket as _door
from pytest_agentproc.clock._hub_socket import HubListener
from pytest_agentproc.fake_agents import wire
from pytest_agentproc.harness import ScenarioRunner
from tests.process.stand import CEILING, Stand, list_open_descriptors

if TYPE_CHECKING:
    from collections.abc import Iterator

_STRANGER = 65534
"""A user that owns nothing here."""

_VISIT = """
import array, marshal, os, socket, sys

if len(sys.argv) > 2:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
links = []
greedy = b"(\\xff\\xff\\xff\\x7f"
for words in (None, b"", bytes(100), greedy, b"t" * 16 + greedy, marshal.dumps((1,))):
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        link.connect(sys.argv[1])
        if words is not None:
            link.sendmsg([words], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
        links.append(link)
    except PermissionError:
        print("may not connect", flush=True)
    except BrokenPipeError:
        links.append(link)
print("done", flush=True)
sys.stdin.read()
for link in links if len(sys.argv) > 2 else ():
    link.settimeout(10)
    try:
        link.recv(1)
    except ConnectionError:
        pass
    print("let go", flush=True)
"""
"""Connect and stay: silent, with nothing, with noise, and with marshal that asks for memory, each with a descriptor."""

_NAMES = ("hub", "lifeline")
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@contextlib.contextmanager
def _visit_socket(address: Path, *user: int) -> Iterator[list[str]]:
    """Have a process visit a socket, as another user if one is given, and stay for the block.

    Gives what it prints: of each try to connect, and after the block, of each link of another user, that it was let go.
    """
    argv = [sys.executable, "-IS", "-c", _VISIT, str(address), *map(str, user)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            printed = [line.strip() for line in iter(process.stdout.readline, "done\n")]
            yield printed
            printed += process.communicate(timeout=CEILING)[0].split("\n")[:-1]
        finally:
            process.kill()


def _run_fake_with_child(stand: Stand) -> None:
    """Run a fake with a child for two virtual seconds, in less real time than a silent process was once given."""
    argv = stand.fake("- spawn: {id: helper, for: 1s}\n- silence: 2s\n- exit: 3")
    start = time.monotonic()

    async def host() -> int:
        return int((await anyio.run_process(argv, check=False)).returncode)

    assert stand.run(host) == 3
    assert stand.seconds == 2
    assert len(stand.pids()) == 2
    assert time.monotonic() - start < 8


def _find_socket_path(stand: Stand, name: str = "hub") -> Path:
    """Give the path of the hub's socket, or of the broker's, which lies beside it."""
    stand.fake("- exit: 0")
    stand.clock.hub.registry.start_accepting_participants()
    hub = Path(os.fsdecode(stand.clock.hub.registry.address))
    return hub if name == "hub" else hub.with_name(name)


@pytest.mark.parametrize("name", _NAMES)
def test_the_sockets_are_in_a_folder_of_this_user_alone(stand: Stand, name: str) -> None:
    """A socket in the abstract namespace is open to every user of the machine."""
    path = _find_socket_path(stand, name)
    assert path.is_absolute()
    assert stat.S_ISSOCK(path.lstat().st_mode)
    assert path.lstat().st_mode & 0o777 == 0o600
    assert path.parent.lstat().st_mode & 0o777 == 0o700
    assert path.parent.lstat().st_uid == os.geteuid()


@only_root
@pytest.mark.parametrize("name", _NAMES)
def test_another_user_cannot_connect(stand: Stand, name: str) -> None:
    """The folder keeps all other users out, and the run continues as always."""
    with _visit_socket(_find_socket_path(stand, name), _STRANGER) as printed:
        assert printed == ["may not connect"] * 6
        _run_fake_with_child(stand)


@pytest.fixture
def _open_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have temporary folders where every user may look: the place of the session may be closed to others."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # no other place is open to all
        Path(folder).chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


@only_root
@pytest.mark.usefixtures("_open_place")
@pytest.mark.parametrize("name", _NAMES)
def test_another_user_that_connects_is_refused(name: str) -> None:
    """If the folder is opened by mistake, the kernel's word on the connecting user counts before anything is read."""
    with ScenarioRunner() as runner, contextlib.closing(Stand(runner)) as stand:
        path = _find_socket_path(stand, name)
        path.parent.chmod(0o755)
        path.chmod(0o666)
        with _visit_socket(path, _STRANGER) as printed:
            assert "may not connect" not in printed
            _run_fake_with_child(stand)
        assert printed[-6:] == ["let go"] * 6


def test_a_process_that_says_nothing_or_nonsense_stops_nobody(stand: Stand) -> None:
    """Another process of the same user may connect: the hub does not wait for it, and its bytes are not decoded."""
    with _visit_socket(_find_socket_path(stand)) as printed:
        assert printed == []
        _run_fake_with_child(stand)


def test_nothing_is_decoded_without_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that reads marshal trusts its input; the descriptor that came with it is closed again."""
    decoded: list[bytes] = []
    monkeypatch.setattr(wire, "decode_hello_message", decoded.append)
    with contextlib.closing(HubListener()) as door:
        door.choose_socket_folder(str(tmp_path))
        door.open()
        before = list_open_descriptors()
        with _visit_socket(Path(os.fsdecode(door.address))) as printed:
            assert printed == []
            assert list(door.receive_hellos({b"T" * 16})) == []
            assert len(list_open_descriptors()) == len(before) + 3, (
                "two pipes to the visitor, and its one link that is silent"
            )
    assert decoded == []


def test_a_process_that_stays_silent_is_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent links are not collected for ever."""
    with contextlib.closing(HubListener()) as door:
        door.choose_socket_folder(str(tmp_path))
        door.open()
        before = list_open_descriptors()
        with _visit_socket(Path(os.fsdecode(door.address))):
            assert list(door.receive_hellos(())) == []
            monkeypatch.setattr(_door, "_HELLO_TIMEOUT_SECONDS", -1.0)
            with _visit_socket(Path(os.fsdecode(door.address))):
                assert list(door.receive_hellos(())) == []
                assert len(list_open_descriptors()) == len(before) + 4, "no link is kept"


def test_a_hello_may_come_late(tmp_path: Path) -> None:
    """A fake that is stopped between its connection and its hello takes part once it is continued."""
    with (
        contextlib.closing(HubListener()) as door,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link,
    ):
        door.choose_socket_folder(str(tmp_path))
        door.open()
        link.connect(door.address)
        assert list(door.receive_hellos({b"t" * 16})) == []
        message = wire.encode_hello_message(b"t" * 16, 7, 1, "helper", 3)
        socket.send_fds(link, [message], [0])
        [hello] = door.receive_hellos({b"t" * 16})
        hello.link.close()
        os.close(hello.stage)
        assert (hello.pid, hello.token, hello.fields) == (os.getpid(), b"t" * 16, (7, 1, "helper", 3))


@pytest.mark.parametrize("umask", [0o077, 0o277], ids=oct)
def test_a_folder_with_a_long_path_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int) -> None:
    """A path of more than 107 bytes is no address: both ends go through the folder's descriptor."""
    folder = tmp_path / ("long name " * 15)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    was = os.umask(umask)
    try:
        with ScenarioRunner() as runner:
            stand = Stand(runner, guard=CEILING)
            path = _find_socket_path(stand)
            assert len(bytes(path)) > 107
            _run_fake_with_child(stand)
            stand.close()
            assert not path.exists(), "the socket goes with its clock"
    finally:
        os.umask(was)
