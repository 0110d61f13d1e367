"""An asyncio client for agents that speak ACP (Agent Client Protocol: JSON-RPC over stdio). Linux, CPython 3.11+."""
import asyncio, contextlib, itertools, json, os, signal, uuid
from dataclasses import dataclass
DECODER, PROGRESS = json.JSONDecoder(), {"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
MARK, CANCELLED = "ACP_CLIENT_MARK", {"outcome": "cancelled"}
@dataclass(frozen=True)
class Limits:
    handshake: float = 60      # from the start of an agent to its session
    idle: float = 600          # a turn without progress; rests while the user owes an answer
    cancel_grace: float = 30   # from session/cancel to the end of an agent that does not acknowledge it
    permission: float = 600    # the handler's time to answer; then the answer is no
    close_grace: float = 5     # from the end of stdin, or a broken pipe, to TERM
    kill_grace: float = 5      # from TERM to KILL
    max_line: int = 32 << 20
class AcpError(Exception):
    def __init__(self, message, outcome="agent_lost"):
        super().__init__(message)
        self.outcome = outcome  # spawn_failed, handshake_failed, agent_lost, protocol_error; failed: the agent's own error
class Turn:
    outcome = stop_reason = error = None  # completed, failed, cancelled, timed_out, stopped, or an AcpError's
    began, progress, ended = None, 0.0, 0.0
    key = None  # of the message that goes on; None: the next chunk begins one
    def __init__(self):
        self.messages, self.wake = [], asyncio.Event()
    text = property(lambda self: self.messages[-1] if self.messages else "")
def read(pid, name):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()
def stat(pid):
    words = (read(pid, "stat") or b"").rpartition(b")")[2].split()  # state, parent, session, birth
    return (words[0], int(words[1]), int(words[3]), int(words[19])) if words else None
class Agent(asyncio.SubprocessProtocol):
    said = property(lambda self: "; stderr: " + self.stderr[-1000:].decode(errors="replace").strip() if self.stderr else "")
    stdin = property(lambda self: self.transport.get_pipe_transport(0))
    usable = property(lambda self: self.lost is None and self.ending is None and not self.stdin.is_closing())
    def __init__(self, limits, on_request, on_update):
        self.limits, self.on_request, self.on_update, self.loop = limits, on_request, on_update, asyncio.get_running_loop()
        self.exited, self.pending, self.questions, self.known, self.ending, self.lost = self.loop.create_future(), {}, {}, {}, None, None
        self.buffer, self.stderr, self.noise, self.ids, self.mark = bytearray(), bytearray(), 0, itertools.count(1), uuid.uuid4().hex.encode()
    async def spawn(self, argv, env, cwd):
        env = {**(os.environ if env is None else env), MARK: self.mark.decode()}
        self.transport, _ = await self.loop.subprocess_exec(lambda: self, *argv, env=env, cwd=cwd, start_new_session=True)
        self.pid, self.birth = (pid := self.transport.get_pid()), (stat(pid) or (0, 0, 0, None))[3]
    def pipe_data_received(self, fd, data):
        self.stderr = (self.stderr + data)[-65536:] if fd == 2 else self.stderr
        for piece in data.splitlines(keepends=True) if fd == 1 and self.lost is None else ():
            self.buffer += piece
            if len(self.buffer) > self.limits.max_line + 1:
                self.lose(AcpError("the agent writes a line that is too long", "protocol_error"))
                return self.end(0)
            if piece.endswith(b"\n"): self.buffer = self.hear(self.buffer) or bytearray()
    def hear(self, line):
        text = line.decode("utf-8-sig", "replace").strip()
        while text:  # one message, or what an agent ran together
            try:
                message, end = DECODER.raw_decode(text)
            except (ValueError, RecursionError):
                message, end = None, len(text)
            text = text[end:].lstrip()
            try:
                self.take(message)
            except (KeyError, TypeError, AttributeError):
                self.noise += 1
    def take(self, message):
        if "method" in message:
            params = params if isinstance(params := message.get("params"), dict) else {}
            hear = self.on_request if "id" in message else self.on_update
            hear(self, message.get("id"), message["method"], params)
        elif (future := self.pending.pop(message["id"], None)) and not future.done():
            error = message.get("error")
            words = str(error.get("message", error) if isinstance(error, dict) else error)
            future.set_exception(AcpError(words, "failed")) if error else future.set_result(message.get("result"))
    def pipe_connection_lost(self, fd, exc):
        if fd != 2 and self.ending is None and not self.exited.done():  # it can hear or say no more: time to go
            self.loop.call_later(self.limits.close_grace, self.end, 0)
    def process_exited(self):
        for fd in (1, 2):  # what it wrote is in the pipe, which a descendant may hold open
            with contextlib.suppress(OSError, ValueError, AttributeError):
                pipe = self.transport.get_pipe_transport(fd).get_extra_info("pipe").fileno()
                while data := os.read(pipe, 65536):
                    self.pipe_data_received(fd, data)
        self.pipe_data_received(1, b"\n" if self.buffer else b"")
        self.exited.set_result(self.transport.get_returncode())
        self.lose(AcpError(f"the agent has ended with {self.exited.result()}{self.said}"))
        self.end(0)
    def lose(self, error):
        self.lost = self.lost or error
        for future in [future for future in self.pending.values() if not future.done()]:
            future.set_exception(self.lost)
            future.exception()
        for task in self.questions: task.cancel()
    def send(self, **message):
        if self.lost is None and not self.stdin.is_closing():
            self.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    def request(self, method, params):
        future = self.pending[number := next(self.ids)] = self.loop.create_future()
        self.send(id=number, method=method, params=params)
        self.lose(self.lost) if self.lost else None
        return future
    def end(self, grace):
        if self.ending is None:
            self.ending = self.loop.create_task(self._end(grace))
            self.ending.add_done_callback(lambda end: end.cancelled() and self.signal(self.members().items(), signal.SIGKILL))
        return asyncio.shield(self.ending)
    async def _end(self, grace):
        self.stdin.close(), self.members()  # which remembers them while their parents live
        await asyncio.wait([self.exited], timeout=grace)
        self.lose(AcpError("the agent was ended"))
        began, kill, fields = self.loop.time(), self.limits.kill_grace, {}
        while (tree := self.members()) and (past := self.loop.time() - began) < 2 * kill:  # who sleeps in the kernel stays
            number = signal.SIGTERM if past < kill else signal.SIGKILL
            self.signal(tree.items() - fields.get(number, {}).items(), number)
            fields = {number: tree}
            await self.gone(next(iter(tree)), kill - past if past < kill else 1)
        await asyncio.wait([self.exited], timeout=1)
        self.transport.close()
    def members(self):
        """Find who descends from the agent, is in its session, or bears its mark: pids with their births."""
        table = {int(name): found for name in os.listdir("/proc") if name.isdigit() and (found := stat(name))}
        table.pop(os.getpid(), None)
        own = self.pid if self.pid not in table or table[self.pid][3] == self.birth else None  # None: given to another
        found = {pid for pid, (_, _, session, birth) in table.items()
                 if self.known.get(pid) == birth or own in (pid, session) or self.mark in (read(pid, "environ") or b"")}
        while more := {pid for pid, (_, parent, *_) in table.items() if parent in found} - found: found |= more
        self.known = {pid: table[pid][3] for pid in found}
        return {pid: birth for pid, birth in self.known.items() if table[pid][0] not in b"ZX"}
    def signal(self, tree, number):
        for pid, birth in tree:
            with contextlib.suppress(OSError), open(os.pidfd_open(pid), "rb", 0) as fd:
                state, *_, now = stat(pid) or (None, None)
                for each in (number, signal.SIGCONT)[:2 if state == b"T" else 1] if now == birth else ():
                    signal.pidfd_send_signal(fd.fileno(), each)
    async def gone(self, pid, timeout):
        with contextlib.suppress(OSError, TimeoutError), open(os.pidfd_open(pid), "rb", 0) as fd:
            ended = asyncio.Event()
            self.loop.add_reader(fd, ended.set)
            try:
                await asyncio.wait_for(ended.wait(), timeout)
            finally:
                self.loop.remove_reader(fd)
class Session:
    """One conversation; prompts wait for one another. An agent that was lost is replaced at the next prompt, in a new
    session. `on_permission` is an async function of the request's params: True, False or an optionId; without it: no."""
    def __init__(self, argv, *, env=None, cwd=None, limits=Limits(), on_permission=None):
        self.argv, self.env, self.cwd, self.limits = argv, env, os.path.abspath(cwd or os.getcwd()), limits
        self.on_permission, self.agent, self.id, self.turn = on_permission, None, None, None
        self.lock, self.closed, self.loop = asyncio.Lock(), False, asyncio.get_running_loop()
    async def start(self):
        agent = Agent(self.limits, self.request, self.update)
        try:
            await agent.spawn(self.argv, self.env, self.cwd)
        except OSError as error:
            raise AcpError(str(error), "spawn_failed") from error
        self.agent, can = agent, {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        try:
            async with asyncio.timeout(0 if self.closed else self.limits.handshake):
                hello = await agent.request("initialize", {"protocolVersion": 1, "clientCapabilities": can})
                if hello["protocolVersion"] != 1:
                    raise AcpError(f"the agent speaks version {hello['protocolVersion']}, not 1")
                self.id = (await agent.request("session/new", {"cwd": self.cwd, "mcpServers": []}))["sessionId"]
        except BaseException as error:
            await agent.end(0)
            if not isinstance(error, Exception): raise
            raise AcpError(f"no handshake: {str(error) or 'not in time' + agent.said}", "handshake_failed") from error
    async def prompt(self, text):
        """Ask, and give the turn. A cancel of this task cancels the turn; the next prompt waits until that is over."""
        turn = Turn()
        try:
            return await asyncio.shield(asyncio.create_task(self._take(turn, text)))
        except asyncio.CancelledError:
            self._decide(turn, "cancelled")
            raise
    def cancel(self): self._decide(self.turn, "cancelled") if self.turn else None
    async def close(self):
        self.closed = True
        self._decide(self.turn, "stopped") if self.turn else None
        await self.agent.end(self.limits.close_grace) if self.agent else None
    def _decide(self, turn, outcome):
        if turn.outcome is None:
            turn.outcome, turn.ended = outcome, self.loop.time()
            if turn is self.turn:
                self.agent.send(method="session/cancel", params={"sessionId": self.id})
                for task in [task for task, of in self.agent.questions.items() if of is turn]: task.cancel()
            turn.wake.set()
    async def _take(self, turn, text):
        async with self.lock:
            try:
                if turn.outcome is None and not self.closed and not (self.agent and self.agent.usable):
                    await self.agent.end(0) if self.agent else None
                    await self.start()
                self._decide(turn, "stopped") if self.closed else None
                if turn.outcome is None:
                    self.turn, turn.began = turn, self.loop.time()
                    await self._play(turn, self.agent, text)
            except AcpError as error:
                self.turn, turn.error = None, turn.error or str(error)
                self._decide(turn, "stopped" if self.closed else error.outcome)
        turn.ended = self.loop.time() if turn.outcome == "cancelled" else turn.ended  # the agent has let go only now
        return turn
    async def _play(self, turn, agent, text):
        limits, turn.progress = self.limits, turn.began
        reply = agent.request("session/prompt", {"sessionId": self.id, "prompt": [{"type": "text", "text": text}]})
        reply.add_done_callback(lambda _: turn.wake.set())
        while not reply.done():
            turn.wake.clear()
            left = turn.ended + limits.cancel_grace if turn.outcome else turn.progress + limits.idle
            left = None if turn in agent.questions.values() else left - self.loop.time()
            if left is None or left > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(turn.wake.wait(), left)
            else:  # it is late, or does not let go of the turn
                self._decide(turn, "timed_out") if turn.outcome is None else await agent.end(0)
        self.turn = None
        await agent.end(0) if agent.lost else None  # whatever it left is gone before anybody hears of it
        turn.stop_reason = result.get("stopReason") if isinstance(result := reply.result(), dict) else repr(result)
        found = {"end_turn": "completed", "cancelled": "cancelled"}.get(turn.stop_reason, "failed")
        turn.error = turn.error or (f"the agent stopped: {turn.stop_reason}" if found == "failed" else None)
        turn.outcome = None if turn.outcome == "cancelled" and found == "completed" else turn.outcome  # they crossed
        self._decide(turn, found)
    def update(self, agent, _, method, params):
        if method != "session/update" or self.turn is None or agent is not self.agent or params["sessionId"] != self.id:
            return
        turn, update = self.turn, params["update"]
        kind, key = update["sessionUpdate"], update.get("messageId", "")
        turn.progress = self.loop.time() if kind in PROGRESS else turn.progress
        if kind == "agent_message_chunk" and update["content"]["type"] == "text":
            turn.messages[len(turn.messages) - (turn.key == key):] = [turn.text * (turn.key == key) + update["content"]["text"]]
        turn.key = (key if kind == "agent_message_chunk" else None) if kind in PROGRESS else turn.key
    def request(self, agent, number, method, params):
        if method != "session/request_permission":
            return agent.send(id=number, error={"code": -32601, "message": f"{method} is not supported"})
        def answer(task):
            agent.questions.pop(task)
            agent.send(id=number, result={"outcome": CANCELLED if task.cancelled() else task.result()})
            if turn:
                turn.progress = self.loop.time()
                turn.wake.set()
        turn, task = self.turn, self.loop.create_task(self._ask(params))
        agent.questions[task] = turn
        task.add_done_callback(answer)
        if turn and turn.outcome or params.get("sessionId") != self.id: task.cancel()
    async def _ask(self, params):
        chosen = None
        with contextlib.suppress(Exception):  # a handler that is none, breaks, or is late, has allowed nothing
            chosen = await asyncio.wait_for(self.on_permission(params), self.limits.permission)
        with contextlib.suppress(AttributeError, TypeError):
            known = {option.get("kind"): option.get("optionId") for option in reversed(params.get("options"))}
            kinds = ("allow_once", "allow_always") if chosen else ("reject_once", "reject_always")
            chosen = chosen if isinstance(chosen, str) else known.get(kinds[0], known.get(kinds[1]))
        return {"outcome": "selected", "optionId": chosen} if isinstance(chosen, str) else CANCELLED
