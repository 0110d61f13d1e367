"""The prompts of a claude that is talked to: what came, what waits, what is in hand. Knows no line and no task."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Prompt = dict[str, Any]


_MARKED_LINE_KINDS = ("init", "status", "message_start", "assistant", "result")
_ALWAYS_MARKED_LINE_KINDS = ("init", "status")
"""The lines of a turn that are marked each time; of the others the first one is."""


class PromptQueue:
    """The queue of prompts. A turn has one in hand, and those that it swallowed; a background turn has none."""

    def __init__(self) -> None:
        self._came: list[Prompt] = []
        self._swallowed: set[int] = set()
        self.waiting: list[int] = []
        self.hand: list[int] = []
        self._unreplayed: list[int] = []
        self._marked: set[str] = set()

    def queue_prompt(self, prompt: Prompt, now: int) -> int:
        """Take a prompt that comes; give its place, counted from 0."""
        self._came.append({**prompt, "at": now})
        self.waiting.append(len(self._came) - 1)
        return len(self._came) - 1

    def has_own_turn(self, number: int) -> bool:
        """Say whether the prompt, counted from 1, has or had a turn of its own: a swallowed prompt never has."""
        return len(self._came) >= number and number - 1 not in self._swallowed

    def begin_turn(self, hand: list[int], *, is_own: bool) -> None:
        """Begin a turn; a turn that is not the prompt's own leaves the prompt in hand, and not replayed."""
        self.hand, self._unreplayed, self._marked = hand, list(hand) if is_own else [], set()

    def swallow_waiting_prompts(self) -> list[int]:
        """Have the turn take what waits."""
        swallowed, self.waiting = self.waiting, []
        self.hand += swallowed
        self._unreplayed += swallowed
        self._swallowed.update(swallowed)
        return swallowed

    def take_unreplayed_prompts(self) -> list[Prompt]:
        """Give what the turn has taken up since the last call."""
        unreplayed, self._unreplayed = self._unreplayed, []
        return [self._came[index] for index in unreplayed]

    def find_prompt_uuid(self, index: int) -> str | None:
        """Give the prompt's own uuid, if its line had one."""
        return self._came[index].get("uuid")

    def list_queued_uuids(self) -> list[str]:
        """Give the uuids of what waits."""
        return [uuid for uuid in map(self.find_prompt_uuid, self.waiting) if uuid is not None]

    def build_line_marks(self, kind: str, epoch: int) -> dict[str, Any]:
        """Give the fields of such a line about the prompts in hand; instants count from a time of day, in ms."""
        uuids = [uuid for uuid in map(self.find_prompt_uuid, self.hand) if uuid is not None]
        if not uuids or kind not in _MARKED_LINE_KINDS or kind in self._marked:
            return {}
        if kind in _ALWAYS_MARKED_LINE_KINDS:
            return {"user_message_uuids": uuids}
        self._marked.add(kind)
        fields: dict[str, Any] = {"user_message_uuid": uuids[0], "user_message_uuids": uuids}
        if kind == "message_start":
            return {**fields, "owed_rows": []}
        if kind == "result":
            return {
                **fields,
                "request_sent_wall_ms": epoch + self._came[self.hand[0]]["at"] // 1_000_000,
                "first_request_input_tokens": 10,
                "first_request_cache_read_input_tokens": 0,
            }
        return fields
