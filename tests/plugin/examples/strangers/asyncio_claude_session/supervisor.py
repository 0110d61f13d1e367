"""Hold a session with `claude -p --input-format stream-json --output-format stream-json --verbose`: asyncio, Linux, 3.11.

prompt() never raises the agent's behaviour: it is the Result. One prompt is in flight at a time, others queue.
The agent's own messages, after a background task has ended, go to `background` and never into a prompt's result.
A session whose agent has exited is over: open a new one.
"""
import asyncio, json, os, signal, uuid
from contextlib import suppress
from dataclasses import dataclass

LIMITS = dict(prompt_timeout=1800, cancel_grace=60, permission_timeout=120, handshake_timeout=60, close_grace=5, kill_grace=3,
              max_line_bytes=32 << 20)
PROGRESS = {"assistant", "user", "stream_event", "result", "control_request"}  # the rest is signs of life
DRAIN = 1.0  # between one sign of an agent's end and the others
class HandshakeError(Exception):
    """The agent has started, and does not talk; a missing program is an OSError."""
@dataclass
class Result:
    outcome: str  # completed, failed, cancelled, timed_out, stopped, agent_lost, input_failed or protocol_error
    text: str = ""
    error: str = ""
    usage: dict | None = None
    stop_reason: str | None = None
class Turn:
    def __init__(self, text, loop):
        self.message = {"role": "user", "content": text}
        self.uuid, self.done, self.progress = str(uuid.uuid4()), loop.create_future(), loop.time()
        self.begun, self.interrupted, self.why, self.foreign = False, None, "", None

class ClaudeSession(asyncio.SubprocessProtocol):
    def __init__(self, argv, *, env=None, cwd=None, can_use_tool=None, **limits):
        self.__dict__.update(LIMITS | limits)
        self.argv, self.env, self.cwd = list(argv), dict(os.environ if env is None else env), cwd
        self.can_use_tool = can_use_tool  # async (tool name, input) -> bool
        self.background, self.noise, self.stderr_tail, self.returncode = [], 0, b"", None
        self._buffer, self._scanned, self._eof, self._deaf, self._mark = bytearray(), 0, False, False, uuid.uuid4().hex
        self._transport = self._turn = self._over = self._ending = None
        self._waiting, self._queue, self._questions, self._jobs, self._marks = {}, [], {}, set(), False
    async def start(self):
        self._loop, self._kick, self._leave = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        env = {**self.env, "CLAUDE_SESSION_MARK": self._mark}  # every descendant inherits it, so that daemons are found, too
        await self._loop.subprocess_exec(lambda: self, *self.argv, env=env, cwd=self.cwd, start_new_session=True)
        try:
            async with asyncio.timeout(self.handshake_timeout):
                response = await self._request("initialize", hooks=None)
            if response.get("subtype") != "success":
                raise HandshakeError(str(response.get("error")))
        except BaseException as error:
            await self.stop()
            raise HandshakeError("no answer to initialize in time") if isinstance(error, TimeoutError) else error
    async def prompt(self, text):
        turn = Turn(text, self._loop)
        self._queue.append(turn)
        self._next()
        try:
            return await asyncio.shield(turn.done)
        except asyncio.CancelledError:  # of the caller's task: the turn is taken back behind it
            turn in self._queue and self._queue.remove(turn)
            turn is self._turn and await self.cancel()
            raise
    async def cancel(self):
        """Take the turn in flight back; its prompt() returns when the agent has let go of it."""
        self._turn and not self._turn.why and self._interrupt("cancelled")
    async def close(self):  # the end of stdin, then TERM, then KILL, for the whole tree
        await self._end(Result("stopped", error="the session was closed"), self.close_grace)
    async def stop(self):  # the same without waiting for the agent to leave by itself
        await self._end(Result("stopped", error="the agent was stopped"), 0)
    def _next(self):
        while self._queue and not self._turn:
            turn = self._queue.pop(0)
            if self._over or self._deaf:
                turn.done.set_result(self._over or Result("agent_lost", error="the agent has closed its stdin"))
            else:
                self._turn, turn.progress = turn, self._loop.time()
                self._send(type="user", message=turn.message, parent_tool_use_id=None, session_id="", uuid=turn.uuid)
                self._job(self._watch(turn))
    async def _watch(self, turn):
        while not turn.done.done():
            until = turn.interrupted + self.cancel_grace if turn.why else turn.progress + self.prompt_timeout
            until = None if self._questions and not turn.why else until  # the caller owes an answer, with its own limit
            if until is None or self._loop.time() < until:
                self._kick.clear()
                await self._until(self._kick, until)
            elif not turn.why:
                self._interrupt("timed_out")
            else:
                self._finish(Result(turn.why, error="the agent did not let go of the turn"))
    def _interrupt(self, why):
        if not self._turn.why:
            self._turn.interrupted, self._turn.why = self._loop.time(), why
        self._request("interrupt")  # the agent reads it before the next prompt, which it cannot hit
        self._kick.set()
    def _settle(self, result):
        turn, self._turn = self._turn, None
        turn and turn.done.set_result(result)
        self._kick.set()
        self._next()
    def _result(self, message):
        turn, uuids, origin = self._turn, message.get("user_message_uuids"), message.get("origin") or {}
        good = message.get("subtype") == "success" and not message.get("is_error")
        text = message.get("result") or ""
        error = "" if good else text or "; ".join(map(str, message.get("errors") or [])) or str(message.get("subtype"))
        result = Result("completed" if good else "failed", text, error, message.get("usage"), message.get("stop_reason"))
        if turn:
            if turn.uuid in uuids if uuids else not self._marks and origin.get("kind", "human") == "human":
                aborted = str(message.get("terminal_reason", "aborted")).startswith("aborted")
                result.outcome = turn.why if turn.why and not good and aborted else result.outcome
                return self._settle(result)
            turn.foreign = result
            turn.why and self._interrupt(turn.why)  # the one before has met the wrong turn
        if text or not good:
            self.background.append(result)
    def _message(self, message):
        kind, turn, mine = message.get("type"), self._turn, False
        uuids = message.get("user_message_uuids") or ()
        self._marks = self._marks or bool(uuids)  # such an agent's results name their prompts: one that does not is nobody's
        if turn:
            turn.progress = self._loop.time() if kind in PROGRESS else turn.progress
            mine = kind == "command_lifecycle" and message.get("command_uuid") == turn.uuid
            if not turn.begun and (turn.uuid in uuids or mine and message["state"] == "started"):
                turn.begun = True
                if turn.why and kind != "result":
                    self._interrupt(turn.why)  # what was sent before may have met nothing
        if kind == "result":
            self._result(message)
        elif mine and message["state"] == "completed" and turn.foreign:  # a turn that was there has swallowed the prompt
            self._settle(turn.foreign)
        elif kind == "control_response":
            self._waiting.pop(message["response"]["request_id"], self._loop.create_future()).set_result(message["response"])
        elif kind == "control_request" and message["request_id"] not in self._questions:
            self._questions[message["request_id"]] = self._job(self._answer(message["request_id"], message["request"]))
        elif kind == "control_cancel_request" and message["request_id"] in self._questions:
            self._questions.pop(message["request_id"]).cancel()
    async def _answer(self, rid, request):
        response = {"subtype": "error", "request_id": rid, "error": f"not supported: {request.get('subtype')}"}
        try:
            if request.get("subtype") == "can_use_tool":
                word = {"behavior": "deny", "message": "The user did not allow this."}
                with suppress(Exception):  # also a TimeoutError: what is not allowed is denied
                    async with asyncio.timeout(self.permission_timeout):
                        if self.can_use_tool and await self.can_use_tool(request["tool_name"], request["input"]):
                            word = {"behavior": "allow", "updatedInput": request["input"]}
                response = {"subtype": "success", "request_id": rid, "response": word}
            self._send(type="control_response", response=response)
        finally:
            self._questions.pop(rid, None)
            self._turn and setattr(self._turn, "progress", self._loop.time())
            self._kick.set()
    def connection_made(self, transport):
        self._transport = transport
    def pipe_data_received(self, fd, data):
        self.stderr_tail = (self.stderr_tail + data)[-65536:] if fd == 2 else self.stderr_tail
        self._buffer += data if fd == 1 else b""
        while (end := self._buffer.find(b"\n", self._scanned)) >= 0 and end <= self.max_line_bytes:
            line, self._scanned = self._buffer[:end], 0
            del self._buffer[:end + 1]
            self._line(line)
        self._scanned = len(self._buffer) if end < 0 else 0
        if len(self._buffer) > self.max_line_bytes:
            self._buffer, self._scanned = bytearray(), 0
            self._finish(Result("protocol_error", error=f"a line of more than {self.max_line_bytes} bytes"))
    def _line(self, line):
        try:
            if line.strip() and not self._over:
                self._message(json.loads(line.decode("utf-8-sig", "replace")))
        except Exception:  # no JSON, or not of the shape that it should have
            self.noise += 1
    def pipe_connection_lost(self, fd, error):
        if fd == 1 and self._buffer:
            self._line(self._buffer)
        self._eof, self._deaf = self._eof or fd == 1, self._deaf or fd == 0
        if fd != 2:  # who exits closes all: that is told apart from who closes one
            self._gone() if self._eof and self.returncode is not None else self._loop.call_later(DRAIN, self._gone)
    def process_exited(self):
        self.returncode = self._transport.get_returncode()
        self._leave.set()
        self._gone() if self._eof else self._loop.call_later(DRAIN, self._gone)  # a descendant may hold its stdout
    def _gone(self):
        busy, alive = self._turn, self.returncode is None
        if alive and not self._eof and busy and self._turn.begun:
            return self._loop.call_later(DRAIN, self._gone)  # deaf, but at work: it may still end its turn
        how = f"closed its {'stdout' if self._eof else 'stdin'}" if alive else f"ended with {self.returncode}"
        how += "; " + self.stderr_tail.decode(errors="replace")[-500:].strip() if self.stderr_tail else ""
        self._finish(Result("input_failed" if alive and busy and not self._eof else "agent_lost", error=f"the agent {how}"))
    def _finish(self, result):
        if self._over is None:
            self._over = result if result.outcome == "stopped" else Result("agent_lost", error=result.error)
            self._settle(result)
            [future.done() or future.set_result({"error": result.error}) for future in self._waiting.values()]
            [question.cancel() for question in self._questions.values()]
            result.outcome == "stopped" or self._job(self._end(result, 0))
    async def _end(self, result, grace):
        if self._transport:
            self._finish(result)
            grace or self._leave.set()
            self._ending = self._ending or self._job(self._shut(grace))
            try:
                await asyncio.shield(self._ending)
            except asyncio.CancelledError:
                [os.close(pidfd) for pidfd in self._signal(signal.SIGKILL)]
                raise
    async def _shut(self, grace):
        self._transport.get_pipe_transport(0) and self._transport.get_pipe_transport(0).close()
        await self._until(self._leave, self._loop.time() + grace)
        for number, time in [(signal.SIGTERM, self.kill_grace)] + [(signal.SIGKILL, 1.0)] * 5:
            until, pidfds = self._loop.time() + time, self._signal(number)
            for pidfd in pidfds:
                ended = asyncio.Event()
                self._loop.add_reader(pidfd, ended.set)
                await self._until(ended, until)
                self._loop.remove_reader(pidfd)
                os.close(pidfd)
            if not pidfds: break
        while self.returncode is None and self._loop.time() < until:  # it has ended, and is yet to be reaped
            await asyncio.sleep(0.01)
        self._transport.close()
    async def _until(self, event, time):
        with suppress(TimeoutError):
            async with asyncio.timeout_at(time):
                await event.wait()
    def _signal(self, number):
        """Signal all that live, and give their pidfds: what descends from the agent, is in its session, or has its mark."""
        found, mine, agent, pidfds = {}, set(), self._transport.get_pid(), []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with suppress(OSError):
                state, ppid, _, session = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[:4]
                if state not in "ZX" and pid != os.getpid():
                    found[pid] = int(ppid), state
                    if int(session) == agent or self._mark.encode() in open(f"/proc/{pid}/environ", "rb").read():
                        mine.add(pid)
        while more := {pid for pid, (ppid, _) in found.items() if ppid in mine} - mine: mine |= more
        for pid in mine:
            with suppress(OSError):
                pidfds.append(os.pidfd_open(pid))
                signal.pidfd_send_signal(pidfds[-1], number)
                found[pid][1] == "T" and signal.pidfd_send_signal(pidfds[-1], signal.SIGCONT)
        return pidfds
    def _request(self, subtype, **fields):
        rid = str(uuid.uuid4())
        self._waiting[rid] = self._loop.create_future()
        self._send(type="control_request", request_id=rid, request={"subtype": subtype, **fields})
        return self._waiting[rid]
    def _send(self, **message):
        stdin = self._transport.get_pipe_transport(0)
        stdin and not stdin.is_closing() and stdin.write(json.dumps(message).encode() + b"\n")
    def _job(self, work):
        job = self._loop.create_task(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job
