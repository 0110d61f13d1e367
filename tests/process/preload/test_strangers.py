"""Programs that virtual time cannot reach are named, and time passes as on the machine while they live."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from tests.process.preload.stand import require_program, run_in_virtual_time

if TYPE_CHECKING:
    from pathlib import Path

UNREACHABLE = (
    "time passes as on the machine while {} (pid N) lives: "
    "it is a static, musl or setuid program, which virtual time cannot reach"
)
CONNECTED = "time passes as on the machine while node (pid N) is connected to"
SLEEPER = "#include <unistd.h>\nint main(void) { return usleep(300000); }\n"
AT_ONCE = """\
#define _GNU_SOURCE
#include <time.h>
#include <sys/syscall.h>
int main(void) {
  struct timespec time = {0, 300000000};
  long result, place = (long)&time;
  __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_nanosleep), "D"(place), "S"(0L) : "rcx", "r11", "memory");
  return (int)result;
}
"""
GO = 'package main\nimport "time"\nfunc main() { time.Sleep(300 * time.Millisecond) }\n'


@pytest.mark.parametrize("compiler", [["cc", "-static"], ["musl-gcc"]], ids=["static", "musl"])
def test_a_program_without_the_shim_is_named(compiler: list[str], tmp_path: Path) -> None:
    """It counts in real time, so its supervisor must, too: 0.3 s are 0.3 s, and the later steps are virtual."""
    (tmp_path / "sleeper.c").write_text(SLEEPER)
    require_program(compiler[0])
    assert run_in_virtual_time(*compiler, tmp_path / "sleeper.c", "-o", tmp_path / "sleeper").code == 0
    run = run_in_virtual_time("sh", "-c", f"{tmp_path}/sleeper; exec sleep 3600")
    assert run.notes == [UNREACHABLE.format("sleeper")]
    assert 3600.25 <= float(run.virtual) < 3620
    assert run_in_virtual_time(tmp_path / "sleeper").notes == run.notes


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="it is written in the machine's language")
def test_a_program_with_system_calls_of_its_own_is_named(tmp_path: Path) -> None:
    """Bun and Go with C are linked as others are, and call the kernel past libc: nothing else would say so."""
    (tmp_path / "caller.c").write_text(AT_ONCE)
    assert run_in_virtual_time(require_program("cc"), tmp_path / "caller.c", "-o", tmp_path / "caller").code == 0
    run = run_in_virtual_time(tmp_path / "caller")
    assert run.notes == [
        "time passes as on the machine while caller (pid N) lives: it makes system calls of its own, as Go and Bun do"
    ]
    assert 0.25 <= float(run.virtual) < 20


@pytest.mark.slow
def test_a_program_in_go_is_named(tmp_path: Path) -> None:
    """Go is static as a rule."""
    (tmp_path / "sleeper.go").write_text(GO)
    environment = {**os.environ, "GOCACHE": str(tmp_path / "cache")}
    go = require_program("go")
    subprocess.run([go, "build", "-o", tmp_path / "sleeper", tmp_path / "sleeper.go"], env=environment, check=True)
    assert run_in_virtual_time(tmp_path / "sleeper").notes == [UNREACHABLE.format("sleeper")]


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
