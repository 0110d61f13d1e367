"""Run a command-line agent to its end, whatever it does: plain threads and select, Linux, standard library only.
Its tree is every process that descends from it, is in its session or has its marker: none outlives `supervise`.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass

CHUNK = 65536
LOOK = 0.03  # seconds between two looks at the process table, while a tree is about to end
UNKILLABLE = 5.0  # seconds after SIGKILL for which the kernel is waited for
_OVER = {"inactive": "no output for too long", "input_failed": "it closed its stdin, then no output for too long",
         "overran": "it took too long"}


@dataclass(frozen=True)
class Result:
    """How a run ended. `agent_status` is the agent's exit code or minus a signal, `exit_code` a wrapper's."""

    outcome: str  # completed, failed, incomplete (a foreign signal), spawn_failed, or a key of _OVER
    exit_code: int
    text: str = ""
    stderr_tail: bytes = b""
    elapsed: float = 0.0
    agent_status: int | None = None
    forced: bool = False
    error: str = ""
    warnings: tuple[str, ...] = ()


def supervise(argv, env=None, *, cwd=None, stdin=None, inactivity_timeout=90.0, max_runtime=None, exit_grace=0.5,
              kill_grace=3.0, max_text=32 << 20, max_stderr=64 << 10):
    """Run `argv`, block until it and all that it started are gone, and give a `Result`; only misuse raises.

    `stdin` is bytes, or None for /dev/null. Ended is who prints no byte on stdout and stderr for `inactivity_timeout`
    seconds, or runs for `max_runtime` (None: no limit): by SIGTERM, and by SIGKILL `kill_grace` later. A process left
    by an agent has `exit_grace` to end. Kept is the end of stdout (`max_text`) and of stderr (`max_stderr`).
    """
    marker = f"AGENT_RUN_{uuid.uuid4().hex}"
    env = {**(os.environ if env is None else env), marker: "1"}
    try:
        agent = subprocess.Popen(argv, bufsize=0, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, start_new_session=True)
    except OSError as error:
        code = 127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126
        return Result("spawn_failed", code, error=f"cannot start {argv[0]}: {error.strerror}")
    run = _Run(agent, _Tree(agent.pid, marker.encode() + b"=1"), stdin, max_text, max_stderr)
    try:
        return run.to_end(inactivity_timeout, max_runtime, exit_grace, kill_grace)
    finally:
        run.close()


class _Tree:
    """The processes of a run, as /proc shows them. Valid as long as the agent has not been reaped."""

    def __init__(self, agent, marker):
        self.agent, self.marker = agent, marker
        self.known, self.foreign, self.told = set(), set(), set()  # of (pid, start time): no pid means two processes

    def living(self):
        """List (pid, start, state, group) of those who live."""
        table, children = {int(n): stat for n in os.listdir("/proc") if n.isdigit() and (stat := _stat(n))}, {}
        for pid, stat in table.items():
            children.setdefault(stat[1], []).append(pid)
        todo = [pid for pid, (_, _, group, session, start) in table.items()
                if self.agent in (pid, group, session) or (pid, start) in self.known or self.marked(pid, start)]
        ours = {os.getpid()}
        while todo:
            if (pid := todo.pop()) not in ours:
                ours.add(pid)
                self.known.add((pid, table[pid][4]))
                todo += children.get(pid, ())
        ours.discard(os.getpid())
        for pid in (pid for pid in ours - {self.agent} if table[pid][:2] == ("Z", os.getpid())):
            with contextlib.suppress(ChildProcessError):  # we are pid 1, or a subreaper
                os.waitpid(pid, os.WNOHANG)
        return [(pid, table[pid][4], table[pid][0], table[pid][2]) for pid in sorted(ours) if table[pid][0] not in "ZX"]

    def marked(self, pid, start):
        if (pid, start) in self.foreign:
            return False
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if self.marker in (environ := file.read()).split(b"\0"):
                return True
            if environ:  # an empty one may be in the middle of its exec
                self.foreign.add((pid, start))
        return False

    def signal(self, number, only_new=False):
        """Send a signal to all of it, or to those who had none yet; tell how many live."""
        living = self.living()
        if whole := not only_new and any(group == self.agent for *_, group in living):
            os.killpg(self.agent, number)  # in one go, so that nobody forks away; the number is ours until we reap
        for pid, start, state, group in living:
            if not (whole and group == self.agent or only_new and (pid, start) in self.told):
                _send(pid, start, number)
            if state == "T":
                _send(pid, start, signal.SIGCONT)  # else it would never hear
            self.told.add((pid, start))
        return len(living)


def _stat(pid):
    """Give (state, parent, group, session, start time), or None if there is no such process."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
        words = file.read().rpartition(b")")[2].split()
        return words[0].decode(), int(words[1]), int(words[2]), int(words[3]), int(words[19])


def _send(pid, start, number):
    """Signal this very process, and none that got its number since."""
    with contextlib.suppress(OSError), open(os.pidfd_open(pid), "rb", 0) as handle:
        if (stat := _stat(pid)) and stat[4] == start:
            signal.pidfd_send_signal(handle.fileno(), number)


class _Run:
    def __init__(self, agent, tree, stdin, max_text, max_stderr):
        self.agent, self.tree, self.status, self.exited = agent, tree, None, False
        self.start = self.heard = time.monotonic()
        self.most, self.warnings, self.refused = {agent.stdout: max_text, agent.stderr: max_stderr}, [], False
        self.unsent = memoryview(stdin or b"")
        self.kept = {stream: bytearray() for stream in self.most}
        self.selector = selectors.DefaultSelector()
        self.bell, self.ring = (open(fd, mode, 0) for fd, mode in zip(os.pipe(), ("rb", "wb")))
        self.waiter = threading.Thread(target=self.wait_for_agent, daemon=True)
        self.waiter.start()
        for stream in filter(None, (self.bell, agent.stdin, agent.stdout, agent.stderr)):
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, selectors.EVENT_WRITE if stream is agent.stdin else selectors.EVENT_READ)

    def wait_for_agent(self):
        """See the agent end, but leave it to be reaped, so that its number stays its own. A thread."""
        with contextlib.suppress(ChildProcessError):  # the host ignores SIGCHLD: nobody will ever know
            end = os.waitid(os.P_PID, self.agent.pid, os.WEXITED | os.WNOWAIT)
            self.status = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
        self.ring.close()

    def pump(self, timeout):
        """Wait for something to happen, and take it."""
        for key, _ in self.selector.select(max(0.0, timeout)):
            if key.fileobj is self.bell:
                self.exited = True
                self.drop(self.bell)
            else:
                (self.feed if key.fileobj is self.agent.stdin else self.read)(key.fileobj)

    def read(self, stream):
        if data := stream.read(CHUNK):
            self.heard = time.monotonic()
            self.kept[stream] += data
            if len(self.kept[stream]) > 2 * self.most[stream] + CHUNK:
                del self.kept[stream][: -self.most[stream] - 1]  # one more than is given away tells that it was more
        elif data is not None:
            self.drop(stream)
        return bool(data)

    def feed(self, stream):
        try:
            self.unsent = self.unsent[os.write(stream.fileno(), self.unsent[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self.warnings.append(f"the agent closed its stdin, {len(self.unsent)} bytes were not read")
            self.unsent, self.refused = b"", True
        if not self.unsent:
            self.drop(stream)

    def drop(self, stream):
        self.selector.unregister(stream)
        stream.close()

    def to_end(self, inactivity_timeout, max_runtime, exit_grace, kill_grace):
        over = self.watch(*(float("inf") if most is None else most for most in (inactivity_timeout, max_runtime)))
        elapsed = time.monotonic() - self.start
        if over or not self.gone_within(exit_grace):
            self.warnings += [] if over else ["processes that the agent left were ended"]
            self.tree.signal(signal.SIGTERM)
            if not self.gone_within(kill_grace, remind=True):
                self.kill()
        for stream in self.kept:
            for _ in range(64):  # what is in the pipe; whoever else may hold it is not waited for
                if stream.closed or not self.read(stream):
                    break
        return self.result(over, elapsed)

    def watch(self, inactivity_timeout, max_runtime):
        """Wait until the agent has exited (None), or a limit is over: tell which."""
        while not self.exited:
            when, which = min((self.start + max_runtime, "overran"), (self.heard + inactivity_timeout, "inactive"))
            if (left := when - time.monotonic()) > 0:
                self.pump(min(left, 3600.0))
                continue
            heard = self.heard
            self.pump(0)  # what came in time, and was not seen in time, counts
            if not self.exited and (which == "overran" or heard == self.heard):
                return "input_failed" if self.refused and which == "inactive" else which
        return None

    def gone_within(self, seconds, remind=False):
        """Read until no process of the tree lives, or the time is over: say which."""
        end = time.monotonic() + seconds
        while self.tree.signal(signal.SIGTERM, only_new=True) if remind else self.tree.living():
            if (now := time.monotonic()) >= end:
                return False
            while (left := min(now + LOOK, end) - time.monotonic()) > 0:
                self.pump(left)
        return True

    def kill(self):
        end, quiet = time.monotonic() + UNKILLABLE, 0
        while quiet < 2 and time.monotonic() < end:  # twice: the table is not read at one instant
            quiet = 0 if self.tree.signal(signal.SIGKILL) else quiet + 1
            self.pump(0.005)
        if quiet < 2:
            self.warnings.append("some of the agent's processes could not be ended")

    def result(self, over, elapsed):
        self.waiter.join(UNKILLABLE)
        text, tail = (bytes(self.kept[stream][-self.most[stream] :]) for stream in self.kept)
        if len(self.kept[self.agent.stdout]) > len(text):
            self.warnings.append(f"only the last {len(text)} bytes of stdout were kept")
            text = text.lstrip(bytes(range(0x80, 0xC0)))  # the cut may have halved a character
        status, outcome, code, error = self.status, "completed", 0, ""
        if over:
            outcome, code, error = over, 124, _OVER[over]
        elif status is None or status < 0:
            outcome, code, error = "incomplete", 128 - (status or 0), f"the agent was killed, status {status}"
        elif status:
            outcome, code, error = "failed", status, f"the agent exited {status}"
        return Result(outcome, code, text.decode(errors="replace"), tail, elapsed, status, bool(over), error,
                      tuple(self.warnings))

    def close(self):
        """Leave no process and no descriptor, also after an exception."""
        if not self.exited or self.tree.living():
            self.kill()
        self.waiter.join(UNKILLABLE)
        if not self.waiter.is_alive():
            self.agent.wait()
        for key in list(self.selector.get_map().values()):
            self.drop(key.fileobj)
        self.selector.close()
