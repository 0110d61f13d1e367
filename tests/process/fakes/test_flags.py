"""A fake reads its arguments as the real CLI does: the format, the prompt, the session, and what is wrong with them.

Each error is what the pinned CLI prints, word for word; `tests/fidelity` starts the real one.
"""

from __future__ import annotations

import json
import subprocess
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.fake_agents import flags
from pytest_agentproc.harness._agent_launch import build_command_line, describe_accepted_flags
from pytest_agentproc.harness.fakes._standalone import write_fake
from pytest_agentproc.scenario import loads
from pytest_agentproc.vocabulary import DIALECTS

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import FakeAgent, ScenarioRunner

SESSION = "11111111-2222-4333-8444-555555555555"
CODEX_USAGE = "Usage: codex exec [OPTIONS] [PROMPT]\n       codex exec [OPTIONS] <COMMAND> [ARGS]"
FOR_MORE = "For more information, try '--help'.\n"
ODD = (
    "Error: --resume requires a valid session ID or session title when used with --print. Usage: claude -p --resume "
    '<session-id|title>. Provided value "nosuch" is not a UUID and does not match any session title.\n'
)


def make_fake(
    runner: ScenarioRunner, agent: str, script: str = "[{say: let me see}, {answer: done}]", more: str = ""
) -> FakeAgent:
    """Make the fake of a small scenario."""
    return runner.make_fake(loads(f"scenario: x\nagent: {agent}\nscript: {script}\n{more}", "x"))


def start_fake_once(fake: FakeAgent, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Start it once."""
    return subprocess.run([fake.path, *argv], input=stdin, capture_output=True, text=True, check=False, timeout=60)


READS_STDIN = "Reading additional input from stdin...\n"
OPENCODE_ERROR = "\x1b[91m\x1b[1mError: \x1b[0m"
FINAL = [
    ("claude", ["-p", "hi"], "done\n"),
    ("claude", ["hi"], "done\n"),
    ("claude", ["-p", "--output-format=text", "hi"], "done\n"),
    ("codex", ["exec", "hi"], "done\n"),
    ("codex", ["-m", "o3", "e", "hi"], "done\n"),
    ("pi", ["-p", "hi"], "done\n"),
    ("pi", ["hi"], "done\n"),
    ("opencode", ["run", "hi"], "done\n"),
    ("gemini", ["--skip-trust", "-p", "hi"], "let me see\ndone\n"),
    ("{dialect: gemini, mode: stream}", ["--skip-trust", "hi"], "let me see\ndone\n"),
]


@pytest.mark.parametrize(("agent", "argv", "printed"), FINAL)
def test_without_a_format_a_fake_prints_the_answer_alone(
    runner: ScenarioRunner, agent: str, argv: list[str], printed: str
) -> None:
    """Events are printed only if the arguments ask for them."""
    completed = start_fake_once(make_fake(runner, agent), *argv)
    notice = READS_STDIN if agent == "codex" else ""
    assert (completed.stdout, completed.stderr, completed.returncode) == (printed, notice, 0)


EVENTS = [
    ("claude", ["-p", "--output-format", "stream-json", "--verbose", "hi"], "system", "result"),
    ("codex", ["exec", "--experimental-json", "hi"], "thread.started", "turn.completed"),
    ("pi", ["--mode", "json", "hi"], "session", "agent_settled"),
    ("gemini", ["--skip-trust", "-p", "hi", "-o", "stream-json"], "init", "result"),
    ("opencode", ["run", "--format=json", "hi"], "step_start", "step_finish"),
]


@pytest.mark.parametrize(("agent", "argv", "first", "last"), EVENTS)
def test_a_format_asks_for_events(runner: ScenarioRunner, agent: str, argv: list[str], first: str, last: str) -> None:
    """The names of the format are the CLI's own."""
    kinds = [json.loads(line)["type"] for line in start_fake_once(make_fake(runner, agent), *argv).stdout.splitlines()]
    assert (kinds[0], kinds[-1]) == (first, last)


def test_claudes_json_is_the_result_alone(runner: ScenarioRunner) -> None:
    """It is one line, whatever the agent did before."""
    completed = start_fake_once(make_fake(runner, "claude"), "-p", "--output-format", "json", "hi")
    assert [(message["type"], message["result"]) for message in map(json.loads, completed.stdout.splitlines())] == [
        ("result", "done")
    ]


def test_geminis_json_is_one_object(runner: ScenarioRunner) -> None:
    """It comes from a script for the stream, too."""
    completed = start_fake_once(
        make_fake(runner, "{dialect: gemini, mode: stream}"), "--skip-trust", "-p", "hi", "--outputFormat", "json"
    )
    assert json.loads(completed.stdout)["response"] == "let me seedone"


ERRORS = [
    ("claude", "no\n", ""),
    ("codex", "", f"{READS_STDIN}ERROR: no\n"),
    ("pi", "", "no\n"),
    ("gemini", "", "no\n"),
    ("opencode", "", f"{OPENCODE_ERROR}no\n"),
]


@pytest.mark.parametrize(("agent", "stdout", "stderr"), ERRORS)
def test_an_error_without_events_is_printed_where_the_cli_prints_it(
    runner: ScenarioRunner, agent: str, stdout: str, stderr: str
) -> None:
    """Its exit code is 1, of gemini that of the status 400; that of pi's events is 0."""
    argv = [
        {"codex": "exec", "opencode": "run"}.get(agent, "-p"),
        "hi",
        *(["--skip-trust"] if agent == "gemini" else []),
    ]
    completed = start_fake_once(make_fake(runner, agent, '[{result: {text: "no", is_error: true}}]'), *argv)
    assert (completed.stdout, completed.stderr, completed.returncode) == (
        stdout,
        stderr,
        144 if agent == "gemini" else 1,
    )


REFUSED = [
    ("claude", ["-p", "hi", "--frobnicate"], 1, "error: unknown option '--frobnicate'\n"),
    ("claude", ["-p", "hi", "--verbose=3"], 1, "error: unknown option '--verbose=3'\n"),
    (
        "claude",
        ["-p", "hi", "--output-format", "yaml"],
        1,
        (
            "error: option '--output-format <format>' argument 'yaml' is invalid. "
            "Allowed choices are text, json, stream-json.\n"
        ),
    ),
    ("claude", ["-p", "hi", "--output-format"], 1, "error: option '--output-format <format>' argument missing\n"),
    (
        "claude",
        ["-p", "hi", "--output-format", "stream-json"],
        1,
        "Error: When using --print, --output-format=stream-json requires --verbose\n",
    ),
    (
        "claude",
        ["-p", "hi", "--include-partial-messages"],
        1,
        "Error: --include-partial-messages requires --print and --output-format=stream-json.\n",
    ),
    (
        "claude",
        ["-p", "hi", "--input-format=stream-json"],
        1,
        "Error: --input-format=stream-json requires output-format=stream-json.\n",
    ),
    ("claude", ["-p", "hi", "--resume", SESSION], 1, f"No conversation found with session ID: {SESSION}\n"),
    ("claude", ["-p", "hi", "--resume", "nosuch"], 1, ODD),
    ("claude", ["-p", "hi", "--session-id", "nope"], 1, "Error: Invalid session ID. Must be a valid UUID.\n"),
    (
        "claude",
        ["-p", "hi", "--session-id", SESSION, "--continue"],
        1,
        "Error: --session-id with --continue or --resume also needs --fork-session.\n",
    ),
    (
        "claude",
        ["-p"],
        1,
        "Error: Input must be provided either through stdin or as a prompt argument when using --print\n",
    ),
    (
        "codex",
        ["exec", "--frobnicate", "hi"],
        2,
        (
            "error: unexpected argument '--frobnicate' found\n\n  tip: to pass '--frobnicate' as a value, use "
            f"'-- --frobnicate'\n\n{CODEX_USAGE}\n\n{FOR_MORE}"
        ),
    ),
    (
        "codex",
        ["exec", "hi", "there"],
        2,
        f"error: unexpected argument 'there' found\n\n{CODEX_USAGE}\n\n{FOR_MORE}",
    ),
    (
        "codex",
        ["exec", "--sandbox", "frob", "hi"],
        2,
        (
            "error: invalid value 'frob' for '--sandbox <SANDBOX_MODE>'\n"
            f"  [possible values: read-only, workspace-write, danger-full-access]\n\n{FOR_MORE}"
        ),
    ),
    (
        "codex",
        ["exec", "--json", "--json", "hi"],
        2,
        f"error: the argument '--json' cannot be used multiple times\n\n{CODEX_USAGE}\n\n{FOR_MORE}",
    ),
    (
        "codex",
        ["exec", "--json", "resume", SESSION, "hi"],
        1,
        f"Error: thread/resume: thread/resume failed: no rollout found for thread id {SESSION} (code -32600)\n",
    ),
    ("codex", ["hi"], 1, "Error: stdin is not a terminal\n"),
    ("codex", ["exec", "--json"], 1, "Reading prompt from stdin...\nNo prompt provided via stdin.\n"),
    ("gemini", ["-p", "hi", "--frobnicate"], 1, "Unknown argument: frobnicate\nUsage: gemini [options] [command]\n"),
    (
        "gemini",
        ["-p", "hi", "-o", "yaml"],
        1,
        (
            'Invalid values:\n  Argument: output-format, Given: "yaml", Choices: "text", "json", "stream-json"\n'
            "Usage: gemini [options] [command]\n"
        ),
    ),
    (
        "gemini",
        ["-p", "hi", "hello"],
        1,
        "Cannot use both a positional prompt and the --prompt (-p) flag together\nUsage: gemini [options] [command]\n",
    ),
    ("gemini", ["-p", "hi", "-r", "nosuch"], 42, 'Error resuming session: Invalid session identifier "nosuch".\n'),
    ("opencode", ["run", "--frobnicate", "hi"], 1, "opencode run [message..]\n\nrun opencode with a message\n"),
    ("opencode", ["run", "--fork", "hi"], 1, f"{OPENCODE_ERROR}--fork requires --continue or --session\n"),
    ("opencode", ["run", "-s", "nosuch", "hi"], 1, f"{OPENCODE_ERROR}Session not found\n"),
    ("opencode", ["run"], 1, f"{OPENCODE_ERROR}You must provide a message or a command\n"),
    ("opencode", ["hi"], 1, "opencode needs a terminal: the fake has `opencode run` and `opencode serve`\n"),
    ("pi", ["-p", "hi", "--frobnicate"], 1, "Error: Unknown option: --frobnicate\n"),
    ("pi", ["-p", "hi", "--mode=json"], 1, "Error: Unknown option: --mode=json\n"),
    ("pi", ["-p", "hi", "--session", "nosuch"], 1, "No session found matching 'nosuch'\n"),
    ("pi", ["-p", "hi", "--fork", "x", "--continue"], 1, "Error: --fork cannot be combined with --continue\n"),
]


@pytest.mark.parametrize(("agent", "argv", "code", "error"), REFUSED)
def test_wrong_arguments_end_as_with_the_real_cli(
    runner: ScenarioRunner, agent: str, argv: list[str], code: int, error: str
) -> None:
    """A supervisor with such a command line must not pass."""
    completed = start_fake_once(make_fake(runner, agent), *argv)
    assert (completed.stdout, completed.stderr, completed.returncode) == ("", error, code)


def test_a_stream_reports_the_missing_session_as_an_event_too(runner: ScenarioRunner) -> None:
    """Claude prints a result that is an error, and the same on stderr."""
    argv = ["-p", "hi", "--resume", SESSION, "--output-format=stream-json", "--verbose"]
    completed = start_fake_once(make_fake(runner, "claude"), *argv)
    result = json.loads(completed.stdout)
    assert (result["subtype"], result["errors"]) == (
        "error_during_execution",
        [f"No conversation found with session ID: {SESSION}"],
    )
    assert (completed.stderr, completed.returncode) == (f"No conversation found with session ID: {SESSION}\n", 1)


def test_a_session_that_was_named_can_be_resumed_and_not_be_named_again(runner: ScenarioRunner) -> None:
    """Each fake remembers the sessions of its own starts."""
    fake = make_fake(runner, "claude")
    first, second, third = (
        start_fake_once(fake, "-p", "hi", word, SESSION) for word in ("--session-id", "--session-id", "-r")
    )
    assert (first.stdout, third.stdout) == ("done\n", "done\n")
    assert second.stderr == f"Error: Session ID {SESSION} is already in use.\n"


def test_the_session_of_the_fake_itself_can_be_resumed(runner: ScenarioRunner) -> None:
    """A supervisor has the id from an event of an earlier start."""
    fake = make_fake(runner, "codex")
    thread = json.loads(start_fake_once(fake, "exec", "--json", "hi").stdout.splitlines()[0])["thread_id"]
    completed = start_fake_once(fake, "exec", "--json", "resume", thread, "go on")
    assert json.loads(completed.stdout.splitlines()[0])["thread_id"] == thread


def test_the_prompt_is_that_of_the_arguments(runner: ScenarioRunner) -> None:
    """Pi repeats it, and the script's own prompt is another one."""
    lines = start_fake_once(make_fake(runner, "pi"), "--mode", "json", "-p", "what", "now?").stdout.splitlines()
    assert json.loads(lines[5])["message"]["content"] == [{"type": "text", "text": "what now?"}]


def test_the_prompt_may_come_on_stdin(runner: ScenarioRunner) -> None:
    """A fake without a prompt among its arguments waits for the end of stdin, as the CLI does."""
    assert start_fake_once(make_fake(runner, "claude"), "-p", stdin="hi").stdout == "done\n"
    assert start_fake_once(make_fake(runner, "codex"), "exec", "-", stdin="hi").stdout == "done\n"


def test_parts_of_messages_are_printed_only_on_request(runner: ScenarioRunner) -> None:
    """A scenario's own `stream_event` is one of them."""
    script = "[{event: {type: stream_event, event: {type: message_stop}}}, {answer: done}]"
    stream = ["-p", "hi", "--output-format=stream-json", "--verbose"]
    assert "stream_event" not in start_fake_once(make_fake(runner, "claude", script), *stream).stdout
    assert (
        "stream_event"
        in start_fake_once(make_fake(runner, "claude", script), *stream, "--include-partial-messages").stdout
    )
    assert "stream_event" in start_fake_once(make_fake(runner, "{dialect: claude, flags: any}", script), *stream).stdout


def test_any_flags_are_taken_on_request(runner: ScenarioRunner) -> None:
    """The scenario's mode holds, whatever the arguments say."""
    completed = start_fake_once(make_fake(runner, "{dialect: codex, flags: any}"), "--frobnicate", "exec")
    assert json.loads(completed.stdout.splitlines()[-1])["type"] == "turn.completed"


def test_arguments_for_another_script_are_a_fault_of_the_test(runner: ScenarioRunner) -> None:
    """A run's script has no words for a session, so nothing that the fake could print is true."""
    fake = make_fake(runner, "pi")
    assert start_fake_once(fake, "--mode", "rpc").returncode == 70
    assert fake.first_fault is not None
    assert fake.first_fault.words == (
        "its arguments ask for mode rpc, which is a session, but its script is for mode json, which is a run: "
        "write `agent: {dialect: pi, mode: rpc}` above `script:`, or `flags: any` in place of the mode"
    )


def test_a_command_that_the_fake_does_not_have_is_a_fault_of_the_test(runner: ScenarioRunner) -> None:
    """It plays no other script than its own."""
    fake = make_fake(runner, "claude")
    assert start_fake_once(fake, "mcp", "serve").returncode == 70
    assert fake.first_fault is not None
    assert fake.first_fault.words == "the fake has no command mcp: with `flags: any` it plays its script all the same"


@pytest.mark.parametrize(
    ("agent", "argv", "first"),
    [
        ("claude", ["-p", "--help"], "Usage: claude [options] [command] [prompt]\n"),
        ("codex", ["exec", "--version"], "codex-cli 0.171.0\n"),
        ("gemini", ["-y", "-v"], "0.61.0\n"),
        ("opencode", ["run", "--version"], "1.18.33\n"),
        ("opencode", ["run", "--help"], ""),
    ],
)
def test_help_and_version_end_a_start_anywhere(runner: ScenarioRunner, agent: str, argv: list[str], first: str) -> None:
    """The script is not played. opencode prints its help to stderr."""
    completed = start_fake_once(make_fake(runner, agent), *argv)
    helps = "" if first else "opencode run [message..]\n\nrun opencode with a message\n"
    assert (completed.stdout, completed.stderr, completed.returncode) == (first, helps, 0)


def test_a_wrong_start_is_in_the_record(runner: ScenarioRunner) -> None:
    """A test sees which arguments were wrong."""
    fake = make_fake(runner, "claude", more="expect: {received: {argv: []}}")
    start_fake_once(fake, "--frobnicate")
    [start] = fake.starts
    assert start.argv == ("--frobnicate",)


def test_a_fake_in_a_file_obeys_as_well(tmp_path: Path) -> None:
    """`agentproc fake` writes the table into it."""
    path = tmp_path / "claude"
    write_fake(
        loads("scenario: x\nagent: claude\nscript: [{answer: done}]", "x"), path, scale=1, lifetime=60, harness=None
    )
    completed = subprocess.run([path, "-p", "hi"], capture_output=True, text=True, check=False, timeout=60)
    assert (completed.stdout, completed.returncode) == ("done\n", 0)
    assert list(tmp_path.iterdir()) == [path], "the folder may be read-only, or another user's"
    named = [str(path), "-p", "hi", "--session-id", SESSION]
    codes = [subprocess.run(named, capture_output=True, check=False, timeout=60).returncode for _ in range(2)]
    assert (codes, (tmp_path / ".claude.sessions").read_text("utf-8")) == ([0, 1], f"{SESSION}\n")


@pytest.mark.parametrize(
    ("name", "mode"),
    [(name, mode) for name, dialect in DIALECTS.items() if dialect.command_line for mode in dialect.modes],
)
def test_the_arguments_of_the_kit_ask_for_the_mode_of_the_scenario(name: str, mode: str) -> None:
    """The fake does not read them, and would do the same if it did."""
    drive = "drive: [{prompt: hi}]\n" if mode in DIALECTS[name].session_modes else ""
    scenario = loads(f"scenario: x\nagent: {{dialect: {name}, mode: {mode}}}\n{drive}script: [{{answer: done}}]", "x")
    table = describe_accepted_flags(scenario)["flags"]
    modules = [import_module(name).__name__ for name in DIALECTS[name].list_encoder_modules(mode)]
    program = {"mode": mode, "argv": build_command_line(scenario), "steps": [], "encoder": modules}
    played, named = flags.adapt_program_to_arguments(program, table, ())
    assert (played["mode"], played["steps"], "final" in played, named) == (mode, [], False, "")


def test_a_script_for_certain_arguments_vouches_for_their_session_and_command(runner: ScenarioRunner) -> None:
    """`on_path(claude={"--resume *": ...})` says that there is such a session."""
    scenario = loads("scenario: x\nagent: claude\nscript: [{answer: done}]", "x")
    fake = runner.make_fake(scenario, is_for_arguments=True)
    assert start_fake_once(fake, "-p", "hi", "--resume", "nosuch").stdout == "done\n"
    assert '"result":"done"' in start_fake_once(fake, "mcp", "list").stdout


def test_an_error_in_geminis_stream_is_an_exit_code_too(runner: ScenarioRunner) -> None:
    """The real CLI exits with the low byte of the HTTP status, which a script can say; else that of 400."""
    script = "[{result: {text: refused, is_error: true}}]"
    assert (
        start_fake_once(make_fake(runner, "gemini", script), "--skip-trust", "-o", "stream-json", "-p", "hi").returncode
        == 144
    )


def test_pi_ends_a_text_before_a_tool_as_the_message_ends(runner: ScenarioRunner) -> None:
    """One message has both: the real CLI ends its blocks at the end of the answer."""
    script = "[{delta: see}, {tool: {id: a, name: bash}}, {tool_done: {id: a, output: x}}, {answer: done}]"
    lines = start_fake_once(make_fake(runner, "pi", script), "--mode", "json", "-p", "hi").stdout.splitlines()
    updates = [
        message["assistantMessageEvent"]["type"]
        for message in map(json.loads, lines)
        if message["type"] == "message_update"
    ]
    assert updates[:6] == ["text_start", "text_delta", "toolcall_start", "toolcall_delta", "text_end", "toolcall_end"]
