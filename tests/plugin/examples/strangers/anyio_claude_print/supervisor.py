"""Supervise one-shot `claude -p ... --output-format stream-json --verbose` runs, on asyncio and on trio (POSIX)."""
from __future__ import annotations
import json, math, os, re, signal, subprocess, uuid
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence
import anyio, anyio.lowlevel, psutil
from anyio import CancelScope, current_time
_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
_ESCAPES = re.compile(r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-Z\\^-~])")
@dataclass(frozen=True)
class Limits:
    """Seconds and bytes; None switches a limit off."""
    silence: float | None = 300.0  # without a byte on stdout or stderr
    tool_silence: float | None = 1800.0  # the same while a tool or a sub-agent works, or the context is compacted
    total: float | None = 4 * 3600.0
    linger: float = 5.0  # how long claude may live on after its result
    background_linger: float = 30.0  # how much longer, if background tasks are still running
    grace: float = 5.0  # from TERM to KILL
    max_line: int = 16 * 2**20
    stderr_tail: int = 64 * 2**10

@dataclass
class Result:
    """`outcome` is success, error, silent, timeout, crashed, no_input, bad_output or not_started."""
    outcome: str = ""
    text: str = ""  # the answer, or without a result the last words
    error: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    cost_usd: float | None = None
    exit_code: int | None = None  # claude's; below 0 it is a signal
    terminated: bool = False  # whether that was our doing
    stderr: str = ""  # its end
    duration: float = 0.0  # until the outcome was known
    noise: int = 0  # lines on stdout that were no events
    warnings: list[str] = field(default_factory=list)

async def run(argv: Sequence[str], env: Mapping[str, str] | None = None, prompt: str | None = None, *,
              cwd: str | None = None, limits: Limits = Limits()) -> Result:
    """Run claude once; `prompt` goes to its stdin, None if argv has it. Nothing that claude does is raised.
    No process of claude is left when this returns, after a cancellation either."""
    mark, watched, left = f"CLAUDE_RUN_{uuid.uuid4().hex}", _Run(limits), []
    stdin = subprocess.DEVNULL if prompt is None else subprocess.PIPE
    env = {**(os.environ if env is None else env), mark: "1"}  # descendants inherit the mark, and are found by it
    try:
        with CancelScope(shield=True):
            process = await anyio.open_process(list(argv), stdin=stdin, env=env, cwd=cwd, start_new_session=True)
    except OSError as error:
        watched.decide("not_started", f"cannot start {argv[0]}: {error}")
        return watched.result
    tree = _Tree(process.pid, mark)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watched.read, process.stdout, watched.take_stdout)
            tasks.start_soon(watched.read, process.stderr, watched.take_stderr)
            tasks.start_soon(watched.reap, process)
            if prompt is not None: tasks.start_soon(watched.feed, process.stdin, prompt.encode())
            try:
                await watched.watch()
            finally:
                watched.result.terminated = watched.exited is None
                with CancelScope(shield=True):
                    left = await tree.end(limits.grace)
            with anyio.move_on_after(2):  # what is in the pipes still counts; a stranger may hold them open
                while watched.exited is None or watched.streams:
                    await watched.change()
            tasks.cancel_scope.cancel()
    finally:
        with anyio.move_on_after(2, shield=True):
            await process.aclose()
    return watched.conclude(process.returncode, left)

class _Run:
    """The known facts of one run."""
    def __init__(self, limits: Limits) -> None:
        self.limits, self.result, self.started, self.last = limits, Result(), current_time(), current_time()
        self.decided = self.exited = self.unfed = self.message = None
        self.streams, self.wake, self.stderr = 2, anyio.Event(), b""
        self.line, self.size, self.words, self.fresh, self.compacting, self.idle = [], 0, [], True, False, 0.0
        self.tools: set[Any] = set()
        self.tasks: dict[Any, Any] = {}
    def decide(self, outcome: str, error: str = "") -> None:
        if self.decided is None:
            self.decided, self.result.outcome, self.result.error = current_time(), outcome, error
    def change(self) -> Any:
        self.wake = anyio.Event()
        return self.wake.wait()
    async def read(self, stream: Any, take: Any) -> None:
        with suppress(*_GONE):
            async for chunk in stream:
                self.last = current_time()
                take(chunk)
                self.wake.set()
        take(b"")
        self.streams -= 1
        self.wake.set()
    async def reap(self, process: Any) -> None:
        await process.wait()
        self.exited = current_time()
        self.wake.set()
    async def feed(self, stream: Any, data: bytes) -> None:
        try:
            await stream.send(data)
            await stream.aclose()
        except _GONE:
            self.unfed = current_time()
            self.wake.set()
    def deadline(self) -> tuple[float, str, str]:
        """Say when patience is over, and with which outcome and error."""
        limits = self.limits
        if self.decided is not None:
            if self.result.outcome not in ("success", "error"): return self.decided, "", ""
            last = self.decided + limits.linger + limits.background_linger  # from the end of the tasks on, at the most
            return (last if self.tasks else min(last, max(self.decided, self.idle) + limits.linger)), "", ""
        silence = limits.silence
        if self.tools or self.compacting or "local_agent" in self.tasks.values():
            silence = None if None in (silence, limits.tool_silence) else max(silence, limits.tool_silence)
        ends = [(self.unfed, limits.linger, "no_input", "claude closed its stdin before it had the prompt"),
                (self.last, silence, "silent", f"no output for {silence} s"),
                (self.started, limits.total, "timeout", f"not done after {limits.total} s")]
        ends = [(since + limit, *what) for since, limit, *what in ends if None not in (since, limit)]
        return min(ends, default=(math.inf, "", ""))
    async def watch(self) -> None:
        """Return when claude has exited, or is to be ended."""
        while self.exited is None:
            if current_time() < (at := self.deadline()[0]):
                with anyio.move_on_after(at - current_time()):
                    await self.change()
                continue
            for _ in range(5):  # the loop may have been blocked: what has come meanwhile counts
                await anyio.lowlevel.checkpoint()
            at, outcome, error = self.deadline()
            if self.exited is None and current_time() >= at:
                return self.decide(outcome, error)
    def take_stderr(self, chunk: bytes) -> None:
        self.stderr = (self.stderr + chunk)[-self.limits.stderr_tail :]
    def take_stdout(self, chunk: bytes) -> None:
        for number, piece in enumerate(chunk.split(b"\n") if chunk else [b"", b""]):  # its end is the end of a line
            if number:
                self.take_line(b"".join(self.line).decode("utf-8", "replace"))
                self.line, self.size = [], 0
            self.line.append(piece)
            self.size += len(piece)
            if self.size > self.limits.max_line:
                self.line = []
                self.decide("bad_output", f"a line of more than {self.limits.max_line} bytes")
    def take_line(self, line: str) -> None:
        text = _ESCAPES.sub("", line).strip("\ufeff \t\r\0")
        while text:
            event, end = None, 0
            with suppress(ValueError, RecursionError):
                event, end = json.JSONDecoder().raw_decode(text)
            if known := isinstance(event, dict) and isinstance(event.get("type"), str):
                self.take_event(event, event["type"])
            self.result.noise, text = self.result.noise + (not known), text[end:].lstrip() if known else ""
    def take_event(self, event: dict[str, Any], kind: str) -> None:
        message, part, own = _dict(event, "message"), _dict(event, "event"), event.get("parent_tool_use_id") is None
        what, status = event.get("subtype"), event.get("status") or _dict(event, "patch").get("status")
        if what == "task_started":
            self.tasks[str(event.get("task_id"))] = str(event.get("task_type"))
        elif what in ("task_notification", "task_updated") and status in ("completed", "failed", "stopped", "killed"):
            task = str(event.get("task_id"))
            self.idle = current_time() if task in self.tasks else self.idle
            if self.tasks.pop(task, None) and self.decided is not None and status in ("stopped", "killed"):
                self.result.warnings.append(f"background task {task} was stopped before it had ended")
        elif what in ("status", "compact_boundary"):
            self.compacting = status == "compacting"
        if self.decided is not None: return
        if kind == "user":
            self.tools -= {str(block.get("tool_use_id")) for block in _blocks(message)}
        elif kind == "assistant" and own:
            self.begin(message)
            for block in _blocks(message):
                if block.get("type") == "text": self.say(str(block.get("text", "")), whole=True)
                if block.get("type") == "tool_use": self.tools.add(str(block.get("id")))
        elif kind == "stream_event" and own and part.get("type") == "message_start":
            self.begin(_dict(part, "message"))
        elif kind == "stream_event" and own and _dict(part, "delta").get("type") == "text_delta":
            self.say(str(part["delta"].get("text", "")), whole=False)
        elif kind == "result" and _dict(event, "origin").get("kind", "human") == "human":
            self.take_result(event)
    def begin(self, message: dict[str, Any]) -> None:
        """Begin a message, unless it is known by its id: then the tools of earlier ones have ended."""
        if message.get("id") is None or message["id"] != self.message:
            self.message, self.fresh, self.compacting, self.tools = message.get("id"), True, False, set()
    def say(self, text: str, whole: bool) -> None:
        """Keep the last words: whole blocks, then the pieces of an unfinished block."""
        words, self.fresh = [""] if self.fresh else self.words, False
        self.words = [*words[:-1], text, ""] if whole else [*words[:-1], words[-1] + text]
    def take_result(self, event: dict[str, Any]) -> None:
        text, subtype = event.get("result"), str(event.get("subtype", "success"))
        self.result.usage, self.result.cost_usd = _dict(event, "usage"), event.get("total_cost_usd")
        if not event.get("is_error") and subtype == "success":
            self.result.text = text if isinstance(text, str) else ""
            return self.decide("success")
        errors = event["errors"] if isinstance(event.get("errors"), list) else []
        reasons = [str(reason) for reason in (subtype * (subtype != "success"), text, *errors) if reason]
        self.decide("error", ": ".join(reasons) or "claude reports an error")
    def conclude(self, code: int | None, left: list[int]) -> Result:
        result, stderr = self.result, self.stderr.decode("utf-8", "replace")
        result.exit_code, result.stderr = code, stderr
        if self.decided is None:
            how = f"exited with code {code}" if code is None or code >= 0 else f"died of signal {-code}"
            last = f"; stderr ends: {stderr.strip()[-1000:]}" if stderr.strip() else ""
            self.decide("error" if code and code > 0 else "crashed", f"claude {how} without a result{last}")
        elif result.outcome == "success" and code and not result.terminated:
            result.warnings.append(f"claude reported success, but ended with code {code}")
        result.text = (result.text or "".join(self.words)).encode("utf-8", "replace").decode()
        result.duration = min(self.decided, self.exited or math.inf) - self.started
        result.warnings += [f"background task {task} had not ended" for task in self.tasks]
        result.warnings += [f"process {pid} could not be ended" for pid in left]
        return result

class _Tree:
    """Every process that descends from claude, is in its session, or has inherited its mark."""
    def __init__(self, root: int, mark: str) -> None:
        self.root, self.mark, self.known = root, mark, set()
    def alive(self) -> set[psutil.Process]:
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if os.getsid(process.pid) == self.root or self.mark in process.environ():
                    self.known.add(process)
        for process in [*self.known]:
            with suppress(psutil.Error): self.known.update(process.children(recursive=True))
        return {process for process in self.known if _lives(process)}
    async def end(self, grace: float) -> list[int]:
        """Have all of them end: TERM, KILL after the grace, newcomers too. Give those that cannot be ended."""
        kill_at, reported, empty = current_time() + grace, set(), 0
        while empty < 3:  # one look may miss those that fork while it looks
            alive, kill = self.alive(), current_time() >= kill_at
            empty = 0 if alive else empty + 1
            if current_time() > kill_at + 10: return sorted(process.pid for process in alive)
            for process in alive if kill else alive - reported:
                with suppress(psutil.Error):  # psutil signals no other process that has the pid now
                    process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            reported |= alive
            if alive:
                await anyio.sleep(0.02 if kill else max(0.0, min(0.02, kill_at - current_time())))
        return []

def _lives(process: psutil.Process) -> bool | None:
    with suppress(psutil.Error):
        return process.is_running() and process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)

def _dict(event: dict[str, Any], key: str) -> dict[str, Any]:
    return event[key] if isinstance(event.get(key), dict) else {}

def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
