"""A fake's life: hold the lifeline, say hello, play. Owns the order of things; the player decides, the stage acts.

With a hub every step waits for a grant and the instants are the hub's. Without one it keeps time itself (`realtime`). A
fake that has a hub and a diary finds out at its start: it is in real time if no virtual run lets it in.
"""

from __future__ import annotations

import _signal
import _socket
import fcntl
import marshal
import posix
import select
import sys

from pytest_agentproc.fake_agents import birth, wire
from pytest_agentproc.fake_agents.dialects import make_encoder
from pytest_agentproc.fake_agents.player import Endless, Player, Unplayable
from pytest_agentproc.fake_agents.program import make_invocation
from pytest_agentproc.fake_agents.stage import (
    CHILDREN,
    Reborn,
    Stage,
    settle_signals,
    stop_process,
    unblock_signals,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program

    Born = tuple[int, int, dict[str, Any], Program]
    """Parent pid and child index (0 and -1: a root agent), what the spawn step says, and the program."""

_F_SETSIG = 10
_BROKEN = 70
"""The exit code of a fake that failed by itself, or that has nobody to live for."""
_HIGH = 200
"""Our own descriptors live up here, out of the way of what a scenario or a client does with low numbers."""


def main(path: str) -> None:
    """Play the baked program at `path`: the kit's launcher has written its content."""
    with open(path, "rb", 0) as file:
        baked: dict[str, Any] = marshal.loads(file.read())
    play(baked, path)


def play(baked: dict[str, Any], path: str) -> None:
    """Play a baked program; counts over several starts are kept beside `path`."""
    settle_signals()
    try:
        state = birth.read_handed_state()
        born = _begin_agent(baked, path) if state is None else _continue_descendant(baked, state)
        while True:
            try:
                _play_on_clock(baked, *born)
            except Reborn as reborn:
                born = reborn.parent, reborn.index, reborn.fields, reborn.program
            _become_descendant(baked, *born)
    except Exception as error:  # noqa: BLE001  # whatever it is, the agent of the scenario did not do it
        _report_fault(baked, error)
        posix._exit(_BROKEN)


def _report_fault(baked: dict[str, Any], error: Exception) -> str:
    """Write what broke, and at which step, where the kit looks for it; without the kit, on stderr. Give the words."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    is_endless = isinstance(error, Endless)
    words = str(error)
    if not isinstance(error, Unplayable) and trace is not None:
        file = trace.tb_frame.f_code.co_filename.rpartition("/")[2]
        words = f"{type(error).__name__}: {error} ({file}:{trace.tb_lineno})"
    line, step = vars(error).get("step", (0, ""))
    if "faults" in baked:
        number = posix.open(baked["faults"], posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600)
        entry = f"{line}\t{step}\t{is_endless:d}\t{' '.join(words.split())}\n"
        posix.write(number, entry.encode("utf-8", "replace"))
        posix.close(number)
    told = f"line {line}, step {step}: {words}" if line else words
    if "faults" not in baked:
        posix.write(2, f"agentproc: the fake agent itself failed: {told}\n".encode("utf-8", "replace"))
    return told


def _begin_agent(baked: dict[str, Any], path: str) -> Born:
    """Begin as the agent itself, unless the arguments only ask what is installed, or are for another fake."""
    told = baked["probes"].get(tuple(sys.argv[1:]))
    if told is not None:
        try:
            posix.write(1 if posix.isatty(0) else told[0], told[1])
        finally:  # a program that asks on the side may have ended before the answer
            posix._exit(0)
    for pattern, other in baked.get("instead", ()):
        from pytest_agentproc.fake_agents.glob import matches_in_order

        if matches_in_order(pattern, sys.argv[1:]):
            posix.execv(other, [other, *sys.argv[1:]])
    program = {**baked["program"], "argv": sys.argv[1:], "environ": posix.environ}
    if "then" in program:
        program = make_invocation(program, _count_invocation(path + ".count"))
    table = baked.get("flags")
    if table is not None and sys.argv[1:] != table["own"]:
        program = _apply_arguments(program, table, path + ".sessions")
    if baked["lifeline"]:
        _hold_lifeline(baked["lifeline"])
    if "guard" in baked:
        from pytest_agentproc.fake_agents import guard

        guard.begin_guard(*baked["guard"])
    return 0, -1, {"id": program["name"], "line": 0}, program


def _apply_arguments(program: Program, table: dict[str, Any], path: str) -> Program:
    """Give the program that the arguments ask for."""
    from pytest_agentproc.fake_agents import flags

    sessions = _Sessions(path)
    program, named = flags.apply_arguments(program, table, sessions)
    sessions.close(named)
    return program


class _Sessions:
    """The sessions that earlier starts have named, in a file. It is opened, and locked, when the first is looked up."""

    # Most starts have no session in their arguments. They must not need the file: the folder may be read-only, or
    # another user's.

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = -1
        self._names: list[str] = []

    def __contains__(self, name: object) -> bool:
        """Say whether an earlier start has named it."""
        if self._number < 0:
            self._number = posix.open(
                self._path, posix.O_RDWR | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600
            )
            fcntl.flock(self._number, fcntl.LOCK_EX)
            self._names = posix.read(self._number, posix.fstat(self._number).st_size).decode().split("\n")
        return name in self._names

    def close(self, named: str) -> None:
        """Add the session that this start names, if it names one, and let the next start look."""
        if self._number >= 0:
            posix.write(self._number, f"{named}\n".encode() if named else b"")
            posix.close(self._number)


def _continue_descendant(baked: dict[str, Any], state: tuple[Any, ...]) -> Born:
    """Go on as the descendant that executed this image; it holds its lifeline already."""
    parent, index, fields, program, lifeline, position, guarded = state
    if guarded is not None:
        from pytest_agentproc.fake_agents import guard

        guard.renew_guard(guarded)
    if lifeline is not None:
        _lifelines.append(_socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, lifeline))
        posix.set_inheritable(lifeline, False)
    if position is not None:
        from pytest_agentproc.fake_agents import realtime

        baked["hub"] = b""
        realtime.restore_position(position, baked)
    return parent, index, fields, program


def _become_descendant(
    baked: dict[str, Any], parent: int, index: int, fields: dict[str, Any], program: Program
) -> None:
    """Begin as a descendant: hold a lifeline, and let go of what the fork inherited and it is not to have."""
    settle_signals()
    birth.keep_streams(fields["inherits"])
    while CHILDREN:
        CHILDREN.pop().let_go()
    if baked["lifeline"]:
        _hold_lifeline(baked["lifeline"])
    held = [line.fileno() for line in _lifelines]
    if "guard" in baked:
        from pytest_agentproc.fake_agents import guard

        guard.renew_guard()
    held += _find_harness(baked)
    if fields.get("closed_fds"):
        birth.close_inherited(held)
    if fields.get("subreaper"):
        birth.become_subreaper()
    if fields.get("clear_env"):
        _execute_again(baked, (parent, index, fields, program))


def _execute_again(baked: dict[str, Any], born: Born) -> None:
    lifeline = position = guarded = None
    if "guard" in baked:
        from pytest_agentproc.fake_agents import guard

        guarded = guard.read_state()
    if _lifelines:
        lifeline = _lifelines[0].fileno()
        posix.set_inheritable(lifeline, True)
    if not baked["hub"]:
        from pytest_agentproc.fake_agents import realtime

        position = realtime.read_position()
    birth.execute_again((*born, lifeline, position, guarded))


def _count_invocation(path: str) -> int:
    """Say which invocation this is, from 1: the file has a byte for each, and one comes after the other."""
    counter = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600)
    fcntl.flock(counter, fcntl.LOCK_EX)
    posix.write(counter, b".")
    number = posix.lseek(counter, 0, 2)
    posix.close(counter)
    return number


def _play_on_clock(baked: dict[str, Any], parent: int, index: int, fields: dict[str, Any], program: Program) -> None:
    if baked["hub"]:
        _play_in_virtual_time(baked, parent, index, fields, program)
        if index >= 0 or not baked.get("diary"):
            posix._exit(_BROKEN)
        baked["hub"] = b""
    if not baked["hub"]:
        from pytest_agentproc.fake_agents import realtime

        realtime.play(baked, parent, index, fields, program, _find_harness(baked))


def _find_harness(baked: dict[str, Any]) -> list[int]:
    """Give the descriptor that is readable once the harness has ended; none if this fake ends with no harness."""
    if "guard" not in baked:
        return []
    from pytest_agentproc.fake_agents import guard

    return guard.list_descriptors()


def _play_in_virtual_time(
    baked: dict[str, Any], parent: int, index: int, fields: dict[str, Any], program: Program
) -> None:
    """Play in virtual time; return if there is no virtual run, or if it ends before it lets this process in."""
    message = wire.encode_hello(baked["token"], parent, index, fields["id"], fields["line"])
    try:
        link = _connect(baked["hub"])
        is_seen = parent == 0 and posix.getppid() == baked["host"]
        stage = _make_stage(link, parent, baked["foreign"], is_seen=is_seen)
        descriptor = stage.epoll.fileno().to_bytes(4, "little")
        link.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptor)])
    except (ConnectionError, FileNotFoundError):
        return
    _ring_at(link)
    player = Player(program, stage, make_encoder(program))  # the hub has its own work with a hello meanwhile
    stage.outlive_children()
    unblock_signals()
    if fields.get("stopped"):
        stop_process()
    try:
        _play_by_grants(player, stage, link)
    except Reborn:
        stage.epoll.close()  # the parent's, inherited by its fork
        link.close()
        raise
    except Exception as error:  # noqa: BLE001  # see `play`; the hub hears of it at once
        broken = ("q", {"broken": _report_fault(baked, error)})
        link.send(wire.encode_notes("B", [*stage.take_notes(), broken]))
        posix._exit(_BROKEN)


def _make_stage(link: _socket.socket, parent: int, foreign: Sequence[tuple[int, int]], *, is_seen: bool) -> Stage:
    """Give a stage whose words go to the hub, its death among them unless the hub's process sees that as its parent."""

    def send(form: str, notes: list[Any]) -> None:
        link.send(wire.encode_notes(form, notes))

    def tell_death(signum: int, notes: list[Any]) -> None:
        link.send(wire.encode_death(signum, notes))

    return Stage(send, None if is_seen else tell_death, parent, foreign)


def _ring_at(link: _socket.socket) -> None:
    """Have each signal that is caught from now on told at once, by the C code that takes it: one byte, `wire`'s wake.

    A handler in Python comes too late: the signal may arrive after the last look at earlier signals and before the call
    that waits. Then it is noticed only at the next grant.
    """
    link.setblocking(False)  # Python asks for this, where a write that cannot be done at once is to be lost
    _signal.set_wakeup_fd(link.fileno(), warn_on_full_buffer=False)
    link.setblocking(True)


def _play_by_grants(player: Player, stage: Stage, link: _socket.socket) -> None:
    receive, send, take, load = link.recv, link.send, stage.take_notes, wire.decode_grant
    while True:
        try:
            message = receive(16)
        except ConnectionError:
            message = b""
        if not message:
            if player.grants:
                posix._exit(_BROKEN)
            return
        now, ready = load(message)
        events = stage.epoll.poll(0) if ready else []
        player.grant(now, stage.take_signals(), readable=stage.can_read_stdin(events))
        wants = player.wants
        until = now if stage.watch_streams(wants) else player.until
        send(wire.encode_wait(until, wants, take()))


def _connect(address: bytes) -> _socket.socket:
    """Connect, on a descriptor that no script and no client closes."""
    low = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    if len(address) <= wire.LONGEST_ADDRESS:
        low.connect(address)
    else:
        _connect_through_folder(low, address)
    high = fcntl.fcntl(low.fileno(), fcntl.F_DUPFD_CLOEXEC, _HIGH)
    low.close()
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, high)


def _connect_through_folder(line: _socket.socket, address: bytes) -> None:
    """Connect to a socket whose path is too long for an address."""
    folder, _, name = address.rpartition(b"/")
    number = posix.open(folder, posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC)
    line.connect(b"/proc/self/fd/%d/%s" % (number, name))
    posix.close(number)


_lifelines: list[_socket.socket] = []


def _hold_lifeline(address: bytes) -> None:
    """Die by SIGKILL, whatever we do, once the other end has closed: the kernel sends it."""
    for inherited in _lifelines:
        inherited.close()
    line = _connect(address)
    fcntl.fcntl(line.fileno(), fcntl.F_SETOWN, posix.getpid())
    fcntl.fcntl(line.fileno(), _F_SETSIG, 9)
    fcntl.fcntl(line.fileno(), fcntl.F_SETFL, fcntl.fcntl(line.fileno(), fcntl.F_GETFL) | posix.O_ASYNC)
    _lifelines[:] = [line]
    broken = select.poll()
    broken.register(line, 0)
    if broken.poll(0):  # it broke before the signal was asked for, and would never come
        posix._exit(70)
