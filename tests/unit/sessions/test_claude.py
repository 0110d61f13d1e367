"""Sessions with claude: marks, background turns however they lie, interrupts, questions and hooks (B1, P3, P5, P7)."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.supervisor import Policy
from pytest_agentproc.supervisor import _events as machine_events
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
        [hello] = self.take_sent()
        assert hello["request"]["subtype"] == "initialize"
        response = {"subtype": "success", "request_id": hello["request_id"], "response": {}}
        self.print_lines({"type": "control_response", "response": response})
        assert self.status == "ready"

    def ask(self, text: str) -> int:
        """Ask, and keep the uuid that went out with it."""
        number = self.prompt(text)
        for line in self.take_sent():
            if line["type"] == "user":
                self.marks[number] = line["uuid"]
        return number

    def _build_prompt_names(self, number: int | None) -> dict[str, Any]:
        return {"user_message_uuids": [self.marks[number]]} if number and self.echoes else {}

    def begin_turn(self, number: int | None = None) -> None:
        """Print an init, of a prompt's turn or of its own."""
        self.print_lines({"type": "system", "subtype": "init", "session_id": "s1", **self._build_prompt_names(number)})

    def print_assistant_line(self, text: str, parent: str | None = None) -> None:
        """Print an assistant line."""
        message = {"id": "m", "model": "sonnet", "content": [{"type": "text", "text": text}]}
        self.print_lines({"type": "assistant", "message": message, "parent_tool_use_id": parent})

    def print_result(self, number: int | None, text: str | None, **words: Any) -> None:
        """Print a result, of a prompt's turn or of its own."""
        own = {} if number else ORIGIN
        fields = {
            "subtype": "success",
            "is_error": False,
            "result": text,
            **self._build_prompt_names(number),
            **own,
            **words,
        }
        self.print_lines({**fields, "type": "result"})

    def print_piece(self, text: str) -> None:
        """Print a piece of a message."""
        delta = {"type": "text_delta", "text": text}
        self.print_lines({"type": "stream_event", "event": {"type": "content_block_delta", "delta": delta}})

    def print_turn(self, number: int | None, text: str) -> None:
        """Print a whole turn."""
        self.begin_turn(number)
        self.print_assistant_line(text)
        self.print_result(number, text)


@pytest.mark.parametrize("echoes", [True, False])
@pytest.mark.parametrize("place", ["before", "between", "after", "two", "empty first"])
def test_a_background_turn_is_never_a_prompts(place: str, *, echoes: bool) -> None:
    """It comes before the next prompt is written, after that and before its turn, after it, twice, or empty (B1)."""
    stage = Claude(echoes=echoes)
    stage.ask("one")
    stage.print_turn(1, "ONE")
    if place == "before":
        stage.begin_turn()
        stage.print_assistant_line("bg")
        stage.ask("two")
        stage.print_result(None, "bg")
    else:
        stage.ask("two")
    if place in ("between", "two"):
        for _ in range(2 if place == "two" else 1):
            stage.print_turn(None, "bg")
    if place == "empty first":
        stage.begin_turn()
        stage.print_result(None, "", num_turns=0)
        stage.print_turn(None, "bg")
    assert stage.describe_end(2) is None
    stage.print_turn(2, "TWO")
    if place == "after":
        stage.print_turn(None, "bg")
    assert (stage.describe_end(1), stage.describe_end(2)) == (("completed", 0.0, "ONE"), ("completed", 0.0, "TWO"))
    assert stage.list_background_texts() == {"two": ["bg", "bg"], "empty first": ["", "bg"]}.get(place, ["bg"])
    assert stage.machine.session_id == "s1"


def _ask_permission(stage: Claude) -> None:
    """Ask for a permission."""
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}}
    stage.print_lines({"type": "control_request", "request_id": "q", "request": request})


@pytest.mark.parametrize("again", [True, False], ids=["an init for each turn", "one init"])
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("echoes", [True, False])
def test_an_init_near_the_first_prompt_is_that_prompts(place: str, *, echoes: bool, again: bool) -> None:
    """The real CLI prints none before a prompt. If a CLI does, the owner must not depend on a race (P7)."""
    stage = Claude(echoes=echoes, handler=True)
    if place == "before":
        stage.begin_turn()
    stage.ask("one")
    if place == "after":
        stage.begin_turn()
    if again:
        stage.begin_turn(1)
    stage.advance_to(50)
    _ask_permission(stage)
    [question] = [event for event in stage.events if event.kind == "question"]
    assert question.turn == 1
    stage.advance_to(300)
    assert stage.describe_end(1) is None, "an open question holds the prompt's deadline"
    stage.send_intents(machine_events.AnswerQuestion("q", allowed=True))
    stage.print_result(1, "ONE")
    assert stage.describe_end(1) == ("completed", 300.0, "ONE")
    assert stage.list_background_texts() == []


@pytest.mark.parametrize("kind", ["message", "piece", "question", "result"])
def test_an_init_before_the_first_prompt_is_a_background_turns_if_words_follow(kind: str) -> None:
    """A resumed program may continue by itself: its words then are no prompt's (B1)."""
    stage = Claude(echoes=False, handler=True)
    stage.begin_turn()
    fields = {
        "message": lambda: stage.print_assistant_line("bg"),
        "piece": lambda: stage.print_piece("bg"),
        "question": lambda: _ask_permission(stage),
        "result": lambda: stage.print_result(None, "bg"),
    }
    fields[kind]()
    stage.ask("one")
    if kind != "result":
        stage.print_assistant_line("bg, too")
        stage.print_result(None, "bg")
    assert stage.list_background_texts() == ["bg"]
    stage.print_turn(1, "ONE")
    assert stage.describe_end(1) == ("completed", 0.0, "ONE")
    assert all(event.turn in (0, None) for event in stage.events if event.text.startswith("bg"))


def test_words_of_a_marked_background_turn_are_shown_as_its_own() -> None:
    """Where the agent marks its turns no viewer sees a background word in a prompt's turn, not for a moment."""
    stage = Claude()
    stage.ask("one")
    stage.print_turn(1, "ONE")
    stage.ask("two")
    stage.begin_turn()
    stage.print_assistant_line("bg")
    assert [(event.turn, event.text) for event in stage.events if event.kind == "message"] == [
        (1, "ONE"),
        (0, "bg"),
    ]


def test_a_cli_that_follows_a_prompt_through_its_queue_is_known_to_mark_its_turns() -> None:
    """So that what it begins by itself before the first prompt's turn is not taken for that."""
    stage = Claude()
    stage.ask("one")
    stage.print_lines({"type": "command_lifecycle", "command_uuid": stage.marks[1], "state": "queued"})
    stage.begin_turn()
    stage.print_assistant_line("bg")
    assert [(event.turn, event.text) for event in stage.events if event.kind == "message"] == [(0, "bg")]


def test_words_of_a_background_turn_are_taken_back_from_the_prompt_that_they_seemed_to_belong_to() -> None:
    """Without marks only the result says whose they were; a turn that ends without a text keeps none of them (B1)."""
    stage = Claude(echoes=False)
    stage.ask("one")
    stage.print_turn(1, "ONE")
    stage.ask("two")
    stage.begin_turn()
    stage.print_assistant_line("bg")
    stage.print_result(None, None)
    stage.begin_turn(2)
    stage.print_result(2, None, subtype="error_during_execution", is_error=True)
    assert (stage.list_background_texts(), stage.describe_end(2)) == (["bg"], ("failed", 0.0, None))


def test_viewers_read_the_pieces_of_a_message_that_no_whole_one_repeats() -> None:
    """Each word once: of a whole message, or of pieces that the death of the agent cut off (P4)."""
    stage = Claude()
    stage.begin_turn()
    stage.print_piece("whole")
    stage.print_assistant_line("whole")
    stage.print_piece("half")
    stage.exit_agent(1)
    assert [(event.turn, event.text) for event in stage.events if event.kind == "message"] == [
        (0, "whole"),
        (0, "half"),
    ]


@pytest.mark.parametrize("place", ["alone", "before a prompt", "echoes no mark"])
def test_the_time_of_a_background_turn_runs_from_its_first_event_to_its_end(place: str) -> None:
    """Not from the prompt's delivery, which it knows nothing of; also if its words first seemed to be the prompt's."""
    stage = Claude(echoes=place != "echoes no mark")
    stage.ask("one")
    stage.print_turn(1, "ONE")
    stage.advance_to(1)
    if place != "alone":
        stage.ask("two")
    stage.advance_to(10)
    stage.begin_turn()
    stage.advance_to(12)
    stage.print_assistant_line("bg")
    stage.advance_to(15)
    stage.print_result(None, "bg")
    stage.advance_to(20)
    stage.print_turn(None, "at once")
    times = [event.result.elapsed / SECOND for event in stage.events if event.kind == "background" and event.result]
    assert times == [5.0, 0.0]


def test_words_that_name_a_turn_that_is_over_reach_no_other() -> None:
    """However late they come, and whatever runs then (P5)."""
    stage = Claude()
    stage.ask("one")
    stage.print_turn(1, "ONE")
    stage.ask("two")
    stage.begin_turn(2)
    content = [{"type": "text", "text": "late"}]
    stage.print_lines({"type": "assistant", "message": {"content": content}, "user_message_uuids": [stage.marks[1]]})
    stage.print_result(1, "late again")
    assert stage.describe_end(2) is None
    stage.print_result(2, None, subtype="error_during_execution", is_error=True)
    assert (stage.describe_end(2), stage.list_background_texts()) == (("failed", 0.0, None), [])
    assert [event.text for event in stage.events if event.kind == "late"] == ["late", "late again"]
