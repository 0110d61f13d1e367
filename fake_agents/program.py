"""The form of a program: what a scenario compiles to and a player plays. Owns the form; refuses to know YAML and I/O.

A program is plain data that `marshal` can write:

    {"format": 1, "dialect": "pi", "mode": "json", "name": "agent", "code": 0, "newline": "lf", "bom": False,
     "serves": False, "steps": [(line, op, args), ...], "then": [[(line, op, args), ...], ...]}

`code` is the exit code at the script's end; `argv` and `environ`, in bytes, come in as it is played. Times are whole
nanoseconds, None stands for 'for ever'. `serves` is true for a session: it hears requests. `deaf` is there and true
for a descendant that ignores the polite signals from its birth on, `tasks` for a script with background tasks,
`encoder` for a dialect of another package: its modules, the last of which has the encoder, `obeys` is there and true
if it prints no parts of messages that its arguments do not ask for, `chunk` if no write of it is to have more bytes,
`hops` for a process that is a fork of itself: how often that happened before, `servers` for an agent whose arguments
name MCP servers that are programs: the configuration of each, `server_errors` for those with mistakes: the error of
each, `session` for a session that is kept on disk: its facts, and `kept_lines` what its file is still to hear of,
`hooks` for the hooks that they name, by event, `signals` for what the real CLI does on a signal by itself: by
number, the fields of `vocabulary`'s `SignalReaction`. `then` is there only if invocations differ: the steps of the
second one and of each that follows, the last for all further ones. Then `number` counts the invocations, and is there
from the second one on.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Program = dict[str, Any]
    Step = tuple[int, str, tuple[Any, ...]]

PROGRAM_FORMAT_VERSION = 1

MAX_REPORTED_ENVIRON_BYTES = 128 * 1024
"""So many bytes of its environment a fake tells that is asked for all of it."""

MAX_WRITE_BYTES = 4096
"""A fake writes at most this many bytes at a time, after the pipe has room: a full pipe parks, it never blocks."""

PIPE_CAPACITY_BYTES = 1 << 16
"""What a pipe holds. A write of more bytes waits for its reader anyway, and is made of as much in each grant; of a
smaller one each chunk may be read, and answered, before the next."""

MAX_REPORTED_WORD_BYTES = 1024
"""So many bytes of each argument and variable a fake tells: a message of more than 256 KiB cannot be sent."""

MAX_HELD_NOTES_BYTES = 1 << 16
"""Notes of more bytes than this go ahead in a message of their own."""

MAX_STDIN_READ_BYTES = 65536
"""A fake takes at most this many bytes from its stdin in one grant."""

ARGUMENT_NAMES_BY_OP = {
    "report_start": ("names",),
    "report_unobeyed": ("options",),
    "need_terminal": (),
    "say": ("text", "stop"),
    "answer": ("text",),
    "result": ("fields",),
    "bytes": ("stream", "data"),
    "drip": ("stream", "data", "text", "every", "until"),
    "flood": ("stream", "size"),
    "event": ("kind", "value"),
    "sleep": ("duration",),
    "burn_cpu": ("duration",),
    "await_signal": (),
    "await_eof": (),
    "await_stdin": ("pattern",),
    "read_stdin": ("patience", "notice", "warning", "error", "code"),
    "await_exit": ("name",),
    "handshake": ("kind", "value"),
    "await_prompt": ("number",),
    "await_cancel": (),
    "receipt": (),
    "acknowledge": (),
    "interrupted": (),
    "ask": ("fields", "allowed", "denied", "unanswered"),
    "call": ("tool", "answered", "refused"),
    "stdin": ("what",),
    "close": ("stream",),
    "write_file": ("path", "data"),
    "open_message_file": ("path", "error", "warning"),
    "when": ("kind", "value", "steps"),
    "meanwhile": ("steps",),
    "one_write": ("steps",),
    "spawn": ("fields", "steps"),
    "kill": ("name", "signum"),
    "refork": ("fields",),
    "exit": ("code",),
    "die": ("signum",),
}
"""Every op with the names of its arguments."""

SESSION_ONLY_OPS = ("handshake", "await_prompt", "await_cancel", "receipt", "acknowledge", "interrupted", "ask")
"""The ops that only a session can play."""

PARENT_NAME = "parent"
"""What a spawned process calls who spawned it."""

GROUP_LEADING_SPAWN_WAYS = ("own_group", "new_session")
"""The ways of being born that keep the parent and lead a group: a signal to such a child is for the whole group."""

SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGKILL = 15, 2, 1, 13, 9
POLITE_SIGNALS = (SIGTERM, SIGINT, SIGHUP)
"""The signals that `wait_for: signal` waits for and that a deaf process catches and ignores."""

FATAL_SIGNALS = (1, 2, 3, 10, 12, 15)
"""The signals whose default is death and that a descendant tells of as it dies: its parent is not the supervisor."""


def find_option_value(program: Program, *names: str) -> str:
    """Give the value after the first of these options on the command line, apart or after `=`; "" if none is there."""
    words = program.get("argv", ())
    for place, word in enumerate(words):
        name, sign, value = word.partition("=")
        if name in names and (sign or place + 1 < len(words)):
            return str(value if sign else words[place + 1])
    return ""


def make_invocation_program(program: Program, number: int) -> Program:
    """Give what one invocation plays, counted from 1, under its own name: agent, agent 2, agent 3."""
    name = make_numbered_name(program["name"], number)
    then = program.get("then")
    if number == 1 or not then:
        return {**program, "name": name}
    return {**program, "name": name, "number": number, "steps": then[min(number - 1, len(then)) - 1]}


def make_descendant_program(program: Program, fields: dict[str, Any], steps: Sequence[Step] | None) -> Program:
    """Give the program of a spawned process: its own script, or living on, or re-forking, for the time it is given."""
    line = fields["line"]
    deaf: list[Step] = (
        [(line, "when", ("signal", signum, [])) for signum in POLITE_SIGNALS] if fields["ignores_signals"] else []
    )
    if "every" in fields:
        play: list[Step] = [(line, "refork", (fields,))]
    else:
        play = [(line, "sleep", (fields["for"],))] if steps is None else list(steps)
    own = {"name": fields["id"], "code": 0, "reads": "stdin" in fields["inherits"], "serves": False}
    own["ignores_signals"] = fields["ignores_signals"]
    own |= {name: None for name in ("session", "kept_lines") if name in program}
    own |= {name: {} for name in ("servers", "server_errors", "hooks", "signals") if name in program}
    if fields.get("clear_env"):
        own["environ"] = {}
    return {**program, **own, "steps": deaf + play}


def make_numbered_name(name: str, number: int) -> str:
    """Name the process by its name and its number among processes of that name."""
    return name if number == 1 else f"{name} {number}"


def count_chunks_per_grant(size: int) -> int:
    """Say how many chunks of a write of this size go together in a grant, as long as there is room."""
    return PIPE_CAPACITY_BYTES // MAX_WRITE_BYTES if size > PIPE_CAPACITY_BYTES else 1
