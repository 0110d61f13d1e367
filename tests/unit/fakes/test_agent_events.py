"""Thoughts, tools and the agent's input: the steps, the bytes, and the player that plays them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.fake_agents.player import ScriptPlayer
from pytest_agentproc.record import Record
from pytest_agentproc.scenario import loads
from pytest_agentproc.supervisor import Completion
from pytest_agentproc.supervisor.dialects import make_decoder
from pytest_agentproc.verdict import Verdict, judge_all_expectations
from pytest_agentproc.vocabulary import DIALECTS, Policy, RunReport
from tests.event_lines import add_line
from tests.unit.encoders import make_encoder
from tests.unit.handmade import BoundScenario, Expected, judge_one_key, play_by_hand

TRANSCRIPTS = Path(__file__).parents[2] / "data" / "transcripts"
TOOL: dict[str, Any] = {"id": "c1", "name": "bash", "input": {"command": "ls"}}
DONE: dict[str, Any] = {"id": "c1", "output": "hi\n", "error": None}


class _UnreadStage:
    """A stage on which stdout has no reader."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, Any]] = []
        self.left: list[int] = []

    def add_note(self, code: str, data: Any) -> None:
        self.notes.append((code, data))

    def read_start_facts(self, names: Any) -> dict[str, Any]:
        return {"names": names}

    def has_terminal(self) -> bool:
        return False

    def can_write_chunk(self, stream: str) -> bool:
        return True

    def write_chunk(self, stream: str, data: bytes) -> bool:
        return False

    def write_file(self, path: str, data: bytes) -> None:
        self.add_note("file", path)

    def write_message_file(self, path: str, data: bytes | None) -> None:
        self.add_note("file", path)

    def append_session_file(self, path: str, data: bytes) -> None:
        self.add_note("file", path)

    def read_stdin(self, size: int) -> bytes | None:
        return b""

    def close_stream(self, stream: str) -> None:
        self.add_note("c", stream)

    def catch_signal(self, signum: int, exit_code: int | None = None) -> None:
        self.add_note("catch", signum)

    def stop_catching_signal(self, signum: int) -> None:
        self.add_note("release", signum)

    def spawn_descendant(self, index: int, fields: dict[str, Any], program: dict[str, Any]) -> None:
        self.add_note("p", index)

    def watch_process_end(self, name: str) -> None:
        self.add_note("watch", name)

    def has_process_ended(self, name: str) -> bool:
        return True

    def signal_process(self, name: str, signum: int) -> None:
        self.add_note("kill", (name, signum))

    def exit_process(self, code: int) -> None:
        self.left.append(code)

    def die_of_signal(self, signum: int) -> None:
        self.left.append(-signum)


def build_player(steps: str) -> tuple[ScriptPlayer, _UnreadStage]:
    """Compile steps for a raw agent, and put its player on a stage."""
    text = f"scenario: a\nagent: raw\nscript:\n{steps}"
    program, stage = loads(text).bind(Policy()).program, _UnreadStage()
    return ScriptPlayer(program, stage, make_encoder(program)), stage


def test_the_steps_that_a_dialect_has_are_the_events_that_its_encoder_has() -> None:
    """A step that passes the check and has no encoder would end in a stack inside the fake."""
    for record in DIALECTS.values():
        for mode in record.modes:
            program = {"dialect": record.name, "mode": mode}
            able = make_encoder({**program, "tasks": True})
            made = tuple(able.events)
            if hasattr(make_encoder(program), "ask_client"):
                made += ("ask",) if mode in ("rpc", "serve") else ("ask", "request")
            elif hasattr(make_encoder(program), "begin_tool_call"):
                made += ("request",)
            assert made == tuple(record.steps.get(mode, ())), (record.name, mode)


def test_a_step_that_the_dialect_does_not_have_names_those_that_have_it() -> None:
    """The author of a scenario for plain text must learn that it has no tools, and where there are some."""
    steps = "[{think: a}, {tool: {id: a, name: b}}, {tool_done: a}, {event: {}}]"
    with pytest.raises(ScenarioError) as caught:
        loads(f"scenario: a\nagent: gemini\nscript: {steps}\n")
    able = "known by claude print, claude session, pi json, pi rpc, codex exec, codex app-server"
    others = "gemini stream, opencode run, opencode serve or acp session"
    assert str(caught.value).splitlines() == [
        f"<text>:3:18: the dialect gemini has no think in mode text: {able}, {others.partition(', ')[2]}",
        f"<text>:3:29: the dialect gemini has no tool in mode text: {able}, {others}",
        f"<text>:3:60: the dialect gemini has no tool_done in mode text: {able}, {others}",
        f"<text>:3:72: the dialect gemini has no event in mode text: {able}, {others}",
    ]


def test_only_what_streams_has_pieces_of_a_text() -> None:
    """Codex prints a text in one piece: the pieces that it would drop in silence are reported."""
    with pytest.raises(ScenarioError) as caught:
        loads("scenario: a\nagent: codex\nscript: [{delta: a}]\n")
    able = "known by claude print, claude session, pi json, pi rpc, codex app-server, gemini stream, opencode serve or "
    assert str(caught.value) == f"<text>:3:18: the dialect codex has no delta in mode exec: {able}acp session"


def test_what_a_sub_agent_says_and_thinks_compiles_to_events() -> None:
    """The player knows no sub-agents: a sub-agent's words are not the agent's text."""
    steps = "[{tool: {id: t, name: Task}}, {think: {text: hm, parent: t}}, {say: {text: a, parent: t}}]"
    program = loads(f"scenario: a\nagent: claude\nscript: {steps}\n").bind(Policy()).program
    assert [step[2] for step in program["steps"][2:]] == [
        ("think", {"text": "hm", "parent": "t"}),
        ("nested", {"text": "a", "parent": "t"}),
    ]


def test_a_tool_is_named_once_and_ends_only_after_its_start() -> None:
    """A pair that does not fit would make the run mean something else than the file says."""
    steps = "[{tool_done: a}, {tool: {id: call, name: b}}, {tool: {id: call, name: b}}, {tool_done: cal}]"
    with pytest.raises(ScenarioError) as caught:
        loads(f"scenario: a\nagent: pi\nscript: {steps}\n")
    assert str(caught.value).splitlines() == [
        "<text>:3:22: no tool was started before",
        '<text>:3:62: tool.id "call" is taken by the tool in line 3',
        '<text>:3:96: unknown tool "cal": did you mean "call"?',
    ]


def test_pi_prints_a_tool_as_the_real_cli_does() -> None:
    """The same events in the same order, with the same keys at every depth."""
    fake = make_encoder({"dialect": "pi", "version": "0.73", "mode": "json", "prompt": "p"})
    data = fake.events["tool"](TOOL, 0) + fake.events["tool_done"](DONE, 0)
    data += fake.events["delta"]("pi an", 0) + fake.encode_answer("swer", 0)
    made = [json.loads(line) for line in data.splitlines()][1:]  # the header is what rpc mode leaves out
    real = [json.loads(line) for line in (TRANSCRIPTS / "pi" / "tool.jsonl").read_text("utf-8").splitlines()]
    assert [_describe_shape(event) for event in made] == [_describe_shape(event) for event in real]


def _describe_shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, inner if key == "type" else _describe_shape(inner)) for key, inner in value.items()]
    return [_describe_shape(inner) for inner in value] if isinstance(value, list) else ""


def test_a_real_tool_run_of_pi_is_understood() -> None:
    """The message that asks for the tool completes nothing, the one after it does."""
    completion, decoding = Completion(), make_decoder("pi")
    for line in (TRANSCRIPTS / "pi" / "tool.jsonl").read_bytes().splitlines():
        for meaning in decoding.decode(line):
            completion.feed(meaning, 0)
    assert (completion.text, completion.ok, completion.final, completion.noise) == ("pi answer", True, True, 0)


def test_a_failed_tool_is_reported_as_an_error() -> None:
    """Each in its dialect's words; a tool that was never started has its id for a name."""
    failed = {**DONE, "error": "no"}
    pi = [
        json.loads(line)
        for line in make_encoder({"dialect": "pi", "mode": "json"}).events["tool_done"](failed, 0).splitlines()
    ]
    gemini = make_encoder({"dialect": "gemini", "mode": "stream"}).events["tool_done"](failed, 0).splitlines()
    assert [(event["toolName"], event["isError"]) for event in pi if event["type"] == "tool_execution_end"] == [
        ("c1", True)
    ]
    last = json.loads(gemini[-1])
    assert (last["status"], last["error"]) == ("error", {"type": "unknown", "message": "no"})


def test_gemini_prints_a_tool_as_the_real_cli_does() -> None:
    """The same types with the same keys in the same order."""
    fake = make_encoder({"dialect": "gemini", "mode": "stream", "prompt": "USETOOL"})
    made = fake.events["tool"](TOOL, 0) + fake.events["tool_done"](DONE, 0) + fake.encode_answer("Hello from fake", 0)
    real = (TRANSCRIPTS / "gemini" / "tool.jsonl").read_bytes()
    shapes = [[list(json.loads(line)) for line in data.splitlines()] for data in (made, real)]
    assert shapes[0] == shapes[1]
    assert json.loads(made.splitlines()[-1])["stats"]["tool_calls"] == 1


def test_an_agent_without_a_reader_dies_of_it_unless_it_reacts() -> None:
    """SIGPIPE is what a CLI gets whose supervisor let its stdout go."""
    playing, stage = build_player("  - say: hi\n  - exit: 0\n")
    playing.run_until_parked(0, [], readable=False)
    assert stage.left == [-13]
    playing, stage = build_player("  - when: epipe\n    do: [{exit: 9}]\n  - say: hi\n  - exit: 0\n")
    playing.run_until_parked(0, [], readable=False)
    assert stage.left == [9]


def test_a_busy_agent_burns_until_its_time_is_over() -> None:
    """In virtual time it waits as silence does; the fake on the real clock asks whether it burns."""
    playing, stage = build_player("  - burn_cpu: 2s\n  - meanwhile: []\n  - silence: 1s\n  - burn_cpu: for ever\n")
    playing.run_until_parked(0, [], readable=False)
    assert (playing.earliest_wake_instant, playing.is_burning_cpu) == (2_000_000_000, True)
    playing.run_until_parked(2_000_000_000, [], readable=False)
    assert (playing.earliest_wake_instant, playing.is_burning_cpu) == (3_000_000_000, False)
    playing.run_until_parked(3_000_000_000, [], readable=False)
    assert (playing.earliest_wake_instant, playing.is_burning_cpu, stage.left) == (None, True, [])


GIVEN: tuple[str, dict[str, Any]] = (
    "m",
    {"given": {"argv": ["-p", "hi" * 8], "env": {"A": "1", "B": None}, "cwd": "/w", "longest": 16}},
)


OWN_ARGV = "a supervisor that makes the command line itself states cannot=['argv']"
OWN_STDIN = f"the agent reads its prompt from stdin, and a program gets it on its own stdin to pass it on; {OWN_ARGV}"
OWN_ENV = "a supervisor with an environment and folder of its own states cannot=['env']"


@pytest.mark.parametrize(
    ("key", "wanted", "row"),
    [
        ("received.argv", ["-p", "hi" * 9], ("passed", f'"-p", "{"hi" * 9}"', f'"-p", "{"hi" * 8}"', "")),
        ("received.argv", ["-p"], ("failed", '"-p"', f'"-p", "{"hi" * 8}"', OWN_ARGV)),
        ("received.argv", {"contains": ["-p"]}, ("passed", 'contains "-p"', f'"-p", "{"hi" * 8}"', "")),
        (
            "received.argv",
            {"contains": ["hi", "-p"]},
            ("failed", 'contains "hi", "-p"', f'"-p", "{"hi" * 8}"', OWN_ARGV),
        ),
        ("received.env", {"A": "1", "B": None}, ("passed", 'A: "1", B: unset', 'A: "1", B: unset', "")),
        ("received.env", {"A": None}, ("failed", "A: unset", 'A: "1"', OWN_ENV)),
        ("received.env", {"B": ""}, ("failed", 'B: ""', "B: unset", OWN_ENV)),
        ("received.cwd", {"matches": "^/w$"}, ("passed", 'matches "^/w$"', '"/w"', "")),
        ("received.cwd", {"exact": "/"}, ("failed", '"/"', '"/w"', OWN_ENV)),
        ("received.stdin", {"exact": "yes"}, ("passed", '"yes"', '"yes"', "")),
        ("received.stdin", {"contains": "no"}, ("failed", 'contains "no"', '"yes"', OWN_STDIN)),
    ],
)
def test_what_the_agent_saw_comes_from_the_agent(key: str, wanted: Any, row: tuple[str, ...]) -> None:
    """A supervisor's own word about its input is no proof; a word is cut where the agent cut it."""
    read: list[tuple[str, dict[str, Any]]] = [
        ("i", {"bytes": b"ye"}),
        ("i", {"size": 3, "by": "supervisor"}),
        ("i", {"bytes": b"s"}),
        ("i", {"eof": True}),
    ]
    assert judge_one_key(key, wanted, events=[(0, *GIVEN), *((0, *event) for event in read)]) == row
    (unseen,) = judge_all_expectations(play_by_hand(BoundScenario((Expected(key, wanted),)), Record(), RunReport()))
    assert (unseen.verdict, unseen.seen) == (Verdict.NOT_EXERCISED, "no agent was started")


@pytest.mark.parametrize(
    ("process", "wanted", "verdict"),
    [
        ("agent", {"contains": ["--resume", "a"]}, Verdict.PASSED),
        ("agent 2", {"contains": ["--resume", "a"]}, Verdict.FAILED),
        ("agent 2", ["-p"], Verdict.PASSED),
        ("agent 3", ["-p"], Verdict.NOT_EXERCISED),
    ],
)
def test_each_start_has_arguments_of_its_own(process: str, wanted: Any, verdict: Verdict) -> None:
    """A supervisor must not try a session that is gone for ever: the next start has no `--resume`."""
    record = Record()
    for name, argv in (("agent", ["-p", "--resume", "a"]), ("agent 2", ["-p"])):
        add_line(record, 0, "p", {"process": name, "parent": "supervisor", "seen": True})
        add_line(
            record, 0, "m", {"process": name, "given": {"argv": argv, "env": {"A": "1"}, "cwd": "/", "longest": 99}}
        )
    expected = (Expected(f"processes.{process}.argv", wanted), Expected(f"processes.{process}.env", {"A": "1"}))
    of_argv, of_env = judge_all_expectations(play_by_hand(BoundScenario(expected), record, RunReport()))
    assert of_argv.verdict is verdict
    assert of_env.verdict is (Verdict.NOT_EXERCISED if process == "agent 3" else Verdict.PASSED)


def test_what_the_agent_saw_is_one_expectation_for_each_leaf() -> None:
    """`catches` names a leaf, and a row of the verdict is one."""
    saw = "{env: {A: unset, B: 'unset', C: ''}, argv: [1, '']}"
    bound = loads(f"scenario: a\nagent: raw\nscript: []\nexpect:\n  received: {saw}\n").bind(Policy())
    assert [(check.key, check.line, check.column, check.wanted) for check in bound.expect[:-1]] == [
        ("received.env", 5, 14, {"A": None, "B": "unset", "C": ""}),
        ("received.argv", 5, 50, ["1", ""]),
    ]


def test_variables_are_a_mapping_of_names() -> None:
    """The message shows the form."""
    with pytest.raises(ScenarioError) as caught:
        loads("scenario: a\nagent: raw\nscript: []\nexpect:\n  received: {env: [A]}\n")
    assert (
        str(caught.value)
        == "<text>:5:19: expect.received.env must be a mapping such as {NAME: TEXT / unset}, not a list"
    )
    with pytest.raises(ScenarioError) as caught:
        loads("scenario: a\nagent: raw\nscript: []\nexpect:\n  received: {env: {A=B: c}}\n")
    assert str(caught.value) == '<text>:5:20: expect.received.env has no variable "A=B": a name is text without "="'
