"""The wire format of a claude that is talked to (`--input-format stream-json`), as the real CLI prints it.

A prompt is queued as it comes, and its turn begins when the script takes it in hand: with `init`, which comes anew for
every turn. If its line had a uuid, so do init, the first lines of the turn and the result. A prompt that comes while a
tool runs is swallowed by that turn, and has no result of its own. A background turn has no uuid, and its result says
where it comes from. What is told outside a turn begins none.
"""

from __future__ import annotations

from fake_agents.dialects import claude
from fake_agents.dialects.claude import SESSION
from fake_agents.dialects.claude_control import (
    DECISIONS,
    INITIALIZED,
    about_which,
    answer_of,
    asking,
    failed,
    success,
    withdrawn,
)
from fake_agents.dialects.claude_tasks import ended, folded, origin, started, tool_of
from fake_agents.objects import line
from fake_agents.questions import CANCELLED, Questions
from fake_agents.requests import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fake_agents.program import Program
    from fake_agents.questions import Question

_READS, _EMITS = b"CLAUDE_CODE_SDK_READS_SESSION_STATE", b"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"
_WITHOUT_DATA = ("set_permission_mode", "set_model")
_ABORTED = "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason="
_REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


class Encoder(claude.Encoder):
    """Encode a conversation: one turn for each prompt that is taken in hand, and for each background turn."""

    error_is_exit = False  # the exit comes with the end of stdin, and the last result decides
    code = version = 0

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.questions = Questions()
        self._calls: dict[str, dict[str, Any]] = {}
        environ = program.get("environ", {})
        self._has_states = _READS in environ or _EMITS in environ
        self._state_more = {"sdk_host_only": True} if _READS in environ else {}
        self._replays = "--replay-user-messages" in program.get("argv", ())
        self._begun = True
        self._is_idle = True
        self._prompts: list[dict[str, Any]] = []
        self._waiting: list[int] = []
        self._hand: list[int] = []
        self._unseen: list[int] = []
        self._run: str | None = None
        self._marked: set[str] = set()
        self._running: list[str] = []
        self._interrupts: list[dict[str, Any]] = []
        self._ends = self._cut = 0
        self._tasks: dict[str, dict[str, Any]] = {}
        self._runs: dict[str, str] = {}
        self._folded: list[dict[str, Any]] = []
        more = {"task": self.task, "task_done": self.task_done, "background_turn": self.background_turn}
        self.events = {**self.events, **more}

    def hear(self, request: bytes, now: int) -> tuple[bytes, str]:
        """Queue a prompt, answer a control request; an interrupt of a turn is the script's to answer."""
        heard = read(request)
        if heard is None:
            told = f"Error parsing streaming input line (type=unknown, {len(request)} chars): SyntaxError\n"
            return told.encode(), "fault"
        if heard.get("type") == "user":
            return self._joined(self._queue(heard)), ""
        if heard.get("type") == "control_response":
            return self._joined(self._decided(heard.get("response"))), ""
        asked = heard.get("request")
        if heard.get("type") != "control_request" or not isinstance(asked, dict):
            return b"", ""  # a sign of life
        if asked.get("subtype") == "interrupt" and (self._hand or self._waiting or self._run):
            self._interrupts.append(heard)
            self._cut = self._ends
            return self._joined(self._withdraw()), "cancel"
        event = "handshake" if asked.get("subtype") == "initialize" else ""
        return self._joined(self._answered(heard, asked, now)), event

    def refuse(self, request: bytes, error: str) -> bytes:
        """Give the control response that refuses `initialize`."""
        return self._lines.join([failed(read(request) or {}, {"error": error})])

    def has(self, number: int) -> bool:
        """Say whether the prompt has, or had, a turn of its own: one that was swallowed never has."""
        return len(self._prompts) >= number and not self._prompts[number - 1].get("swallowed")

    def take(self, number: int, now: int) -> bytes:
        """Begin the prompt's turn."""
        if number - 1 not in self._waiting:
            return b""
        self._waiting.remove(number - 1)
        self._open_turn([number - 1], None)
        return self._joined([*self._lifecycle(number - 1, "started"), *self._begin()])

    def acknowledge(self, now: int) -> bytes:
        """Give the control response, what the interrupt leaves of the turn, and its error result."""
        if not self._interrupts:
            return b""
        made = b"" if self._hand or self._run or not self._waiting else self.take(self._waiting[0] + 1, now)
        queued = [self._prompts[index]["uuid"] for index in self._waiting if "uuid" in self._prompts[index]]
        events = [success(request, {"still_queued": queued}) for request in self._interrupts]
        self._interrupts = []
        if self._cut == self._ends and (self._hand or self._run):  # else the turn ended before, by itself
            events += [*self._replay(now), *self._aborted(now)]
        return made + self._joined(events)

    def ask(self, fields: dict[str, Any], now: int) -> tuple[Question, bytes]:
        """Open a question about the tool that runs, or about one that nobody saw; give the control request."""
        call = about_which(fields, self._calls, self.questions)
        key = self._uuid() if fields["id"] is None else fields["id"]
        question = self.questions.ask(key, fields, call["id"], in_turn=bool(self._hand or self._run))
        state = self._state("requires_action") if fields["kind"] == "permission" else []
        return question, self._joined([*state, asking(question, call)])

    def result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the result, which ends the turn; the exit code is the last one's."""
        self.code = 1 if fields["is_error"] else 0
        swallowed = [event for index in self._hand[1:] for event in self._lifecycle(index, "completed")]
        return self._joined(swallowed) + super().result(fields, now) + self._joined(self._over())

    def tool(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the block that asks for a tool."""
        self._calls[fields["id"]] = fields
        if fields.get("parent") is None:
            self._running.append(fields["id"])
        return super().tool(fields, now)

    def tool_done(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the result of a tool; it carries the prompts that came meanwhile, unless the turn is nobody's.

        The ends of tasks that were folded into the turn are carried, too.
        """
        made = super().tool_done(fields, now)
        self._calls.pop(fields["id"], None)
        if fields["id"] not in self._running:
            return made
        self._running.remove(fields["id"])
        carried, self._folded = self._folded, []
        made += self._joined([event for one in carried for event in self._replayed(one, now)])
        if not self._hand or self._run:
            return made
        swallowed, self._waiting = self._waiting, []
        self._hand += swallowed
        for index in swallowed:
            self._prompts[index]["swallowed"] = True
        return made + self._joined([event for index in swallowed for event in self._lifecycle(index, "started")])

    def task(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the tool that starts a background task, the task's start, and the tool's end."""
        number, kind = fields["id"], fields["kind"]
        is_agent = kind == "local_agent"
        tool = {"id": tool_of(number), "name": "Task" if is_agent else "Bash"}
        about = {"prompt": number} if is_agent else {"command": number}
        made = self.tool({**tool, "input": {**about, "description": number, "run_in_background": True}}, now)
        self._runs[number] = run = f"run-{number}"
        self._tasks[number] = {"task_id": number, "run_id": run, "task_type": kind, "description": number}
        made += self._joined([self._changed(), self._system("task_started", started(number, run, is_agent=is_agent))])
        output = f"Command running in background with ID: {number}."
        if is_agent:
            output = "Async agent launched successfully."
        return made + self.tool_done({"id": tool["id"], "output": output, "error": None}, now)

    def task_done(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the end of a background task; one that is folded is told to the model with the next tool's result."""
        number, status = fields["id"], fields["status"]
        if fields["folded"]:
            self._folded.append(folded(number, self._runs.get(number, ""), status))
        return self._joined(self._ended(number, status, now))

    def background_turn(self, fields: dict[str, Any], now: int) -> bytes:
        """Begin a turn that no prompt asked for, behind an empty one if there is one."""
        events, run = self._running_again(), self._runs[fields["task"]]
        if fields["empty_result_first"]:
            self._open_turn(self._hand, run)
            events += [*self._begin(), self._empty()]
        self._open_turn(self._hand, run)
        return self._joined([*events, *self._begin()])

    def _decided(self, response: Any) -> list[bytes]:
        """Take the answer to a question; what answers none is nothing."""
        told = response if isinstance(response, dict) else {}
        question = self.questions.find(told.get("request_id"))
        if question is None:
            return []
        answer, kind = answer_of(question, told), question.fields["kind"]
        self.questions.settle(question, answer)
        if (kind, answer) in DECISIONS:
            self._decisions[question.tool] = DECISIONS[kind, answer]
        return self._state("idle" if self._is_idle else "running") if kind == "permission" else []

    def _withdraw(self) -> list[bytes]:
        """Take back what was asked within the turn that is interrupted."""
        asked = [question for question in self.questions.open() if question.in_turn]
        for question in asked:
            self.questions.settle(question, CANCELLED)
        return [withdrawn(question) for question in asked]

    def _joined(self, events: list[bytes]) -> bytes:
        return self._lines.join(events) if events else b""

    def _queue(self, heard: dict[str, Any]) -> list[bytes]:
        index = len(self._prompts)
        self._prompts.append(heard)
        self._waiting.append(index)
        return [*self._running_again(), *self._lifecycle(index, "queued")]

    def _answered(self, heard: dict[str, Any], asked: dict[str, Any], now: int) -> list[bytes]:
        kind = asked.get("subtype")
        if kind == "initialize":
            return [success(heard, INITIALIZED)]
        if kind == "interrupt":
            return [success(heard, {"still_queued": []})]
        if kind == "stop_task":
            number = str(asked.get("task_id"))
            is_running = number in self._tasks
            ended = self._ended(number, "stopped", now) if is_running else []
            return [*ended, success(heard, {}), *(self._state("idle") if is_running and self._is_idle else [])]
        if kind in _WITHOUT_DATA:
            return [success(heard, {})]
        error = f"Unsupported control request subtype: {kind}"
        return [failed(heard, {"error": error, "error_code": "unsupported_request"})]

    def _open_turn(self, hand: list[int], run: str | None) -> None:
        self._hand, self._run, self._unseen = hand, run, [] if run else list(hand)
        self._begun, self._marked, self._messages = False, set(), []
        self._said, self._stop, self._turns = "", None, 1

    def _over(self) -> list[bytes]:
        """End the turn."""
        self._ends += 1
        self._index += 1
        events = [event for index in self._hand[:1] if not self._run for event in self._lifecycle(index, "completed")]
        if not self._run:
            self._hand = []
        self._run, self._running, self._begun = None, [], not self._hand
        if self._hand or self._waiting:
            return events
        self._is_idle = True
        return [*events, *self._state("idle")]

    def _aborted(self, now: int) -> list[bytes]:
        tools, (before, behind) = self._running[:], self._abandon(now)
        events = [*self._begin(), *before]
        for number in tools:
            self._waiting, waiting = [], self._waiting  # an interrupt leaves in the queue what is there
            events.append(self.tool_done({"id": number, "output": "", "error": _REJECTED}, now).rstrip(b"\r\n"))
            self._waiting = waiting
        text = "[Request interrupted by user" + (" for tool use]" if tools else "]")
        block = {"type": "text", "text": text}
        events.append(self._line("user", {"role": "user", "content": [block]}, None, now, {}))
        events += behind
        if not tools:
            self._stop = None
        self.code, self._turns = 1, self._turns + 1
        told = {"errors": [_ABORTED + ("tool_use" if tools else "null")]}
        fields = {"is_error": True, "subtype": "error_during_execution", "usage": None}
        events.append(self._result(told, "aborted_tools" if tools else "aborted_streaming", fields, now))
        return [*events, *self._over()]

    def _empty(self) -> bytes:
        """Give the result without a message that comes first when two tasks end together."""
        fields = {"is_error": False, "subtype": "success", "usage": None}
        self._turns = 0
        made = self._result({"result": ""}, "", fields, 0)
        self._index += 1
        return made

    def _ended(self, number: str, status: str, now: int) -> list[bytes]:
        self._tasks.pop(number, None)
        updated, notified = ended(number, self._runs.get(number, ""), status, now)
        return [
            self._system("task_updated", updated),
            self._system("task_notification", notified),
            self._changed(),
        ]

    def _changed(self) -> bytes:
        return self._system("background_tasks_changed", {"tasks": list(self._tasks.values())})

    def _mark(self, kind: str) -> dict[str, Any]:
        """Say whose turn it is, where the real CLI does."""
        if kind == "origin":
            return {"origin": origin(self._run)} if self._run else {}
        hand = [] if self._run else self._hand
        uuids = [self._prompts[index]["uuid"] for index in hand if "uuid" in self._prompts[index]]
        if not uuids or kind not in ("init", "status", "message_start", "assistant", "result") or kind in self._marked:
            return {}
        if kind in ("init", "status"):
            return {"user_message_uuids": uuids}
        self._marked.add(kind)
        more: dict[str, Any] = {"owed_rows": []} if kind == "message_start" else {}
        return {"user_message_uuid": uuids[0], "user_message_uuids": uuids, **more}

    def _open_block(self, parent: str | None, block: dict[str, Any], now: int) -> list[bytes]:
        return [*self._replay(now), *super()._open_block(parent, block, now)]

    def _replay(self, now: int) -> list[bytes]:
        unseen, self._unseen = self._unseen, []
        return [event for index in unseen for event in self._replayed(self._prompts[index], now)]

    def _replayed(self, prompt: dict[str, Any], now: int) -> list[bytes]:
        """Give a user line back, where the client asks for that."""
        if not self._replays:
            return []
        head = {"type": "user", "message": prompt.get("message"), "session_id": SESSION, "parent_tool_use_id": None}
        own = {"uuid": prompt.get("uuid") or self._uuid(), "timestamp": claude.stamp(now), "isReplay": True}
        origin = {"origin": prompt["origin"]} if "origin" in prompt else {}
        return [line({**head, **own, **origin})]

    def _running_again(self) -> list[bytes]:
        if not self._is_idle:
            return []
        self._is_idle = False
        return self._state("running")

    def _state(self, state: str) -> list[bytes]:
        if not self._has_states:
            return []
        return [self._system("session_state_changed", {"state": state, **self._state_more})]

    def _lifecycle(self, index: int, state: str) -> list[bytes]:
        uuid = self._prompts[index].get("uuid")
        if uuid is None:
            return []
        told = {"type": "command_lifecycle", "command_uuid": uuid, "state": state}
        return [line({**told, "uuid": self._uuid(), "session_id": SESSION})]

    def _system(self, subtype: str, fields: dict[str, Any]) -> bytes:
        head = {"type": "system", "subtype": subtype, **fields}
        return line({**head, "uuid": self._uuid(), "session_id": SESSION})
