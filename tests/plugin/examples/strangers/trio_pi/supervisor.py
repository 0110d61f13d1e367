"""Sessions with `pi --mode rpc` under trio, on Linux. The behaviour of pi is a turn's `outcome`, never raised."""
import json, logging, math, os, signal, uuid
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from subprocess import PIPE
import trio
MARK = "PI_TRIO_AGENT"  # in the environment of all that an agent starts, so that daemons are found, too
OURS = ("agent_", "turn_", "message_", "tool_execution_", "auto_", "compaction_")
@dataclass(frozen=True)
class Limits:  # seconds, bytes; None is off
    inactivity_timeout: float | None = 300; internal_tool_timeout: float | None = 1800  # no byte in a turn; while a tool runs
    prompt_timeout: float | None = 1800; max_runtime: float | None = 4 * 3600  # no event in a turn; all of it
    cancel_grace: float = 30; permission_timeout: float = 120  # from abort to the agent's end; for the caller's answer
    close_grace: float = 5; kill_grace: float = 3  # from the end of stdin to TERM; to KILL
    retry_grace: float = 0.5; max_line_bytes: int = 32 << 20  # an error is final if no other try is announced within this
def _read_proc(pid, name):
    with suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()
    return b""
def _stat(pid):  # state, parent, session, start time
    fields = _read_proc(pid, "stat").rpartition(b")")[2].split()
    return fields and (fields[0], int(fields[1]), int(fields[3]), int(fields[19]))
def _tree(root, mark):  # the agent (not reaped yet), its descendants, its session, and whoever has its mark; no zombies
    seen = {int(pid): stat for pid in os.listdir("/proc") if pid.isdigit() and (stat := _stat(pid))}
    alive = {pid: stat for pid, stat in seen.items() if stat[0] not in b"ZX" and pid != os.getpid()}
    found = {pid for pid, stat in alive.items() if root in (pid, stat[2]) or mark in _read_proc(pid, "environ")}
    while more := {pid for pid, stat in alive.items() if stat[1] in found} - found:
        found |= more
    return {pid: alive[pid] for pid in found}
class Agent:  # one pi process with its pipes and all that it started
    def __init__(self, owner):
        self.owner, self.limits, mark = owner, owner.limits, uuid.uuid4().hex
        self.mark, self.env = f"{MARK}={mark}".encode(), {**(os.environ if owner.env is None else owner.env), MARK: mark}
        self.exited, self.gone, self.lock, self.scope = trio.Event(), trio.Event(), trio.Lock(), trio.CancelScope()
        self.status, self.fault, self.stderr, self.noise = None, (), b"", 0
        self.buffer, self.last_byte = bytearray(), trio.current_time()
    async def serve(self, task_status):  # until nobody of its tree is left; cancel `scope` to end it
        self.proc = await trio.lowlevel.open_process(self.owner.argv, env=self.env, cwd=self.owner.cwd, start_new_session=True,
                                                     stdin=PIPE, stdout=PIPE, stderr=PIPE)
        pidfd, pipes = os.pidfd_open(self.proc.pid), (self.proc.stderr, self.proc.stdout)
        try:
            task_status.started()
            with self.scope:
                async with trio.open_nursery() as pumps:
                    for stream in pipes: pumps.start_soon(self._pump, stream)
                    await trio.lowlevel.wait_readable(pidfd)
                    pumps.cancel_scope.cancel()
                for stream in pipes:  # what is there yet; somebody else may hold the pipe open
                    any(not self._read(stream) for _ in range(64))
                self._line(self.buffer)
                info = os.waitid(os.P_PID, self.proc.pid, os.WEXITED | os.WNOWAIT)  # reaped last: its pid stays its own
                self.status = info.si_status if info.si_code == os.CLD_EXITED else -info.si_status
                self.exited.set(), self.owner.awake.set()
        finally:
            with trio.CancelScope(shield=True):
                await self._end()
                for stream in (self.proc.stdin, *pipes): await stream.aclose()
                os.close(pidfd)
                self.status = await self.proc.wait()
                self.exited.set(), self.gone.set()
    async def _end(self):  # TERM the tree, after the grace KILL it, until it is empty
        for number, grace in ((signal.SIGTERM, self.limits.kill_grace), (signal.SIGKILL, 10)):
            with trio.move_on_after(grace):
                while members := _tree(self.proc.pid, self.mark):
                    with ExitStack() as handles:
                        fds = [self._signal(pid, stat[3], number, handles) for pid, stat in members.items()]
                        await trio.sleep(0 if any(fds) else 0.05)
                        for fd in filter(None, fds):
                            await trio.lowlevel.wait_readable(fd)
                return
    def _signal(self, pid, start, number, handles):  # exactly that process; give a handle that is readable when it has ended
        with suppress(OSError):
            handles.callback(os.close, fd := os.pidfd_open(pid))
            if (now := _stat(pid)) and now[3] == start:
                signal.pidfd_send_signal(fd, number)
            return fd
    async def _pump(self, stream):
        while self._read(stream) is not False:
            await trio.lowlevel.wait_readable(stream.fileno())
    def _read(self, stream):  # once: True, None if there is nothing now, False at the end
        try:
            data = os.read(stream.fileno(), 65536)
        except BlockingIOError:
            return None
        if data:
            self.last_byte = trio.current_time()
            if stream is self.proc.stderr:
                self.stderr = (self.stderr + data)[-16384:]
                return True
            self.buffer += data
            *lines, self.buffer = self.buffer.split(b"\n") if b"\n" in data else (self.buffer,)
            for line in lines: self._line(line)
            if len(self.buffer) > self.limits.max_line_bytes:
                self._line(self.buffer)
        return bool(data)
    def _line(self, line):
        line = line.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r")
        if len(line) > self.limits.max_line_bytes:
            self.give_up("protocol_error", f"a line of more than {self.limits.max_line_bytes} bytes")
        elif line.strip() and not self.fault:
            try:
                event = json.loads(line.decode())
                self.owner.event(event["type"] + "", event)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):  # no JSON, or an odd shape
                self.noise += 1
    def give_up(self, *fault):
        self.fault, self.buffer = self.fault or fault, bytearray()
        self.owner.awake.set()
    async def send(self, command):
        async with self.lock:
            try:
                await self.proc.stdin.send_all(json.dumps(command).encode() + b"\n")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self.give_up("input_failed", "pi reads no more")
class Turn:  # what came of a prompt; fresh: the agent knew nothing before
    outcome = text = stop_reason = model = usage = agent = cut = retry = None
    error, elapsed, fresh, begun = "", 0, False, False
    def __init__(self, owner):
        self.owner, self.limits, self.done, self.id = owner, owner.limits, trio.Event(), uuid.uuid4().hex
        self.tools, self.questions, self.started, self.moved = set(), set(), trio.current_time(), 0
    def finish(self, outcome, error=""):
        if self.outcome is None:
            self.outcome, self.error = self.cut or outcome, error or ("" if outcome == "completed" else self.error)
            self.elapsed = trio.current_time() - self.started
            self.owner.awake.set()
    def take(self, message):
        if message and message.get("role") == "assistant":
            self.text = "".join(part.get("text", "") for part in message.get("content") or [] if part.get("type") == "text")
            self.stop_reason, self.error = message.get("stopReason"), message.get("errorMessage") or ""
            self.model, self.usage = message.get("model") or self.model, message.get("usage") or self.usage
    def handle(self, kind, event):
        self.begun |= kind == "agent_start"
        if self.outcome or not self.begun or not kind.startswith(OURS):
            return  # the words of an earlier turn, or signs of life
        self.moved = trio.current_time()
        if kind == "message_end":
            self.take(event.get("message"))
        elif kind in ("tool_execution_start", "tool_execution_end"):
            (self.tools.add if kind.endswith("start") else self.tools.discard)(event.get("toolCallId"))
        elif kind == "agent_end":
            self.take(next((m for m in reversed(event.get("messages") or []) if m.get("role") == "assistant"), None))
            if self.stop_reason == "error" and not self.cut and event.get("willRetry") is not False:
                self.retry = self.moved + self.limits.retry_grace
                self.owner.awake.set()
            else:
                self.finish({"aborted": "cancelled", "error": "failed"}.get(self.stop_reason, "completed"))
        elif kind in ("agent_start", "auto_retry_start", "auto_compaction_start", "compaction_start"):
            self.retry = None
        elif kind == "auto_retry_end" and not event.get("success"):
            self.finish("failed", event.get("finalError") or "")
    def due(self):  # the next deadline and its meaning; silence counts for nothing while the caller owes an answer
        if self.cut:
            return self.cut_at + self.limits.cancel_grace, self.cut
        limits, silence = self.limits, self.limits.inactivity_timeout
        moved = math.inf if self.questions else max(self.moved, self.started)
        if self.tools and silence:
            silence = max(silence, limits.internal_tool_timeout or math.inf)
        rows = ((self.retry, 0, "failed"), (self.started, limits.max_runtime, "overran"), (moved, limits.prompt_timeout, "timed_out"),
                (max(moved, self.agent.last_byte), silence, "inactive"), (math.inf, 0, ""))
        return min((at + limit, why) for at, limit, why in rows if at is not None and limit is not None)
class Session:
    """One conversation; prompts wait for one another. An agent that is lost is replaced for the next prompt."""
    def __init__(self, argv, env, cwd, limits, confirm, nursery):
        self.argv, self.env, self.cwd, self.limits, self.confirm, self.nursery = argv, env, cwd, limits, confirm, nursery
        self.agent, self.turn, self.lock, self.awake = None, Turn(self), trio.Lock(), trio.Event()
    async def prompt(self, text):
        turn = Turn(self)
        self.nursery.start_soon(self._drive, turn, text)
        try:
            await turn.done.wait()
        finally:
            self._cut(turn, "cancelled")  # unless it is over
        return turn
    def cancel(self):  # the turn in flight; its prompt() returns when pi has let go of it
        self._cut(self.turn, "cancelled")
    def _cut(self, turn, why):
        if not turn.outcome and not turn.cut:
            turn.cut, turn.cut_at = why, trio.current_time()
            for scope in turn.questions: scope.cancel()
            if turn.agent:
                self.nursery.start_soon(turn.agent.send, {"type": "abort", "id": f"abort {turn.id}"})
            self.awake.set()
    async def _drive(self, turn, text):
        try:
            async with self.lock:
                if not turn.cut and (not self.agent or self.agent.exited.is_set()):
                    await self.end()
                    self.agent, turn.fresh = Agent(self), True
                    try:
                        await self.nursery.start(self.agent.serve)
                    except OSError as error:
                        self.agent = None
                        turn.finish("spawn_failed", str(error))
                if turn.cut or turn.outcome:
                    return
                self.turn, turn.agent, turn.started = turn, self.agent, trio.current_time()
                self.nursery.start_soon(self.agent.send, {"type": "prompt", "id": turn.id, "message": text})
                while not turn.outcome:
                    with trio.move_on_at(turn.due()[0]):
                        await self.awake.wait()
                    for _ in range(3): await trio.lowlevel.checkpoint()  # what came at the same instant counts first
                    self.awake = trio.Event()
                    due, why = turn.due()
                    if self.agent.exited.is_set():
                        turn.finish("agent_lost", f"pi ended with {self.agent.status}")
                    elif self.agent.fault:
                        turn.finish(*self.agent.fault)
                    elif trio.current_time() >= due:
                        turn.finish(why) if turn.cut or turn.retry == due else self._cut(turn, why)
                if self.agent.fault or turn.cut and trio.current_time() >= turn.due()[0]:
                    await self.end()
        finally:
            turn.finish("stopped")
            turn.done.set()
    def event(self, kind, event):
        turn = Turn(self) if self.turn.outcome else self.turn
        if kind == "extension_ui_request" and event.get("method") in ("confirm", "select", "input", "editor"):
            self.nursery.start_soon(self._answer, self.agent, turn, event)
        elif kind == "response" and event.get("id") == turn.id and not event.get("success"):
            turn.finish("failed", event.get("error") or "")
        else:
            turn.handle(kind, event)
    async def _answer(self, agent, turn, event):
        answer = {"confirmed": False} if event["method"] == "confirm" else {"cancelled": True}
        if "confirmed" in answer and self.confirm and not turn.cut:
            try:
                with trio.move_on_after(self.limits.permission_timeout) as scope:
                    turn.questions.add(scope)
                    answer = {"confirmed": bool(await self.confirm(event))}
            except Exception:
                logging.getLogger(__name__).exception("the answer is no")
            turn.questions.discard(scope)
            turn.moved = trio.current_time()
            self.awake.set()
        await agent.send({"type": "extension_ui_response", "id": event.get("id"), **answer})
    async def end(self):  # pi, at once, with all that it started; the next prompt starts another
        if self.agent:
            self.turn.finish("stopped"), self.agent.scope.cancel()
            await self.agent.gone.wait()
@asynccontextmanager
async def open_session(argv, *, env=None, cwd=None, limits=Limits(), confirm=None):  # await confirm(event) answers extensions
    async with trio.open_nursery() as nursery:
        session = Session(argv, env, cwd, limits, confirm, nursery)
        yield session
        if session.agent:
            nursery.start_soon(session.agent.proc.stdin.aclose)
            with trio.move_on_after(limits.close_grace):
                await session.agent.exited.wait()
        await session.end()
        nursery.cancel_scope.cancel()
