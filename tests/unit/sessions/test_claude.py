"""Sessions with claude: marks, background turns however they lie, interrupts, questions and hooks (B1, P3, P5, P7)."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.supervisor import Policy
from pytest_agentproc.supervisor import _events as to
from tests.unit.session_stage import SECOND, Stage

POLICY = Policy(prompt_timeout=60.0)
ORIGIN = {"origin": {"kind": "task-notification"}}


class Claude(Stage):
    """A claude that greeted, and what it prints.

    Args:
        echoes: whether it names the prompts' uuids.
    """

    def __init__(self, *, echoes: bool = True, handler: bool = False) -> None:
        super().__init__("claude", policy=POLICY, handler=handler)
        self.echoes = echoes
        self.marks: dict[int, str] = {}
        [hello] = self.sent()
        assert hello["request"]["subtype"] == "initialize"
        response = {"subtype": "success", "request_id": hello["request_id"], "response": {}}
        self.says({"type": "control_response", "response": response})
        assert self.status == "ready"

    def ask(self, text: str) -> int:
        """Ask, and keep the uuid that went out with it."""
        number = self.prompt(text)
        for line in self.sent():
            if line["type"] == "user":
                self.marks[number] = line["uuid"]
        return number

    def _named(self, number: int | None) -> dict[str, Any]:
        return {"user_message_uuids": [self.marks[number]]} if number and self.echoes else {}

    def begins(self, number: int | None = None) -> None:
        """Print an init, of a prompt's turn or of its own."""
        self.says({"type": "system", "subtype": "init", "session_id": "s1", **self._named(number)})

    def speaks(self, text: str, parent: str | None = None) -> None:
        """Print an assistant line."""
        message = {"id": "m", "model": "sonnet", "content": [{"type": "text", "text": text}]}
        self.says({"type": "assistant", "message": message, "parent_tool_use_id": parent})

    def ends(self, number: int | None, text: str | None, **words: Any) -> None:
        """Print a result, of a prompt's turn or of its own."""
        own = {} if number else ORIGIN
        told = {"subtype": "success", "is_error": False, "result": text, **self._named(number), **own, **words}
        self.says({**told, "type": "result"})

    def streams(self, text: str) -> None:
        """Print a piece of a message."""
        delta = {"type": "text_delta", "text": text}
        self.says({"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}})

    def turn(self, number: int | None, text: str) -> None:
        """Print a whole turn."""
        self.begins(number)
        self.speaks(text)
        self.ends(number, text)


@pytest.mark.parametrize("echoes", [True, False])
@pytest.mark.parametrize("place", ["before", "between", "after", "two", "empty first"])
def test_a_background_turn_is_never_a_prompts(place: str, *, echoes: bool) -> None:
    """It comes before the next prompt is written, after that and before its turn, after it, twice, or empty (B1)."""
    stage = Claude(echoes=echoes)
    stage.ask("one")
    stage.turn(1, "ONE")
    if place == "before":
        stage.begins()
        stage.speaks("bg")
        stage.ask("two")
        stage.ends(None, "bg")
    else:
        stage.ask("two")
    if place in ("between", "two"):
        for _ in range(2 if place == "two" else 1):
            stage.turn(None, "bg")
    if place == "empty first":
        stage.begins()
        stage.ends(None, "", num_turns=0)
        stage.turn(None, "bg")
    assert stage.ended(2) is None
    stage.turn(2, "TWO")
    if place == "after":
        stage.turn(None, "bg")
    assert (stage.ended(1), stage.ended(2)) == (("completed", 0.0, "ONE"), ("completed", 0.0, "TWO"))
    assert stage.background() == {"two": ["bg", "bg"], "empty first": ["", "bg"]}.get(place, ["bg"])
    assert stage.machine.session_id == "s1"


def _asks(stage: Claude) -> None:
    """Ask for a permission."""
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
    stage.says({"type": "control_request", "request_id": "q", "request": request})


@pytest.mark.parametrize("again", [True, False], ids=["an init for each turn", "one init"])
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("echoes", [True, False])
def test_an_init_near_the_first_prompt_is_that_prompts(place: str, *, echoes: bool, again: bool) -> None:
    """The real CLI prints none before a prompt. If a CLI does, the owner must not depend on a race (P7)."""
    stage = Claude(echoes=echoes, handler=True)
    if place == "before":
        stage.begins()
    stage.ask("one")
    if place == "after":
        stage.begins()
    if again:
        stage.begins(1)
    stage.until(50)
    _asks(stage)
    [question] = [event for event in stage.events if event.kind == "question"]
    assert question.turn == 1
    stage.until(300)
    assert stage.ended(1) is None, "an open question holds the prompt's deadline"
    stage.tells(to.AnswerQuestion("q", allowed=True))
    stage.ends(1, "ONE")
    assert stage.ended(1) == ("completed", 300.0, "ONE")
    assert stage.background() == []


@pytest.mark.parametrize("kind", ["message", "piece", "question", "result"])
def test_an_init_before_the_first_prompt_is_a_background_turns_if_words_follow(kind: str) -> None:
    """A resumed program may continue by itself: its words then are no prompt's (B1)."""
    stage = Claude(echoes=False, handler=True)
    stage.begins()
    said = {
        "message": lambda: stage.speaks("bg"),
        "piece": lambda: stage.streams("bg"),
        "question": lambda: _asks(stage),
        "result": lambda: stage.ends(None, "bg"),
    }
    said[kind]()
    stage.ask("one")
    if kind != "result":
        stage.speaks("bg, too")
        stage.ends(None, "bg")
    assert stage.background() == ["bg"]
    stage.turn(1, "ONE")
    assert stage.ended(1) == ("completed", 0.0, "ONE")
    assert all(event.turn in (0, None) for event in stage.events if event.text.startswith("bg"))


def test_words_of_a_marked_background_turn_are_shown_as_its_own() -> None:
    """Where the agent marks its turns no viewer sees a background word in a prompt's turn, not for a moment."""
    stage = Claude()
    stage.ask("one")
    stage.turn(1, "ONE")
    stage.ask("two")
    stage.begins()
    stage.speaks("bg")
    assert [(event.turn, event.text) for event in stage.events if event.kind == "message"] == [(1, "ONE"), (0, "bg")]


def test_a_cli_that_follows_a_prompt_through_its_queue_is_known_to_mark_its_turns() -> None:
    """So that what it begins by itself before the first prompt's turn is not taken for that."""
    stage = Claude()
    stage.ask("one")
    stage.says({"type": "command_lifecycle", "command_uuid": stage.marks[1], "state": "queued"})
    stage.begins()
    stage.speaks("bg")
    assert [(event.turn, event.text) for event in stage.events if event.kind == "message"] == [(0, "bg")]


def test_a_background_turn_moves_no_prompts_deadline() -> None:
    """Its words are no progress of the prompt that waits after it (P2)."""
    stage = Claude()
    stage.ask("one")
    stage.turn(1, "ONE")
    stage.ask("two")
    stage.until(50)
    stage.begins()
    stage.speaks("bg")
    stage.until(60)
    assert stage.ended(2) == ("timed_out", 60.0, None)


def test_words_of_a_background_turn_are_taken_back_from_the_prompt_that_they_seemed_to_belong_to() -> None:
    """Without marks only the result says whose they were; a turn that ends without a text keeps none of them (B1)."""
    stage = Claude(echoes=False)
    stage.ask("one")
    stage.turn(1, "ONE")
    stage.ask("two")
    stage.begins()
    stage.speaks("bg")
    stage.ends(None, None)
    stage.begins(2)
    stage.ends(2, None, subtype="error_during_execution", is_error=True)
    assert (stage.background(), stage.ended(2)) == (["bg"], ("failed", 0.0, None))


def test_viewers_read_the_pieces_of_a_message_that_no_whole_one_repeats() -> None:
    """Each word once: of a whole message, or of pieces that the death of the agent cut off (P4)."""
    stage = Claude()
    stage.begins()
    stage.streams("whole")
    stage.speaks("whole")
    stage.streams("half")
    stage.exits(1)
    assert [(event.turn, event.text) for event in stage.events if event.kind == "message"] == [
        (0, "whole"),
        (0, "half"),
    ]


@pytest.mark.parametrize("place", ["alone", "before a prompt", "echoes no mark"])
def test_the_time_of_a_background_turn_runs_from_its_first_event_to_its_end(place: str) -> None:
    """Not from the prompt's delivery, which it knows nothing of; also if its words first seemed to be the prompt's."""
    stage = Claude(echoes=place != "echoes no mark")
    stage.ask("one")
    stage.turn(1, "ONE")
    stage.until(1)
    if place != "alone":
        stage.ask("two")
    stage.until(10)
    stage.begins()
    stage.until(12)
    stage.speaks("bg")
    stage.until(15)
    stage.ends(None, "bg")
    stage.until(20)
    stage.turn(None, "at once")
    times = [event.result.elapsed / SECOND for event in stage.events if event.kind == "background" and event.result]
    assert times == [5.0, 0.0]


def test_words_that_name_a_turn_that_is_over_reach_no_other() -> None:
    """However late they come, and whatever runs then (P5)."""
    stage = Claude()
    stage.ask("one")
    stage.turn(1, "ONE")
    stage.ask("two")
    stage.begins(2)
    content = [{"type": "text", "text": "late"}]
    stage.says({"type": "assistant", "message": {"content": content}, "user_message_uuids": [stage.marks[1]]})
    stage.ends(1, "late again")
    assert stage.ended(2) is None
    stage.ends(2, None, subtype="error_during_execution", is_error=True)
    assert (stage.ended(2), stage.background()) == (("failed", 0.0, None), [])
    assert [event.text for event in stage.events if event.kind == "late"] == ["late", "late again"]


def test_an_interrupt_is_acknowledged_by_the_result_and_not_by_its_control_response() -> None:
    """The control_response says that it was heard; the turn still prints what it has (P3)."""
    stage = Claude()
    stage.ask("one")
    stage.begins(1)
    stage.until(60)
    [interrupt] = stage.sent()
    assert interrupt["request"] == {"subtype": "interrupt"}
    stage.ask("two")
    response = {"subtype": "success", "request_id": interrupt["request_id"], "response": {"still_queued": []}}
    stage.says({"type": "control_response", "response": response})
    stage.speaks("part")
    assert (stage.unacknowledged, list(stage.marks)) == (True, [1])
    stage.ends(1, "", subtype="error_during_execution", is_error=True)
    assert not stage.unacknowledged
    assert [line["message"]["content"] for line in stage.sent()] == ["two"]
    assert (stage.ended(1), stage.status) == (("timed_out", 60.0, None), "prompting")


def test_a_background_result_acknowledges_no_cancel() -> None:
    """The interrupt hit the background turn; the prompt's own turn begins after it and is interrupted then (P3, B1)."""
    stage = Claude()
    stage.ask("one")
    stage.turn(1, "ONE")
    stage.begins()
    stage.ask("two")
    stage.tells(to.CancelTurn())
    assert [line["type"] for line in stage.sent()] == ["control_request"]
    stage.ends(None, "", subtype="error_during_execution", is_error=True)
    assert (stage.unacknowledged, stage.ended(2)) == (True, None)
    stage.begins(2)
    assert [line["request"]["subtype"] for line in stage.sent()] == ["interrupt"]
    stage.ends(2, "", subtype="error_during_execution", is_error=True)
    assert (stage.unacknowledged, stage.ended(2)) == (False, ("cancelled", 0.0, ""))


def test_an_error_result_has_failed_and_the_session_goes_on() -> None:
    """A result whose subtype is success can be an error all the same; the next prompt is another matter (B3)."""
    stage = Claude()
    stage.ask("one")
    stage.begins(1)
    stage.ends(1, "API Error: 400", is_error=True)
    stage.turn(None, "bg")
    stage.ask("two")
    stage.turn(2, "TWO")
    assert (stage.ended(1), stage.ended(2)) == (("failed", 0.0, "API Error: 400"), ("completed", 0.0, "TWO"))
    assert stage.background() == ["bg"]


def test_sub_agents_speak_for_nobody_but_are_progress() -> None:
    """Their words are not the answer, and their work is work (P2)."""
    stage = Claude()
    stage.ask("one")
    stage.begins(1)
    stage.until(50)
    stage.speaks("sub-agent's", parent="toolu_1")
    stage.until(100)
    assert stage.ended(1) is None
    stage.speaks("mine")
    stage.says({"type": "tool_progress", "heartbeat": True})
    stage.until(160)
    assert stage.ended(1) == ("timed_out", 160.0, "mine")


def test_questions_and_hooks_are_answered_at_once() -> None:
    """Without a handler a tool is denied; a hook gets nothing to say; an unknown request is refused (P7)."""
    stage = Claude()
    stage.ask("one")
    requests = [{"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}, {"subtype": "hook_callback"}, {}]
    for number, request in enumerate(requests):
        stage.says({"type": "control_request", "request_id": f"r{number}", "request": request})
    denied, empty, refused = (line["response"] for line in stage.sent())
    assert (denied["request_id"], denied["response"]["behavior"]) == ("r0", "deny")
    assert (empty["request_id"], empty["response"]) == ("r1", {})
    assert (refused["request_id"], refused["subtype"]) == ("r2", "error")


def test_a_question_that_the_agent_withdraws_gets_no_answer() -> None:
    """And the prompt's deadline runs again."""
    stage = Claude(handler=True)
    stage.ask("one")
    stage.begins(1)
    ask = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}
    stage.says({"type": "control_request", "request_id": "r", "request": ask})
    stage.until(20)
    stage.says({"type": "control_cancel_request", "request_id": "r"})
    stage.tells(to.AnswerQuestion("r", allowed=True))
    assert stage.sent() == []
    stage.until(80)
    assert stage.ended(1) == ("timed_out", 80.0, None)


def test_an_allowed_tool_gets_its_input_back() -> None:
    """As the agent asked for it."""
    stage = Claude(handler=True)
    stage.ask("one")
    stage.begins(1)
    ask = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}
    stage.says({"type": "control_request", "request_id": "r", "request": ask})
    stage.tells(to.AnswerQuestion("r", allowed=True))
    [line] = stage.sent()
    assert line["response"]["response"] == {"behavior": "allow", "updatedInput": {"command": "ls"}}
