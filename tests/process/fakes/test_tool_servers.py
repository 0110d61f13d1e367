"""The MCP servers that a fake of claude starts: they are real children, and each tool of theirs is called.

`tests/fidelity` compares what the fake prints with the real CLI.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.fake_agents.tool_servers import ToolServer
from tests.calc_server import CALC_SERVER
from tests.process.stand import CEILING, build_scenario, is_gone, list_open_descriptors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_agentproc.harness import ScenarioRunner
    from tests.process.stand import Stand

CALLS = """
- tool: {id: t, name: mcp__calc__add, input: {a: 1, b: 2}}
- request: {tool: t, answered: [{tool_done: t}, {answer: added}], refused: [{tool_done: t}, {answer: sorry}]}
"""
PRINT = ["-p", "--output-format", "stream-json", "--verbose"]
TALK = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
PROMPT = {"type": "user", "message": {"role": "user", "content": "hi"}}


def build_server_config(*faults: str, **more: Any) -> str:
    """Name the server, with the faults that it is to have."""
    return json.dumps(
        {"mcpServers": {"calc": {"command": sys.executable, "args": [str(CALC_SERVER), *faults], **more}}}
    )


def run_fake_with_server(
    runner: ScenarioRunner, *argv: str, script: str = CALLS, **more: Any
) -> tuple[int, list[dict[str, Any]]]:
    """Start a fake that calls the tool, and give its exit code and its events."""
    fake = runner.make_fake(build_scenario(script, "claude"))
    completed = subprocess.run(
        [fake.path, *PRINT, *argv, "--", "hi"], check=False, capture_output=True, text=True, timeout=CEILING, **more
    )
    assert completed.stderr == ""
    return completed.returncode, [json.loads(line) for line in completed.stdout.splitlines()]


def find_tool_result(events: list[dict[str, Any]]) -> Any:
    """Give what the tool's end says to the model."""
    return next(event for event in events if event["type"] == "user")["message"]["content"][0]["content"]


@contextmanager
def start_hanging_call(runner: ScenarioRunner, script: str, agent: str, *argv: str) -> Iterator[tuple[Any, int]]:
    """Start a fake whose server does not answer the call; give both once the tool is announced."""
    fake = runner.make_fake(build_scenario(script, agent))
    pipe = subprocess.PIPE
    with subprocess.Popen([fake.path, *argv], stdin=pipe, stdout=pipe) as agent_process:
        try:
            assert agent_process.stdin is not None
            assert agent_process.stdout is not None
            agent_process.stdin.write(json.dumps(PROMPT).encode() + b"\n")
            agent_process.stdin.flush()
            if "--input-format" not in argv:
                agent_process.stdin.close()  # a run reads it to its end
            _await_call(agent_process.stdout)
            [server] = _list_children(agent_process.pid)
            yield agent_process, server
        finally:
            agent_process.kill()


def _await_call(printed: Iterable[bytes]) -> None:
    assert any(b"tool_use" in line for line in printed), "it ended before the call"


def _list_children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def test_the_answer_of_a_server_is_the_end_of_the_tool(runner: ScenarioRunner, tmp_path: Path) -> None:
    """The configuration is a text or a file, and `init` lists the server and its tool."""
    file = tmp_path / "servers.json"
    file.write_text(build_server_config(), "utf-8")
    for given in (build_server_config(), str(file)):
        code, events = run_fake_with_server(runner, "--mcp-config", given)
        assert (code, events[-1]["result"]) == (0, "added")
        assert find_tool_result(events) == [{"type": "text", "text": "3"}]
        assert events[0]["mcp_servers"] == [{"name": "calc", "status": "connected", "source": "dynamic"}]
        assert events[0]["tools"][-1] == "mcp__calc__add"


@pytest.mark.parametrize(("fault", "words"), [("crashes", "Connection closed"), ("error", "it broke")])
def test_a_server_that_fails_in_a_call_is_the_error_of_the_tool(runner: ScenarioRunner, fault: str, words: str) -> None:
    """The agent goes on, as with any tool that fails."""
    _, events = run_fake_with_server(runner, "--mcp-config", build_server_config(fault))
    assert (find_tool_result(events), events[-1]["result"]) == (words, "sorry")


@pytest.mark.parametrize(
    "given",
    [
        build_server_config("silent"),
        *(json.dumps({"mcpServers": {"calc": {"command": name}}}) for name in ("/nosuch", "yes")),
    ],
)
def test_a_server_that_cannot_be_reached_has_failed_and_has_no_tool(runner: ScenarioRunner, given: str) -> None:
    """A server has as long as the environment says, also if it prints all the time and never answers."""
    _, events = run_fake_with_server(runner, "--mcp-config", given, env={"MCP_TIMEOUT": "50"})
    assert events[0]["mcp_servers"] == [{"name": "calc", "status": "failed", "source": "dynamic"}]
    assert find_tool_result(events) == "<tool_use_error>Error: No such tool available: mcp__calc__add</tool_use_error>"
    assert events[-1]["result"] == "sorry"


@pytest.mark.parametrize(("limit", "state"), [("abc", "connected"), ("0", "connected"), ("50abc", "failed")])
def test_a_limit_is_the_digits_at_its_begin(runner: ScenarioRunner, limit: str, state: str) -> None:
    """Without a positive number the limit is 30 seconds, as with the real CLI."""
    given = build_server_config() if state == "connected" else build_server_config("silent")
    _, events = run_fake_with_server(runner, "--mcp-config", given, env={"MCP_TIMEOUT": limit})
    assert events[0]["mcp_servers"][0]["status"] == state


SKIPPED = 'Skipped — MCP server "wrong" has a "url" but no "type"; '
INVALID = 'Skipped — invalid MCP server config for "wrong": '


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (5, f"{INVALID}(root): expected object, received number"),
        ({"command": 5}, f"{INVALID}command: expected string, received number"),
        ({"command": ""}, f"{INVALID}command: Command cannot be empty"),
        ({}, f"{INVALID}command: expected string, received undefined"),
        ({"command": "sh", "args": "-c"}, f"{INVALID}args: expected array, received string"),
        ({"command": "sh", "args": ["-c", 1]}, f"{INVALID}args.1: expected string, received number"),
        (
            {"command": "sh", "args": None, "env": True},
            f"{INVALID}args: expected array, received null; env: expected record, received boolean",
        ),
        ({"command": "sh", "env": {"A": 1}}, f"{INVALID}env.A: expected string, received number"),
        ({"url": "http://127.0.0.1:9"}, f'{SKIPPED}add "type": "http" (or "sse" / "ws") to this entry'),
    ],
)
def test_a_server_with_a_mistake_is_skipped(runner: ScenarioRunner, wrong: Any, error: str) -> None:
    """The servers beside it are started. The words are those of the pinned release."""
    servers = {"wrong": wrong, **json.loads(build_server_config())["mcpServers"]}
    _, [init, *_] = run_fake_with_server(runner, "--mcp-config", json.dumps({"mcpServers": servers}))
    assert init["mcp_servers"] == [{"name": "calc", "status": "connected", "source": "dynamic"}]
    assert [found["message"] for found in init["mcp_server_errors"]] == [error]


def test_a_server_of_another_kind_is_started_by_no_fake(runner: ScenarioRunner) -> None:
    """The real CLI would connect to its address."""
    servers = {"mcpServers": {"wrong": {"type": "http", "url": "http://127.0.0.1:9", "command": "sh"}}}
    _, [init, *_] = run_fake_with_server(runner, "--mcp-config", json.dumps(servers))
    assert init["mcp_servers"] == []


def test_a_server_with_a_text_that_no_program_can_get_has_failed(runner: ScenarioRunner) -> None:
    """No argument can have a zero byte."""
    _, events = run_fake_with_server(runner, "--mcp-config", build_server_config("\0"))
    assert events[0]["mcp_servers"][0]["status"] == "failed"


def test_a_configuration_names_variables_of_the_agent(runner: ScenarioRunner, tmp_path: Path) -> None:
    """A default counts if there is no such variable; without one the text stays, as with the real CLI."""
    seen = tmp_path / "seen"
    words = ["${SET}", "-${SET}-${SET}", "${UNSET:-a:-b}", "${EMPTY:-a}", "${UNSET}", "$SET ${1X}"]
    shell = {
        "command": "${SHELL}",
        "args": ["-c", f'printf "%s\n" "$MINE" "$0" "$@" > {seen}', *words],
        "env": {"MINE": "${SET}"},
    }
    given = json.dumps({"mcpServers": {"calc": shell}})
    run_fake_with_server(
        runner, "--mcp-config", given, env={"SHELL": "/bin/sh", "SET": "a b", "EMPTY": "", "PATH": os.defpath}
    )
    assert seen.read_text("utf-8").splitlines() == ["a b", "a b", "-a b-a b", "a:-b", "", "${UNSET}", "$SET ${1X}"]


def test_two_calls_at_once_get_their_own_answers(runner: ScenarioRunner) -> None:
    """The answer to the second call comes first, while the fake looks for the other one."""
    script = """
- tool: {id: t, name: mcp__calc__add, input: {a: 1, b: 2}}
- tool: {id: u, name: mcp__calc__add, input: {a: 3, b: 4}}
- meanwhile: [{request: {tool: t, answered: [{tool_done: t}]}}]
- request: {tool: u, answered: [{tool_done: u}]}
- silence: 1ms
- answer: added
"""
    _, events = run_fake_with_server(runner, "--mcp-config", build_server_config("swaps"), script=script)
    ends = [event["message"]["content"][0]["content"][0]["text"] for event in events if event["type"] == "user"]
    assert (ends, events[-1]["result"]) == (["7", "3"], "added")


def test_a_server_that_asks_its_client_within_a_call_gets_an_answer(runner: ScenarioRunner) -> None:
    """It waits for the answer before it answers the call, so the two would wait for each other."""
    _, events = run_fake_with_server(runner, "--mcp-config", build_server_config("asks"))
    assert find_tool_result(events) == [{"type": "text", "text": "3"}]


def test_a_server_gets_its_variables_and_the_folder_of_the_project(runner: ScenarioRunner, tmp_path: Path) -> None:
    """It inherits those of the agent, as with the real CLI."""
    seen = tmp_path / "seen"
    shell = {"command": "sh", "args": ["-c", f"env > {seen}"], "env": {"MINE": "1"}}
    run_fake_with_server(
        runner,
        "--mcp-config",
        json.dumps({"mcpServers": {"calc": shell}}),
        env={"OURS": "2", "PATH": os.defpath},
        cwd="/",
    )
    assert {"MINE=1", "OURS=2", "CLAUDE_PROJECT_DIR=/"} <= {*seen.read_text("utf-8").split("\n")}


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)])
def test_a_signal_ends_the_agent_and_its_server_within_a_call(
    runner: ScenarioRunner, signum: signal.Signals, code: int
) -> None:
    """The agent does not wait for the answer."""
    with start_hanging_call(
        runner, CALLS, "claude", *PRINT, "--mcp-config", build_server_config("hangs"), "--", "hi"
    ) as (
        agent,
        server,
    ):
        agent.send_signal(signum)
        assert agent.wait(CEILING) == code
        assert is_gone(server)


def test_a_signal_ends_an_agent_that_waits_for_its_server_to_begin(runner: ScenarioRunner, tmp_path: Path) -> None:
    """A supervisor that has signals blocked hands that on to its agent. The signal once waited for up to 30 seconds."""
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    shell = {"command": "sh", "args": ["-c", f"echo > {begun}; cat > /dev/null; true"]}
    given = json.dumps({"mcpServers": {"calc": shell}})
    fake = runner.make_fake(build_scenario(CALLS, "claude"))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        agent = subprocess.Popen([fake.path, *PRINT, "--mcp-config", given, "--", "hi"])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with agent:
        begun.read_text("utf-8")
        agent.terminate()
        assert agent.wait(CEILING) == -signal.SIGTERM


@pytest.mark.parametrize(("end", "code"), [("- silence: for ever", 143), ("- wait_for: signal\n- exit: 3", 3)])
def test_a_server_ends_with_its_agent_in_virtual_time(stand: Stand, end: str, code: int) -> None:
    """A script that goes on after the signal does so, and no time passes."""
    path = stand.fake(f"{CALLS}\n{end}", "claude")[0]

    async def run() -> tuple[int | None, int]:
        command = [path, *PRINT, "--mcp-config", build_server_config(), "--", "hi"]
        async with await anyio.open_process(command, stdin=subprocess.DEVNULL, stderr=None) as agent:
            await anyio.sleep(1)
            [server] = _list_children(agent.pid)
            agent.terminate()
            await agent.wait()
        return agent.returncode, server

    ended, server = stand.run(run)
    assert (ended, is_gone(server, 0), stand.seconds) == (code, True, 1)


def test_the_end_of_the_agent_ends_a_server_that_ignores_polite_signals(runner: ScenarioRunner, tmp_path: Path) -> None:
    """The real CLI kills it, too: a supervisor has no leak to mend."""
    noted = tmp_path / "pid"
    wrapped = {"command": "sh", "args": ["-c", f"echo $$ > {noted}; exec {sys.executable} {CALC_SERVER} deaf"]}
    code, _ = run_fake_with_server(runner, "--mcp-config", json.dumps({"mcpServers": {"calc": wrapped}}))
    assert (code, is_gone(int(noted.read_text("utf-8")), 0)) == (0, True)


def test_a_killed_agent_leaves_its_server_the_end_of_stdin(runner: ScenarioRunner) -> None:
    """A server that obeys it ends; a child of the agent has no copy of the pipe."""
    script = f"- spawn: {{id: child, for: 60s}}\n{CALLS}"
    fake = runner.make_fake(build_scenario(script, "claude"))
    with subprocess.Popen(
        [fake.path, *PRINT, "--mcp-config", build_server_config("hangs"), "--", "hi"], stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdout is not None
        _await_call(agent.stdout)
        server, child = _list_children(agent.pid)
        agent.kill()
        assert is_gone(server)
        os.kill(child, signal.SIGKILL)


def test_an_interrupt_cancels_a_call(runner: ScenarioRunner) -> None:
    """The server has not answered, and the turn ends all the same."""
    script = f"- when: cancel\n  do: [acknowledge: cancel]\n- wait_for: prompt 1\n{CALLS}"
    with start_hanging_call(
        runner, script, "{dialect: claude, mode: session}", *TALK, "--mcp-config", build_server_config("hangs")
    ) as (agent, _):
        ask = {"type": "control_request", "request_id": "r", "request": {"subtype": "interrupt"}}
        agent.stdin.write(json.dumps(ask).encode() + b"\n")
        agent.stdin.flush()
        while b'"subtype":"error_during_execution"' not in (line := agent.stdout.readline()):
            assert line
        agent.stdin.close()
        assert agent.wait(CEILING) == 1


def test_a_call_goes_on_after_the_end_of_stdin(runner: ScenarioRunner) -> None:
    """The server is the agent's own, so the answer can still come."""
    fake = runner.make_fake(build_scenario(f"- wait_for: prompt 1\n{CALLS}", "{dialect: claude, mode: session}"))
    command = [fake.path, *TALK, "--mcp-config", build_server_config()]
    completed = subprocess.run(
        command, input=json.dumps(PROMPT) + "\n", capture_output=True, text=True, check=False, timeout=CEILING
    )
    assert (completed.returncode, json.loads(completed.stdout.splitlines()[-1])["result"]) == (0, "added")


def test_no_virtual_time_passes_in_a_call(stand: Stand) -> None:
    """The server runs in real time, and the clock stands still."""
    argv = stand.fake(CALLS, "claude")
    given = [*argv[:1], *PRINT, "--mcp-config", build_server_config(), "--", "hi"]

    async def run() -> bytes:
        return (await anyio.run_process(given)).stdout

    events = [json.loads(line) for line in stand.run(run).splitlines()]
    assert (events[-1]["result"], stand.seconds) == ("added", 0)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("{nope", "MCP config file not found: /{nope"),
        ("/nosuch.json", "MCP config file not found: /nosuch.json"),
        (str(CALC_SERVER), "MCP config is not a valid JSON"),
        ('{"x": 1}', "mcpServers: Invalid input: expected record, received undefined"),
        ('{"mcpServers": []}', "mcpServers: Invalid input: expected record, received array"),
    ],
)
def test_a_wrong_configuration_is_an_error_as_of_the_real_cli(runner: ScenarioRunner, given: str, error: str) -> None:
    """The words are those of the pinned release."""
    fake = runner.make_fake(build_scenario(CALLS, "claude"))
    command = [fake.path, *PRINT, "--mcp-config", given, "--", "hi"]
    completed = subprocess.run(command, check=False, capture_output=True, text=True, timeout=CEILING, cwd="/")
    assert (completed.returncode, completed.stdout, completed.stderr) == (
        1,
        "",
        f"Error: Invalid MCP configuration:\n{error}\n",
    )


class _FullServer:
    """A server whose stdin is full, and which says nothing."""

    is_watched = False

    def write_stdin(self, _data: bytes) -> None:
        raise TimeoutError

    def read_stdout_line(self, _seconds: float | None) -> bytes:
        raise AssertionError("nothing was sent, so this would wait for ever")


def test_a_call_that_could_not_be_sent_waits_for_no_answer(tmp_path: Path) -> None:
    """A server that is stopped does not read. It need not have closed a pipe, so no end of it would be seen."""
    server = ToolServer("calc", {"command": str(tmp_path / "missing")}, {}, 1)
    server._child = _FullServer()  # type: ignore[assignment]  # noqa: SLF001  # a real one is given up after ten seconds
    number = server.begin_tool_call("add", {}, "t")
    assert server.take_call_answer(number) == {"error": {"message": "Connection closed"}}


def test_a_server_that_cannot_be_started_leaves_no_descriptor(tmp_path: Path) -> None:
    """An agent may name many servers that are not installed."""
    before = list_open_descriptors()
    ToolServer("calc", {"command": str(tmp_path / "missing")}, {}, 1)
    assert list_open_descriptors() == before
