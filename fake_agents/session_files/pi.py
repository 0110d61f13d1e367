"""The session files of pi 1.x: `sessions/--FOLDER--/TIME_ID.jsonl` below its folder. Knows no other CLI.

The file begins with the first message. Each message is a line, with the line before it as its parent.
"""

from __future__ import annotations

import posix

from pytest_agentproc.fake_agents.dialects.pi import START_UNIX_MS
from pytest_agentproc.fake_agents.objects import encode_timestamp
from pytest_agentproc.fake_agents.session_files.disk import list_files, read_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.session_files.disk import SessionFacts

_HEAD_KEYS = ("type", "version", "id", "timestamp", "cwd", "parentSession")


def find_folder(read_variable: Callable[[str], str]) -> str:
    """Give the folder of the sessions of this project."""
    own = read_variable("PI_CODING_AGENT_SESSION_DIR")
    home = read_variable("HOME")
    agent = read_variable("PI_CODING_AGENT_DIR") or (home and f"{home}/.pi/agent")
    project = posix.getcwd().strip("/").replace("/", "-").replace(":", "-")
    return own or (agent and f"{agent}/sessions/--{project}--")


class SessionFolder:
    """The sessions of a project."""

    def __init__(self, path: str, cwd: str) -> None:
        self._path = path

    def list_sessions(self) -> dict[str, str]:
        """Give the files of the folder."""
        return {path.removesuffix(".jsonl").rpartition("_")[2]: path for path in list_files(self._path, 0)}

    def may_be_latest(self, path: str) -> bool:
        """Say that each session of the folder is of the project."""
        return True

    def build_path(self, session: str) -> str:
        """Give the file of a session that begins at the start of the fake."""
        instant = encode_timestamp(START_UNIX_MS).replace(":", "-").replace(".", "-")
        return f"{self._path}/{instant}_{session}.jsonl"


class Translator:
    """Give the lines of the file for what is printed."""

    def __init__(self, facts: SessionFacts) -> None:
        self._facts, self.path = facts, facts["path"]
        self.read_prompt: Callable[[], str] = str
        self._count = facts["objects"]
        old = read_objects(facts["source"] or facts["path"]) if facts["is_old"] else []
        self._parent = next((line["id"] for line in reversed(old[1:]) if "id" in line), None)
        self._copied = old[1:] if facts["source"] else []
        """The lines of the session that this one forks."""
        self._is_begun = facts["is_old"] and not facts["source"]

    def note_request(self, request: dict[str, Any], now: int) -> None:
        """Take nothing: pi prints each prompt."""

    def translate(self, event: dict[str, Any], later: Sequence[dict[str, Any]], now: int) -> list[dict[str, Any]]:
        """Give the lines for an event."""
        message = event.get("message")
        if event.get("type") != "message_end" or not isinstance(message, dict):
            return []
        return [*self._begin_file(message, now), self._append_to_chain({"type": "message"}, now, {"message": message})]

    def _begin_file(self, message: dict[str, Any], now: int) -> list[dict[str, Any]]:
        if self._is_begun:
            return []
        self._is_begun = True
        head = {"type": "session", "version": 3, "timestamp": encode_timestamp(START_UNIX_MS), **self._facts["head"]}
        head = {name: head[name] for name in _HEAD_KEYS if name in head}
        if self._copied:
            return [head, *self._copied]
        model = {"provider": message.get("provider", "fake"), "modelId": message.get("model", "m1")}
        return [
            head,
            self._append_to_chain({"type": "model_change"}, now, model),
            self._append_to_chain({"type": "thinking_level_change"}, now, {"thinkingLevel": "off"}),
        ]

    def _append_to_chain(self, head: dict[str, Any], now: int, rest: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        parent, self._parent = self._parent, f"{self._count:08x}"
        when = encode_timestamp(START_UNIX_MS + now // 1_000_000)
        return {**head, "id": self._parent, "parentId": parent, "timestamp": when, **rest}
