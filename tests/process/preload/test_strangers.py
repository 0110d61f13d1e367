"""Programs that virtual time cannot reach are named, and time passes as on the machine while they live."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tests.process.preload.stand import LIMIT, require_program, run_in_virtual_time

if TYPE_CHECKING:
    from pathlib import Path

UNREACHABLE = (
    "time passes as on the machine while {} (pid N) lives: "
    "it is a setuid or 32-bit program, or one that may not be traced, which virtual time cannot reach"
)
CONNECTED = "time passes as on the machine while node (pid N) is connected to"
AT_ONCE = """\
#define _GNU_SOURCE
#include <time.h>
#include <sys/syscall.h>
int main(void) {
  struct timespec time = {1, 0};
  long result, place = (long)&time;
  __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_nanosleep), "D"(place), "S"(0L) : "rcx", "r11", "memory");
  return (int)result;
}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="it is written in the machine's language")
def test_a_library_with_system_calls_of_its_own_is_named(tmp_path: Path) -> None:
    """The program is an ordinary one; what it loads calls the kernel past libc: nothing else would say so."""
    (tmp_path / "caller.c").write_text(AT_ONCE.replace("main", "nap"))
    (tmp_path / "program.c").write_text("int nap(void);\nint main(void) { return nap(); }\n")
    library, cc = tmp_path / "libcaller.so", require_program("cc")
    subprocess.run([cc, "-shared", "-fPIC", tmp_path / "caller.c", "-o", library], check=True, timeout=LIMIT)
    words = [cc, str(tmp_path / "program.c"), str(library), "-o", str(tmp_path / "caller")]
    subprocess.run(words, check=True, timeout=LIMIT)
    run = run_in_virtual_time(tmp_path / "caller")
    assert run.notes == [
        "time passes as on the machine while caller (pid N) lives: a library in it makes system calls of its own"
    ]
    assert 0.25 <= float(run.virtual) < 20  # what passed before the wait was seen is not counted


ARMS = """\
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/timerfd.h>
int arm(int timer) {
  struct itimerspec when = {{0, 0}, {1, 0}};
  long result;
  register long r10 __asm__("r10") = 0;
  __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_timerfd_settime), "D"((long)timer), "S"(0L), "d"(&when), "r"(r10)
                   : "rcx", "r11", "memory");
  return (int)result;
}
"""
WAITS_FOR_TIMER = """\
#include <poll.h>
#include <sys/timerfd.h>
int arm(int);
int main(void) {
  struct pollfd timer = {timerfd_create(CLOCK_MONOTONIC, 0), POLLIN, 0};
  arm(timer.fd);
  return poll(&timer, 1, 180000) != 1;
}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="it is written in the machine's language")
def test_a_timerfd_that_a_library_arms_by_itself_is_named(tmp_path: Path) -> None:
    """The kernel lets it run out. The program's own limit of 180 s was over before, and nothing said so."""
    (tmp_path / "arms.c").write_text(ARMS)
    (tmp_path / "program.c").write_text(WAITS_FOR_TIMER)
    library, cc = tmp_path / "libarms.so", require_program("cc")
    subprocess.run([cc, "-shared", "-fPIC", tmp_path / "arms.c", "-o", library], check=True, timeout=LIMIT)
    words = [cc, str(tmp_path / "program.c"), str(library), "-o", str(tmp_path / "waiter")]
    subprocess.run(words, check=True, timeout=LIMIT)
    run = run_in_virtual_time(tmp_path / "waiter")
    begin = "time passes as on the machine while waiter (pid N) waits for a timerfd that a library has armed"
    assert (run.code, run.notes) == (0, [f"{begin} by a system call of its own"])
    assert 0.25 <= float(run.virtual) < 20  # what passed before the wait was seen is not counted


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_a_setuid_program_is_named(tmp_path: Path) -> None:
    """The loader leaves LD_PRELOAD out of it."""
    program = tmp_path / "sleeper"
    shutil.copy(require_program("sleep"), program)
    os.chown(program, 65534, -1)
    program.chmod(0o4755)
    assert run_in_virtual_time(program, "0.3").notes == [UNREACHABLE.format("sleeper")]


def test_a_server_outside_is_named() -> None:
    """Its answer comes by the machine's clock: a limit of 180 s must not be over before it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_answer_one_connection, args=(server,))
        thread.start()
        port = server.getsockname()[1]
        script = f"const s = require('net').connect({port}, '127.0.0.1'); s.on('data', d => console.log(String(d)));"
        run = run_in_virtual_time(
            "node", "-e", f"{script} setTimeout(() => console.log('false timeout'), 180000).unref()"
        )
        thread.join()
    assert run.out == "answer\n"
    assert run.notes == [f"{CONNECTED} 127.0.0.1 port {port}, which is outside the command"]


ASKS_DAEMON = """
import socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect(sys.argv[1])
    asked.settimeout(180)
    print(asked.recv(100).decode())
"""


@pytest.mark.parametrize("name", ["daemon", "\0agentproc-daemon-{}"], ids=["path", "abstract"])
def test_a_unix_socket_of_a_daemon_outside_is_named(name: str, tmp_path: Path) -> None:
    """Its answer came after 0.3 s, and the limit of 180 s was over at once."""
    path = name.format(os.getpid()) if name[0] == "\0" else str(tmp_path / name)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        thread = threading.Thread(target=_answer_one_connection, args=(server,))
        thread.start()
        run = run_in_virtual_time(sys.executable, "-c", ASKS_DAEMON.replace("sys.argv[1]", repr(path)))
        thread.join()
    assert (run.out, run.code) == ("answer\n", 0)
    place = path.replace("\0", "@")
    [note] = run.notes
    assert note.endswith(f" waits for the Unix socket {place}, whose other end is outside the command")


def test_unix_sockets_within_the_command_are_nothing_from_outside(tmp_path: Path) -> None:
    """The daemon is started below the command: its half an hour is virtual."""
    daemon = (
        "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen();"
        " c = s.accept()[0]; time.sleep(100); c.sendall(b'answer')"
    )
    script = f'"$0" -c "{daemon}" "$2" & while ! [ -S "$2" ]; do sleep 1; done; sleep 1; "$0" -c "$1" "$2"'
    run = run_in_virtual_time("sh", "-c", script, sys.executable, ASKS_DAEMON, tmp_path / "daemon")
    assert (run.out, run.notes) == ("answer\n", [])


def test_a_socket_that_the_command_was_started_with_is_nothing_from_outside() -> None:
    """Node gives a child sockets in place of pipes."""
    near, far = socket.socketpair()
    with near, far:
        wait = "import select, sys; print(select.select([0], [], [], 3600))"
        run = run_in_virtual_time(sys.executable, "-c", wait, stdin=near)
    assert (run.out, run.notes, run.virtual) == ("([], [], [])\n", [], "3600")


def _answer_one_connection(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        threading.Event().wait(0.3)  # real time: it is outside
        connection.sendall(b"answer")


def test_a_read_from_outside_is_named() -> None:
    """No process waits for an instant, so nothing would ever be printed."""
    ends = os.pipe()
    timer = threading.Timer(1.5, os.close, [ends[1]])  # real time: it is outside
    timer.start()
    run = run_in_virtual_time("cat", stdin=ends[0])
    timer.join()
    os.close(ends[0])
    assert [note.partition(" pipe:")[0] for note in run.notes] == [
        "time stands still: nobody waits for an instant, only for something from outside: cat (pid N) reads"
    ]
