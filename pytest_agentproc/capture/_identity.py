"""Says who was recorded: dialect, mode, prompt and model, from the command line and the words. Owns the guesses."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._meaning import read_content_text
from pytest_agentproc.capture._wording import format_inline_yaml, format_yaml_text
from pytest_agentproc.errors import UsageError
from pytest_agentproc.vocabulary import DIALECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

_MODEL_FIELD_PATTERN = re.compile(rb'"model":"([^"\\]+)"')


@dataclass(frozen=True)
class AgentIdentity:
    """The recorded agent: its dialect, command line and prompt.

    Args:
        dialect: its wire format.
        mode: its variant.
        argv: its arguments, redacted, without the program.
        prompt: the last of them, if it is no option.
        model: what it calls its model; "" if it does not say.
        partials: whether claude tells its messages in parts.
        states: whether claude tells its session's state.
        version: the older version of its CLI that printed the output; "" for the newest that is known.
        by_stdin: whether the prompt came by stdin.
    """

    dialect: str
    mode: str
    argv: tuple[str, ...]
    prompt: str = ""
    model: str = ""
    partials: bool = True
    states: bool = False
    version: str = ""
    by_stdin: bool = False

    @property
    def is_session(self) -> bool:
        """Whether it lives on for further prompts."""
        return self.mode in DIALECTS[self.dialect].session_protocols

    @property
    def agent_yaml(self) -> str:
        """Give the value of `agent:`."""
        fields: dict[str, Any] = {"dialect": self.dialect}
        if self.mode != DIALECTS[self.dialect].default_mode:
            fields["mode"] = self.mode
        if self.version:
            fields["version"] = self.version
        if self.model:
            fields["model"] = self.model
        if not self.partials:
            fields["partials"] = False
        if self.states:
            fields["states"] = True
        if self.by_stdin:
            fields["prompt"] = "stdin"
        return format_yaml_text(self.dialect) if len(fields) == 1 else format_inline_yaml(fields)


def identify_agent(
    argv: Sequence[str], out: bytes, dialect: str = "", mode: str = "", *, stdin: bytes = b""
) -> AgentIdentity:
    """Find the dialect, the mode and the prompt of a recorded agent.

    Args:
        argv: the command line.
        out: what was printed on stdout.
        dialect: the wire format, if it is known; else the program's name tells.
        mode: its variant, if it is known; else the arguments tell.
        stdin: what was written to its stdin.

    Raises:
        UsageError: there is no such dialect or mode.
    """
    name = PurePath(argv[0]).name if argv else ""
    dialect = dialect or (name if name in DIALECTS else "raw")
    if dialect not in DIALECTS:
        raise UsageError(f'the dialect "{dialect}" is unknown', f"known are {', '.join(DIALECTS)}")
    record = DIALECTS[dialect]
    words = list(argv[1:])
    if not mode:
        mode = next(
            (mode for mode, expected in record.identifying_words.items() if _has_command_line_option(expected, words)),
            record.default_mode,
        )
    readable = [*record.decoders, *record.session_protocols]
    if mode in record.served:
        raise UsageError(f"{dialect} {mode} speaks HTTP, which is not recorded", f"it can record {', '.join(readable)}")
    if mode not in readable:
        raise UsageError(f'the dialect {dialect} has no mode "{mode}"', f"it has {', '.join(sorted(readable))}")
    is_session = mode in record.session_protocols
    prompt = words[-1] if words and not words[-1].startswith("-") and not is_session and dialect != "raw" else ""
    model = _MODEL_FIELD_PATTERN.search(out) if mode not in record.nameless else None
    return AgentIdentity(
        dialect,
        mode,
        tuple(words),
        prompt,
        model[1].decode(errors="replace") if model else "",
        partials=not record.partials or b'"type":"stream_event"' in out,
        version=record.find_older_version(out.decode(errors="replace")),
        states=b'"session_state_changed"' in out and bool(record.states),
        by_stdin=bool(stdin) and not is_session and dialect in ("claude", "codex"),
    )


def _has_command_line_option(expected: str, words: list[str]) -> bool:
    """Say whether a command line has a word, or an option and its value, in either form."""
    option, _, value = expected.partition(" ")
    if not value:
        return option in words
    return f"{option}={value}" in words or (option, value) in itertools.pairwise(words)


def find_prompts_in_stdin(dialect: str, lines: Sequence[bytes]) -> list[str]:
    """Give the prompts among the lines that a session's agent was sent."""
    found = []
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found += [said for said in [_read_prompt_text(dialect, value)] if said is not None]
    return found


def _read_prompt_text(dialect: str, value: dict[str, Any]) -> str | None:
    if dialect == "pi" and value.get("type") == "prompt":
        return str(value.get("message", ""))
    if dialect == "acp" and value.get("method") == "session/prompt":
        return read_content_text((value.get("params") or {}).get("prompt"))
    if dialect == "codex" and value.get("method") == "turn/start":
        return read_content_text((value.get("params") or {}).get("input"))
    if dialect == "claude" and value.get("type") == "user":
        return read_content_text((value.get("message") or {}).get("content"))
    return None
