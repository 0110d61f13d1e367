"""A fake's life: hold the lifeline, say hello, play. Owns the order of things; the player decides, the stage acts.

With a hub every step waits for a grant and the instants are the hub's. Without one it keeps time itself (`realtime`). A
fake that has a hub and a log finds out at its start: it is in real time if no virtual run lets it in.
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
from pytest_agentproc.fake_agents.player import FAULT_EXIT_CODE, EndlessStep, ScriptPlayer, UnplayableScript
from pytest_agentproc.fake_agents.program import make_invocation_program
from pytest_agentproc.fake_agents.stage import (
    STARTED_PROGRAMS,
    ForkedChildStart,
    SideEffectStage,
    reset_signal_handlers,
    stop_this_process,
    unblock_all_signals,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program

    ProcessOrigin = tuple[int, int, dict[str, Any], Program]
    """Parent pid and child index (0 and -1: a root agent), what the spawn step says, and the program."""

_F_SETSIG = 10
_FIRST_OWN_DESCRIPTOR = 200
"""Our own descriptors live up here, out of the way of what a scenario or a client does with low numbers."""


def main(path: str) -> None:
    """Play the baked program at `path`: the kit's launcher has written its content."""
    try:
        with open(path, "rb", 0) as file:
            baked: dict[str, Any] = marshal.loads(file.read())
    except FileNotFoundError:  # the harness was killed meanwhile, and its files were removed
        posix._exit(FAULT_EXIT_CODE)
    play_baked_program(baked, path)


def play_baked_program(baked: dict[str, Any], path: str) -> None:
    """Play a baked program; counts over several starts are kept beside `path`."""
    reset_signal_handlers()
    try:
        state = birth.read_state_after_reexecution()
        born = _begin_root_agent(baked, path) if state is None else _resume_descendant_after_exec(baked, state)
        while True:
            try:
                _play_program_on_its_clock(baked, *born)
            except ForkedChildStart as reborn:
                born = reborn.parent, reborn.index, reborn.fields, reborn.program
            _set_up_descendant(baked, *born)
    except Exception as error:  # noqa: BLE001  # whatever it is, the agent of the scenario did not do it
        _report_own_fault(baked, error)
        posix._exit(FAULT_EXIT_CODE)


def _report_own_fault(baked: dict[str, Any], error: Exception) -> str:
    """Write what broke, and at which step, where the kit looks for it; without the kit, on stderr. Give the words."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    kind = "endless" if isinstance(error, EndlessStep) else "script" if isinstance(error, UnplayableScript) else "own"
    kind = getattr(error, "asked", kind)
    words = str(error)
    if kind == "own" and trace is not None:
        file = trace.tb_frame.f_code.co_filename.rpartition("/")[2]
        words = f"{type(error).__name__}: {error} ({file}:{trace.tb_lineno})"
    line, step = vars(error).get("step", (0, ""))
    if "faults" in baked:
        number = posix.open(baked["faults"], posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600)
        entry = f"{line}\t{step}\t{kind}\t{' '.join(words.split())}\n"
        posix.write(number, entry.encode("utf-8", "replace"))
        posix.close(number)
    text = f"line {line}, step {step}: {words}" if line else words
    if "faults" not in baked:
        what = "the fake agent itself failed" if kind == "own" else "this fake agent cannot play its script"
        posix.write(2, f"agentproc: {what}: {text}\n".encode("utf-8", "replace"))
    return text


def _begin_root_agent(baked: dict[str, Any], path: str) -> ProcessOrigin:
    """Begin as the agent itself, unless the arguments only ask what is installed, or are for another fake."""
    probe_answer = baked["probes"].get(tuple(sys.argv[1:]))
    if probe_answer is not None:
        try:
            posix.write(1 if posix.isatty(0) else probe_answer[0], probe_answer[1])
        finally:  # a program that asks on the side may have ended before the answer
            posix._exit(0)
    for pattern, other in baked.get("instead", ()):
        from pytest_agentproc.fake_agents.glob import has_matching_words_in_order

        if has_matching_words_in_order(pattern, sys.argv[1:]):
            posix.execv(other, [other, *sys.argv[1:]])
    program = {**baked["program"], "argv": sys.argv[1:], "environ": posix.environ}
    if "then" in program:
        program = make_invocation_program(program, _count_invocation(path + ".count"))
    if posix.isatty(0):  # no CLI takes the words of a terminal for more of a prompt
        program["steps"] = [step for step in program["steps"] if step[1] != "read_stdin"]
    table = baked.get("flags")
    if table is not None:
        program = _adapt_program_to_arguments(program, table, path + ".sessions")
    if baked["lifeline"]:
        _connect_to_lifeline(baked["lifeline"])
    if "guard" in baked:
        from pytest_agentproc.fake_agents import guard

        guard.start_lifetime_guard(*baked["guard"])
    return 0, -1, {"id": program["name"], "line": 0}, program


def _adapt_program_to_arguments(program: Program, table: dict[str, Any], path: str) -> Program:
    """Give the program that the arguments ask for."""
    is_own = sys.argv[1:] == table["own"]
    if is_own and not table["kept_below"]:
        return program
    from pytest_agentproc.fake_agents import flags

    kept, names, named = flags.find_kept_sessions(table, sys.argv[1:]), _SessionNamesFile(path), ""
    if not is_own:
        program, named = flags.adapt_program_to_arguments(
            program, table, names if kept is None else kept, has_own_session=kept is None
        )
    if kept is not None:
        program = flags.choose_session(program, table, kept, names)
        named = (program.get("session") or {}).get("path", "")  # no start beside this one begins the same file
    names.save_name_and_close(named)
    return program


class _SessionNamesFile:
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

    def save_name_and_close(self, named: str) -> None:
        """Add the session that this start names, if it names one, and let the next start look."""
        if self._number >= 0:
            posix.write(self._number, f"{named}\n".encode() if named else b"")
            posix.close(self._number)


def _resume_descendant_after_exec(baked: dict[str, Any], state: tuple[Any, ...]) -> ProcessOrigin:
    """Go on as the descendant that executed this image; it holds its lifeline already."""
    parent, index, fields, program, lifeline, position, guarded = state
    if guarded is not None:
        from pytest_agentproc.fake_agents import guard

        guard.renew_lifetime_guard(guarded)
    if lifeline is not None:
        _lifeline_sockets.append(_socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, lifeline))
        posix.set_inheritable(lifeline, False)
    if position is not None:
        from pytest_agentproc.fake_agents import realtime

        baked["hub"] = b""
        realtime.restore_fake_clock_position(position, baked)
    return parent, index, fields, program


def _set_up_descendant(
    baked: dict[str, Any], parent: int, index: int, fields: dict[str, Any], program: Program
) -> None:
    """Begin as a descendant: hold a lifeline, and let go of what the fork inherited and it is not to have."""
    reset_signal_handlers()
    birth.keep_only_streams(fields["inherits"])
    while STARTED_PROGRAMS:
        STARTED_PROGRAMS.pop().close_inherited_pipes()
    if baked["lifeline"]:
        _connect_to_lifeline(baked["lifeline"])
    held = [line.fileno() for line in _lifeline_sockets]
    if "guard" in baked:
        from pytest_agentproc.fake_agents import guard

        guard.renew_lifetime_guard()
    held += _list_harness_descriptors(baked)
    if fields.get("closed_fds"):
        birth.close_descriptors_except(held)
    if fields.get("subreaper"):
        birth.become_subreaper()
    if fields.get("clear_env"):
        _reexecute_descendant(baked, (parent, index, fields, program))


def _reexecute_descendant(baked: dict[str, Any], born: ProcessOrigin) -> None:
    lifeline = position = guarded = None
    if "guard" in baked:
        from pytest_agentproc.fake_agents import guard

        guarded = guard.read_guard_state()
    if _lifeline_sockets:
        lifeline = _lifeline_sockets[0].fileno()
        posix.set_inheritable(lifeline, True)
    if not baked["hub"]:
        from pytest_agentproc.fake_agents import realtime

        position = realtime.read_fake_clock_position()
    birth.reexecute_without_environment((*born, lifeline, position, guarded))


def _count_invocation(path: str) -> int:
    """Say which invocation this is, from 1: the file has a byte for each, and one comes after the other."""
    counter = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600)
    fcntl.flock(counter, fcntl.LOCK_EX)
    posix.write(counter, b".")
    number = posix.lseek(counter, 0, 2)
    posix.close(counter)
    return number


def _play_program_on_its_clock(
    baked: dict[str, Any], parent: int, index: int, fields: dict[str, Any], program: Program
) -> None:
    early: Callable[[], list[int]] = list
    if baked["hub"]:
        early = _play_program_in_virtual_time(baked, parent, index, fields, program)
        if index >= 0 or not baked.get("log"):
            posix._exit(FAULT_EXIT_CODE)
        baked["hub"] = b""
    if not baked["hub"]:
        from pytest_agentproc.fake_agents import realtime

        realtime.play_program_in_real_time(
            baked, parent, index, fields, program, _list_harness_descriptors(baked), early
        )


def _list_harness_descriptors(baked: dict[str, Any]) -> list[int]:
    """Give the descriptor that is readable once the harness has ended; none if this fake ends with no harness."""
    if "guard" not in baked:
        return []
    from pytest_agentproc.fake_agents import guard

    return guard.list_harness_descriptors()


def _play_program_in_virtual_time(
    baked: dict[str, Any], parent: int, index: int, fields: dict[str, Any], program: Program
) -> Callable[[], list[int]]:
    """Play in virtual time; return if there is no virtual run, or if it ends before it lets this process in.

    Returns:
        What gives the signals that this process has caught so far.
    """
    message = wire.encode_hello_message(baked["token"], parent, index, fields["id"], fields["line"])
    try:
        link = _connect_on_own_descriptor(baked["hub"])
        is_seen = parent == 0 and posix.getppid() == baked["host"]
        stage = _make_virtual_stage(link, parent, baked["foreign"], is_seen=is_seen)
        descriptor = stage.epoll.fileno().to_bytes(4, "little")
        link.sendmsg([message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptor)])
    except (ConnectionError, FileNotFoundError):
        return list
    _send_byte_on_signal(link)
    player = ScriptPlayer(program, stage, make_encoder(program))  # the hub has its own work with a hello meanwhile
    stage.end_children_on_fatal_signals()
    unblock_all_signals()
    if fields.get("stopped"):
        stop_this_process()
    try:
        _play_program_by_hub_grants(player, stage, link)
    except ForkedChildStart:
        stage.close_after_fork()  # the parent's, inherited by its fork
        link.close()
        raise
    except Exception as error:  # noqa: BLE001  # see `play_baked_program`; the hub hears of it at once
        broken = ("q", {"broken": _report_own_fault(baked, error)})
        _send_unless_closed(link, wire.encode_notes_message("B", [*stage.take_unsent_notes(), broken]))
        posix._exit(FAULT_EXIT_CODE)
    _signal.set_wakeup_fd(-1)  # a signal at a closed socket would be told on stderr
    return stage.take_caught_signals


def _send_unless_closed(link: _socket.socket, message: bytes) -> None:
    """Send to the hub, unless its virtual time has ended meanwhile: the next word that is awaited of it shows that."""
    try:  # noqa: SIM105  # this is done at every step, and an import would be paid for at each start
        link.send(message)
    except ConnectionError:
        pass


def _make_virtual_stage(
    link: _socket.socket, parent: int, foreign: Sequence[tuple[int, int]], *, is_seen: bool
) -> SideEffectStage:
    """Give a stage whose words go to the hub, its death among them unless the hub's process sees that as its parent."""

    def send_notes(form: str, notes: list[Any]) -> None:
        _send_unless_closed(link, wire.encode_notes_message(form, notes))

    def report_death(signum: int, notes: list[Any]) -> None:
        _send_unless_closed(link, wire.encode_death_message(signum, notes))

    return SideEffectStage(send_notes, None if is_seen else report_death, parent, foreign)


def _send_byte_on_signal(link: _socket.socket) -> None:
    """Have each signal that is caught from now on told at once, by the C code that takes it: one byte, `wire`'s wake.

    A handler in Python comes too late: the signal may arrive after the last look at earlier signals and before the call
    that waits. Then it is noticed only at the next grant.
    """
    link.setblocking(False)  # Python asks for this, where a write that cannot be done at once is to be lost
    _signal.set_wakeup_fd(link.fileno(), warn_on_full_buffer=False)
    link.setblocking(True)


def _play_program_by_hub_grants(player: ScriptPlayer, stage: SideEffectStage, link: _socket.socket) -> None:
    receive, take, load = link.recv, stage.take_unsent_notes, wire.decode_grant_message
    while True:
        try:
            message = receive(16)
        except ConnectionError:
            message = b""
        if not message:
            if player.grants:
                posix._exit(FAULT_EXIT_CODE)
            return
        now, ready = load(message)
        events = stage.epoll.poll(0) if ready else []
        player.run_until_parked(now, stage.take_caught_signals(), readable=stage.can_read_stdin(events))
        wants = player.wanted_streams
        until = now if stage.watch_streams(wants) else player.earliest_wake_instant
        _send_unless_closed(link, wire.encode_wait_message(until, wants, take()))


def _connect_on_own_descriptor(address: bytes) -> _socket.socket:
    """Connect, on a descriptor that no script and no client closes."""
    low = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    if len(address) <= wire.MAX_SOCKET_ADDRESS_BYTES:
        low.connect(address)
    else:
        _connect_to_long_path(low, address)
    high = fcntl.fcntl(low.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN_DESCRIPTOR)
    low.close()
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, high)


def _connect_to_long_path(line: _socket.socket, address: bytes) -> None:
    """Connect to a socket whose path is too long for an address."""
    folder, _, name = address.rpartition(b"/")
    number = posix.open(folder, posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC)
    line.connect(b"/proc/self/fd/%d/%s" % (number, name))
    posix.close(number)


_lifeline_sockets: list[_socket.socket] = []


def _connect_to_lifeline(address: bytes) -> None:
    """Die by SIGKILL, whatever we do, once the other end has closed: the kernel sends it."""
    for inherited in _lifeline_sockets:
        inherited.close()
    line = _connect_on_own_descriptor(address)
    fcntl.fcntl(line.fileno(), fcntl.F_SETOWN, posix.getpid())
    fcntl.fcntl(line.fileno(), _F_SETSIG, 9)
    fcntl.fcntl(line.fileno(), fcntl.F_SETFL, fcntl.fcntl(line.fileno(), fcntl.F_GETFL) | posix.O_ASYNC)
    _lifeline_sockets[:] = [line]
    broken = select.poll()
    broken.register(line, 0)
    if broken.poll(0):  # it broke before the signal was asked for, and would never come
        posix._exit(70)
