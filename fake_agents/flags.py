"""Reads a fake's arguments as the real CLI does. Owns the reading; the table of a CLI is `vocabulary`'s, and baked in.

    adapt_program_to_arguments(program, table, known) -> the program that these arguments ask for

An error of the real CLI becomes a program of two steps: print it and exit. A format becomes the encoder that prints it.
A script cannot become a session's, or a session's script a run's: these arguments are for another script, and
`WrongModeArguments` says so.
"""

from __future__ import annotations

import posix
import sys

from pytest_agentproc.fake_agents.player import UnplayableScript
from pytest_agentproc.fake_agents.requests import parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program, Step

    CommandLineTable = dict[str, Any]


_FINAL_ENCODER_MODULE = "pytest_agentproc.fake_agents.dialects.final"
_INVALID_SERVERS_MESSAGE = "Error: Invalid MCP configuration:\n"
_UUID_LENGTH, _UUID_DASH_PLACES = 36, (8, 13, 18, 23)


class WrongModeArguments(UnplayableScript):
    """The arguments ask for a mode in which the script cannot be played."""


class _CommandLineExit(Exception):
    """The real CLI ends here.

    Args:
        code: its exit code.
        stderr: its error.
        stdout: what it prints with it.
        late: whether it has read stdin before.
    """

    def __init__(self, code: int, stderr: str, stdout: str = "", *, late: bool = False) -> None:
        super().__init__(code, stderr, stdout)
        self.late = late


class _ParsedCommandLine:
    """What a command line says: the options with their values, in order, the command, and all other words."""

    def __init__(self) -> None:
        self.options: dict[str, list[str]] = {}
        self.command = ""
        self.words: list[str] = []
        self.is_foreign = False

    def meets_condition(self, condition: str) -> bool:
        """Say whether a condition of the table holds."""
        if not condition.startswith("-"):
            return bool(self.words) if condition == "WORD" else f"{self.command} ".startswith(f"{condition} ")
        name, sign, value = condition.partition("=")
        return name in self.options and (not sign or self.options[name][-1:] == [value])

    def meets_all_conditions(self, conditions: str) -> bool:
        """Say whether all of them hold."""
        return all(map(self.meets_condition, conditions.split()))


def adapt_program_to_arguments(program: Program, table: CommandLineTable, known: Container[str]) -> tuple[Program, str]:
    """Give the program that its `argv` asks for, and the new session that it names; "" if it names none.

    Args:
        program: the script's, with `argv`.
        table: what the CLI takes; see `vocabulary.CommandLine`.
        known: the sessions that earlier starts have named.

    Raises:
        WrongModeArguments: the script is a session's and the arguments are a run's, or the other way round.
    """
    try:
        given = _parse_command_line(table, list(program["argv"]))
        if given.is_foreign:
            return program, ""
        _end_by_options(table, given)
        mode, form = _find_mode_and_output_form(table, given)
        _check_option_values(table, given)
        servers, errors = _read_server_configs(given.options.get(table["servers"], ()))
        settings = _read_settings_option(given.options.get(table["settings"], [""])[-1])
        named = (
            ""
            if table["trusts"]
            else _check_session_options(program, table["resuming"], given, known, is_stream=not form)
        )
    except _CommandLineExit as refused:
        code, stderr, stdout = refused.args
        steps: list[Step] = []
        if refused.late:
            begun = _add_prompt_from_arguments(program, table, given)
            steps += [step for step in begun["steps"] if step[1] == "read_stdin"]
        steps += [(0, "bytes", ("stdout", f"{stdout}\n".encode()))] if stdout else []
        steps += [(0, "bytes", ("stderr", f"{stderr}\n".encode()))] if stderr else []
        steps.append((0, "exit", (code,)))
        return {**_put_steps_first(program, steps, keep=False), "serves": False}, ""
    kind, other = table["kinds"][mode], table["kinds"][program["mode"]]
    if kind != other:
        raise WrongModeArguments(
            f"its arguments ask for mode {mode}, which is a {kind}, but its script is for mode {program['mode']}, "
            f"which is a {other}: write `agent: {{dialect: {program['dialect']}, mode: {mode}}}` above `script:`, "
            "or `flags: any` in place of the mode"
        )
    own = {**program, "mode": mode}
    if isinstance(settings.get("hooks"), dict):
        own |= {"hooks": settings["hooks"]}
    if servers:
        own |= {"servers": servers}
    if errors:
        own |= {"server_errors": errors}
    if form:
        own |= {"encoder": [*program["encoder"], _FINAL_ENCODER_MODULE], "final": (form, *table["errors_to"])}
    own = _add_prompt_from_arguments(own, table, given)
    unobeyed = [
        option
        for option, also, unless in table["unobeyed"]
        if given.meets_all_conditions(f"{option} {also}") and not (unless and given.meets_condition(unless))
    ]
    if unobeyed:
        own = _put_steps_first(own, [(0, "report_unobeyed", (unobeyed,))], keep=True)
    return _open_message_file(own, table["message_file"], given), named


def _put_steps_first(program: Program, steps: list[Step], *, keep: bool) -> Program:
    """Begin with these steps, after the report of what the start was given; keep the script's own, or not."""
    old: list[Step] = program["steps"]
    count = next((place for place, step in enumerate(old) if step[1] != "report_start"), len(old))
    return {**program, "steps": [*old[:count], *steps, *(old[count:] if keep else ())]}


def _open_message_file(program: Program, table: Sequence[str], given: _ParsedCommandLine) -> Program:
    """Have the file for the last message opened once stdin is read."""
    if not table or table[0] not in given.options:
        return program
    path, old = given.options[table[0]][-1], program["steps"]
    place = 1 + max(
        (number for number, step in enumerate(old) if step[1] in ("report_start", "read_stdin")), default=-1
    )
    step = (0, "open_message_file", (path, *(words.replace("{value}", path) for words in table[1:])))
    return {**program, "steps": [*old[:place], step, *old[place:]]}


def _drop_stdin(program: Program) -> list[Step]:
    return [step for step in program["steps"] if step[1] != "read_stdin"]


def _add_prompt_from_arguments(program: Program, table: CommandLineTable, given: _ParsedCommandLine) -> Program:
    """Take the prompt from the arguments; a run without one reads it from stdin, unless its script does."""
    words = given.options.get(table["prompt"], []) if table["prompt"] else given.words
    words = words or given.words
    is_resumed = given.command == table["resuming"]["command"] != ""
    if is_resumed and not given.meets_condition(table["resuming"]["unless"]):
        words = words[1:]
    prompt = " ".join(words)
    if prompt and prompt != "-":
        program = {**program, "prompt": prompt[: table["prompt_shown"]]}
        reads = table["resumed_reads_stdin"] or not is_resumed
        return program if reads else {**program, "steps": _drop_stdin(program)}
    if table["kinds"][program["mode"]] == "session" or table["prompt_by"] == "stdin":
        steps = [
            (line, op, (args[0], b"", *args[2:]) if op == "read_stdin" and prompt else args)
            for line, op, args in program["steps"]
        ]
        return {**program, "steps": steps}
    error, code = table["no_prompt"], table["no_prompt_code"] if table["no_prompt"] else 0
    patience, _, warning = table["stdin"]
    own = {**program, "steps": _drop_stdin(program)}
    notice = b"" if prompt else table["prompt_notice"]  # who asks for stdin by `-` is not told of it
    texts = (notice, warning, f"{error}\n".encode() if error else b"")
    return _put_steps_first(own, [(0, "read_stdin", (patience, *texts, code))], keep=True)


def _find_mode_and_output_form(table: CommandLineTable, given: _ParsedCommandLine) -> tuple[str, str]:
    """Give the mode that is asked for, and the form in which it is printed."""
    for has, lacks, words in table["conflicts"]:
        if given.meets_all_conditions(has) and not any(map(given.meets_condition, lacks.split())):
            usage = table["usage"].get(given.command, "")
            raise _CommandLineExit(
                table["code"],
                _fill_message_template(table["errors"].get("conflict", "{words}"), words=words, usage=usage),
            )
    mode, form = next(
        (mode, form) for conditions, mode, form in table["formats"] if given.meets_all_conditions(conditions)
    )
    if not mode:
        raise _CommandLineExit(1, form)
    return mode, form


def _end_by_options(table: CommandLineTable, given: _ParsedCommandLine) -> None:
    """End as the real CLI does that answers these options without its model."""
    for has, lacks, (code, stdout, stderr, late) in table["ends"]:
        if given.meets_all_conditions(has) and not any(map(given.meets_condition, lacks.split())):
            raise _CommandLineExit(code, stderr, stdout, late=late)


def _answer_foreign_command(table: CommandLineTable, words: Sequence[str]) -> None:
    """End as the real CLI does that gets a command which the fake does not have, if it is known what it prints."""
    for pattern, (code, stdout, stderr, late) in table["answers"]:
        rest = pattern[-1] == "**"
        fits = len(words) >= len(pattern) - 1 if rest else len(words) == len(pattern)
        if fits and all(form in ("*", "**", word) for form, word in zip(pattern, words, strict=False)):
            free = [word for form, word in zip(pattern, words, strict=False) if form == "*"]
            parts = {str(number): word for number, word in enumerate(free, 1)}
            texts = (_fill_message_template(text, **parts) for text in (stderr, stdout))
            raise _CommandLineExit(code, *texts, late=late)


def _check_option_values(table: CommandLineTable, given: _ParsedCommandLine) -> None:
    """Refuse a value that the real CLI looks at before it asks its model."""
    for option, kind, words, code, late in table["values"]:
        long, _, shown, _ = table["options"][given.command].get(option, (option, "", option, ()))
        for value in given.options.get(long, ()):
            name, *named = kind.split()
            reason = _FAULTS_OF_VALUES[name](value, named, given)
            if reason is not None:
                parts = {"shown": shown, "value": value, "path": _find_path(value), "set": value.partition("=")[2]}
                raise _CommandLineExit(code, _fill_message_template(words, **parts, reason=reason), late=late)
    needed = table["repository"]
    if needed and given.meets_condition(needed[0]) and not any(map(given.meets_condition, needed[1].split())):
        folder = _find_path(given.options.get(needed[2], [posix.getcwd()])[-1])
        while not _is_there(f"{folder}/.git"):
            folder, sign, _ = folder.rpartition("/")
            if not sign:
                raise _CommandLineExit(1, needed[3])


def _is_number(value: str, low: float = float("-inf")) -> bool:
    try:
        return float(value) > low
    except ValueError:
        return False


def _is_there(path: str) -> bool:
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def _find_path(name: str) -> str:
    """Give the absolute path of a file."""
    return name if name.startswith("/") else f"{posix.getcwd().rstrip('/')}/{name}"


def _is_object(text: bytes) -> bool:
    return parse_json_object(text) is not None


def _has_object(name: str) -> bool:
    with open(name, "rb") as file:
        return _is_object(file.read())


def _is_text_in_json(value: str) -> bool:
    return value[:1] in ("{", "[")


def _find_file_fault(name: str) -> str | None:
    """Give the words of the machine if a file cannot be read."""
    try:
        with open(name, "rb") as file:
            file.read(0)
    except OSError as fault:
        return f"{fault.strerror} (os error {fault.errno})"
    return None


def _say_if(fault: bool, words: str = "") -> str | None:  # noqa: FBT001  # the one value that it is about
    return words if fault else None


_FAULTS_OF_VALUES: dict[str, Callable[[str, Sequence[str], _ParsedCommandLine], str | None]] = {
    "number": lambda value, *_: _say_if(not _is_number(value)),
    "positive": lambda value, *_: _say_if(not _is_number(value, 0)),
    "count": lambda value, *_: _say_if(not value.isdecimal() or int(value) == 0),
    "existing": lambda value, *_: _say_if(not _is_there(value) and ":" not in value),
    "readable": lambda value, *_: _find_file_fault(value),
    "assignment": lambda value, *_: _say_if("=" not in value),
    "named": lambda value, *_: _say_if(value.startswith("=")),
    "filled": lambda value, *_: _say_if(not value),
    "set": lambda value, named, _: _say_if(
        value.startswith(f"{named[0]}=") and value.partition("=")[2].strip("\"'") not in named[1:]
    ),
    "listed": lambda value, named, _: _say_if(any(part.strip() not in named for part in value.split(",") if value)),
    "closed": lambda value, *_: _say_if(value.startswith("{") and not _is_object(value.encode())),
    "object": lambda value, *_: _say_if(value != "" and not _is_object(value.encode())),
    "object-or-file": lambda value, *_: _say_if(not _is_text_in_json(value) and not _is_there(value)),
    "object-if-text": lambda value, *_: _say_if(_is_text_in_json(value) and not _is_object(value.encode())),
    "file": lambda value, *_: _say_if(not _has_object(value)),
}
"""By the kind of a value of `vocabulary.ValueCheck`: the reason if it does not fit, which may be ""."""


def _check_session_options(
    program: Program, table: CommandLineTable, given: _ParsedCommandLine, known: Container[str], *, is_stream: bool
) -> str:
    """Refuse a session that there is not, and a new one that there is; give the new one's name."""
    # The model may not have loaded an encoder yet. It plays only sessions that the agent lacks.
    own = next(filter(None, map(_find_module_session_id, program["encoder"])), "")
    values = [value for option in table["options"] for value in given.options.get(option, [])]
    if given.command == table["command"] != "":
        values += given.words[:1]
    if table["unless"] and given.meets_condition(table["unless"]):
        values = []
    for value in values:
        fits = (
            value in (own, table["latest"], program.get("knows"))
            or value in known
            or (table["prefix"] and own.startswith(value))
        )
        fits = fits and value != program.get("lacks")
        words = table["missing"] if _is_uuid(value) else table["odd"]
        if not fits and words:
            stdout = _fill_message_template(table["stdout"], value=value) if is_stream and _is_uuid(value) else ""
            raise _CommandLineExit(table["code"], _fill_message_template(words, value=value), stdout)
    new = given.options.get(table["new"], [""])[-1]
    if new and table["invalid"] and not _is_uuid(new):
        raise _CommandLineExit(table["code"], table["invalid"])
    if new and (new == own or new in known):
        raise _CommandLineExit(table["code"], _fill_message_template(table["taken"], value=new))
    return new


def _read_server_configs(configs: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the MCP servers that are programs, from texts in JSON or from files; and the errors of those with mistakes.

    The real CLI skips a server with a mistake, and its first event has the error.
    """
    found: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for config in configs:
        read = parse_json_object(config.encode()) if config else None
        if read is None:
            read = _read_json_file(config, f"{_INVALID_SERVERS_MESSAGE}MCP config file")
        if read is None:
            raise _CommandLineExit(1, f"{_INVALID_SERVERS_MESSAGE}MCP config is not a valid JSON")
        servers = read.get("mcpServers", ...)
        if not isinstance(servers, dict):
            shown = _JSON_TYPE_WORDS[type(servers)]
            raise _CommandLineExit(
                1, f"{_INVALID_SERVERS_MESSAGE}mcpServers: Invalid input: expected record, received {shown}"
            )
        for name, server in servers.items():
            if isinstance(server, dict) and server.get("type", "stdio") != "stdio":
                continue
            kind, error = _find_server_config_error(name, server)
            if error:
                errors[name] = {"name": name, "type": kind, "message": f"Skipped — {error}"}
            else:
                found[name] = server
    return found, {name: error for name, error in errors.items() if name not in found}


_JSON_TYPE_WORDS = {
    type(...): "undefined",
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""The words of the real CLI for the kinds of values."""


def _find_server_config_error(name: str, server: Any) -> tuple[str, str]:
    """Give the kind and the words of the error of a server that is a program; empty: it has none."""
    if not isinstance(server, dict):
        wrong = [f"(root): expected object, received {_JSON_TYPE_WORDS[type(server)]}"]
    elif "url" in server and "command" not in server:
        remedy = 'add "type": "http" (or "sse" / "ws") to this entry'
        return "url_missing_type", f'MCP server "{name}" has a "url" but no "type"; {remedy}'
    else:
        words, variables = server.get("args", []), server.get("env", {})
        parts: list[tuple[str, Any, type, str]] = [("command", server.get("command", ...), str, "string")]
        parts.append(("args", words, list, "array"))
        if isinstance(words, list):
            parts += [(f"args.{place}", word, str, "string") for place, word in enumerate(words)]
        parts.append(("env", variables, dict, "record"))
        if isinstance(variables, dict):
            parts += [(f"env.{key}", value, str, "string") for key, value in variables.items()]
        wrong = ["command: Command cannot be empty"] if server.get("command") == "" else []
        wrong += [
            f"{place}: expected {wanted}, received {_JSON_TYPE_WORDS[type(value)]}"
            for place, value, kind, wanted in parts
            if not isinstance(value, kind)
        ]
    return "invalid_config", f'invalid MCP server config for "{name}": {"; ".join(wrong)}' if wrong else ""


def _read_settings_option(settings: str) -> dict[str, Any]:
    """Read settings, from a text in JSON or from a file; a file that is no JSON says nothing."""
    read = parse_json_object(settings.encode()) if settings else {}
    return _read_json_file(settings, "Error: Settings file") or {} if read is None else read


def _read_json_file(name: str, what: str) -> dict[str, Any] | None:
    """Read a file that an option names; None: it is no JSON."""
    try:
        with open(name, "rb") as file:
            return parse_json_object(file.read())
    except OSError:
        raise _CommandLineExit(1, f"{what} not found: {_find_path(name)}") from None


def _find_module_session_id(module: str) -> str:
    return str(getattr(sys.modules.get(module), "SESSION_ID", ""))


def _is_uuid(text: str) -> bool:
    return len(text) == _UUID_LENGTH and all(
        sign == "-" if place in _UUID_DASH_PLACES else sign in "0123456789abcdefABCDEF"
        for place, sign in enumerate(text)
    )


def _parse_command_line(table: CommandLineTable, argv: list[str]) -> _ParsedCommandLine:
    """Take the command line apart."""
    given = _ParsedCommandLine()
    argv.reverse()
    while argv and not given.is_foreign:
        word = argv.pop()
        if word == "--" and table["splits"]:
            given.words += reversed(argv)
            break
        if not word.startswith("-") or word == "-":
            _handle_plain_word(table, given, word, argv)
            continue
        options = table["options"][given.command]
        name, sign, value = word.partition("=") if table["splits"] and word not in options else (word, "", "")
        if name not in options and table["splits"] and not name.startswith("--") and name[:2] in options:
            name, value = name[:2], word[2:]
            sign = "=" if options[name][1][0] != "0" else ""
            argv += [] if sign else [f"-{value}"]
        if name not in options:
            raise _make_usage_error(table, given, "unknown", word)
        found = options[name]
        _store_option_values(
            table, given, name, found, _take_option_values(table, given, name, found, argv, value if sign else None)
        )
    return given


def _handle_plain_word(table: CommandLineTable, given: _ParsedCommandLine, word: str, rest: Sequence[str]) -> None:
    """Take a word that is no option: a command's name, or an argument. What follows is in reverse."""
    command = None if given.words else table["commands"].get(given.command, {}).get(word)
    if command is not None:
        given.command = command
        return
    if not given.words and word in table["foreign"].get(given.command, ()):
        if not table["trusts"]:
            _answer_foreign_command(table, [*given.command.split(), word, *reversed(rest)])
            raise WrongModeArguments(
                f"the fake has no command {word}: with `flags: any` it plays its script all the same"
            )
        given.is_foreign = True
        return
    given.words.append(word)
    most = table["words"].get(given.command, len(given.words))
    if len(given.words) > most:
        raise _make_usage_error(table, given, "extra" if most else "command", word)


def _take_option_values(
    table: CommandLineTable,
    given: _ParsedCommandLine,
    name: str,
    found: Sequence[Any],
    argv: list[str],
    value: str | None,
) -> list[str]:
    """Take the values of an option from what follows it."""
    kind = found[1]
    if kind[0] == "0" and value is not None and "valued" in table["errors"]:
        raise _make_usage_error(table, given, "valued", name, found, value)
    if kind[0] == "0":
        return [""]
    may_be_next = bool(argv) and (not argv[-1].startswith("-") or (kind[0] == "1" and table["takes_dashes"]))
    if value is None and not may_be_next:
        if kind[0] == "1":
            raise _make_usage_error(table, given, "missing", name, found)
        return [""]
    values = [argv.pop() if value is None else value]
    if not values[0] and found[2].rpartition(" ")[2] in table["paths"]:
        raise _make_usage_error(table, given, "missing", name, found)
    while "*" in kind and value is None and argv and not argv[-1].startswith("-"):
        values.append(argv.pop())
    return values


def _store_option_values(
    table: CommandLineTable, given: _ParsedCommandLine, name: str, found: Sequence[Any], values: list[str]
) -> None:
    long, kind, _, choices = found
    if long in ("--help", "--version"):
        is_help = long == "--help"
        text = table["usage"][given.command] if is_help else table["version"]
        is_error = table["tells_on_stderr"] or (is_help and table["helps_on_stderr"])
        raise _CommandLineExit(0, text, "") if is_error else _CommandLineExit(0, "", text)
    for value in values:
        if choices and value not in choices and f"!{value}" not in choices and (value or kind[0] == "1"):
            raise _make_usage_error(table, given, "choice", name, found, value)
    if long in given.options and "repeated" in table["errors"] and "+" not in kind:
        raise _make_usage_error(table, given, "repeated", name, found)
    given.options.setdefault(long, []).extend(values)


def _make_usage_error(
    table: CommandLineTable,
    given: _ParsedCommandLine,
    error: str,
    word: str,
    found: Sequence[Any] = ("", "", "", ()),
    value: str = "",
) -> _CommandLineExit:
    errors, (long, _, shown, choices) = table["errors"], found
    listed = table["joiner"].join(
        f'"{choice}"' if table["quoted"] else choice for choice in choices if choice[0] != "!"
    )
    listed = _fill_message_template(errors["choices"], choices=listed) if listed and "choices" in errors else listed
    name, usage = word.partition("=")[0], table["usage"].get(given.command, "")
    if "choices" in errors:  # it calls an option by its long name alone
        shown = f"{long} {shown.rpartition(' ')[2]}" if " <" in shown else long
    parts = {"word": word, "name": name, "bare": name.lstrip("-"), "longest": long.lstrip("-"), "shown": shown}
    return _CommandLineExit(
        table["code"], _fill_message_template(errors[error], **parts, value=value, choices=listed, usage=usage)
    )


def _fill_message_template(form: str, **parts: str) -> str:
    for name, part in parts.items():
        form = form.replace("{" + name + "}", part)
    return form
