"""Makes files of what was recorded: redacts it, then writes the record and the scenario. Owns what goes to the disk."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from pytest_agentproc.capture._draft import ScenarioDraft, draft_scenario_from_recording
from pytest_agentproc.capture._identity import identify_agent
from pytest_agentproc.capture._moments import get_stream_of_bytes, join_stream_bytes, require_all_bytes
from pytest_agentproc.capture._targets import get_record_path, write_private_file
from pytest_agentproc.capture._wording import shorten_output
from pytest_agentproc.capture.secrets import RedactedSecret, Redactor
from pytest_agentproc.events import ProcessStarted, StreamBytes
from pytest_agentproc.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_HARMLESS_VARIABLES_PATTERN = re.compile(
    r"TERM|COLORTERM|NO_COLOR|FORCE_COLOR|CI|LANG|LC_\w+|TZ|COLUMNS|LINES|PYTHONUNBUFFERED|NODE_ENV"
    r"|CLAUDE_CODE_E\w+|CLAUDECODE|GEMINI_CLI"
)


@dataclass(frozen=True)
class CapturedFiles:
    """What was written.

    Args:
        scenario: the scenario.
        record: the file of the record.
        redacted: what was replaced.
        too_short: variables whose values are too short to be looked for.
        notes: where the scenario is not what was recorded.
        shortened: how many texts were cut.
    """

    scenario: Path
    record: Path
    redacted: Sequence[RedactedSecret]
    too_short: Sequence[str]
    notes: Sequence[str]
    shortened: int = 0


def redact_record(record: Record, argv: Sequence[str], env: Mapping[str, str], redactor: Redactor) -> Record:
    """Give a record without secrets: every chunk as long as it was.

    Args:
        record: what happened.
        argv: the command line.
        env: the environment of the program; only what is known to be harmless is kept of it.
        redactor: knows the secrets, and learns more here.
    """
    streams: dict[str, list[bytes]] = {}
    for event in record.events:
        if (stream := get_stream_of_bytes(event)) is not None:
            streams.setdefault(stream, []).append(require_all_bytes(event))
    redactor.learn_secrets("\0".join(argv).encode(errors="surrogateescape"))
    for chunks in streams.values():
        redactor.learn_secrets(b"".join(chunks))
    for event in record.events:
        if isinstance(event, ProcessStarted):
            redactor.learn_secrets(event.argv.encode(errors="surrogateescape"))
    clean = {stream: iter(redactor.redact_chunks(chunks, stream)) for stream, chunks in streams.items()}
    shown = {
        name: redactor.redact_text(value, "env")
        for name, value in env.items()
        if _HARMLESS_VARIABLES_PATTERN.fullmatch(name)
    }
    words = redactor.redact_argv(argv, "argv")
    result = Record({**record.header, "clock": "real", "argv": words, "env": dict(sorted(shown.items()))})
    for event in record.events:
        own: dict[str, Any] = {"process": redactor.redact_text(event.process, "name of a descendant")}
        if isinstance(event, StreamBytes):
            own["bytes"] = next(clean[get_stream_of_bytes(event) or ""])
        if isinstance(event, ProcessStarted):
            own["argv"] = redactor.redact_text(event.argv, "argv of a descendant")
            own["parent"] = redactor.redact_text(event.parent, "name of a descendant")
        result.add(replace(event, **own))
    result.header["redacted"] = [str(secret) for secret in redactor.redacted_secrets]
    return result


def write_capture_files(
    record: Record,
    argv: Sequence[str],
    out: Path,
    *,
    env: Mapping[str, str],
    dialect: str = "",
    mode: str = "",
    shorten: int | None = None,
    confirm: Callable[[Record, Sequence[RedactedSecret]], bool] | None = None,
) -> CapturedFiles | None:
    """Redact a record and write it, and the scenario that does the same.

    Args:
        record: what happened, secrets and all: nothing of it is on the disk yet.
        argv: the command line.
        out: where the scenario goes; the record goes beside it.
        env: the environment of the program.
        dialect: its wire format; "": its name tells.
        mode: its variant; "": its arguments tell.
        shorten: so many characters of each text are kept in the scenario; None: all.
        confirm: is given the redacted record and what was replaced, and says whether to write; None: it is written.

    Returns:
        What was written; None: nothing, as `confirm` said no.

    Raises:
        UsageError: there is no such dialect or mode.
    """
    redactor = Redactor(env)
    clean = redact_record(record, argv, env, redactor)
    if confirm is not None and not confirm(clean, redactor.redacted_secrets):
        return None
    kept = get_record_path(out)
    write_private_file(kept, "".join(f"{line}\n" for line in clean.lines()).encode())
    events, count = shorten_output(clean.events, shorten) if shorten else (clean.events, 0)
    words = clean.header["argv"]
    printed, sent = join_stream_bytes(events, "stdout"), join_stream_bytes(events, "stdin")
    identity = identify_agent(words, printed, dialect, mode, stdin=sent)
    comments = [
        f"recorded: {_format_printable_line(' '.join(words))}",
        *(f"redacted: {secret}" for secret in redactor.redacted_secrets),
    ]
    if count:
        comments.append(f"shortened: {count} texts to {shorten} characters")
    cut = [clean.header["cut"]] if "cut" in clean.header else []
    comments += cut
    claim = f"{PurePath(words[0]).name} as it was recorded"
    draft: ScenarioDraft = draft_scenario_from_recording(out, events, identity, comments, claim)
    return CapturedFiles(out, kept, redactor.redacted_secrets, redactor.too_short, [*cut, *draft.notes], count)


def _format_printable_line(words: str) -> str:
    shown = "".join(letter if letter.isprintable() else " " for letter in words)
    return shown if len(shown) <= 200 else shown[:200] + "..."  # noqa: PLR2004  # a comment is one line
