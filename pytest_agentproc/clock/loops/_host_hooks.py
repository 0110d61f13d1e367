"""Actions of the host that the hub must see at once: starting a process, sending a signal. Decides nothing.

It patches the standard library while a virtual clock runs. A start is a window: the caller waits from the entry of
`subprocess.Popen` until the child has said hello, or a fake below it has (the child is a shell then), or it is dead, or
it is neither. So a signal that follows a start meets a child that is ready. A program of the kit with `serves_host`
acts only while the host waits for its answer: the hub does not wait for it, and it is no agent.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock._debugger import is_guard_time_over
from pytest_agentproc.clock._wrappers import LONGEST_PROGRAM_SLEEP_SECONDS, SleepProof
from pytest_agentproc.errors import ClockError, ForeignProgram, Stall
from pytest_agentproc.foreign import read_attribute
from pytest_agentproc.interrupts import whole_block
from pytest_agentproc.originals import Popen, monotonic, which
from pytest_agentproc.procfs import read_command_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_agentproc.clock._hub import Hub
    from pytest_agentproc.clock._jump import SpawnPath


_unpatched_kill = os.kill  # as it is before a host is watched: what the kit does is no signal of the host


@whole_block
def watch_host(hub: Hub, launchers: set[str], allowed: set[str]) -> Iterator[None]:
    """Report starts and signals to the hub, and let fakes in, while the block runs.

    Args:
        hub: receives the reports.
        launchers: real paths of the executables that are fakes.
        allowed: names of other programs that the test starts on purpose; time is held while they run.
    """
    plain_init, programs = Popen.__init__, KnownPrograms(launchers, allowed)
    plain = {(os, "kill"): os.kill, (os, "killpg"): os.killpg, (signal, "pidfd_send_signal"): signal.pidfd_send_signal}

    def init(self: Popen[Any], *args: Any, **kwargs: Any) -> None:
        if read_attribute(self, "serves_host", default=False):
            plain_init(self, *args, **kwargs)
            return
        _refuse_program_named_like_fake(hub, programs, args, kwargs)
        # The path is numbered before the start, in the order of the calls. Pids and hellos come in the order of the
        # machine.
        path = hub.registry.number_next_root()
        plain_init(self, *args, **kwargs)
        hub.started[id(self)] = self  # no set: a derived class may have no hash
        _await_hello_or_end(hub, self.pid, path, programs)

    def wrap_signal_call(function: Any) -> Any:
        def wrapped(*args: Any) -> Any:
            # In `finally`: a signal that raises may have been delivered.
            try:
                return function(*args)
            finally:
                _settle_signals(hub)

        return wrapped

    Popen.__init__ = init  # type: ignore[method-assign]
    for (module, name), function in plain.items():
        setattr(module, name, wrap_signal_call(function))
    try:
        # The door is open only now: a fake that started earlier found it shut, and runs in real time.
        hub.registry.start_accepting_participants()
        yield
    finally:
        hub.registry.stop_accepting_participants()
        Popen.__init__ = plain_init  # type: ignore[method-assign]
        for (module, name), function in plain.items():
            setattr(module, name, function)
        if hub.fault is not None:
            end_started_processes(hub)


def _settle_signals(hub: Hub) -> None:
    try:
        hub.settle_signals()
    except ClockError as error:
        hub.abort_with(error)


def end_started_processes(hub: Hub) -> None:
    """End and reap the processes that the host started and has not reaped: after a fault nothing else does."""
    for process in tuple(hub.started.values()):
        # Without a fault only participants and their wrappers are ended. Other processes belong to the test: a declared
        # server that was ended here was a leak that `process_tree` never saw.
        if process.returncode is None and (hub.fault is not None or hub.registry.needs_clock(process.pid)):
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr) if hub.fault is not None else ():
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def await_started_child(hub: Hub, pid: int, programs: KnownPrograms) -> None:
    """Hold the window of a start that was not `subprocess`'s, once the process is there."""
    _await_hello_or_end(hub, pid, hub.registry.number_next_root(), programs)


class KnownPrograms:
    """The fakes and the declared programs.

    Args:
        launchers: real paths of the executables that are fakes.
        allowed: names of other programs that the test starts on purpose.
    """

    def __init__(self, launchers: set[str], allowed: set[str]) -> None:
        self.launchers = launchers
        self._allowed = allowed

    def find_allowed_name(self, command: list[str]) -> str:
        """Give the name by which a command was declared, its own or its script's; empty: it was not."""
        return next((name for name in _list_command_names(command) if name in self._allowed), "")

    def is_fake(self, command: list[str], folder: str) -> bool:
        """Say whether a running command is a fake: one of its first words leads to a launcher."""
        return any(os.path.realpath(os.path.join(folder, word)) in self.launchers for word in command[:4])

    def find_impostor_name(self, command: list[str]) -> str:
        """Give the name of a fake by which a command that is no fake is called, itself or as a script; empty: none."""
        names = {os.path.basename(launcher) for launcher in self.launchers}
        return next((name for name in _list_command_names(command) if name in names), "")

    def is_command_identified(self, command: list[str]) -> bool:
        """Say whether the words of a running command that is no fake say enough of it.

        It was declared; or it is called like a fake, and is a real CLI, which is to do nothing. A shell script says
        nothing yet, whatever it is called: it may be about to start a fake.
        """
        is_shell = os.path.basename(command[0]) in _SHELL_NAMES
        return bool(self.find_allowed_name(command) or (not is_shell and self.find_impostor_name(command)))


_SHELL_NAMES = ("ash", "bash", "dash", "ksh", "sh", "zsh")


def _list_command_names(command: list[str]) -> list[str]:
    """Give what a command is called: the name of its program, and that of the script that it runs."""
    return [os.path.basename(word) for word in (command[0], *(word for word in command[1:2] if os.sep in word))]


def _refuse_program_named_like_fake(
    hub: Hub, programs: KnownPrograms, args: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """Refuse to start a program that is called like a fake and is none: it may be a real CLI.

    It is refused before it runs. To look at it afterwards would be a race: it may have become a fake by then, or ended.

    Raises:
        ForeignProgram: it is such a program, and was not declared.
    """
    # A fake's name for another program means that the test's PATH is wrong, and it may be a real CLI. It must not
    # run for even a moment.
    given = args[0] if args else options.get("args")
    if not isinstance(given, list | tuple) or not given or options.get("shell"):
        return
    command = [os.fsdecode(word) for word in given[:2]]
    name = programs.find_impostor_name(command)
    if not name or programs.find_allowed_name(command):
        return
    found = [_find_program_path(word, options) for word in command]
    if any(found) and not any(os.path.realpath(word) in programs.launchers for word in found):
        refusal = ForeignProgram(
            f"{name!r} is called like a fake agent and is none, so it was not started\n{_describe_allow_remedy(name)}"
        )
        hub.abort_with(refusal)
        raise refusal


def _find_program_path(word: str, options: Mapping[str, Any]) -> str:
    """Give the path of a program or a script that is about to be started; empty: there is none."""
    if os.sep in word:
        return os.path.join(os.fsdecode(options.get("cwd") or ""), word)
    return which(word, path=(options.get("env") or os.environ).get("PATH", os.defpath)) or ""


def _describe_allow_remedy(name: str) -> str:
    """Say how a test declares a program that is no fake."""
    return f"declare it: @pytest.mark.virtual_time(allow=[{name!r}]) on the test, or virtual_clock.allow({name!r})"


_FIRST_LOOK_AFTER_MS = 4
"""Milliseconds until the first look at a silent child; a hello or an end is seen at once."""

_MAX_COMMAND_CHARS = 160
_NEXT_LOOK_AFTER_MS = 1
"""Milliseconds between later looks: the loop's own thread may have taken the hello, which wakes no other thread."""


def _await_hello_or_end(hub: Hub, pid: int, path: SpawnPath, programs: KnownPrograms) -> None:
    """Wait until a child, or a fake below it, has said hello, or it is dead, or is found to be neither fake nor shell.

    A program that ends by itself meanwhile is no trouble: no time has passed.
    """
    hub.registry.expect_hello(pid, path)
    pidfd = os.pidfd_open(pid)
    news = select.poll()
    news.register(pidfd, select.POLLIN)
    news.register(hub.registry.listen_fd, select.POLLIN)
    start = monotonic()
    is_fake, idle = False, _IdleTimer(SleepProof(pid, hub.registry.by_pid))
    try:
        while not hub.registry.is_known(pid):
            # Poll with a limit: in a start from another thread the loop's thread may have taken the hello, and nothing
            # wakes this one.
            found = [
                descriptor for descriptor, _ in news.poll(_NEXT_LOOK_AFTER_MS if is_fake else _FIRST_LOOK_AFTER_MS)
            ]
            if pidfd in found:
                hub.registry.stop_expecting_hello(pid)
                _settle_signals(hub)  # it may have been no fake, and have sent signals
                return
            if found:
                hub.poller.poll()
                continue
            # Before its exec a child shows the command of its parent, and right after it none at all: 30 of 60 looks
            # found none. So an empty command decides nothing.
            command, folder = ([], "") if is_fake else _read_command(pid)
            is_fake = is_fake or bool(command and folder and programs.is_fake(command, folder))
            is_other = bool(command) and not is_fake
            hub.turns += 1
            # A refusal after 4 ms was wrong on a loaded machine: a shell that was slow to start its fake failed one run
            # in 14. Only what a program does decides: it has to sleep, with all that it started, for a second.
            late = is_guard_time_over(start, hub.guard)
            if late or (is_other and (programs.is_command_identified(command) or idle.has_been_idle_long())):
                hub.registry.stop_expecting_hello(pid)
                if is_other:
                    _judge_foreign_program(hub, pid, command, path, programs)
                else:
                    words = " ".join(_read_command(pid)[0])[:_MAX_COMMAND_CHARS] or "a process"
                    _kill_child_and_wait(pid, hub.guard)
                    hub.abort_with(Stall(f"{words} (pid {pid}) was started, and no fake began within {hub.guard:g} s"))
                return
    finally:
        os.close(pidfd)


class _IdleTimer:
    """Whether a program that is no fake has been idle long enough, with all its descendants, to be no shell.

    The time begins anew whenever one of them has run. So a loaded machine, which lets no process run for a while,
    decides nothing: a process that waits for a core is not asleep.
    """

    def __init__(self, sleep: SleepProof) -> None:
        self._sleep = sleep
        self._proof: object = None
        self._since = 0.0

    def has_been_idle_long(self) -> bool:
        """Look; a process that starts a fake, or becomes one, is awake until then."""
        proof = self._sleep.proof if self._sleep.is_tree_asleep() else None
        now = monotonic()
        if proof is None or proof is not self._proof:
            self._proof, self._since = proof, now
            return False
        return now - self._since > LONGEST_PROGRAM_SLEEP_SECONDS


def _read_command(pid: int) -> tuple[list[str], str]:
    """Give argv and folder of a process; empty while the kernel has yet to lay them out, or when it is just going."""
    # Each start of a fake waits for this look, so it is not psutil's.
    try:
        return read_command_words(pid), os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return [], ""


def _kill_child_and_wait(pid: int, patience: float) -> None:
    """Kill an unreaped child, whose pid is still its own, and wait for its death before the host continues."""
    pidfd = os.pidfd_open(pid)
    _unpatched_kill(pid, signal.SIGKILL)
    gone = select.poll()
    gone.register(pidfd, select.POLLIN)
    gone.poll(patience * 1000)
    os.close(pidfd)


def _judge_foreign_program(hub: Hub, pid: int, command: list[str], path: SpawnPath, programs: KnownPrograms) -> None:
    if name := programs.find_allowed_name(command):
        hub.registry.wrappers.add(pid, path, name)
        return
    name = os.path.basename(command[0])
    _kill_child_and_wait(pid, hub.guard)
    words = f"{name!r} (pid {pid}) is no fake agent, and virtual time cannot see what it does"
    hub.abort_with(ForeignProgram(f"{words}\n{_describe_allow_remedy(name)}"))
