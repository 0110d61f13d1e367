"""Reads a fake's arguments as the real CLI does. Owns the reading; the table of a CLI is `vocabulary`'s, and baked in.

    find_kept_sessions(table, argv)                   -> the sessions on disk that these arguments are about
    adapt_program_to_arguments(program, table, known) -> the program that these arguments ask for
    choose_session(program, table, kept, taken)       -> the program with the session that it resumes or begins

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
    from pytest_agentproc.fake_agents.session_files.disk import KeptSessions

    CommandLineTable = dict[str, Any]


_FINAL_ENCODER_MODULE = "pytest_agentproc.fake_agents.dialects.final"
_INVALID_SERVERS_MESSAGE = "Error: Invalid MCP configuration:\n"
_UUID_LENGTH, _UUID_DASH_PLACES = 36, (8, 13, 18, 23)


class WrongModeArguments(UnplayableScript):
    """The arguments ask for a session and the script is a run's, or the other way round.

    Args:
        words: what is wrong, with its remedy.
        asked: `session` or `run`.
    """

    def __init__(self, words: str, asked: str) -> None:
        super().__init__(words)
        self.asked = asked


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


def find_kept_sessions(table: CommandLineTable, argv: list[str]) -> KeptSessions | None:
    """Give the sessions on disk if this CLI keeps them, and if its folder is one in which a fake may write."""
    if not table["kept_below"]:
        return None
    from pytest_agentproc.fake_agents.session_files import disk

    try:
        posix.getcwd()
        given = _parse_command_line(table, list(argv))
    except (_CommandLineExit, OSError):  # it is refused, or its folder was removed
        return None
    named = given.options.get(table["resuming"]["folder"], [""])[-1]
    folder = _find_path(named) if named else disk.find_form(table).find_folder(_read_variable)
    real = disk.find_folder_below(folder, table["kept_below"]) if folder else ""
    return disk.KeptSessions(table, given.options, real) if real else None


def choose_session(program: Program, table: CommandLineTable, kept: KeptSessions, taken: Container[str]) -> Program:
    """Give the program with the session on disk that its arguments ask for; no new one has a file that is taken."""
    if "session" in program:  # it is refused, and has none
        return program
    given = _parse_command_line(table, list(program["argv"]))
    resumed = next(iter(_list_named_sessions(table["resuming"], given)), "")
    prompt = "" if table["kinds"][program["mode"]] == "session" else _join_prompt_words(table, given)
    return kept.choose_session(program, resumed, _find_own_session_id(program), prompt, taken)


def _read_variable(name: str) -> str:
    return posix.environ.get(name.encode(), b"").decode("utf-8", "surrogateescape")


def adapt_program_to_arguments(
    program: Program, table: CommandLineTable, known: Container[str], *, has_own_session: bool = True
) -> tuple[Program, str]:
    """Give the program that its `argv` asks for, and the new session that it names; "" if it names none.

    Args:
        program: the script's, with `argv`.
        table: what the CLI takes; see `vocabulary.CommandLine`.
        known: the sessions that earlier starts have named, or those on disk.
        has_own_session: whether the session of a fake without arguments is one of them in any case.

    Raises:
        WrongModeArguments: the script is a session's and the arguments are a run's, or the other way round.
    """
    own_session = _find_own_session_id(program) if has_own_session else ""
    try:
        given = _parse_command_line(table, list(program["argv"]))
        if given.is_foreign:
            return program, ""
        mode, form = _find_mode_and_output_form(table, given)
        _end_by_options(table, given)
        _check_option_values(table, given)
        servers, errors = _read_server_configs(given.options.get(table["servers"], ()))
        settings = _read_settings_option(given.options.get(table["settings"], [""])[-1])
        named = (
            ""
            if table["trusts"]
            else _check_session_options(program, table["resuming"], given, known, own=own_session, is_stream=not form)
        )
        _require_trusted_folder(table, given, ())
    except _CommandLineExit as refused:
        code, stderr, stdout = refused.args
        steps: list[Step] = []
        if refused.late:
            begun = _add_prompt_from_arguments(program, table, given)
            steps += [step for step in begun["steps"] if step[1] == "read_stdin"]
        steps += [(0, "bytes", ("stdout", f"{stdout}\n".encode()))] if stdout else []
        steps += [(0, "bytes", ("stderr", f"{stderr}\n".encode()))] if stderr else []
        steps.append((0, "exit", (code,)))
        return {**_put_steps_first(program, steps, keep=False), "serves": False, "session": None}, ""
    kind, other = table["kinds"][mode], table["kinds"][program["mode"]]
    if kind != other:
        raise WrongModeArguments(
            f"its arguments ask for mode {mode}, which is a {kind}, but its script is for mode {program['mode']}, "
            f"which is a {other}: write `agent: {{dialect: {program['dialect']}, mode: {mode}}}` above `script:`, "
            "or `flags: any` in place of the mode",
            kind,
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
    own = _announce_new_session(own, table["resuming"]["made"], named if named and named not in known else "")
    unobeyed = [
        option
        for option, also, unless in table["unobeyed"]
        if given.meets_all_conditions(f"{option} {also}") and not (unless and given.meets_condition(unless))
    ]
    if unobeyed:
        own = _put_steps_first(own, [(0, "report_unobeyed", (unobeyed,))], keep=True)
    return _open_message_file(own, table["message_file"], given), named


def _announce_new_session(program: Program, words: str, name: str) -> Program:
    notice = f"{_fill_message_template(words, value=name)}\n".encode()
    return _put_steps_first(program, [(0, "bytes", ("stderr", notice))], keep=True) if words and name else program


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
    words = _list_prompt_words(table, given)
    is_resumed = given.command == table["resuming"]["command"] != ""
    prompt = " ".join(words)
    if (prompt or (words and table["takes_empty"])) and prompt != "-":
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


def _list_prompt_words(table: CommandLineTable, given: _ParsedCommandLine) -> list[str]:
    words = given.options.get(table["prompt"], []) if table["prompt"] else given.words
    words = words or given.words
    is_resumed = given.command == table["resuming"]["command"] != ""
    return words[1:] if is_resumed and not given.meets_condition(table["resuming"]["unless"]) else words


def _join_prompt_words(table: CommandLineTable, given: _ParsedCommandLine) -> str:
    """Give the prompt among the arguments; "" if it comes on stdin."""
    prompt = " ".join(_list_prompt_words(table, given))
    return "" if prompt == "-" else prompt


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
        if len(words) == len(pattern) and all(map(_fits_form, pattern, words)):
            free = [word for form, word in zip(pattern, words, strict=True) if form != word]
            parts = {str(number): word for number, word in enumerate(free, 1)}
            raise _CommandLineExit(
                code, _fill_message_template(stderr, **parts), _fill_message_template(stdout, **parts), late=late
            )


def _fits_form(form: str, word: str) -> bool:
    """Say whether a word is the one of a pattern, begins as it with `*`, or is none of it with `!`."""
    if form.startswith("!"):
        return word not in form[1:].split(",")
    return word.startswith(form[:-1]) if form.endswith("*") else word == form


def _check_option_values(table: CommandLineTable, given: _ParsedCommandLine) -> None:
    """Refuse a value that the real CLI looks at before it asks its model."""
    for option, kind, words, code, late in table["values"]:
        long, _, shown, _ = table["options"][given.command].get(option, (option, "", option, ()))
        for value in given.options.get(long, ()):
            name, *named = kind.split()
            reason = _FAULTS_OF_VALUES[name](value, named, given, table)
            if reason is not None:
                parts = {"shown": shown, "value": value, "path": _find_path(value), "set": _read_setting(value)[1]}
                parts["folder"] = posix.getcwd()
                raise _CommandLineExit(code, _fill_message_template(words, **parts, reason=reason), late=late)
    for word in given.words if table["file_words"] else ():
        reason = _find_file_fault(word[1:]) if word.startswith("@") else None
        if reason is not None:
            words = table["file_words"]
            raise _CommandLineExit(1, _fill_message_template(words, path=_find_path(word[1:]), reason=reason))


def _require_trusted_folder(table: CommandLineTable, given: _ParsedCommandLine, rest: Sequence[str]) -> None:
    """Refuse a folder that is not trusted, unless an option, or a word of the rest, allows it."""
    trust = table["trust"]
    if trust is None or not given.meets_condition(trust["command"]):
        return
    allowing = trust["allowed_by"].split()
    if any(map(given.meets_condition, allowing)) or any(word in allowing for word in rest):
        return
    folder = _find_path(given.options.get(trust["folder"], [posix.getcwd()])[-1])
    if not (_is_trusted_by_user(folder, trust) if trust["file"] else _is_in_repository(folder)):
        raise _CommandLineExit(trust["code"], trust["words"])


def _is_trusted_by_user(folder: str, trust: dict[str, str]) -> bool:
    """Say whether the user trusts a folder, or one above it, or every one."""
    home = posix.environ.get(b"HOME", b"").decode()
    settings = _read_object(f"{home}/{trust['settings']}").get("security")
    switch = settings.get("folderTrust") if isinstance(settings, dict) else None
    if posix.environ.get(trust["variable"].encode()) == b"true" or (
        isinstance(switch, dict) and switch.get("enabled") is False
    ):
        return True
    listed = _read_object(f"{home}/{trust['file']}").items()
    trusted = [
        name.rpartition("/")[0] if word == "TRUST_PARENT" else name for name, word in listed if word != "DO_NOT_TRUST"
    ]
    return any(f"{folder}/".startswith(f"{name}/") for name in trusted)


def _read_object(name: str) -> dict[str, Any]:
    """Read a file of the user; {} if it is not there, or no object."""
    try:
        with open(name, "rb") as file:
            return parse_json_object(file.read()) or {}
    except OSError:
        return {}


def _is_in_repository(folder: str) -> bool:
    while not _is_there(f"{folder}/.git"):
        folder, sign, _ = folder.rpartition("/")
        if not sign:
            return False
    return True


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
            file.read(1)
    except OSError as fault:
        return f"{fault.strerror} (os error {fault.errno})"
    return None


def _is_folder(name: str) -> bool:
    return _is_there(f"{name}/.")


def _read_head(name: str) -> bytes:
    """Give the first line of a file."""
    try:
        with open(name, "rb") as file:
            return file.readline()
    except OSError:
        return b""


def _read_setting(value: str) -> tuple[str, str]:
    """Take a setting apart: `key=value`, the value perhaps in quotation marks."""
    key, _, text = value.partition("=")
    return key, text.strip("\"'")


def _find_type_fault(key: str, text: str, kind: str, keys: Sequence[str]) -> str | None:
    """Say what a setting is if it should be a number, a flag, a list or a table; `table.*` is any key of a table."""
    group, _, own = key.rpartition(".")
    if key not in keys and (f"{group}.*" not in keys or not own or "." in group):
        return None
    fits = {
        "number": _is_number(text),
        "flag": text in ("true", "false"),
        "list": text.startswith("["),
        "table": text.startswith("{"),
    }
    return None if fits[kind] else f"integer `{text}`" if _is_number(text) else f'string "{text}"'


def _is_configured(name: str, given: _ParsedCommandLine, table: CommandLineTable) -> bool:
    """Say whether a file of the user's configuration, or a setting among the arguments, has a name in it."""
    if any(f".{name}." in value for values in given.options.values() for value in values):
        return True
    for form in table["configs"]:
        variable, sign, rest = form.partition("/")
        path = posix.environ.get(variable[1:].encode(), b"").decode() if variable.startswith("$") else variable
        try:
            with open(f"{path}{sign}{rest}" if path else "", "rb") as file:
                if name.encode() in file.read():
                    return True
        except OSError:
            continue
    return False


_LEAST_TELLING_LETTERS = 3
"""A shorter word is in many names."""


def _find_model_fault(
    value: str, named: Sequence[str], given: _ParsedCommandLine, table: CommandLineTable
) -> str | None:
    """Give the reason if a model cannot be one: its provider is unknown, or no name of a model resembles its own."""
    provider, sign, model = (value if named else value.lower()).partition("/")
    # A model of `named` must have its provider, and must be known (opencode).
    if not value or _is_configured(value, given, table) or (sign and model and _is_configured(provider, given, table)):
        return None
    if sign or named:
        is_own = bool(named) and provider == table["own_model"][0]
        return _say_if(not model or provider not in table["providers"] or (is_own and model != table["own_model"][1]))
    if "--provider" in given.options or provider in table["own_model"] or any(map(str.isdigit, provider)):
        return None
    telling = [word for word in table["models"] if len(word) >= _LEAST_TELLING_LETTERS]
    return _say_if(not any(word.startswith(provider) or word in provider for word in telling))


_KINDS_OF_AGENT_FIELDS = {"description": "string", "prompt": "string", "tools": "array", "model": "string"}


def _find_agents_fault(value: str) -> str | None:
    """Give what is wrong with the agents that a JSON object describes."""
    found = parse_json_object(value.encode()) if _is_text_in_json(value) else _read_json_file(value, "")
    for name, agent in (found or {}).items():
        if not isinstance(agent, dict):
            return f"{name}: Invalid input: expected object, received {_JSON_TYPE_WORDS[type(agent)]}"
        for key, wanted in _KINDS_OF_AGENT_FIELDS.items():
            kind = _JSON_TYPE_WORDS[type(agent.get(key, ...))]
            if kind != wanted and (key in agent or key in ("description", "prompt")):
                return f"{name}.{key}: Invalid input: expected {wanted}, received {kind}"
    return None


_SCHEMA_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_KINDS_IN_SCHEMAS: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions"), (dict, "object")),
    **dict.fromkeys(("required", "enum", "allOf", "anyOf", "oneOf"), (list, "array")),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), ((int, float), "number")),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), (int, "integer")),
    **dict.fromkeys(("title", "description", "pattern", "format", "$ref", "$id"), (str, "string")),
}


def _find_schema_fault(schema: Any, place: str = "data") -> str | None:
    """Give what is wrong with a JSON schema, in the words of the real CLI."""
    if not isinstance(schema, dict):
        return _say_if(not isinstance(schema, bool), f"{place} must be object,boolean")
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        for number, one in enumerate(kind):
            if one not in _SCHEMA_TYPES:
                must = "must be equal to one of the allowed values"
                return f"{place}/type {must}, {place}/type/{number} {must}, {place}/type must match a schema in anyOf"
    elif kind not in _SCHEMA_TYPES:
        parts = ("be equal to one of the allowed values", "be array", "match a schema in anyOf")
        return ", ".join(f"{place}/type must {part}" for part in parts)
    for key, (wanted, word) in _KINDS_IN_SCHEMAS.items():
        if key in schema and (not isinstance(schema[key], wanted) or isinstance(schema[key], bool)):
            return f"{place}/{key} must be {word}"
    for number, name in enumerate(schema.get("required", ())):
        if not isinstance(name, str):
            return f"{place}/required/{number} must be string"
    inner = {f"properties/{name}": part for name, part in schema.get("properties", {}).items()}
    inner |= {key: schema[key] for key in ("items", "additionalProperties", "not") if key in schema}
    return next((fault for key, part in inner.items() if (fault := _find_schema_fault(part, f"{place}/{key}"))), None)


def _say_if(fault: bool, words: str = "") -> str | None:  # noqa: FBT001  # the one value that it is about
    return words if fault else None


_FAULTS_OF_VALUES: dict[str, Callable[[str, Sequence[str], _ParsedCommandLine, CommandLineTable], str | None]] = {
    "number": lambda value, *_: _say_if(value != "" and not _is_number(value)),
    "positive": lambda value, *_: _say_if(not _is_number(value, 0)),
    "count": lambda value, *_: _say_if(not value.isdecimal() or int(value) == 0),
    "tokens": lambda value, *_: _say_if(value != "auto" and not value.removesuffix("k").isdecimal()),
    "filled": lambda value, *_: _say_if(not value),
    "name": lambda value, *_: _say_if(
        not (value[:1].isalnum() and value[-1:].isalnum() and all(sign.isalnum() or sign in "-_." for sign in value))
    ),
    "signs": lambda value, named, *_: _say_if(not all(sign.isalnum() or sign in named[0] for sign in value)),
    "once": lambda _, named, given, __: _say_if(len(given.options[named[0]]) > 1),
    "existing": lambda value, *_: _say_if(value != "" and not _is_there(value) and ":" not in value),
    "readable": lambda value, *_: _find_file_fault(value),
    "no-folder": lambda value, *_: _say_if(_is_folder(value)),
    "folder": lambda value, *_: _say_if(
        not _is_folder(value), "Path is not a directory" if _is_there(value) else "Directory does not exist"
    ),
    "no-file": lambda value, *_: _say_if(value != "" and _is_there(value) and not _is_folder(value)),
    "ending": lambda value, named, *_: _say_if(
        ":" not in value and not _is_folder(value) and not value.endswith(tuple(named)),
        "." + value.rpartition(".")[2] if "." in value else "",
    ),
    "module": lambda value, *_: _say_if(
        _is_folder(value)
        and not any(_is_there(f"{value}/{name}") for name in ("index.ts", "index.js", "index.mjs", "package.json"))
    ),
    "session-file": lambda value, *_: _say_if(
        ("/" in value or value.endswith(".jsonl")) and b'"session"' not in _read_head(value)
    ),
    "head": lambda value, named, *_: _say_if(named[0].encode() not in _read_head(value)),
    "repository": lambda *_: _say_if(not _is_in_repository(posix.getcwd())),
    "assignment": lambda value, *_: _say_if("=" not in value),
    "named": lambda value, *_: _say_if(value.startswith("=")),
    "set": lambda value, named, *_: _say_if(
        value.startswith(f"{named[0]}=") and _read_setting(value)[1] not in named[1:]
    ),
    "set-type": lambda value, named, *_: _find_type_fault(*_read_setting(value), named[0], named[1:]),
    "set-new": lambda value, named, *_: next(
        (name for name in named if value.startswith((f"model_providers.{name}.", f"model_providers.{name}="))), None
    ),
    "set-provider": lambda value, _, given, table: _say_if(
        value.startswith("model_provider=")
        and _read_setting(value)[1] not in table["providers"]
        and not _is_configured(_read_setting(value)[1], given, table)
    ),
    "provider": lambda value, _, given, table: _say_if(
        value not in table["providers"] and not _is_configured(value, given, table)
    ),
    "model": _find_model_fault,
    "listed": lambda value, named, *_: _say_if(any(part.strip() not in named for part in value.split(",") if value)),
    "one-of": lambda value, named, *_: _say_if(value not in named),
    "listed-with": lambda value, named, given, _: _say_if(named[0] in given.options and value not in named[1:]),
    "configured": lambda value, named, given, table: _say_if(
        value not in ("", *named) and not _is_configured(value, given, table)
    ),
    "never": lambda *_: "",
    "never-with-scheme": lambda value, *_: _say_if(":" in value),
    "closed": lambda value, *_: _say_if(value.startswith("{") and not _is_object(value.encode())),
    "object": lambda value, *_: _say_if(value != "" and not _is_object(value.encode())),
    "schema": lambda value, *_: _find_schema_fault(parse_json_object(value.encode()) or {}),
    "object-or-file": lambda value, *_: _say_if(not _is_text_in_json(value) and not _is_there(value)),
    "object-if-text": lambda value, *_: _say_if(_is_text_in_json(value) and not _is_object(value.encode())),
    "agents": lambda value, *_: _find_agents_fault(value),
    "file": lambda value, *_: _say_if(not _has_object(value)),
}
"""By the kind of a value of `vocabulary.ValueCheck`: the reason if it does not fit, which may be ""."""


def _check_session_options(
    program: Program,
    table: dict[str, Any],
    given: _ParsedCommandLine,
    known: Container[str],
    *,
    own: str,
    is_stream: bool,
) -> str:
    """Refuse a session that there is not, and a new one that there is; give the new one's name."""
    for value in _list_named_sessions(table, given):
        fits = (
            value in (own, table["latest"], program.get("knows"))
            or value in known
            or (table["prefix"] and own and own.startswith(value))
            or (table["files"] and ("/" in value or value.endswith(".jsonl")))
        )
        fits = fits and value != program.get("lacks")
        words = table["missing"] if _is_uuid(value) else table["odd"]
        if not fits and words:
            stdout = _fill_message_template(table["stdout"], value=value) if is_stream and _is_uuid(value) else ""
            raise _CommandLineExit(table["code"], _fill_message_template(words, value=value), stdout)
    new = given.options.get(table["new"], [""])[-1]
    if new and table["invalid"] and not _is_uuid(new):
        raise _CommandLineExit(table["code"], table["invalid"])
    if new and table["taken"] and (new == own or new in known):
        raise _CommandLineExit(table["code"], _fill_message_template(table["taken"], value=new))
    return new


def _find_own_session_id(program: Program) -> str:
    """Give the id of the fake's first session."""
    # The model may not have loaded an encoder yet. It plays only sessions that the agent lacks.
    return next(filter(None, map(_find_module_session_id, program["encoder"])), "")


def _list_named_sessions(table: dict[str, Any], given: _ParsedCommandLine) -> list[str]:
    """List the sessions that the arguments name."""
    if table["unless"] and given.meets_condition(table["unless"]):
        return []
    values = [value for option in table["options"] for value in given.options.get(option, [])]
    return [*values, *given.words[:1]] if given.command == table["command"] != "" else values


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
            _require_trusted_folder(table, given, rest)
            raise UnplayableScript(
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
