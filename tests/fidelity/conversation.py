"""One conversation that a real CLI and its fake have, and the parts that all of them share. Starts nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fidelity.model_server import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["FAILS", "RUN_A", "RUN_B", "SHELL", "Conversation", "write_tool"]

FAILS = (Reply(status=400),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Conversation:
    """One conversation of one CLI.

    Args:
        cli: the CLI.
        name: what it is about.
        argv: the arguments; `{session}` is the session of the start before.
        replies: what the model answers.
        script: the fake's steps.
        agent: the fake, as a scenario names it; "" is the CLI's default mode.
        before: the arguments of an earlier start, whose output is not compared.
        stdin: what it reads.
        talk: what it reads after which words; see `running.run`.
        requests: instead of all that it reads, the requests over HTTP; see `serve.client`.
        environ: additions to its environment.
        limit: real seconds after which it is killed.
        keeps: whether the session files are compared, in place of what is printed.
    """

    cli: str
    name: str
    argv: Sequence[str]
    replies: Sequence[Reply] = (Reply("hello"),)
    script: str = "[{answer: hello}]"
    agent: str = ""
    before: Sequence[str] = ()
    stdin: str = ""
    talk: Sequence[tuple[str, str]] = ()
    requests: Sequence[tuple[str, str, str, Any]] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    limit: int = 60
    keeps: bool = False

    @property
    def id(self) -> str:
        """Its name among all."""
        return f"{self.cli}: {self.name}"


def write_tool(key: str, name: str, given: dict[str, Any], **more: Any) -> str:
    """Write the step that starts a tool."""
    return f"{{tool: {json.dumps({'id': key, 'name': name, 'input': given, **more})}}}"


RUN_A = write_tool("a", "command_execution", {"command": "echo hi"})
RUN_B = write_tool("b", "command_execution", {"command": "echo hi"})
SHELL = ("exec_command", {"cmd": "echo hi"})
"""The tool of codex that `RUN_A` stands for."""
