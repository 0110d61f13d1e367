"""Programs that do rare things: spin, fork without end, scrub the environment, change into another program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.process.preload.stand import require_program, run_in_virtual_time

if TYPE_CHECKING:
    from pathlib import Path

SPIN = "import time; begin = time.monotonic()\nwhile time.monotonic() - begin < 5: pass"


def test_time_moves_for_a_program_that_spins() -> None:
    """It reads the clock until an instant has come; the steps grow, but it is no later than one that polls may be."""
    run = run_in_virtual_time(sys.executable, "-c", SPIN)
    assert 5 <= float(run.virtual) < 5.2


REAPS = """\
import os, signal, time

begin = time.monotonic()
sleepers = [os.posix_spawnp("sleep", ["sleep", "3600"], os.environ) for _ in range(60)]
for _ in range(1_000_000):
    os.waitpid(-1, os.WNOHANG)
print(time.monotonic() - begin)
for pid in sleepers:
    os.kill(pid, signal.SIGKILL)
for pid in sleepers:
    os.waitpid(pid, 0)
"""


def test_time_stands_still_for_a_program_that_looks_for_ended_children() -> None:
    """The kernel shows such a thread as asleep, on its core: time once jumped to the next deadline."""
    run = run_in_virtual_time(sys.executable, "-c", REAPS)
    assert (run.out, run.code) == ("0.0\n", 0)


def test_a_hundred_children_end_at_their_instants() -> None:
    """Each is forked, waits, and ends: a child that is not seen in time would be late."""
    script = "for i in {1..100}; do sleep $((i % 10)).5 & done; wait; echo $SECONDS"
    run = run_in_virtual_time("bash", "-c", script)
    assert (run.out, run.virtual) == ("9\n", "9.5")


def test_a_scrubbed_environment_does_not_leave_virtual_time() -> None:
    """SDKs hand on six variables; `env -i` none."""
    run = run_in_virtual_time("env", "-i", require_program("sh"), "-c", "unset LD_PRELOAD; exec env -i sleep 3600")
    assert (run.code, run.virtual, run.notes) == (0, "3600", [])


def test_a_limit_outlives_another_image_of_the_process() -> None:
    """An alarm survives exec, as in the kernel; `timeout` counts by a timer of its own."""
    run = run_in_virtual_time("perl", "-e", "alarm 30; exec 'sleep', '1000'")
    assert (run.code, run.virtual) == (142, "30")
    run = run_in_virtual_time("timeout", "-k", "5", "100", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    assert (run.code, run.virtual) == (137, "105")


def test_a_stopped_process_does_not_hold_time() -> None:
    """Its wait is over when it is continued, as in real time."""
    script = "sleep 10 & sleep 1; kill -STOP $!; sleep 100; kill -CONT $!; wait; echo $SECONDS"
    assert run_in_virtual_time("bash", "-c", script).out == "101\n"


def test_timers_of_c_end_exactly(tmp_path: Path) -> None:
    """timerfd, timer_create with a signal and with a thread, a condition, sigtimedwait: each at its nanosecond."""
    source = tmp_path / "timers.c"
    source.write_text(TIMERS)
    assert run_in_virtual_time(require_program("cc"), source, "-o", tmp_path / "timers", "-lpthread").code == 0
    run = run_in_virtual_time(tmp_path / "timers")
    assert run.out.splitlines() == [
        "timerfd 1 at 5000000001",
        "signal 7 at 15000000002",
        "thread 8 at 25000000003",
        "condition 110 at 35000000004",
        "sigtimedwait -1 at 45000000005",
    ], run.err


INTERRUPTED = """\
import os, pathlib, select, signal, threading

main, place = threading.main_thread(), pathlib.Path("/proc/self/task", str(threading.get_native_id()), "stat")
reader, writer = os.pipe()

def write_after_a_wake():
    while place.read_text().rpartition(")")[2].split()[0] != "S":
        pass
    signal.pthread_kill(main.ident, 63)  # as a wake that is left of an earlier wait
    os.write(writer, b"x")

epoll = select.epoll()
epoll.register(reader, select.EPOLLIN | select.EPOLLONESHOT)
thread = threading.Thread(target=write_after_a_wake)
thread.start()
print(epoll.poll(100) == [(reader, select.EPOLLIN)])
thread.join()
"""


def test_a_wake_that_is_no_answer_leaves_no_trace_in_errno() -> None:
    """CPython takes a result for an interrupted call by errno alone: trio lost the end of a thread, and hung."""
    run = run_in_virtual_time(sys.executable, "-c", INTERRUPTED)
    assert (run.out, run.virtual) == ("True\n", "0")


def test_a_socket_is_read_until_its_timeout() -> None:
    """SO_RCVTIMEO is the kernel's own timer; Rust's `set_read_timeout` is that."""
    run = run_in_virtual_time(sys.executable, "-c", RECEIVE)
    assert run.out == "BlockingIOError 30.0\nx 50.0\n"


RECEIVE = """
import socket, struct, threading, time
ours, theirs = socket.socketpair()
ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 30, 0))
begin = time.monotonic()
try:
    ours.recv(1)
except OSError as error:
    print(type(error).__name__, time.monotonic() - begin)
threading.Timer(20, theirs.send, [b"x"]).start()
print(ours.recv(1).decode(), time.monotonic() - begin)
"""


def test_a_birth_in_proc_can_be_compared_with_the_boot_clock_of_the_kit() -> None:
    """The kernel counts births by the machine's clock; the leak checks and the signal guard compare them."""
    run = run_in_virtual_time(sys.executable, "-c", BORN)
    assert run.out == "True\n"


BORN = """
import os, time
from pytest_agentproc.procfs import read_nanoseconds_since_boot, read_stat
time.sleep(1000)
born = read_stat(os.getpid()).started / os.sysconf("SC_CLK_TCK")
print(0 <= read_nanoseconds_since_boot() / 1e9 - born + 0.02 < 60)
"""


def test_a_look_that_finds_something_is_no_spin() -> None:
    """A program that writes much looks for room before each piece: time must not move for that."""
    run = run_in_virtual_time(sys.executable, "-c", LOOKS)
    assert run.out == "0.0\n"


LOOKS = """
import os, select, time
begin = time.monotonic()
look = select.poll()
look.register(os.pipe()[1], select.POLLOUT)
for _ in range(5000):
    look.poll(0)
print(time.monotonic() - begin)
"""


WRITES = """
import os, select, threading, time
begin = time.monotonic()
source, sink = os.pipe()
look = select.poll()
look.register(sink, select.POLLOUT)
watch = select.epoll()
watch.register(sink, select.EPOLLOUT)

def read():
    while os.read(source, 65536):
        pass

threading.Thread(target=read, daemon=True).start()
for _ in range(3000):
    os.write(sink, bytes(65536))
    while not look.poll(0):
        watch.poll()
print(time.monotonic() - begin)
"""


def test_a_look_before_a_wait_without_a_limit_is_no_spin() -> None:
    """A fake that writes 16 MiB into a full pipe once moved time by 0.2 s for each piece of it."""
    run = run_in_virtual_time(sys.executable, "-c", WRITES)
    assert run.out == "0.0\n"


COMPUTES = """
import threading, time
begin = time.monotonic()
seen = []
threading.Thread(target=lambda: (time.sleep(0), seen.append(time.monotonic() - begin))).start()
while not seen:
    pass
print(seen[0])
"""


def test_a_thread_that_computes_lets_other_threads_of_python_run() -> None:
    """Python's other threads wait 5 ms before they ask for their turn, and no virtual time passes meanwhile."""
    run = run_in_virtual_time(sys.executable, "-c", COMPUTES)
    assert (run.out, run.code) == ("0.0\n", 0)


STARTS = """
import subprocess, threading, time

def tick():
    while True:
        time.sleep(0.001)

threading.Thread(target=tick, daemon=True).start()
for _ in range(200):
    subprocess.run(["bash", "-c", "for i in 1 2 3 4; do /bin/true; done"])
print(time.monotonic_ns() - BEGIN)
"""


def test_time_stands_still_while_a_shell_starts_one_program_after_another() -> None:
    """A program that no walk had found ended, and its shell was about to start the next: time moved now and then."""
    run = run_in_virtual_time(sys.executable, "-c", f"import time; BEGIN = time.monotonic_ns()\n{STARTS}")
    assert run.out == "0\n"


TIMERS = r"""
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static struct timespec begin;
static sem_t called;
static int carried;

static void say(const char *what, long value) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  printf("%s %ld at %lld\n", what, value, (now.tv_sec - begin.tv_sec) * 1000000000LL + now.tv_nsec - begin.tv_nsec);
}

static void call(union sigval value) {
  carried = value.sival_int;
  sem_post(&called);
}

static void arm(struct sigevent event) {
  timer_t timer;
  struct itimerspec in = {{0, 0}, {10, 1}};
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &in, 0);
}

int main(void) {
  clock_gettime(CLOCK_MONOTONIC, &begin);
  int file = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec five = {{0, 0}, {5, 1}};
  timerfd_settime(file, 0, &five, 0);
  uint64_t count = 0;
  if (read(file, &count, 8) != 8) return 1;
  say("timerfd", (long)count);
  sigset_t user;
  siginfo_t info;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  sigprocmask(SIG_BLOCK, &user, 0);
  arm((struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 7});
  sigwaitinfo(&user, &info);
  say("signal", info.si_value.sival_int);
  sem_init(&called, 0, 0);
  arm((struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = call, .sigev_value.sival_int = 8});
  sem_wait(&called);
  say("thread", carried);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 10;
  until.tv_nsec += 1;
  pthread_mutex_lock(&mutex);
  say("condition", pthread_cond_timedwait(&condition, &mutex, &until));
  struct timespec ten = {10, 1};
  say("sigtimedwait", sigtimedwait(&user, 0, &ten));
  return 0;
}
"""
