"""The hooks that `--settings` gives claude: the fake runs each command, and its answer decides, as with the real CLI.

`tests/fidelity` compares what the fake prints with the real CLI.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import Stall
from tests.calc_server import CALC_SERVER
from tests.process.stand import CEILING, build_scenario, format_line_of, is_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner
    from tests.process.stand import Stand

PROMPT = {"type": "user", "message": {"role": "user", "content": "hi"}}
EVENTS = ["-p", "--output-format", "stream-json", "--verbose"]
TOOL = "- tool: {id: t, name: Bash, input: {command: ls}}\n- tool_done: {id: t, output: files}\n- answer: done"


def build_hook_settings(event: str, *commands: str, matcher: str = "", **more: Any) -> str:
    """Give settings with hooks for one event."""
    hooks = [{"type": "command", "command": command, **more} for command in commands]
    return json.dumps({"hooks": {event: [{"matcher": matcher, "hooks": hooks}]}})


def run_fake_with_tool(runner: ScenarioRunner, given: str, *argv: str, script: str = TOOL) -> list[dict[str, Any]]:
    """Start a fake that uses a tool, and give its events."""
    fake = runner.make_fake(build_scenario(script, "claude"))
    command = [fake.path, *EVENTS, *argv, "--settings", given, "--", "hi"]
    completed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=CEILING)
    return [json.loads(line) for line in completed.stdout.splitlines()]


def find_tool_result(events: list[dict[str, Any]]) -> Any:
    """Give what the tool's end says to the model."""
    return next(event for event in events if event["type"] == "user")["message"]["content"][0]["content"]


def list_hook_responses(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """List the ends of hooks that were reported: event, exit code, outcome, output."""
    ends = [event for event in events if event.get("subtype") == "hook_response"]
    return [(end["hook_event"], end["exit_code"], end["outcome"], end["output"]) for end in ends]


@pytest.mark.parametrize(
    ("event", "facts"),
    [
        ("SessionStart", {"source": "startup"}),
        ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t"}),
        ("PostToolUse", {"tool_name": "Bash", "tool_use_id": "t", "duration_ms": 0}),
        ("Stop", {"stop_hook_active": False, "last_assistant_message": "done"}),
    ],
)
def test_a_hook_gets_the_facts_of_its_event(
    runner: ScenarioRunner, tmp_path: Path, event: str, facts: dict[str, Any]
) -> None:
    """They are one line of JSON on stdin, and the settings may be in a file."""
    seen, file = tmp_path / "seen", tmp_path / "settings.json"
    file.write_text(build_hook_settings(event, f"cat > {seen}"), "utf-8")
    run_fake_with_tool(runner, str(file))
    message = json.loads(seen.read_text("utf-8"))
    assert message["hook_event_name"] == event
    assert message.items() >= {**facts, "cwd": message["cwd"], "session_id": message["session_id"]}.items()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo no >&2; exit 2", "[echo no >&2; exit 2]: no\n"),
        ("""echo '{"decision": "block", "reason": "no"}'""", "no"),
        ("""echo '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}'""", "no"),
    ],
)
def test_a_hook_denies_a_tool_by_its_exit_code_or_its_answer(runner: ScenarioRunner, command: str, reason: str) -> None:
    """The output that the script gives the tool is not printed: it never ran."""
    events = run_fake_with_tool(runner, build_hook_settings("PreToolUse", "true", command))
    assert find_tool_result(events) == f"PreToolUse:Bash hook error: {reason}"
    assert [denied["tool_use_id"] for denied in events[-1]["permission_denials"]] == ["t"]


@pytest.mark.parametrize("command", ["exit 1", "echo text", "echo {nope", """echo '{"decision": "approve"}'"""])
def test_no_other_answer_denies(runner: ScenarioRunner, command: str) -> None:
    """A hook that breaks does not block, as with the real CLI."""
    assert find_tool_result(run_fake_with_tool(runner, build_hook_settings("PreToolUse", command))) == "files"


@pytest.mark.parametrize(
    ("matcher", "runs"),
    [
        *[(matcher, 1) for matcher in ("Bash", "Edit|Bash", "Edit, Bash", "^Ba", ".as", "*")],
        *[(matcher, 0) for matcher in ("Bas", "Edit|Ba", "^as", "mcp__.*", "(")],
    ],
)
def test_the_matcher_of_a_hook_is_a_list_of_names_or_a_pattern(runner: ScenarioRunner, matcher: str, runs: int) -> None:
    """A pattern is for a part of the name, and what is no pattern matches nothing. A star stands for every tool."""
    events = run_fake_with_tool(
        runner, build_hook_settings("PreToolUse", "true", matcher=matcher), "--include-hook-events"
    )
    assert len(list_hook_responses(events)) == runs


def test_only_the_hooks_of_the_start_are_reported_without_the_option(runner: ScenarioRunner) -> None:
    """A client that does not ask for these events still gets the first ones."""
    given = json.loads(build_hook_settings("SessionStart", "echo hi"))
    given["hooks"] |= json.loads(build_hook_settings("Stop", "true"))["hooks"]
    assert list_hook_responses(run_fake_with_tool(runner, json.dumps(given))) == [
        ("SessionStart", 0, "success", "hi\n")
    ]


def test_the_end_of_a_tool_that_failed_has_an_event_of_its_own(runner: ScenarioRunner) -> None:
    """`PostToolUse` is not run for it."""
    script = "- tool: {id: t, name: Bash}\n- tool_done: {id: t, error: broken}\n- answer: done"
    for event, count in (("PostToolUseFailure", 1), ("PostToolUse", 0)):
        assert (
            len(
                list_hook_responses(
                    run_fake_with_tool(
                        runner, build_hook_settings(event, "true"), "--include-hook-events", script=script
                    )
                )
            )
            == count
        )


@pytest.fixture
def noted(tmp_path: Path) -> Iterator[Path]:
    """Give a file for the pid of a process that a hook starts; at the end that process is killed if it lives."""
    file = tmp_path / "pid"
    yield file
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(file.read_text("utf-8")), signal.SIGKILL)


@pytest.mark.slow
def test_a_hook_that_takes_too_long_is_killed_and_denies_nothing(runner: ScenarioRunner, noted: Path) -> None:
    """Its limit is in seconds, and the event about it is printed even if hooks are not reported."""
    # On a busy machine a shell may need a second to write the pid.
    events = run_fake_with_tool(
        runner, build_hook_settings("PreToolUse", f"sleep 60 & echo $! > {noted}; wait", timeout=2)
    )
    assert find_tool_result(events) == "files"
    assert [event["hook_no_verdict"]["tool_use_id"] for event in events if event.get("tag")] == ["t"]
    assert is_gone(int(noted.read_text("utf-8")))


def test_a_hook_that_prints_without_end_is_killed_after_its_limit(runner: ScenarioRunner) -> None:
    """There is always more to read, and the fake still looks at the time."""
    events = run_fake_with_tool(runner, build_hook_settings("PreToolUse", "yes", timeout=0.05), "--include-hook-events")
    assert (find_tool_result(events), list_hook_responses(events)) == ("files", [("PreToolUse", 1, "cancelled", "")])


@pytest.mark.parametrize(("signum", "survives"), [*[(name, False) for name in ("TERM", "INT", "HUP")], ("KILL", True)])
def test_a_signal_that_ends_the_agent_ends_its_hook(
    runner: ScenarioRunner, noted: Path, signum: str, survives: bool
) -> None:
    """The hook has a session of its own, as with the real CLI. Nobody can end it after a KILL but the supervisor."""
    os.mkfifo(noted.with_suffix(".begun"))
    given = build_hook_settings(
        "PreToolUse", f"trap '' INT HUP; echo $$ > {noted}; echo > {noted}.begun; exec sleep 60"
    )
    command = [runner.make_fake(build_scenario(TOOL, "claude")).path, *EVENTS, "--settings", given, "--", "hi"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as agent:
        noted.with_suffix(".begun").read_text("utf-8")
        hook = int(noted.read_text("utf-8"))
        session = os.getsid(hook)
        agent.send_signal(signal.Signals[f"SIG{signum}"])
    assert session not in (os.getsid(0), agent.pid)
    assert is_gone(hook, 0 if survives else CEILING) is not survives


def test_a_process_that_a_hook_leaves_holds_up_nothing(runner: ScenarioRunner, noted: Path) -> None:
    """It has the pipe to the fake open."""
    events = run_fake_with_tool(
        runner, build_hook_settings("Stop", f"sleep 60 & echo $! > {noted}; echo out"), "--include-hook-events"
    )
    assert list_hook_responses(events) == [("Stop", 0, "success", "out\n")]
    assert not is_gone(int(noted.read_text("utf-8")), 0)


def test_a_tool_that_a_hook_has_denied_is_not_called(runner: ScenarioRunner) -> None:
    """Its server never hears of it."""
    script = (
        "- tool: {id: t, name: mcp__calc__add, input: {a: 1}}\n"
        "- request: {tool: t, answered: [{answer: called}], refused: [{tool_done: t}, {answer: denied}]}"
    )
    servers = json.dumps({"mcpServers": {"calc": {"command": sys.executable, "args": [str(CALC_SERVER)]}}})
    events = run_fake_with_tool(
        runner, build_hook_settings("PreToolUse", "exit 2"), "--mcp-config", servers, script=script
    )
    assert (find_tool_result(events), events[-1]["result"]) == (
        "PreToolUse:mcp__calc__add hook error: [exit 2]: ",
        "denied",
    )


def test_a_tool_of_the_host_that_a_hook_has_denied_is_not_called(runner: ScenarioRunner) -> None:
    """The host answers the handshake, and hears of no call."""
    script = (
        "- wait_for: prompt 1\n- tool: {id: t, name: mcp__calc__add, input: {a: 1}}\n"
        "- request: {tool: t, answered: [{answer: called}], refused: [{tool_done: t}, {answer: denied}]}"
    )
    fake = runner.make_fake(build_scenario(script, "{dialect: claude, mode: session}"))
    hello: dict[str, Any] = {"type": "control_request", "request_id": "r"}
    hello |= {"request": {"subtype": "initialize", "sdkMcpServers": ["calc"]}}
    command = [
        fake.path,
        *EVENTS[1:],
        "--input-format",
        "stream-json",
        "--settings",
        build_hook_settings("PreToolUse", "exit 2"),
    ]
    methods = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        print(json.dumps(hello), json.dumps(PROMPT), sep="\n", file=agent.stdin, flush=True)
        while (line := json.loads(agent.stdout.readline()))["type"] != "result":
            if line["type"] == "control_request":
                methods.append(line["request"]["message"]["method"])
                fields = {"jsonrpc": "2.0", "id": line["request"]["message"].get("id")}
                fields |= {"result": {"tools": [{"name": "add"}]}}
                response = {
                    "subtype": "success",
                    "request_id": line["request_id"],
                    "response": {"mcp_response": fields},
                }
                print(json.dumps({"type": "control_response", "response": response}), file=agent.stdin, flush=True)
        agent.stdin.close()
    assert (methods, line["result"]) == (["initialize", "notifications/initialized", "tools/list"], "denied")


def test_no_virtual_time_passes_while_a_hook_runs(stand: Stand) -> None:
    """It runs in real time, and the clock stands still."""
    path = stand.fake(TOOL, "claude")[0]

    async def run() -> bytes:
        return (
            await anyio.run_process([path, *EVENTS, "--settings", build_hook_settings("PreToolUse", "exit 2"), "hi"])
        ).stdout

    events = [json.loads(line) for line in stand.run(run).splitlines()]
    assert (find_tool_result(events), stand.seconds) == ("PreToolUse:Bash hook error: [exit 2]: ", 0)


GOOD = {"type": "command", "command": "echo good"}
BAD_HOOKS: list[Any] = [
    5,
    {"type": "command"},
    {"type": "command", "command": 5},
    *[{"type": "command", "command": "echo bad", "timeout": limit} for limit in ("abc", 0, -1, True)],
]
BAD_GROUPS: list[Any] = [5, {"matcher": 5, "hooks": [GOOD]}, {"hooks": 5}, {"matcher": "Bash"}]


@pytest.mark.parametrize(
    ("groups", "runs"),
    [
        *[([bad, {"hooks": [GOOD]}], 1) for bad in BAD_GROUPS],
        *[([{"hooks": [bad, GOOD]}], 1) for bad in BAD_HOOKS],
        ({"hooks": [GOOD]}, 0),
        (5, 0),
    ],
)
def test_the_real_cli_ignores_a_hook_with_a_wrong_value(runner: ScenarioRunner, groups: Any, runs: int) -> None:
    """It runs the hooks beside it. But if the wrong one may be a guard of a tool, it runs no hook of the settings."""
    stop = json.dumps({"hooks": {"Stop": groups}})
    assert (
        list_hook_responses(run_fake_with_tool(runner, stop, "--include-hook-events"))
        == [("Stop", 0, "success", "good\n")] * runs
    )
    guard = json.dumps({"hooks": {"PreToolUse": groups, "Stop": [{"hooks": [GOOD]}]}})
    assert list_hook_responses(run_fake_with_tool(runner, guard, "--include-hook-events")) == []


@pytest.mark.slow
def test_a_hook_that_does_not_end_in_virtual_time_is_named(make_stand: Callable[..., Stand], noted: Path) -> None:
    """The message said only that the agent runs on."""
    stand = make_stand(guard=2)
    path = stand.fake(TOOL, "claude")[0]
    given = build_hook_settings("PreToolUse", f"echo $$ > {noted}; exec sleep 60")

    async def run() -> None:
        await anyio.run_process([path, *EVENTS, "--settings", given, "hi"])

    with pytest.raises(Stall) as caught:
        stand.run(run)
    hook = int(noted.read_text("utf-8"))
    remedy = "no time passes while a hook or an MCP server of a fake works, so it must answer sooner"
    assert str(caught.value).splitlines() == [
        f"agent (pid {stand.pids()[0]}) runs on, last at read_stdin: it neither parked nor spoke for 2 s",
        f"it may wait for sleep 60 (pid {hook}): {remedy}",
        f"the supervising program waits at {format_line_of(run)}",
    ]


def test_settings_that_are_no_file_are_an_error_as_of_the_real_cli(runner: ScenarioRunner) -> None:
    """The words are those of the pinned release."""
    fake = runner.make_fake(build_scenario(TOOL, "claude"))
    command = [fake.path, *EVENTS, "--settings", "{nope", "hi"]
    completed = subprocess.run(command, check=False, capture_output=True, text=True, timeout=CEILING, cwd="/")
    assert (completed.returncode, completed.stdout, completed.stderr) == (
        1,
        "",
        "Error: Settings file not found: /{nope\n",
    )
