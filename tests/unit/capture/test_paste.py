"""Pasted logs of bug reports become drafts: word for word, whatever stands around a line, and never with a traceback.

`pasted/NAME.DIALECT.txt` is a log, NAME.DIALECT.yaml beside it the whole draft; `tests/plugin` plays them.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_agentproc.capture import LOG_DIALECTS, draft_scenario_from_log
from pytest_agentproc.capture._paste_content import detect_dialect_mode
from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import loads
from tests.architecture.sources import ROOT
from tests.unit.encoders import make_encoder

DATA = ROOT / "tests" / "data" / "transcripts"
PASTED = Path(__file__).parents[1] / "pasted"
LOGS = sorted(PASTED.glob("*.txt"))

INIT = '{"type":"system","subtype":"init"}'
SAYS = '{"type":"assistant","message":{"content":[{"type":"text","text":"a"}]}}'
DONE = '{"type":"result","subtype":"success","is_error":false,"result":"a"}'


def draft_scenario(log: str, dialect: str = "claude") -> str:
    """Give a draft that loads."""
    text = draft_scenario_from_log(log, dialect, "log.txt")
    loads(text)
    return text


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_pasted_log_becomes_its_draft(log: Path) -> None:
    """The user reads the printed draft first."""
    dialect = log.stem.rpartition(".")[2]
    assert draft_scenario_from_log(log.read_text("utf-8"), dialect, log.name) == log.with_suffix(".yaml").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[12:00:01.000] ", "[12:00:03.500] "),
        ("23:59:59,000 | ", "00:00:01,500 | "),
        ("2026-11-20T09:14:02.000Z INFO ", "2026-11-20T09:14:04.500Z INFO "),
        ("2026-11-20 09:14:02,000 DEBUG app - ", "2026-11-20 09:14:04,500 DEBUG app - "),
        ("2026-11-20T10:14:02.000+01:00 ", "2026-11-20T09:14:04.500Z "),
        ("1795303873.000 ", "1795303875.500 "),
        ("1795303873000: ", "1795303875500: "),
        ("[0.000s] <- ", "[2.500s] <- "),
        ("+0ms ", "+2500ms "),
        ("00:09.100 ", "00:11.600 "),
        ("[09:14:02.000] INFO child stdout\n    line: ", "[09:14:04.500] INFO child stdout\n    line: "),
        ("[    1.000000] ", "[    3.500000] "),
        ("+00:01 ", "+00:03.5 "),
        ("> > 12:00:01 ", "> > 12:00:03.5 "),
        ("  12: [T+1.0] ", "  13: [T+3.5] "),
        ("app-1  | 12:00:01 stdout: ", "app-1  | 12:00:03.5 stdout: "),
    ],
)
def test_times_are_read_in_many_shapes(first: str, second: str) -> None:
    """A reporter pastes what the program printed, and each prints times in its own way."""
    assert "  - silence: 2.5s\n" in draft_scenario(f"{first}{SAYS}\n{second}{DONE}\n")


def test_times_that_go_backwards_or_change_their_kind_are_no_silence() -> None:
    """The time between two clocks is unknown."""
    assert "silence" not in draft_scenario(f"12:00:05 {SAYS}\n12:00:01 {SAYS}\n+3.0s {DONE}\n")


@pytest.mark.parametrize(
    ("words", "ending", "expected"),
    [
        ("It hangs.", "silence: for ever", "outcome: inactive"),
        ("claude never exits", "silence: for ever", "outcome: inactive"),
        ("The process remains alive indefinitely.", "silence: for ever", "outcome: inactive"),
        ("It was still running after 30 minutes and had to be killed", "silence: for ever", "outcome: inactive"),
        ("it had to be killed", "silence: for ever", "outcome: inactive"),
        ("killed after 2m", "silence: for ever", "outcome: inactive"),
        ("process exited with code 143", "exit: 143", "agent_status: 143"),
        ("exit code: 1", "exit: 1", "agent_status: 1"),
        ("exitCode=0, nothing printed", "exit: 0", "agent_status: 0"),
        ("exit status 137 (OOM)", "die: KILL", "agent_status: {signal: KILL}"),
        ("code=null signal=SIGTERM", "die: TERM", "agent_status: {signal: TERM}"),
        ("it hangs, and then dies of SIGSEGV", "die: SEGV", "agent_status: {signal: SEGV}"),
        ("the interrupt is never answered, it hangs", "silence: for ever", "outcome: inactive"),
        ("`proc.returncode` is -9", "die: KILL", "agent_status: {signal: KILL}"),
        ("child exited, code=1", "exit: 1", "agent_status: 1"),
        ("$ claude -p hi; echo $?\n3", "exit: 3", "agent_status: 3"),
        ("It should not hang.", "", "leaks: []"),
        ("It no longer hangs, expected exit code 0", "", "leaks: []"),
        ("It is slow.", "", "leaks: []"),
    ],
)
def test_what_the_reporter_saw_is_the_end(words: str, ending: str, expected: str) -> None:
    """A draft that ends otherwise than the report is about something else; a denied draft is not taken."""
    text = draft_scenario(f"{words}\n{SAYS}\n")
    steps = [line.strip(" -") for line in text.splitlines() if line.startswith("  - ")]
    assert steps[1:] == ([ending] if ending else [])
    assert f"  {expected}" in text.splitlines()[-2:] or f"  {expected}" in text


@pytest.mark.parametrize(
    ("shell", "limit"),
    [
        ("$ timeout 90 claude -p hi; echo rc=$?\n{log}\nrc=124", "90s"),
        ("$ timeout --signal=INT -k 5s 2m claude -p hi\n{log}\n$ echo $?\nexit code 124", "120s"),
        ("I ran `timeout 1.5h claude -p hi`:\n{log}\nexit status 124", "5400s"),
    ],
)
def test_the_code_of_a_shells_timeout_is_the_end_of_its_limit(shell: str, limit: str) -> None:
    """The code 124 is of `timeout`, and the agent that it ended was silent."""
    text = draft_scenario(shell.format(log=SAYS))
    assert f"policy: {{inactivity_timeout: {limit}}}\n" in text
    assert text.endswith("  - silence: for ever\nexpect:\n  outcome: inactive\n")
    assert "  - exit: 124\n" in draft_scenario(f"$ claude -p hi; echo rc=$?\n{SAYS}\nrc=124\n")


@pytest.mark.parametrize(
    ("head", "raw"),
    [
        ("\x1b]0;a title\x07", "\\u001b]0;a title\\u0007"),
        ("out: ]0;a title]2;another", "\\u001b]0;a title\\u0007\\u001b]2;another\\u0007"),
        ("12:00:01 ^[]777;notify;pi;ready^G", "\\u001b]777;notify;pi;ready\\u0007"),
        ("\\x1b[2J\\x1b[H", "\\u001b[2J\\u001b[H"),
        ("[?2004h", "\\u001b[?2004h"),
    ],
)
def test_escapes_on_the_line_of_an_event_stay_in_the_draft(head: str, raw: str) -> None:
    """Many readers lose the event only because of them, and a report often has lost the ESC."""
    assert f'  - raw: "{raw}"\n  - event: {{type: result' in draft_scenario(f"{SAYS}\n{head}{DONE}\n")


@pytest.mark.parametrize("head", ["\x1b[32m", "[2K] ", "[1] [Jane] ", "]0;title "])
def test_colours_and_heads_of_a_log_are_no_output_of_the_agent(head: str) -> None:
    """The program that wrote the log printed them."""
    assert "raw" not in draft_scenario(f"{SAYS}\n{head}{DONE}\n")


def test_a_limit_that_the_reporter_names_is_the_supervisors() -> None:
    """The reporter's supervisor had another limit than the draft's."""
    assert "policy: {inactivity_timeout: 120s}\n" in draft_scenario(f"killed after 2 minutes\n{SAYS}\n")
    assert "policy: {inactivity_timeout: 1400000s}\n" in draft_scenario(f"killed after 400h\n{SAYS}\n")


def test_an_event_that_the_fake_would_not_say_stands_as_it_stood() -> None:
    """A step in the language's words that says something else would be a draft of another bug."""
    odd = {"type": "assistant", "message": {"content": [{"type": "text", "text": "a", "citations": [1]}]}}
    assert "  - event: {type:" in draft_scenario(f"{json.dumps(odd)}\n")
    assert "  - say: a\n" in draft_scenario(f"{SAYS}\n")


@pytest.mark.parametrize(
    ("recording", "last"),
    [
        ("claude/hello.jsonl", "  - answer: "),
        ("claude/max.jsonl", "  - result: {subtype: error_max_turns, is_error: true"),
        ("codex/hello.jsonl", "  - answer: "),
        ("gemini/stream.jsonl", "  - result: {}"),
        ("pi/hello.jsonl", "  - answer: "),
        ("pi/fail.jsonl", "  - result: {is_error: true"),
    ],
)
def test_what_a_real_agent_printed_ends_in_the_languages_words(recording: str, last: str) -> None:
    """A real result has more keys than a report's, and each that differs from run to run must be known as one."""
    text = draft_scenario((DATA / recording).read_text("utf-8"), recording.partition("/")[0])
    steps = [line for line in text.splitlines() if line.startswith("  - ")]
    assert steps[-1].startswith(last)
    assert f"outcome: {'failed' if 'is_error' in last else 'completed'}" in text


@pytest.mark.parametrize(
    ("log", "dialect", "message"),
    [
        (
            "\n\n",
            "claude",
            "log.txt:1:1: the log is empty: paste what the agent printed, with or without words around it",
        ),
        (
            "it hangs\n",
            "codex",
            "log.txt:1:1: no line is an event of codex: an event is an object of JSON, {...}",
        ),
        (
            f"words\n{SAYS}\n",
            "codex",
            "log.txt:2:1: no line is an event of codex: it looks like claude, write --dialect claude",
        ),
        (
            '\n```\n{"level":"info"}\n```\n',
            "pi",
            "log.txt:3:1: no line is an event of pi: it is no dialect's that is known",
        ),
        (
            '{"type":"assistant","message":{"conte…\n',
            "claude",
            'log.txt:1:1: no line is a whole event: it was shortened: {"type":"assistant","message":{"conte…',
        ),
        (
            "{'type': 'result'}\n{\"type\": result}\n",
            "claude",
            'log.txt:2:1: no line is a whole event: no JSON from column 10 on: {"type": result}',
        ),
    ],
)
def test_a_log_that_cannot_be_read_is_reported_where_and_why(log: str, dialect: str, message: str) -> None:
    """A reporter's log is no fault of the user: the message needs the line and a way on."""
    with pytest.raises(ScenarioError) as caught:
        draft_scenario_from_log(log, dialect, "log.txt")
    assert str(caught.value) == message


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
_LINES = st.sampled_from([line for log in LOGS for line in log.read_text("utf-8").splitlines() if line.strip()])
_MANGLED = st.tuples(_LINES, st.integers(0, 400)).map(lambda pair: pair[0][: pair[1]])


@st.composite
def _draw_broken_event(draw: st.DrawFn) -> str:
    """Take an event, and put something else in one of its places."""
    line = draw(_LINES)
    try:
        event = json.loads(line[line.index("{") :])
    except ValueError:
        return line
    place = event
    while isinstance(place, dict | list) and place:
        key = draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or draw(st.booleans()):
            place[key] = draw(_VALUES)
            break
        place = place[key]
    return json.dumps(event)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(_LINES | _MANGLED | _draw_broken_event() | st.text(max_size=20), max_size=8), st.sampled_from(LOG_DIALECTS)
)
def test_whatever_is_pasted_is_a_draft_that_loads_or_a_located_message(lines: list[str], dialect: str) -> None:
    """A log comes from anywhere, and its user has not written it."""
    try:
        text = draft_scenario_from_log("\n".join(lines), dialect, "log.txt")
    except ScenarioError as error:
        assert all(problem.line >= 1 for problem in error.problems)  # noqa: PT017 -- either is right
    else:
        loads(text)


FAR = {
    "digits": f'[{"9" * 100}.5] {{"type":"thread.started"}}\n[1.0] {{"type":"turn.started"}}',
    "digits in an event": f'{{"type":"turn.started","ts":"+{"9" * 900}:00"}}\n{{"type":"error","ts":"[{"9" * 90}.1]"}}',
    "the first year": '0001-01-01T00:00:00+09:00 {"type":"turn.started"}\n9999-12-31T23:59:59-09:00 {"type":"error"}',
    "all of the calendar": '0001-01-01T00:00:00Z {"type":"turn.started"}\n9999-12-31T23:59:59Z {"type":"error"}',
    "two lives": "".join(f'[{number}900000000.0] {{"type":"turn.started"}}\n' for number in range(4)),
    "a limit": f'it was killed after {"9" * 400}h\n{{"type":"turn.started"}}',
    "a long limit": 'it was killed after 999999999999 hours\n{"type":"turn.started"}',
}
"""Times that no log is about."""


@pytest.mark.parametrize("far", FAR)
def test_a_time_beyond_a_life_is_none(far: str) -> None:
    """A log may have any digits, and the language reads times up to a century."""
    for dialect in ("codex", "raw", "acp", "claude"):
        try:
            draft = draft_scenario_from_log(FAR[far], dialect, "log.txt")
        except ScenarioError:
            assert dialect in ("acp", "claude")
        else:
            loads(draft, "log.scenario.yaml")


@pytest.mark.slow
def test_the_time_of_an_import_does_not_grow_with_the_square_of_its_lines() -> None:
    """One message of claude's may have thousands of lines: all have its id."""
    line = (
        '{{"type":"assistant","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":"w{}"}}]}}}}\n'
    )
    began = time.process_time()
    draft = draft_scenario_from_log("".join(map(line.format, range(11_000))), "claude", "log.txt")
    assert time.process_time() - began < 20
    assert "11000 events read" in draft


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["claude", "codex", "pi"])
def test_the_time_of_an_import_does_not_grow_with_the_square_of_its_tools(dialect: str) -> None:
    """Each step is tried on a copy of the fake, which knows every tool that is open and all that it printed."""
    program: Any = {"dialect": dialect, "mode": detect_dialect_mode(dialect, []), "argv": [], "prompt": "hi"}
    agent: Any = make_encoder(program)
    lines = []
    for number in range(800 if dialect == "pi" else 1600):
        lines.append(agent.events["tool"]({"id": f"t{number}", "name": "read", "input": {"path": "x"}}, 0))
        if dialect == "pi":
            lines.append(agent.events["tool_done"]({"id": f"t{number}", "output": "", "error": None}, 0))
    began = time.process_time()
    draft_scenario_from_log(b"".join(lines).decode(), dialect, "log.txt")
    assert time.process_time() - began < 2
