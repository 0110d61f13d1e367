"""The recordings of the real CLIs, read into moments. Knows no dialect, no fake and no expectation.

Two forms: one moment a line with the time at which it came (`timed`, `runs`, `cut`), and what was printed as it
stands, where what the CLI was sent is marked by `>>`.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NAMES", "Moment", "Recording", "recording"]

_DATA = Path(__file__).parents[1] / "data" / "transcripts"
_FOLDERS = {
    "claude": ("claude", "cut"),
    "codex": ("codex",),
    "gemini": ("gemini", "sessions"),
    "pi": ("pi",),
    "timed": ("timed", "runs", "cut"),
}
"""Where the recordings of each kind are kept; those of one folder serve the same tests of the decoders."""
_DERIVED = ("claude/fast-tools", "claude/partial", "claude/subagent", "claude/whole", "pi/tool")
"""What was made of others for the tests of a decoder: no recordings of their own."""
_PLAIN_IN_CUT = ("perm", "stream")
_IN_SESSIONS = ("acp",)
_MESSAGE, _TOOL = "msg_01", "toolu_01"


@dataclass(frozen=True)
class Moment:
    """One thing that happened.

    Args:
        kind: "out" (a line of stdout, as value if it is JSON, else as text), "in" (a line of stdin), "stderr" (a line
            of it), "eof" (stdin was closed), "signal" (its name and to whom: pid or group), "ps" (the processes),
            "wait" (seconds), "kill" (the recorder killed the process of that pid, or the CLI itself: None), "end" (the
            end of stdout), "exit" (the code).
        value: what.
    """

    kind: str
    value: Any = None


@dataclass(frozen=True)
class Recording:
    """What one run of a real CLI was given and what came of it.

    Args:
        name: its folder and its name.
        argv: the arguments, without the program; None where they were not kept.
        env: what its environment had beside the usual.
        moments: what happened, in order.
    """

    name: str
    argv: list[str] | None
    env: dict[str, str]
    moments: tuple[Moment, ...]

    @property
    def printed(self) -> list[Any]:
        """The lines of stdout."""
        return [moment.value for moment in self.moments if moment.kind == "out"]


def _files() -> Iterator[tuple[str, Path]]:
    for kind, folders in _FOLDERS.items():
        for folder in folders:
            for path in sorted((_DATA / folder).iterdir()):
                is_plain = path.stem in (_PLAIN_IN_CUT if folder == "cut" else _IN_SESSIONS)
                is_meant = folder not in ("cut", "sessions") or is_plain == (kind != "timed")
                name = f"{kind}/{path.stem}"
                if is_meant and name not in _DERIVED:
                    yield name, path


_PATHS = dict(_files())
NAMES = tuple(_PATHS)
"""Every recording there is."""


def recording(name: str) -> Recording:
    """Read one."""
    path = _PATHS[name]
    text = path.read_text("utf-8")
    if name.startswith("timed/"):
        return _timed(name, [json.loads(line) for line in text.splitlines()])
    moments = _plain(text)
    return Recording(name, None, {}, tuple(_own_ids(moments) if name.startswith("claude/") else moments))


def _own_ids(moments: Iterator[Moment]) -> Iterator[Moment]:
    """Give each message and tool an id of its own: the API behind these recordings gave all of them the same."""
    prompt = message = 0
    begun: list[str] = []
    for moment in moments:
        value = moment.value
        kind = value.get("type") if isinstance(value, dict) else ""
        prompt += moment.kind == "in" and kind == "user"
        message += kind in ("user", "result")
        speaker = value.get("parent_tool_use_id") if kind == "assistant" else None
        named = f"msg_{message}_{speaker}"
        if kind == "assistant" and speaker is None and named not in begun:
            begun.append(named)
        value = _renamed(value, {_MESSAGE: named, _TOOL: f"tool_{prompt}"})
        if kind == "result" and "begun_message_ids" in value:
            value["begun_message_ids"], begun = begun, []
        yield Moment(moment.kind, value)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value


def _plain(text: str) -> Iterator[Moment]:
    if text.startswith("{\n"):
        yield Moment("out", text.rstrip("\n"))  # one object over many lines
        return
    for line in text.splitlines():
        if line.startswith(">> "):
            yield Moment("in", json.loads(line.removeprefix(">> ")))
        elif line.startswith("EOF rc"):
            yield from (Moment("eof"), Moment("exit", int(line.split()[2])))
        else:
            printed = _value(line.removeprefix("<< "))
            sent = printed.get(">>") if isinstance(printed, dict) else None
            yield Moment("out", printed) if sent is None else Moment("in", sent)


def _value(line: str) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(line)
    return line


def _timed(name: str, entries: list[dict[str, Any]]) -> Recording:
    spawn = entries[0]["line"]
    argv = spawn["argv"][2:] if spawn["argv"][0] == "node" else spawn["argv"][1:]
    found: list[Moment] = []
    for entry in entries[1:]:
        line = entry["line"]
        if entry["dir"] == "!!":
            found += _note(line)
        else:
            found.append(Moment("out" if entry["dir"] == "<<" else "in", line))
    return Recording(name, argv, spawn["env_extra"], tuple(found))


def _note(line: dict[str, Any]) -> list[Moment]:
    """Read what the recorder did or saw."""
    if "stderr" in line:
        return [Moment("stderr", line["stderr"])]
    event = line["event"]
    if event == "exit":
        code = line["rc"]
        return [Moment("exit", code[-1] if isinstance(code, list) else code)]
    if event == "recorder sends":
        return [Moment("signal", (line["sig"].removeprefix("SIG"), line.get("to", "pid")))]
    if event.startswith("still alive after"):
        return [Moment("wait", float(event.split()[3].removesuffix("s"))), Moment("kill")]
    known = {
        "stdin closed": [Moment("eof")],
        "stdout EOF": [Moment("end")],
        "recorder SIGKILL": [Moment("kill", line.get("pid"))],
        "recorder killpg cleaned leftovers": [Moment("clean")],
        "WAIT TIMEOUT": [Moment("wait", line.get("after_s"))],
        "ps": [Moment("ps", [_process(shown) for shown in line.get("procs", ())])],
    }
    return known.get(event, [])


def _process(shown: str) -> tuple[int, int, int, int]:
    """Give pid, parent, group and session."""
    pid, parent, group, session = (int(word.partition("=")[2]) for word in shown.split()[:4])
    return pid, parent, group, session
