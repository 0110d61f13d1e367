"""Each step of the language, and the program that the fake gets for it."""

from __future__ import annotations

import marshal
from typing import Any

import pytest

from pytest_agentproc.fake_agents.dialects import make_encoder
from pytest_agentproc.fake_agents.program import make_invocation_program
from pytest_agentproc.scenario import loads
from pytest_agentproc.scenario._steps import STEP_ENTRY_BY_NAME
from pytest_agentproc.vocabulary import Policy

SECOND = 1_000_000_000
CHILD: dict[str, Any] = {"id": "child1", "how": "same_group", "inherits": [], "ignores_signals": False, "for": None}
NO_RESULT: dict[str, Any] = {"text": None, "is_error": False, "usage": None}

CASES: list[tuple[str, list[tuple[str, tuple[Any, ...]]]]] = [
    ("say: hi", [("say", ("hi", None))]),
    ("say: yes", [("say", ("yes", None))]),
    ("say: 0x1F", [("say", ("0x1F", None))]),
    ('say: ""', [("say", ("", None))]),
    ("say: {text: hi, stop: length}", [("say", ("hi", "length"))]),
    ("answer: no", [("answer", ("no",))]),
    ("result: done", [("result", ({**NO_RESULT, "text": "done"},))]),
    ("result: {}", [("result", (NO_RESULT,))]),
    (
        'result: {text: bad, is_error: true, usage: {input: 3, cost: {total: 0.5}, "id": "7"}}',
        [
            (
                "result",
                ({"text": "bad", "is_error": True, "usage": {"input": 3, "cost": {"total": 0.5}, "id": "7"}},),
            )
        ],
    ),
    ("begin: turn", [("event", ("begin", "turn"))]),
    ("begin: late", []),
    ("delta: no", [("event", ("delta", "no"))]),
    ("think: no", [("event", ("think", "no"))]),
    (
        "{tool: {id: 1, name: bash}}",
        [("event", ("tool", {"id": "1", "name": "bash", "input": {}}))],
    ),
    (
        "{meanwhile: [{tool: {id: a, name: b, input: {c: 1}}}, {tool_done: a}]}",
        [
            (
                "meanwhile",
                (
                    [
                        (4, "event", ("tool", {"id": "a", "name": "b", "input": {"c": 1}})),
                        (4, "event", ("tool_done", {"id": "a", "output": "", "error": None})),
                    ],
                ),
            )
        ],
    ),
    ("event: {type: x, n: [1]}", [("event", ("event", {"type": "x", "n": [1]}))]),
    ("raw: naïve", [("bytes", ("stdout", "naïve".encode()))]),
    ('raw: "a\\r\\n"', [("bytes", ("stdout", b"a\r\n"))]),
    ("raw: {hex: e2 82 AC}", [("bytes", ("stdout", b"\xe2\x82\xac"))]),
    ("raw: {base64: 4oKs, to: stderr}", [("bytes", ("stderr", b"\xe2\x82\xac"))]),
    ("raw: {text: ab, repeat: 3}", [("bytes", ("stdout", b"ababab"))]),
    ("raw: {text: abc, size: 7 B}", [("bytes", ("stdout", b"abcabcabc"))]),
    ("raw: {text: abc, size: max_line_bytes / 4194304, to: stderr}", [("bytes", ("stderr", b"abcabc"))]),
    (
        "raw: {text: abc, repeat: 2, cut: [1, 5]}",
        [("bytes", ("stdout", b"a")), ("bytes", ("stdout", b"bcab")), ("bytes", ("stdout", b"c"))],
    ),
    (
        "raw: {text: ab, cut: [1], gap: kill_grace}",
        [("bytes", ("stdout", b"a")), ("sleep", (2 * SECOND,)), ("bytes", ("stdout", b"b"))],
    ),
    (
        'drip: {stdout: ".", every: 60s, for: 300s}',
        [("drip", ("stdout", b".", None, 60 * SECOND, 300 * SECOND))],
    ),
    ("drip: {stderr: é, every: 1s}", [("drip", ("stderr", "é".encode(), None, SECOND, None))]),
    ("drip: {say: hi, every: 1s}", [("drip", ("stdout", None, "hi", SECOND, None))]),
    ("flood: {stderr: 1 MiB}", [("flood", ("stderr", 1_048_576))]),
    ("flood: {stdout: 7B}", [("flood", ("stdout", 7))]),
    ("flood: {stdout: max_line_bytes + 1 B}", [("flood", ("stdout", 16_777_217))]),
    ("flood: {stderr: (max_transcript_bytes - 1 MiB) / 5}", [("flood", ("stderr", 3_145_728))]),
    ("flood: {stdout: 1.5 KiB}", [("flood", ("stdout", 1536))]),
    ("silence: inactivity_timeout", [("sleep", (120 * SECOND,))]),
    ("silence: for ever", [("sleep", (None,))]),
    ("write_file: {path: out/a.md, text: done}", [("write_file", ("out/a.md", b"done"))]),
    ("burn_cpu: 1s", [("burn_cpu", (SECOND,))]),
    ("burn_cpu: for ever", [("burn_cpu", (None,))]),
    ("silence: 0", [("sleep", (0,))]),
    ("silence: for ever", [("sleep", (None,))]),
    ("wait_for: eof", [("await_eof", ())]),
    ("wait_for: signal", [("await_signal", ())]),
    ("wait_for: eof", [("await_eof", ())]),
    ('wait_for: {stdin: "*hi*"}', [("await_stdin", ("*hi*",))]),
    ("stdin: stop", [("stdin", ("stop",))]),
    ("stdin: read", [("stdin", ("read",))]),
    ("close: stdout", [("close", ("stdout",))]),
    ("close: stderr", [("close", ("stderr",))]),
    ("close: stdin", [("close", ("stdin",))]),
    ("{when: {signal: TERM}, do: []}", [("when", ("signal", 15, []))]),
    ("{do: [{exit: 143}], when: {signal: HUP}}", [("when", ("signal", 1, [(4, "exit", (143,))]))]),
    ("{when: eof, do: [{silence: 1s}]}", [("when", ("eof", None, [(4, "sleep", (SECOND,))]))]),
    ("{when: epipe, do: []}", [("when", ("epipe", None, []))]),
    ("meanwhile: [{say: hi}, {exit: 0}]", [("meanwhile", ([(4, "say", ("hi", None)), (4, "exit", (0,))],))]),
    (
        'one_write: [{raw: "npm\\n"}, {answer: hi}]',
        [("one_write", ([(4, "bytes", ("stdout", b"npm\n")), (4, "answer", ("hi",))],))],
    ),
    ("spawn: server", [("spawn", ({**CHILD, "id": "server"}, None))]),
    ("spawn: {}", [("spawn", (CHILD, None))]),
    (
        "spawn: {id: s, how: same_group, inherits: [stderr, stdout], ignores_signals: true, for: kill_grace}",
        [
            (
                "spawn",
                (
                    {
                        "id": "s",
                        "how": "same_group",
                        "inherits": ["stderr", "stdout"],
                        "ignores_signals": True,
                        "for": 2 * SECOND,
                    },
                    None,
                ),
            )
        ],
    ),
    (
        "{meanwhile: [{spawn: {id: k, how: own_group}}, {kill: k}]}",
        [("meanwhile", ([(4, "spawn", ({**CHILD, "id": "k", "how": "own_group"}, None)), (4, "kill", ("k", 9))],))],
    ),
    ("spawn: {how: daemon}", [("spawn", ({**CHILD, "how": "daemon"}, None))]),
    (
        "spawn: {closed_fds: true, clear_env: true, stopped: true, zombie: false, subreaper: true}",
        [("spawn", ({**CHILD, **dict.fromkeys(("closed_fds", "clear_env", "stopped", "subreaper"), True)}, None))],
    ),
    (
        "spawn: {how: refork, for: 3s}",
        [("spawn", ({**CHILD, "how": "refork", "for": 3 * SECOND, "every": SECOND // 10, "heads": 1}, None))],
    ),
    (
        "spawn: {how: refork, every: kill_grace, heads: 16}",
        [("spawn", ({**CHILD, "how": "refork", "every": 2 * SECOND, "heads": 16}, None))],
    ),
    ("spawn: {script: [{wait_for: {exit: parent}}]}", [("spawn", (CHILD, [(4, "await_exit", ("parent",))]))]),
    (
        "spawn: {script: [{spawn: {}}, {kill: {id: child2, signal: HUP}}, {exit: 3}]}",
        [
            (
                "spawn",
                (
                    CHILD,
                    [(4, "spawn", ({**CHILD, "id": "child2"}, None)), (4, "kill", ("child2", 1)), (4, "exit", (3,))],
                ),
            )
        ],
    ),
    ("wait_for: prompt 12", [("await_prompt", (12,))]),
    ("wait_for: cancel", [("await_cancel", ())]),
    ("{when: cancel, do: []}", [("when", ("cancel", None, []))]),
    (
        "{ask: {permission: bash, id: q, allowed: [{exit: 0}]}}",
        [
            (
                "ask",
                (
                    {"kind": "permission", "name": "bash", "id": "q", "event": "PreToolUse"},
                    [(4, "exit", (0,))],
                    [],
                    [],
                ),
            )
        ],
    ),
    (
        "ask: {permission: bash, id: 2}",
        [("ask", ({"kind": "permission", "name": "bash", "id": 2, "event": "PreToolUse"}, [], [], []))],
    ),
    (
        'ask: {permission: bash, id: "2"}',
        [("ask", ({"kind": "permission", "name": "bash", "id": "2", "event": "PreToolUse"}, [], [], []))],
    ),
    (
        "ask: {hook: tasks, event: Stop, for: 2s, unanswered: [{exit: 0}]}",
        [
            (
                "ask",
                (
                    {"kind": "hook", "name": "tasks", "id": None, "event": "Stop", "for": 2 * SECOND},
                    *([], [], [(4, "exit", (0,))]),
                ),
            )
        ],
    ),
    ("notice: slow", [("event", ("notice", "slow"))]),
    ("request: {method: m}", [("ask", ({"kind": "request", "name": "m", "id": None, "params": {}}, [], [], []))]),
    ("plan: [look, mend it]", [("event", ("plan", ["look", "mend it"]))]),
    ("handshake: never", [("handshake", ("never", None))]),
    ("{handshake: {after: 1s}}", [("handshake", ("after", SECOND))]),
    ("{handshake: {version: 2}}", [("handshake", ("version", 2))]),
    ("{handshake: {error: no key}}", [("handshake", ("error", "no key"))]),
    ("acknowledge: cancel", [("acknowledge", ())]),
    ("acknowledge: signal", [("interrupted", ())]),
    ("acknowledge: receipt", [("receipt", ())]),
    ("{task: b}", [("event", ("task", {"id": "b", "kind": "local_bash"}))]),
    (
        "{meanwhile: [{task: b}, {task_done: {id: b, status: failed}}, {background_turn: {task: b, answer: hi}}]}",
        [
            (
                "meanwhile",
                (
                    [
                        (4, "event", ("task", {"id": "b", "kind": "local_bash"})),
                        (4, "event", ("task_done", {"id": "b", "status": "failed", "in_same_turn": False})),
                        (4, "event", ("background_turn", {"task": "b", "empty_result_first": False})),
                        (4, "answer", ("hi",)),
                    ],
                ),
            )
        ],
    ),
    ("exit: 3", [("exit", (3,))]),
    ("die: KILL", [("die", (9,))]),
]


def compile_step(steps: str, agent: str = "pi") -> dict[str, Any]:
    """Compile one step, which stands in line 4, under the default policy."""
    bound = loads(f"scenario: a\nagent: {agent}\nscript:\n  - {steps}\n").bind(Policy())
    return bound.program


@pytest.mark.parametrize(("step", "wanted"), CASES, ids=[step for step, _ in CASES])
def test_a_step_compiles_to_its_program(step: str, wanted: list[tuple[str, tuple[Any, ...]]]) -> None:
    """The player knows nothing but this form: a mistake here is a mistake in every run."""
    agent = (
        "{dialect: claude, mode: session}"
        if "task" in step or "delta" in step or {"signal", "receipt"} & {*step.split()}
        else "{dialect: pi, mode: rpc}"
    )
    if any(word in step for word in ("handshake", "plan", "request")):
        agent = "acp"
    if "notice" in step or "begin" in step:
        agent = "codex"
    steps = [compiled for compiled in compile_step(step, agent)["steps"] if compiled[1] != "read_stdin"]
    assert steps == [(4, op, args) for op, args in wanted]


def test_every_step_of_the_table_is_compiled_here() -> None:
    """A step that is added to the table is added to these cases."""
    used = {
        name for step, _ in CASES for name in STEP_ENTRY_BY_NAME if step.startswith(f"{name}:") or f"{{{name}:" in step
    }
    assert used == {name for name, entry in STEP_ENTRY_BY_NAME.items() if entry.build is not None}


def test_a_program_is_plain_data_that_marshal_carries() -> None:
    """The fake reads its program with marshal, in a process that knows none of our classes."""
    whole = compile_step("spawn: {script: [{raw: {hex: ff, cut: []}}, {when: eof, do: []}]}")
    assert marshal.loads(marshal.dumps(whole)) == whole  # noqa: S302 - our own bytes
    assert {key: value for key, value in whole.items() if key != "steps"} == {
        "format": 1,
        "dialect": "pi",
        "mode": "json",
        "name": "agent",
        "code": 0,
        "newline": "lf",
        "bom": False,
        "serves": False,
        "obeys": True,
        "signals": {1: (129, True, ""), 15: (143, True, "")},
        "encoder": ["pytest_agentproc.fake_agents.dialects.pi", "pytest_agentproc.fake_agents.dialects.pi_1"],
    }


def test_a_program_says_how_lines_end() -> None:
    """Newline and byte order mark belong to the agent, not to any step."""
    whole = compile_step("say: hi", "{dialect: raw, newline: crlf, bom: true}")
    assert (whole["dialect"], whole["mode"], whole["newline"], whole["bom"]) == ("raw", "text", "crlf", True)


def test_steps_carry_the_line_that_they_stand_in() -> None:
    """A failure names the step's line: the key's, not the item's or the value's."""
    text = "scenario: a\nagent: raw\nscript:\n  -\n    say:\n      hi\n  - meanwhile:\n      - exit: 0\n"
    steps = loads(text).bind(Policy()).program["steps"]
    assert steps == [(5, "say", ("hi", None)), (7, "meanwhile", ([(8, "exit", (0,))],))]


def test_processes_are_numbered_in_the_order_of_the_file() -> None:
    """child1 is the first that a reader meets, whoever has a name beside it."""
    text = "scenario: a\nagent: raw\nscript:\n  - spawn: {}\n  - spawn: child2\n  - spawn: {}\n"
    steps = loads(text).bind(Policy()).program["steps"]
    assert [args[0]["id"] for _, _, args in steps] == ["child1", "child2", "child3"]


def test_scripts_are_those_of_the_invocations() -> None:
    """The first one is the program; the others stand beside it, and a tool's id is free again in each."""
    tool = "{tool: {id: t, name: bash}}"
    text = f"scenario: a\nagent: pi\nscripts:\n  - [{{spawn: {{}}}}, {tool}]\n  - [{tool}]\n  - [{{spawn: {{}}}}]\n"
    program = loads(text).bind(Policy()).program
    called = [("event", ("tool", {"id": "t", "name": "bash", "input": {}}))]
    (first, *own), *later = ([step[1:] for step in steps] for steps in (program["steps"], *program["then"]))
    assert first[0] == "read_stdin"  # as pi does at each start
    assert own == [("spawn", (CHILD, None)), *called]
    assert later == [[first, *called], [first, ("spawn", ({**CHILD, "id": "child2"}, None))]]


def test_the_last_script_is_played_for_ever() -> None:
    """An invocation beyond the list plays what the last one of the list does, under a name of its own."""
    program: dict[str, Any] = {"name": "pi", "steps": [1], "then": [[2], [3]]}
    played = [make_invocation_program(program, number) for number in (1, 2, 3, 4)]
    assert [(script["name"], script["steps"]) for script in played] == [
        ("pi", [1]),
        ("pi 2", [2]),
        ("pi 3", [3]),
        ("pi 4", [3]),
    ]
    assert make_invocation_program({"name": "pi", "steps": [1]}, 2) == {"name": "pi 2", "steps": [1]}


def test_every_script_reports_the_arguments_of_the_agent() -> None:
    """Whichever invocation it is: it may be the first that lives long enough to tell."""
    text = "scenario: a\nagent: raw\nscripts:\n  - [say: hi]\n  - []\nexpect:\n  received: {argv: []}\n"
    program = loads(text).bind(Policy()).program
    assert [steps[0][1] for steps in (program["steps"], *program["then"])] == ["report_start", "report_start"]


def test_an_agent_reports_its_arguments_only_if_a_check_asks() -> None:
    """Variables can hold secrets: the variables that a check names are shown, and no others."""
    text = "scenario: a\nagent: raw\nscript:\n  - say: hi\nexpect:\n  received: {stdin: ''}\n"
    assert loads(text).bind(Policy()).program["steps"] == [(4, "say", ("hi", None))]
    text += "  outcome: completed\n"
    text = text.replace("{stdin: ''}", "{env: {A: b, C: unset}}")
    assert loads(text).bind(Policy()).program["steps"][0] == (6, "report_start", (["A", "C"],))


BEGINNINGS = [
    ("[{silence: 1s}, {answer: a}]", ["begin", "sleep", "answer"]),
    ("[{event: api_retry}, {answer: a}]", ["begin", "line", "answer"]),
    ("[{event: rate_limit}, {answer: a}]", ["begin", "line", "answer"]),
    ("[{event: hook_started}, {silence: 1s}]", ["line", "begin", "sleep"]),
    ("[{event: keep_alive}, {burn_cpu: 1s}]", ["line", "begin", "burn_cpu"]),
    ("[{raw: {text: x, to: stderr}}, {wait_for: signal}]", ["bytes", "begin", "await_signal"]),
    ("[{drip: {stderr: x, every: 1s}}]", ["begin", "drip"]),
    ("[{begin: late}, {silence: 1s}, {answer: a}]", ["sleep", "answer"]),
    ("[{silence: 1s}, {begin: turn}, {answer: a}]", ["sleep", "begin", "answer"]),
    ("[{answer: a}, {silence: 1s}]", ["answer", "sleep"]),
    ("[{event: {type: x}}, {silence: 1s}]", ["event", "sleep"]),
    ("[{raw: x}, {silence: 1s}]", ["bytes", "sleep"]),
    ("[{stdin: stop}, {silence: 1s}]", ["stdin", "sleep"]),
    ("[{exit: 1}]", ["exit"]),
    ("[{notice: slow}, {silence: 1s}]", ["notice", "begin", "sleep"]),
]


@pytest.mark.parametrize(("script", "wanted"), BEGINNINGS)
def test_the_first_events_come_before_the_agent_waits(script: str, wanted: list[str]) -> None:
    """A supervisor that reads its session id from the first line has it before the model answers."""
    agent = "codex" if "notice" in script else "claude"
    program = loads(f"scenario: a\nagent: {agent}\nscript: {script}\n").bind(Policy()).program
    seen = [args[0] if op == "event" else op for _, op, args in program["steps"] if op != "read_stdin"]
    assert seen == wanted


@pytest.mark.parametrize(
    ("agent", "begins"),
    [
        ("claude", True),
        ("codex", True),
        ("pi", True),
        ("{dialect: gemini, mode: stream}", True),
        ("gemini", False),
        ("opencode", False),
        ("raw", False),
        ("acp", False),
        ("{dialect: claude, mode: session}", False),
    ],
)
def test_only_some_agents_print_before_their_model_answers(agent: str, begins: bool) -> None:
    """A real opencode prints nothing, and a session begins a turn with its prompt. `tests/fidelity` measures it."""
    program = compile_step("silence: for ever", agent)
    assert any(op == "event" for _, op, _ in program["steps"]) is begins


BY_HAND = [
    ("claude", "[{event: {type: system, subtype: init}}, {answer: a}]", '"init"'),
    ("codex", "[{event: {type: thread.started}}, {event: {type: turn.started}}, {answer: a}]", '"turn.started"'),
    ("pi", "[{event: {type: agent_start}}, {event: {type: turn_start}}, {answer: a}]", '"turn_start"'),
    ("{dialect: gemini, mode: stream}", "[{event: {type: init}}, {answer: a}]", '"init"'),
]


@pytest.mark.parametrize(("agent", "script", "first"), BY_HAND, ids=[agent for agent, _, _ in BY_HAND])
def test_first_events_written_by_hand_are_not_repeated(agent: str, script: str, first: str) -> None:
    """No real CLI begins one run twice."""
    program = loads(f"scenario: a\nagent: {agent}\nscript: {script}\n").bind(Policy()).program
    encoder = make_encoder({**program, "argv": (), "prompt": "hi"})
    *events, answer = [args for _, op, args in program["steps"] if op != "read_stdin"]
    data = b"".join(encoder.events["event"](value, 0) for _, value in events) + encoder.encode_answer(answer[0], 0)
    assert data.decode().count(first) == 1
