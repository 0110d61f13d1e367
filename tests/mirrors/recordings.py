"""The recordings of the real CLIs, read into moments. Knows no dialect, no fake and no expectation.

Two forms: one moment a line with its time (`timed`, `runs`, `cut`), and the output as printed. In the second form, `>>`
marks the input of the CLI.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NAMES", "Moment", "Recording", "read_recording"]

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
"""These were made of others for the tests of a decoder: no recordings of their own."""
_PLAIN_IN_CUT = ("perm", "stream")
_IN_SESSIONS = ("acp",)
_ASKED_FOR_STATES = ("claude/perm", "claude/perm-second", "claude/stream")
"""These environments were not kept: the printed lines show that it was set."""
_TRUSTED = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
"""The folders of the recordings were trusted, which the settings of that gemini said."""
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
    """The input of one run of a real CLI, and its events.

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


_JOINED = {"claude/perm": "claude/perm-second"}
"""A file that holds two runs, of which the second begins with its prompt; and the second run's name."""


def _iterate_files() -> Iterator[tuple[str, Path]]:
    for kind, folders in _FOLDERS.items():
        for folder in folders:
            for path in sorted((_DATA / folder).iterdir()):
                is_plain = path.stem in (_PLAIN_IN_CUT if folder == "cut" else _IN_SESSIONS)
                is_meant = folder not in ("cut", "sessions") or is_plain == (kind != "timed")
                names = (f"{kind}/{path.stem}", _JOINED.get(f"{kind}/{path.stem}", ""))
                yield from ((name, path) for name in names if is_meant and name and name not in _DERIVED)


_PATHS = dict(_iterate_files())
NAMES = tuple(_PATHS)
"""Every recording there is."""


def read_recording(name: str) -> Recording:
    """Read one."""
    path = _PATHS[name]
    text = path.read_text("utf-8")
    if name.startswith("timed/"):
        return _read_timed_recording(name, [json.loads(line) for line in text.splitlines()])
    moments = _run_of(name, [*_read_plain_moments(text)])
    env = {"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"} if name in _ASKED_FOR_STATES else {}
    return Recording(name, None, env, tuple(_give_own_ids(moments) if name.startswith("claude/") else moments))


def _run_of(name: str, moments: list[Moment]) -> list[Moment]:
    """Give the moments of a run; if a file holds two runs, only its own moments."""
    if name not in (*_JOINED, *_JOINED.values()):
        return moments
    _first, second = (at for at, moment in enumerate(moments) if moment.kind == "in" and moment.value["type"] == "user")
    return moments[:second] if name in _JOINED else moments[second:]


def _give_own_ids(moments: list[Moment]) -> Iterator[Moment]:
    """Give each message and tool an id of its own: the API of these recordings gave all of them the same."""
    prompt = message = 0
    begun: list[str] = []
    for moment in moments:
        value = moment.value
        kind = value.get("type") if isinstance(value, dict) else ""
        prompt += moment.kind == "in" and kind == "user"
        message += kind in ("user", "result")
        speaker = value.get("parent_tool_use_id") if kind == "assistant" else None
        names = {_MESSAGE: f"msg_{message}_{speaker}", _TOOL: f"tool_{prompt}"}
        renamed = _rename_ids(value, names)
        if kind == "stream_event" and value["event"]["type"] == "message_start":
            begun.append(names[_MESSAGE])
        if kind == "result" and "begun_message_ids" in value:
            renamed["begun_message_ids"], begun = begun, []
        yield Moment(moment.kind, renamed)


def _rename_ids(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _rename_ids(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rename_ids(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value


def _read_plain_moments(text: str) -> Iterator[Moment]:
    if text.startswith("{\n"):
        yield Moment("out", text.rstrip("\n"))  # one object over many lines
        return
    for line in text.splitlines():
        if line.startswith(">> "):
            yield Moment("in", json.loads(line.removeprefix(">> ")))
        elif line.startswith("EOF rc"):
            yield from (Moment("eof"), Moment("exit", int(line.split()[2])))
        else:
            printed = _parse_line(line.removeprefix("<< "))
            sent = printed.get(">>") if isinstance(printed, dict) else None
            yield Moment("out", printed) if sent is None else Moment("in", sent)


def _parse_line(line: str) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(line)
    return line


def _read_timed_recording(name: str, entries: list[dict[str, Any]]) -> Recording:
    spawn = entries[0]["line"]
    argv = spawn["argv"][2:] if spawn["argv"][0] == "node" else spawn["argv"][1:]
    found: list[Moment] = []
    for entry in entries[1:]:
        line = entry["line"]
        if entry["dir"] == "!!":
            found += _read_note(line)
        else:
            found.append(Moment("out" if entry["dir"] == "<<" else "in", line))
    return Recording(name, argv, {**_TRUSTED, **spawn["env_extra"]}, tuple(found))


def _read_note(line: dict[str, Any]) -> list[Moment]:
    """Read one action or sight of the recorder."""
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
        "ps": [Moment("ps", [_parse_process(shown) for shown in line.get("procs", ())])],
    }
    return known.get(event, [])


def _parse_process(shown: str) -> tuple[int, int, int, int]:
    """Give pid, parent, group and session."""
    pid, parent, group, session = (int(word.partition("=")[2]) for word in shown.split()[:4])
    return pid, parent, group, session
