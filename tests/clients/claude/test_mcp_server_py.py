"""A server of the `mcp` package, which claude-agent-sdk brings: the fake of claude starts it and calls its tool."""

from __future__ import annotations

import json
import subprocess
import sys

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from tests.clients.packages import install_from_pypi

_SERVER = """
from mcp.server.mcpserver import MCPServer
calc = MCPServer("calc")
@calc.tool()
def add(a: int, b: int) -> int:
    if a < 0:
        raise ValueError("no numbers below zero")
    return a + b
calc.run()
"""
_SCENARIO = """
scenario: claude calls two tools of a server that it has started
agent: claude
script:
  - tool: {id: good, name: mcp__calc__add, input: {a: 1, b: 2}}
  - request: {tool: good, answered: [{tool_done: good}]}
  - tool: {id: bad, name: mcp__calc__add, input: {a: -1, b: 2}}
  - request: {tool: bad, refused: [{tool_done: bad}]}
  - answer: done
"""
_LIMIT = 60
"""Real seconds for the whole test."""


def test_a_server_of_the_official_package_is_called() -> None:
    """Its result and its error are the ends of the two tools."""
    server = {"command": sys.executable, "args": ["-c", _SERVER], "env": {"PYTHONPATH": str(install_from_pypi())}}
    servers = json.dumps({"mcpServers": {"calc": server}})
    with ScenarioRunner() as runner:
        fake = runner.make_fake(loads(_SCENARIO, "x"))
        command = [fake.path, "-p", "--output-format", "stream-json", "--verbose", "--mcp-config", servers, "--", "hi"]
        completed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LIMIT)
        fake.finish()
    events = [json.loads(line) for line in completed.stdout.splitlines()]
    assert events[0]["mcp_servers"] == [{"name": "calc", "status": "connected", "source": "dynamic"}]
    ends = [event["message"]["content"][0] for event in events if event["type"] == "user"]
    assert [end.get("is_error", False) for end in ends] == [False, True]
    assert ends[0]["content"][0]["text"] == "3"
    assert ends[1]["content"] == "Error executing tool add"
