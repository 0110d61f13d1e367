"""The lifeline broker: a process of its own that outlives the program under test. Standard library only; run by path.

Every fake holds a connection to it under O_ASYNC with SIGKILL as its signal. When this process ends, or closes a line,
the kernel kills that fake, even if it ignores signals, spins or is stopped. The broker ends when the harness ends. It
closes each line after a hard real-time lifetime, and notes that in the file `expired` of the harness's folder. While
somebody debugs, which the file `debugged` there says, no lifetime ends. When a line breaks, its fake is dead: the
broker notes pid and time in the file `deaths`, since no other process can see the end of an orphan. A harness that was
killed leaves its folder: the broker removes it.
Descriptor 0 is the listening socket, at a path in that folder, which only this user can enter. The arguments are the
harness's pid, the lifetime in seconds, and the folder.

If somebody has stopped the broker, the kernel continues it when the harness dies. (SIGKILL would leave the folder.)
"""

from __future__ import annotations

import _ctypes
import os
import select
import socket
import sys
import time

PR_SET_PDEATHSIG, SIGCONT = 1, 18


def main() -> None:
    """Hold lines until the harness is dead."""
    harness, lifetime = int(sys.argv[1]), float(sys.argv[2])
    is_virtual, is_heard = read_clock_page()
    is_always_virtual = is_virtual and not is_heard
    lifetime = max(lifetime, 86_400.0) if is_always_virtual else lifetime  # see `realtime.choose_lifetime_ns`
    clock = time.monotonic if is_always_virtual else read_machine_time
    listener = socket.socket(fileno=0)
    continue_with_harness_end()
    try:
        pidfd = os.pidfd_open(harness)
    except ProcessLookupError:  # it was killed while this process started
        return
    if os.getppid() != harness:
        return
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(pidfd, select.POLLIN)
    lines: dict[int, tuple[socket.socket, float]] = {}
    try:
        deaths = os.open(f"{sys.argv[3]}/deaths", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except FileNotFoundError:  # the harness was interrupted meanwhile, and has removed its folder
        return
    while True:
        for number, _ in poll.poll(compute_poll_timeout([end for _, end in lines.values()])):
            if number == pidfd:
                return
            if number == listener.fileno():
                line, _address = listener.accept()
                if read_peer_credentials(line)[1] not in (
                    0,
                    os.geteuid(),
                ):  # the folder keeps other users out, and so do we
                    line.close()
                    continue
                lines[line.fileno()] = (line, clock() + lifetime)
                poll.register(line, select.POLLIN)
            else:
                os.write(deaths, b"%d %d\n" % (read_peer_credentials(lines[number][0])[0], time.monotonic_ns()))
                drop_lifeline(poll, lines, number)
        now = -1.0 if read_clock_page()[1] else clock()
        over = [number for number, (_, end) in lines.items() if end < now]
        for number in over if over and not os.access(f"{sys.argv[3]}/debugged", os.F_OK) else ():
            note_expiry(sys.argv[3], lifetime)
            drop_lifeline(poll, lines, number)


def continue_with_harness_end() -> None:
    """Have the kernel send CONT when the harness ends, or the thread of it that started this: one too many is none."""
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # `ctypes` is slow to load
    _ctypes.call_function(prctl, (PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0))


def read_machine_time() -> float:
    """Give the seconds of the machine's clock: the virtual hours of a test are no part of a lifetime."""
    try:
        return (
            time.clock_gettime(9) if "AGENTPROC_CLOCK" in os.environ else time.monotonic()
        )  # see `procfs.read_nanoseconds_since_boot`
    except OSError:
        return time.monotonic()


def compute_poll_timeout(ends: list[float]) -> float | None:
    """Give the milliseconds until a lifetime may end: in virtual time one wait, since each wait is a step of it."""
    is_virtual, is_heard = read_clock_page()
    if is_heard or not ends:
        return None
    return max(1000, (min(ends) - time.monotonic()) * 1000) if is_virtual else 1000


def read_clock_page() -> tuple[bool, bool]:
    """Say whether time is virtual now, and whether a test learns that it stands still, as `realtime` reads it."""
    try:
        with open(os.environ.get("AGENTPROC_CLOCK", ""), "rb", buffering=0) as page:  # noqa: PTH123  # slow to load
            found = page.read(20)[8:]
    except OSError:
        return False, False
    return found[:8] == b"\0\0\0\0\0\0\0\x80", found[8:] != bytes(4)


def note_expiry(folder: str, lifetime: float) -> None:
    """Note that a fake is ended because it has lived too long: the death itself looks like any other KILL."""
    number = os.open(f"{folder}/expired", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(number, b"%d %g\n" % (time.monotonic_ns(), lifetime))
    os.close(number)


def read_peer_credentials(line: socket.socket) -> tuple[int, int]:
    """Give the pid and the user of the process at the other end, as the kernel noted them when it connected."""
    credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[:4], "little"), int.from_bytes(credentials[4:8], "little")


def drop_lifeline(poll: select.poll, lines: dict[int, tuple[socket.socket, float]], number: int) -> None:
    """Let one line go: its fake is dead, or has lived too long."""
    poll.unregister(number)
    lines.pop(number)[0].close()


def remove_folder(folder: str) -> None:
    """Remove a folder in which the harness's other processes may write until they are ended, too."""
    import shutil  # seldom needed, and slow to load

    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):  # noqa: PTH110  # slow to load
            return
        time.sleep(0.05)


if __name__ == "__main__":
    with open("/proc/self/comm", "w") as name:  # noqa: PTH123  # slow to load
        name.write("lifeline-broker")  # by this the coordinator of virtual time knows it, and ends it last
    try:
        main()
    finally:
        if os.getppid() != int(sys.argv[1]):  # else a signal ended us, and the harness still needs its folder
            remove_folder(sys.argv[3])
