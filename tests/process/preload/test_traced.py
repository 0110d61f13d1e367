"""Programs that the library cannot enter have exact virtual time: static ones, those for musl, Go, raw system calls.

They are traced. Where a tool or the right to trace is missing, a test says so and is skipped.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.clock.preload import find_coordinator
from tests.process.preload.stand import LIMIT, require_program, require_tracing, run_in_virtual_time

PROGRAMS = Path(__file__).parent / "programs"
COMPILERS = {
    "glibc": ["cc"],
    "static": ["cc", "-static"],
    "static-pie": ["cc", "-static-pie"],
    "musl": ["musl-gcc"],
    "static musl": ["musl-gcc", "-static"],
}

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _tracing() -> None:
    require_tracing()


def build_c(kind: str, source: str, folder: Path) -> Path:
    """Compile a program of this folder; skip the test if the compiler is not here."""
    program = folder / Path(source).stem
    words = [*COMPILERS[kind], "-O1", str(PROGRAMS / source), "-o", str(program), "-lpthread"]
    subprocess.run([require_program(COMPILERS[kind][0]), *words[1:]], check=True, timeout=LIMIT)
    return program


def build_text(text: str, folder: Path) -> Path:
    """Compile a static program."""
    (folder / "program.c").write_text(text, "utf-8")
    words = [require_program("cc"), "-static", str(folder / "program.c"), "-o", str(folder / "program")]
    subprocess.run(words, check=True, timeout=LIMIT)
    return folder / "program"


def build_go(source: str, folder: Path) -> Path:
    """Build a program in Go."""
    program = folder / Path(source).stem
    subprocess.run([require_program("go"), "build", "-o", program, PROGRAMS / source], check=True, timeout=300)
    return program


@pytest.mark.parametrize("kind", COMPILERS)
def test_what_ends_a_wait_ends_it_at_its_instant(kind: str, tmp_path: Path) -> None:
    """Data, signals, deaths and other threads come first; children are seen, and timers end in their order."""
    run = run_in_virtual_time(build_c(kind, "events.c", tmp_path))
    assert (run.code, run.notes, run.virtual) == (0, [], "482.551001"), run.out
    assert "BAD" not in run.out


def test_signals_while_a_program_is_begun_are_not_lost(tmp_path: Path) -> None:
    """300 images in a storm of signals: what is pending while the tracer prepares one must wait."""
    run = run_in_virtual_time(build_c("static", "exec_storm.c", tmp_path))
    assert (run.out, run.notes) == ("slept\n", [])


def test_small_pieces_over_tcp_are_sent_at_once(tmp_path: Path) -> None:
    """The kernel would hold the second one back by its own clock, and each limit would be over before it came."""
    run = run_in_virtual_time(build_c("static", "net_limits.c", tmp_path))
    assert (run.out, run.notes) == ("nagle: 0 of 60 limits of 10 s were over\n", [])


def test_the_runtime_of_go_keeps_its_times(tmp_path: Path) -> None:
    """Collections, a thousand timers, blocking calls, a stopped child, an exec."""
    run = run_in_virtual_time(build_go("runtime.go", tmp_path))
    assert (run.code, run.notes, run.virtual) == (0, [], "86533.5"), run.out
    assert "BAD" not in run.out


def test_a_ticker_of_go_is_never_late(tmp_path: Path) -> None:
    """A thousand ticks of a second."""
    run = run_in_virtual_time(build_go("ticker.go", tmp_path), "1000")
    assert (run.out, run.virtual) == ("took 1000000000000 latest 0\n", "1000")


def test_http_within_a_program_in_go_is_nothing_from_outside(tmp_path: Path) -> None:
    """It serves itself, and asks itself over TCP."""
    run = run_in_virtual_time(build_go("client.go", tmp_path), "serve")
    assert (run.out, run.notes) == ("slept 7s\n", [])


@pytest.mark.parametrize("way", [[], ["env", "-i"]], ids=["environment", "no environment"])
def test_a_family_of_programs_has_one_time(way: list[str], tmp_path: Path) -> None:
    """Node, a static program, then a shell whose environment may be scrubbed: their clocks agree."""
    (tmp_path / "start.c").write_text(
        "#include <unistd.h>\n#include <sys/wait.h>\nint main(int n, char **w) { int s;"
        " if (!fork()) { execvp(w[1], w + 1); _exit(9); } wait(&s); return WEXITSTATUS(s); }\n"
    )
    program = tmp_path / "start"
    subprocess.run([require_program("cc"), "-static", tmp_path / "start.c", "-o", program], check=True, timeout=LIMIT)
    shell = [*way, shutil.which("sh") or "sh", "-c", "sleep 50; echo fifty; sleep 600"]
    run = run_in_virtual_time("node", PROGRAMS / "family.mjs", program, *shell)
    assert (run.out, run.notes) == ("50000 fifty\n650000 end 0\n", [])


BECOMES = """
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
  if (!strcmp(words[1], "alarm")) alarm(5);
  if (!strcmp(words[1], "sleep")) return sleep(3);
  usleep(1000);
  execvp(words[2], words + 2);
  return 9;
}
"""


def test_an_alarm_outlives_the_image_that_set_it(tmp_path: Path) -> None:
    """A static program becomes one that carries the library, and the other way round."""
    program = build_text(BECOMES, tmp_path)
    into_library = run_in_virtual_time(program, "alarm", "sleep", "100")
    into_static = run_in_virtual_time("perl", "-e", "alarm 5; exec @ARGV", program, "none", "sleep", "100")
    assert (into_library.code, into_library.virtual) == (128 + signal.SIGALRM, "5")
    assert (into_static.code, into_static.virtual) == (128 + signal.SIGALRM, "5")


def test_a_process_may_become_one_kind_of_program_after_the_other(tmp_path: Path) -> None:
    """Each image waits by a slot of its own: a static program waited for ever by that of the shell before it."""
    program = build_text(BECOMES, tmp_path)
    run = run_in_virtual_time(program, "none", "sh", "-c", f"sleep 2; exec {program} sleep")
    assert (run.code, run.notes, run.virtual) == (0, [], "5.001")


def test_a_coordinator_below_a_session_is_not_traced() -> None:
    """Its file holds code for others. A scenario was red now and then when that was taken for calls of its own."""
    coordinator = str(find_coordinator())
    words = [coordinator, "--session", coordinator, "grep", "TracerPid", "/proc/self/status"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.stdout == "TracerPid:\t0\n"


def test_a_coordinator_below_a_traced_program_is_exact(tmp_path: Path) -> None:
    """Another coordinator traces its whole tree: a thread that stands in a stop of the other one is about to move."""
    program = build_text(BECOMES, tmp_path)
    looks = "import select, time; time.sleep(20); [select.select([], [], [], 0) for _ in range(500)]; print('hi')"
    inner = [str(find_coordinator()), "timeout", "60", sys.executable, "-c", looks]
    words = [str(find_coordinator()), "--session", str(program), "none", *inner]
    for _ in range(5):
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert (done.stdout, "20 s of virtual time" in done.stderr) == ("hi\n", True), done.stderr


def test_tracing_can_be_switched_off(tmp_path: Path) -> None:
    """For a machine where a tracer does harm: the program is named, and its time is the machine's."""
    (tmp_path / "sleeper.c").write_text("#include <unistd.h>\nint main(void) { return usleep(300000); }\n")
    program = tmp_path / "sleeper"
    subprocess.run([require_program("cc"), "-static", tmp_path / "sleeper.c", "-o", program], check=True, timeout=LIMIT)
    traced, untraced = (
        run_in_virtual_time(program, env={**os.environ, "AGENTPROC_CLOCK_TRACE": value}) for value in ("1", "0")
    )
    assert (traced.notes, traced.virtual) == ([], "0.3")
    [note] = untraced.notes
    assert note.startswith("time passes as on the machine while sleeper (pid N) lives: ")
    assert float(untraced.virtual) >= 0.25


def test_a_program_that_another_debugger_traces_is_named(tmp_path: Path) -> None:
    """The kernel allows one tracer for a process."""
    source = tmp_path / "sleeper.c"
    source.write_text("#include <unistd.h>\nint main(void) { return usleep(300000); }\n")
    program = tmp_path / "sleeper"
    subprocess.run([require_program("cc"), "-static", source, "-o", program], check=True, timeout=LIMIT)
    run = run_in_virtual_time(require_program("strace"), "-f", "-o", tmp_path / "log", program)
    refused = "a program that makes its own system calls cannot be traced (Operation not permitted)"
    assert f"{refused}: its time is the machine's" in run.notes
    assert any(note.startswith("time passes as on the machine while sleeper (pid N) lives") for note in run.notes)


@pytest.mark.skipif(os.geteuid() != 0, reason="it becomes another user")
def test_a_user_without_rights_in_a_container_has_exact_time(tmp_path: Path) -> None:
    """Below what Docker's default profile forbids, the file of a timer is passed in another way."""
    jail = build_c("glibc", "like_docker.c", tmp_path)
    program = build_c("static", "events.c", tmp_path)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder not in (Path("/"), Path(folder.anchor)):
            folder.chmod(folder.stat().st_mode | 0o055)
    coordinator = tmp_path / "coordinator"
    for name in ("coordinator", "shim.so"):
        shutil.copy(find_coordinator().with_name(name), tmp_path / name)
    done = subprocess.run(
        [jail, coordinator, program], capture_output=True, text=True, cwd="/", timeout=LIMIT, check=False
    )
    assert (done.returncode, "BAD" in done.stdout) == (0, False), done.stdout + done.stderr
