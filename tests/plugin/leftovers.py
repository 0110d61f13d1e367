"""Test files whose tests leave processes, in every way, and those that only seem to. Owns their text; runs nothing."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["INNOCENTS", "WAYS", "LeftoverTests"]


class LeftoverTests(NamedTuple):
    """A test file of which every test leaves a process.

    Args:
        source: its text; a test is called `test_NAME`.
        expected: by name the command, the state, the beginning of its kinship, and a piece of the line that starts it.
    """

    source: str
    expected: dict[str, tuple[str, str, str, str]]


_DAEMON = "import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); os.closerange(0, 99); "
_SOURCE = f"""
import asyncio, multiprocessing, os, signal, subprocess, sys, threading, time
SLEEP = ["sleep", "1000"]
DAEMON = {_DAEMON!r} + "os.execve('/bin/sleep', ['sleep', '1000'], {{}})"

def read(file):
    with open(file) as opened:
        return opened.read()

def keep(process):  # so that no destructor has a say
    globals().setdefault("kept", []).append(process)

def test_popen():
    keep(subprocess.Popen(SLEEP))

def test_forgotten():
    import warnings
    warnings.simplefilter("ignore")
    subprocess.Popen(SLEEP)  # let it go

def test_shell():
    subprocess.run("sleep 1000 >/dev/null 2>&1 &", shell=True)  # shell

def test_system():
    os.system("sleep 1000 >/dev/null 2>&1 &")

def test_setsid():
    subprocess.run("setsid sleep 1000 >/dev/null 2>&1 &", shell=True)

def test_session():
    keep(subprocess.Popen(SLEEP, start_new_session=True))

def test_double_fork():
    if (pid := os.fork()) == 0:  # double fork
        if os.fork() == 0:
            os.setsid()
            os.execvp("sleep", SLEEP)
        os._exit(0)
    os.waitpid(pid, 0)

def test_daemon():
    subprocess.run([sys.executable, "-IS", "-c", DAEMON], env={{}}, stdout=subprocess.PIPE)  # nearly asleep

def test_mp_fork():
    keep(multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,)))
    kept[-1].start()  # mp fork

def test_asyncio():
    async def start():
        keep(await asyncio.create_subprocess_exec(*SLEEP))
    asyncio.run(start())

def test_zombie():
    keep(subprocess.Popen(["true"]))
    os.waitid(os.P_PID, kept[-1].pid, os.WEXITED | os.WNOWAIT)

def test_stopped():
    keep(subprocess.Popen(["sleep", "2000"]))
    kept[-1].send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, kept[-1].pid, os.WSTOPPED | os.WNOWAIT)

def test_fork():
    if os.fork() == 0:  # plain fork
        os.execvp("sleep", SLEEP)

def test_thread():
    thread = threading.Thread(target=lambda: keep(subprocess.Popen(SLEEP, cwd="/")))
    thread.start()
    thread.join()

def test_descendant():
    keep(subprocess.Popen("sleep 1000; true", shell=True))
    while not read(f"/proc/{{kept[-1].pid}}/task/{{kept[-1].pid}}/children"):
        pass

def test_posix_spawn():
    os.posix_spawn("/bin/sleep", SLEEP, os.environ)

def test_spawnlp():
    os.spawnlp(os.P_NOWAIT, "sleep", *SLEEP)

def test_mp_spawn():
    keep(multiprocessing.get_context("spawn").Process(target=time.sleep, args=(1000,)))
    kept[-1].start()  # mp spawn

def test_mp_forkserver():
    keep(multiprocessing.get_context("forkserver").Process(target=time.sleep, args=(1000,)))
    kept[-1].start()  # by forkserver
"""

_CHILD, _ORPHAN = "a child of pytest (", "an orphan of "
_SLEEP = "sleep 1000"
WAYS = LeftoverTests(
    _SOURCE,
    {
        "popen": (_SLEEP, "alive", _CHILD, "keep(subprocess.Popen(SLEEP))"),
        "forgotten": (_SLEEP, "alive", _CHILD, "# let it go"),
        "shell": (_SLEEP, "alive", _ORPHAN, "# shell"),
        "system": (_SLEEP, "alive", _ORPHAN, "os.system("),
        "setsid": (_SLEEP, "alive", _ORPHAN, "setsid sleep"),
        "session": (_SLEEP, "alive", _CHILD, "start_new_session"),
        "double_fork": (_SLEEP, "alive", _ORPHAN, "# double fork"),
        "daemon": (_SLEEP, "alive", _ORPHAN, '"-c", DAEMON'),
        "mp_fork": ("multiprocessing's ForkProcess-1", "alive", _CHILD, "# mp fork"),
        "asyncio": (_SLEEP, "alive", _CHILD, "await asyncio.create_subprocess_exec"),
        "zombie": ("true", "a zombie: it has exited, and no process waited for it", _CHILD, '["true"]'),
        "stopped": ("sleep 2000", "stopped", _CHILD, '["sleep", "2000"]'),
        "fork": (_SLEEP, "alive", _CHILD, "# plain fork"),
        "thread": (_SLEEP, "alive", _CHILD, 'cwd="/"'),
        "descendant": (_SLEEP, "alive", "a descendant: /bin/sh -c sleep 1000; true (", "sleep 1000; true"),
        "posix_spawn": (_SLEEP, "alive", _CHILD, "os.posix_spawn("),
        "spawnlp": (_SLEEP, "alive", _CHILD, "os.spawnlp("),
        "mp_spawn": ("multiprocessing's SpawnProcess-2", "alive", _CHILD, "# mp spawn"),
        "mp_forkserver": (
            "multiprocessing's ForkServerProcess-3",
            "alive",
            "a child of multiprocessing's forkserver (",
            "# by forkserver",
        ),
    },
)

INNOCENTS = '''
import asyncio, multiprocessing, os, signal, subprocess, sys, threading
import pytest

SLEEP = ["sleep", "1000"]
DAEMON = "sh -c 'echo $$; exec setsid sleep 1000 >/dev/null 2>&1' &"

def read(file):
    with open(file) as opened:
        return opened.read()

def state(pid):
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0]

class UnrelatedProcesses:
    """Processes that are nobody's here: alive at the end, and ended by whoever started them."""
    def __init__(self):
        self.pids = []
    def end(self):
        assert self.pids
        for pid in self.pids:
            assert state(pid) not in "TZX"
            os.kill(pid, signal.SIGKILL)

@pytest.fixture(scope="session")
def unrelated_processes():
    them = UnrelatedProcesses()
    yield them
    them.end()

@pytest.fixture(scope="session")
def server(unrelated_processes):
    process = subprocess.Popen(SLEEP)
    yield process
    assert process.poll() is None
    process.kill()
    process.wait()

@pytest.fixture(scope="module")
def daemon(unrelated_processes):
    done = subprocess.run(DAEMON, shell=True, stdout=subprocess.PIPE)
    unrelated_processes.pids.append(int(done.stdout))

@pytest.fixture(scope="class")
def by_system(unrelated_processes):
    os.system("setsid sleep 1000 >/dev/null 2>&1 & echo $! > pid")
    unrelated_processes.pids.append(int(read("pid")))

@pytest.fixture(scope="module")
def worker(unrelated_processes):
    """A thread of the module's, which starts what it likes when a test asks for it."""
    go, done = threading.Event(), threading.Event()
    def work():
        go.wait()
        unrelated_processes.pids.append(int(subprocess.run(DAEMON, shell=True, stdout=subprocess.PIPE).stdout))
        started.append(subprocess.Popen(SLEEP))
        done.set()
    started = []
    thread = threading.Thread(target=work)
    thread.start()
    yield go, done
    thread.join()
    assert started[0].poll() is None
    started[0].kill()
    started[0].wait()

@pytest.fixture(scope="module")
def late_daemon(unrelated_processes):
    """A server that was there before, and daemonises in the middle of a test."""
    process = subprocess.Popen(["sh", "-c", "read line; " + DAEMON], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.stdout.close()

def test_server(server):
    pass

def test_fixtures_that_are_asked_for_late(request):
    for name in ("server", "daemon", "by_system"):
        request.getfixturevalue(name)

def test_worker(worker):
    go, done = worker
    go.set()
    done.wait()

def test_late_daemon(late_daemon, unrelated_processes):
    late_daemon.stdin.close()
    unrelated_processes.pids.append(int(late_daemon.stdout.read()))
    late_daemon.wait()

def test_resource_tracker():
    from multiprocessing import shared_memory
    memory = shared_memory.SharedMemory(create=True, size=16)
    memory.close()
    memory.unlink()

@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method):
    process = multiprocessing.get_context(method).Process(target=int)
    process.start()
    process.join()

def test_pool():
    with multiprocessing.Pool(2) as pool:
        assert pool.map(abs, [-1]) == [1]
    pool.join()

def test_asyncio():
    async def run():
        return await (await asyncio.create_subprocess_exec("true")).wait()
    assert asyncio.run(run()) == 0

def test_orphan_that_goes():
    subprocess.run("exec 3<&0; cat <&3 &", shell=True, input=b"")

def test_environment_is_as_it_was(monkeypatch):
    monkeypatch.setenv("NAME", "value")
    shown = subprocess.run([sys.executable, "-c", "import os; print(os.environ['NAME'])"], capture_output=True)
    assert shown.stdout == b"value\\n"
    bare = subprocess.run([sys.executable, "-ISc", "import os; print(len(os.environ))"], env={}, capture_output=True)
    assert int(bare.stdout) <= 1

def test_covered_patch(monkeypatch):
    plain = subprocess.Popen.__init__
    def init(self, *args, **options):
        plain(self, *args, **options)
    monkeypatch.setattr(subprocess.Popen, "__init__", init)
    subprocess.run(["true"], check=True)

def test_after_a_covered_patch():
    subprocess.run(["true"], check=True)
'''
