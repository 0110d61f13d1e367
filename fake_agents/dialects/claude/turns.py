"""The turns of a claude that is talked to: how each begins and ends, and whose it is. Knows no request of a client's.

A turn begins with `init`, which comes anew for each. If the line of its prompt had a uuid, so do init, the first lines
of the turn and the result. A background turn has no uuid, and its result says where it comes from. The model is asked
as the turn begins, and again as soon as its tools have ended. Words outside a turn begin none.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects.claude import print_mode
from pytest_agentproc.fake_agents.dialects.claude.prompts import PromptQueue
from pytest_agentproc.fake_agents.dialects.claude.tasks import SessionTasks, build_task_origin
from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.requests import parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program

_READS_STATE_VARIABLE, _EMITS_STATE_VARIABLE = (
    b"CLAUDE_CODE_SDK_READS_SESSION_STATE",
    b"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
)
_FIRST_KEYS_OF_EMPTY_RESULT = ("is_error", "duration_api_ms", "num_turns", "stop_reason")
"""The keys that a result without a message begins with."""


class TurnEncoder(print_mode.Encoder):
    """Encode turns: one for each prompt that is taken in hand, and for each background turn."""

    error_is_exit = False  # the exit comes with the end of stdin, and the last result decides
    code = version = 0

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.events = {name: encode for name, encode in self.events.items() if name != "begin"}  # a prompt begins it
        environ = program.get("environ", {})
        self._has_states = _READS_STATE_VARIABLE in environ or _EMITS_STATE_VARIABLE in environ
        self._state_more = {"sdk_host_only": True} if _READS_STATE_VARIABLE in environ else {}
        self._replays = "--replay-user-messages" in program.get("argv", ())
        self._begun = True
        self._is_idle = True
        self._is_asked = self._is_ended = False
        self._ends = 0
        self._prompts = PromptQueue()
        self._tasks = SessionTasks()
        self._run: str | None = None

    def has_received_prompt(self, number: int) -> bool:
        """Say whether the prompt has, or had, a turn of its own: a swallowed prompt never has."""
        return self._prompts.has_own_turn(number)

    def begin_prompt_turn(self, number: int, now: int) -> bytes:
        """Begin the prompt's turn."""
        waiting = self._prompts.waiting
        if number - 1 not in waiting:
            return b""
        waiting.remove(number - 1)
        self._begin_turn([number - 1], None)
        return self._join_lines(
            [
                *self._encode_prompt_lifecycle(number - 1, "started"),
                *self._encode_opening_events(),
                *self._announce_early_model_request(),
            ]
        )

    def encode_result(self, fields: dict[str, Any], now: int) -> bytes:
        """Give the result, which ends the turn; the exit code is the last one's."""
        self.code = 1 if fields["is_error"] else 0
        swallowed = [
            event for index in self._prompts.hand[1:] for event in self._encode_prompt_lifecycle(index, "completed")
        ]
        return self._join_lines(swallowed) + super().encode_result(fields, now) + self._join_lines(self._end_turn())

    @property
    def _is_in_turn(self) -> bool:
        return bool(self._prompts.hand or self._run)

    def _queue_prompt(self, line: dict[str, Any], now: int) -> list[bytes]:
        index = self._prompts.queue_prompt(line, now)
        running, queued = self._leave_idle_state(), self._encode_prompt_lifecycle(index, "queued")
        return [*running, *queued] if index == 0 else [*queued, *running]

    def _begin_turn(self, hand: list[int], run: str | None) -> None:
        self._prompts.begin_turn(hand, is_own=run is None)
        self._run, self._begun, self._messages, self._denials = run, False, [], []
        self._said, self._stop, self._turns, self._is_asked = "", None, 1, False
        self._taken += 1

    def _end_turn(self) -> list[bytes]:
        """End the turn."""
        self._ends += 1
        self._index += 1
        own = self._prompts.hand[:1] if not self._run else []
        events = [event for index in own for event in self._encode_prompt_lifecycle(index, "completed")]
        if not self._run:
            self._prompts.hand = []
        self._run, self._running, self._begun = None, [], not self._prompts.hand
        if (
            self._prompts.hand
            or self._prompts.waiting
            or self._tasks.has_owed_turns
            or (self._is_ended and self._tasks.has_running_tasks)
        ):
            return events
        self._is_idle = True
        return [*events, *self._encode_session_state("idle")]

    def _encode_empty_result(self) -> bytes:
        """Give the result without a message that comes first when two tasks end together."""
        fields = {"is_error": False, "subtype": "success", "usage": None}
        self._turns = 0
        result_fields = parse_json_object(self._encode_result_line({"result": ""}, "", fields, 0)) or {}
        self._index += 1
        return encode_json_line({**{key: result_fields[key] for key in _FIRST_KEYS_OF_EMPTY_RESULT}, **result_fields})

    def _build_line_marks(self, kind: str) -> dict[str, Any]:
        """Say whose turn it is, where the real CLI does."""
        if kind == "origin":
            return {"origin": build_task_origin(self._run)} if self._run else {}
        return {} if self._run else self._prompts.build_line_marks(kind, print_mode.START_UNIX_MS)

    def _announce_early_model_request(self) -> list[bytes]:
        """Say at once that the model is asked, if no tool runs any more and its last message has ended."""
        if self._is_aborting or self._is_asked or self._running or None in self._open:
            return []
        self._is_asked = True
        return super()._announce_model_request()

    def _announce_model_request(self) -> list[bytes]:
        asked, self._is_asked = self._is_asked, False
        return [*([] if asked else super()._announce_model_request()), *self._replay_new_prompts()]

    def _replay_new_prompts(self) -> list[bytes]:
        return [
            event for prompt in self._prompts.take_unreplayed_prompts() for event in self._encode_prompt_replay(prompt)
        ]

    def _encode_prompt_replay(self, prompt: dict[str, Any]) -> list[bytes]:
        """Give a user line back, where the client asks for that."""
        if not self._replays:
            return []
        head = {
            "type": "user",
            "message": prompt.get("message"),
            "session_id": self._session,
            "parent_tool_use_id": None,
        }
        own = {
            "uuid": prompt.get("uuid") or self._make_uuid(),
            "timestamp": print_mode.format_timestamp(prompt["at"]),
            "isReplay": True,
        }
        origin = {"origin": prompt["origin"]} if "origin" in prompt else {}
        return [encode_json_line({**head, **own, **origin})]

    def _leave_idle_state(self) -> list[bytes]:
        if not self._is_idle:
            return []
        self._is_idle = False
        return self._encode_session_state("running")

    def _encode_session_state(self, state: str) -> list[bytes]:
        if not self._has_states:
            return []
        return [self._encode_system_line("session_state_changed", {"state": state, **self._state_more})]

    def _encode_prompt_lifecycle(self, index: int, state: str) -> list[bytes]:
        uuid = self._prompts.find_prompt_uuid(index)
        if uuid is None:
            return []
        fields = {"type": "command_lifecycle", "command_uuid": uuid, "state": state}
        return [encode_json_line({**fields, "uuid": self._make_uuid(), "session_id": self._session})]

    def _encode_system_line(self, subtype: str, fields: dict[str, Any]) -> bytes:
        head = {"type": "system", "subtype": subtype, **fields}
        return encode_json_line({**head, "uuid": self._make_uuid(), "session_id": self._session})

    def _join_lines(self, events: list[bytes]) -> bytes:
        return self._lines.join(events) if events else b""
