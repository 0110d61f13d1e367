"""Python data is data: every text comes back as it was given, and a mistake is named by the path of its value."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import types
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import DataCall, Scenario, load_data, loads, quote_yaml_text
from pytest_agentproc.search._result_expectations import collect_expect_keys, format_expect_lines
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_play
from pytest_agentproc.vocabulary import DIALECTS, Policy
from tests.unit.encoders import make_encoder

CALL = DataCall("tests/test_mine.py", 12)
MAX_BYTES = 64 * 1024**2
ODD_CHARACTERS = (
    "\x00\x07\x1b\x7f\x85\x9f\u2028\u2029\ufeff\ufffe\uffff\ue000\U0010ffff\N{GRINNING FACE}\r\n\t \"\\'#: "
)


class Word(enum.StrEnum):
    """A name in a program's own words."""

    ANSWER = "answer"


class Code(enum.IntEnum):
    """An exit code in a program's own words."""

    BAD = 3


class Text(str):
    """A text with more to it."""

    __slots__ = ()


class Index:
    """A number of a library, as numpy has them."""

    def __index__(self) -> int:
        return 4


def load_steps(*steps: Any, **more: Any) -> Scenario:
    """Load steps as a test gives them."""
    return load_data({"scenario": "a", "agent": "raw", **more, "script": steps}, CALL)


def list_messages(*steps: Any, **more: Any) -> list[str]:
    """List what is wrong with steps, without the place of the call."""
    with pytest.raises(ScenarioError) as caught:
        load_steps(*steps, **more)
    return [message.removeprefix("tests/test_mine.py:12: ") for message in str(caught.value).splitlines()]


def compile_steps(*steps: Any) -> list[Any]:
    """Give the program of steps, without their lines."""
    return [step[1:] for step in load_steps(*steps).bind(Policy()).program["steps"]]


PLAIN_TEXT_MODES = [("raw", "text"), ("gemini", "text")]
SESSION_MODES = {"claude": "session", "codex": "app-server", "pi": "rpc", "acp": "session"}
AGENTS = [
    {"dialect": name, "mode": mode}
    for name, dialect in DIALECTS.items()
    for mode in dialect.modes
    if (name, mode) not in PLAIN_TEXT_MODES and mode not in dialect.session_modes
]
SESSIONS = [{"dialect": name, "mode": mode} for name, mode in SESSION_MODES.items()]


def show(agent: dict[str, str]) -> str:
    """Name an agent."""
    return " ".join(agent.values())


def play_answer(agent: dict[str, str], text: str) -> str | None:
    """Give what the reference supervisor takes for an agent's answer; it shares no code with the agent."""
    data: dict[str, Any] = {"scenario": "a", "agent": agent, "script": [{"answer": text}]}
    if agent in SESSIONS:
        data["script"] = [{"wait_for": "prompt 1"}, {"answer": text}]
        data["drive"] = [{"prompt": "hi"}, {"wait_for": "turn 1"}, {"close": {}}]
    played = run_in_model(load_data(data, CALL), reference_supervisor())
    assert played.answer is not None, played.fault
    return played.answer.turns[0].text if played.answer.turns else played.answer.text


@pytest.mark.parametrize("agent", [*AGENTS, *SESSIONS], ids=show)
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(text=st.text(min_size=1).filter(str.strip))
@example(text=f"a{ODD_CHARACTERS}b")
def test_every_answer_comes_back_as_it_was_given(agent: dict[str, str], text: str) -> None:
    """No dialect, and no check on the way, changes, drops or refuses a character that UTF-8 can carry."""
    assert play_answer(agent, text) == text


@pytest.mark.parametrize("agent", PLAIN_TEXT_MODES, ids="-".join)
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(text=st.text())
@example(text=f"a{ODD_CHARACTERS}b")
def test_an_answer_in_plain_text_is_written_as_it_was_given(agent: tuple[str, str], text: str) -> None:
    """What the agent writes is compared: its supervisor splits plain text into lines."""
    scenario = load_steps({"answer": text}, agent={"dialect": agent[0], "mode": agent[1]})
    program = scenario.bind(Policy()).program
    _, _, (answer,) = program["steps"][-1]
    assert make_encoder(program).encode_answer(answer, 0) == text.encode() + b"\n"


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(text=st.text(), data=st.binary())
@example(text=ODD_CHARACTERS, data=bytes(range(256)))
def test_a_raw_program_writes_exactly_these_bytes(text: str, data: bytes) -> None:
    """Text is written in UTF-8, and bytes as they are."""
    steps = compile_steps({"raw": text}, {"raw": data}, {"raw": {"text": bytearray(data), "to": "stderr"}})
    expected = [("bytes", ("stdout", text.encode())), ("bytes", ("stdout", data)), ("bytes", ("stderr", data))]
    assert [step for step in steps if step[1][1]] == [step for step in expected if step[1][1]]


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(
    data=st.dictionaries(
        st.text(),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**200), 2**200)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=8,
        ),
    )
)
def test_data_for_a_tool_keeps_its_types(data: dict[str, Any]) -> None:
    """A number stays a number, and a text that looks like one stays a text."""
    tool = {"tool": {"id": "t", "name": "Bash", "input": data}}
    scenario = load_data({"scenario": "a", "agent": "claude", "script": [tool, {"tool_done": "t"}]}, CALL)
    assert scenario.scripts[0][0].value["input"] == data


@pytest.mark.parametrize(
    ("step", "compiled"),
    [
        ({Word.ANSWER: "x"}, ("answer", ("x",))),
        ({"answer": Word.ANSWER}, ("answer", ("answer",))),
        ({"answer": Text("x")}, ("answer", ("x",))),
        ({"answer": 5}, ("answer", ("5",))),
        ({"answer": 1.5}, ("answer", ("1.5",))),
        ({"exit": Code.BAD}, ("exit", (3,))),
        ({"exit": Index()}, ("exit", (4,))),
        ({"silence": dt.timedelta(minutes=2)}, ("sleep", (120 * 10**9,))),
        ({"silence": dt.timedelta(milliseconds=1500)}, ("sleep", (1500 * 10**6,))),
        ({"silence": dt.timedelta(microseconds=3)}, ("sleep", (3000,))),
        (types.MappingProxyType({"answer": "x"}), ("answer", ("x",))),
        (collections.OrderedDict(answer="x"), ("answer", ("x",))),
        ({"silence": {"between": ["3s", "9s"]}}, ("sleep", (3 * 10**9,))),
        ({"drip": {"stderr": b"\xff", "every": "1s"}}, ("drip", ("stderr", b"\xff", None, 10**9, None))),
    ],
)
def test_a_value_may_have_any_type_that_says_what_is_meant(step: Any, compiled: tuple[Any, ...]) -> None:
    """Programs have their own enums, texts, numbers and durations."""
    [made] = compile_steps(step)
    assert made == compiled
    assert all(type(value) in (str, int, bytes, type(None)) for value in made[1])


def test_none_means_that_there_is_nothing() -> None:
    """A file has the bare words unset and none for it."""
    expect = {"received": {"env": {"HOME": None}}}
    scenario = load_steps(policy={"inactivity_timeout": None, "max_line_bytes": "1 MiB"}, expect=expect)
    assert scenario.policy == {"inactivity_timeout": None, "max_line_bytes": 1024**2}
    assert scenario.expected[0].value == {"HOME": None}


def make_cycle() -> list[Any]:
    """Make a list that contains itself."""
    found: list[Any] = []
    found.append({"meanwhile": found})
    return found


def make_nest(depth: int) -> Any:
    """Make a list in a list in a list."""
    found: Any = "x"
    for _ in range(depth):
        found = [found]
    return found


class Unshowable:
    """An object whose text cannot be had."""

    def __repr__(self) -> str:
        raise RuntimeError


KINDS = "write text, bytes, a whole number, a float, True, False, None, a timedelta, a list or a mapping"
HALF = "half a character (U+D83D at index 1), which UTF-8 cannot carry: write the whole character, or the step"
HALF_BYTES = rf"""{HALF} {{"raw": b'\xed\xa0\xbd'}} for such bytes"""


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"answr": "x"}, 'script[0].answr: unknown step "answr": did you mean "answer"?'),
        ({"answer": None}, 'script[0].answer: answer must be text, not None: write "" for empty text'),
        ({"answer": True}, 'script[0].answer: answer must be text, not True: write "True"'),
        (
            {"answer": dt.timedelta(1)},
            'script[0].answer: answer must be text, not datetime.timedelta(days=1): write "1 day, 0:00:00"',
        ),
        (
            {"answer": b"x"},
            "script[0].answer: answer must be text, not b'x': write bytes in a raw step, or .decode() after them",
        ),
        ({"answer": "a\ud83db"}, rf'script[0].answer: "a\ud83d" ends in {HALF_BYTES}'),
        ({"answer": Decimal("1.5")}, f"script[0].answer: no script can have Decimal('1.5'): {KINDS}"),
        ({"answer": Unshowable()}, f"script[0].answer: no script can have an object of Unshowable: {KINDS}"),
        ({"answer": (word for word in "ab")}, "script[0].answer: a generator is no list: write list(...) around it"),
        ({"exit": float("nan")}, "script[0].exit: nan is no number that can be written: use a finite one"),
        ({"exit": 10**5000}, "script[0].exit: a number of 16610 bits is given: at most 1024 are possible"),
        ({"exit": "x"}, 'script[0].exit: exit must be a whole number from 0 to 255, not "x"'),
        ({"exit": 256}, "script[0].exit: exit must be a whole number from 0 to 255, not 256"),
        ({"silence": 5}, 'script[0].silence: "5" has no unit: write 5s'),
        (
            {"silence": dt.timedelta(seconds=-1)},
            "script[0].silence: datetime.timedelta(days=-1, seconds=86399) is negative: a time is 0s at least",
        ),
        ({"silence": " 1 parsec"}, 'script[0].silence: unknown unit "parsec": the units are ns, us, ms, s, m, h'),
        ({None: "x"}, 'script[0]: a key must be text, not None: write "None"'),
        ({1: "x", "1": "y"}, 'script[0]["1"]: "1" is given twice'),
        ({"spawn": {"id": "a", "fro": "1s"}}, 'script[0].spawn.fro: unknown key in spawn "fro": did you mean "for"?'),
        ("say: x", 'script[0]: a step is a name with a value, not "say: x": write {"say": "x"}'),
        (
            {"say": "x", "stop": "y"},
            'script[0]: one step, two keys (say, stop): write {"say": {"text": "x", "stop": "y"}}',
        ),
        (make_cycle(), "script[0][0].meanwhile: the value contains itself: write it without the cycle"),
        (make_nest(60), f"script{'[0]' * 40}: nested deeper than 40 levels"),
        (
            {"answer": "x" * (MAX_BYTES + 1)},
            "script[0].answer: the text has 67108865 bytes: at most 67108864 are possible",
        ),
        ({"raw": bytes(MAX_BYTES + 1)}, "script[0].raw: 67108865 bytes are given: at most 67108864 are possible"),
    ],
)
def test_a_mistake_names_the_path_of_its_value(step: Any, message: str) -> None:
    """There is no file, so that a line and a column of one would lead nowhere."""
    assert list_messages(step) == [message]


def test_shared_values_cannot_make_a_small_script_endless() -> None:
    """Each list has the one below it twice."""
    shared: Any = {"say": "x"}
    for _ in range(30):
        shared = [shared, shared]
    [message] = list_messages(shared)
    assert message.endswith("there are more than 200000 values: use fewer")


def test_all_mistakes_are_named_at_once() -> None:
    """Also those outside of the script, and keys that are missing."""
    data = {"scenario": "a", "agnt": "raw", "script": [{"sya": 1}, {"exit": -1}], "policy": {"kill_grace": "5"}}
    with pytest.raises(ScenarioError) as caught:
        load_data(data, CALL)
    assert str(caught.value).splitlines() == [
        'tests/test_mine.py:12: agnt: unknown key in the scenario "agnt": did you mean "agent"?',
        'tests/test_mine.py:12: script[0].sya: unknown step "sya": did you mean "say"?',
        "tests/test_mine.py:12: script[1].exit: exit must be a whole number from 0 to 255, not -1: write die: HUP",
        'tests/test_mine.py:12: policy.kill_grace: "5" has no unit: write 5s',
    ]


def test_the_longest_text_is_an_answer() -> None:
    """The limit on characters is a limit on files."""
    text = "\u2028" * (MAX_BYTES // 3)
    assert compile_steps({"answer": text}) == [("answer", (text,))]
    with pytest.raises(ScenarioError, match="the text has 5000042 characters: at most 4194304 are read: write a long"):
        loads(f"scenario: a\nagent: raw\nscript:\n- answer: {'x' * 5_000_000}\n")


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(text=st.text(min_size=1).filter(str.strip))
@example(text=f"a{ODD_CHARACTERS}b")
def test_a_file_that_the_kit_writes_has_the_same_text(text: str) -> None:
    """Drafts, found scenarios and new ones hold texts of programs: their checks must hold when the file is read."""
    played = run_in_model(load_steps({"answer": text}, agent="claude"), reference_supervisor())
    keys = collect_expect_keys(played)
    assert keys is not None
    script = f"script: [answer: {quote_yaml_text(text)}]"
    scenario = loads("\n".join(["scenario: a", "agent: claude", script, *format_expect_lines(keys)]))
    assert scenario.scripts[0][0].value == text
    assert all(row.verdict is Verdict.PASSED for row in judge_play(run_in_model(scenario, reference_supervisor())).rows)


def test_data_and_a_file_of_the_same_words_are_the_same_scenario() -> None:
    """Both take the same checks."""
    text = (
        "scenario: a\nagent: claude\nscript:\n- say: one\n- spawn: {id: c, for: 3s}\n- exit: 2\nexpect: {exit_code: 2}"
    )
    script = [{"say": "one"}, {"spawn": {"id": "c", "for": "3s"}}, {"exit": 2}]
    data = {"scenario": "a", "agent": "claude", "script": script, "expect": {"exit_code": 2}}
    made, read = (scenario.bind(Policy()).program["steps"] for scenario in (load_data(data, CALL), loads(text)))
    assert [step[1:] for step in made] == [step[1:] for step in read]


def test_a_tool_that_ends_twice_is_refused_where_all_steps_share_a_line() -> None:
    """The fake would have broken in the middle of the run."""
    steps = ({"tool": {"id": "t", "name": "Bash"}}, {"tool_done": "t"}, {"tool_done": "t"})
    assert list_messages(*steps, agent="codex") == [
        'script[2].tool_done: the tool "t" has ended in line 12: write an event for a second end'
    ]
