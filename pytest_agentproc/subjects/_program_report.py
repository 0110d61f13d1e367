"""Owns what the end of a program says, as a table maps it: exit code, stdout and files to an answer's fields. Pure."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import fields as fields_of
from typing import Any, NamedTuple

from pytest_agentproc.errors import AdapterError, UsageError, suggest_known_word
from pytest_agentproc.vocabulary import Outcome, RunReport, find_remedy

FieldSource = Callable[["ProgramEnd"], Any]

_FIELDS_OF_SESSION_REPORTS = ("turns", "background", "statuses", "viewers", "called", "sessions")
_FIELDS_A_PROGRAM_REPORTS = tuple(
    field.name for field in fields_of(RunReport) if field.name not in _FIELDS_OF_SESSION_REPORTS
)
_OUTCOME_WORDS = tuple(outcome.value for outcome in Outcome)
_KEY_FOR_OTHER_EXIT_CODES = "other"
_FORMS_OF_A_SOURCE = (
    '"stdout", "exit_code", {"exit_code": {...}} or {"json": "result.json", "key": "status", "words": {...}}'
)


class ProgramEnd(NamedTuple):
    """How a program ended.

    Args:
        exit_code: its exit code, 128+n for signal n.
        stdout: what it printed.
        file: gives the content of a file of the run's folder, or None.
    """

    exit_code: int
    stdout: str
    file: Callable[[str], str | None]


class MissingReason(str):
    """The reason for which the end of a program has no value for a field."""

    __slots__ = ()


def read_report_fields(
    sources: Mapping[str, FieldSource], end: ProgramEnd
) -> tuple[dict[str, Any], dict[str, MissingReason]]:
    """Read the fields of an answer from the end of a program; for each field that is missing, give the reason.

    The final text of a completed run that must be reported, and is not, is lost: an empty one (C3).

    Raises:
        AdapterError: a file is no JSON, or a value is not in its table.
    """
    found = {field: source(end) for field, source in sources.items()}
    missing = {field: value for field, value in found.items() if isinstance(value, MissingReason)}
    fields = {field: value for field, value in found.items() if field not in missing}
    if fields.get("outcome") == Outcome.COMPLETED and "text" in found and fields.get("text") is None:
        fields["text"] = ""
    return fields, missing


def parse_field_sources(says: Mapping[str, Any]) -> dict[str, FieldSource]:
    """Read a table of fields and where each is said.

    Args:
        says: fields of an answer; each is said by `"stdout"` (its text without white space around it), by `"exit_code"`
            (the number), by `{"exit_code": {0: "completed", "other": "failed"}}`, or by the value at a `key` (words
            with dots between them) of a JSON file in the run's folder, which `words` may translate. They name each
            value, or `other`.

    Raises:
        UsageError: there is no such field, or that is no place for it.
    """
    if not isinstance(says, Mapping):
        raise UsageError(f"says is {says!r}", 'write says={"outcome": {"exit_code": {0: "completed"}}}, for example')
    sources = {}
    for field, given in says.items():
        if field not in _FIELDS_A_PROGRAM_REPORTS:
            hint = suggest_known_word(field, _FIELDS_A_PROGRAM_REPORTS, remedy=find_remedy("report field", field))
            raise UsageError(f"says: there is no field {field!r}", hint)
        sources[field] = _parse_source(field, given)
    return sources


def _parse_source(field: str, given: Any) -> FieldSource:
    if given == "stdout":
        return lambda end: end.stdout.strip()
    if given == "exit_code":
        return lambda end: end.exit_code
    if isinstance(given, Mapping):
        if set(given) == {"exit_code"}:
            return _make_exit_code_source(field, given["exit_code"])
        if isinstance(given.get("json"), str) and set(given) <= {"json", "key", "words"}:
            return _make_json_source(field, given["json"], given.get("key", ""), given.get("words"))
    raise UsageError(f"says.{field} is {given!r}", f"write {_FORMS_OF_A_SOURCE}")


def _make_exit_code_source(field: str, table: Any) -> FieldSource:
    words = _parse_toml_table(f"says.{field}.exit_code", table, field)
    for code in words:
        if code != _KEY_FOR_OTHER_EXIT_CODES and not code.isdecimal():
            raise UsageError(
                f"says.{field}.exit_code: {code!r} is no exit code", f"write a number, or {_KEY_FOR_OTHER_EXIT_CODES}"
            )
    return lambda end: words.get(str(end.exit_code), words.get(_KEY_FOR_OTHER_EXIT_CODES))


def _make_json_source(field: str, name: str, key: Any, table: Any) -> FieldSource:
    if not isinstance(key, str):
        raise UsageError(f"says.{field}.key is {key!r}", "write the words of its path with dots between them")
    words = None if table is None else _parse_toml_table(f"says.{field}.words", table, field)
    if name != os.path.normpath(name) or name.startswith((os.sep, os.pardir)):
        raise UsageError(f"says.{field}.json is {name!r}", "name a file in the run's own folder, {folder}, or stdout")

    def read(end: ProgramEnd) -> Any:
        content = end.stdout if name == "stdout" else end.file(name)
        if content is None:
            return MissingReason(f"there is no {name} in its {{folder}}")
        try:
            value = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise AdapterError(f"{name} is no JSON: {error}\nhave it written whole, or not at all") from None
        for word in key.split(".") if key else ():
            if not isinstance(value, Mapping) or word not in value:
                return MissingReason(f"there is no {key} in {name}")
            value = value[word]
        if value is None or words is None:
            return value
        if str(value) not in words and _KEY_FOR_OTHER_EXIT_CODES not in words:
            known = ", ".join(words)
            raise AdapterError(
                f"{key} in {name} is {value!r}, which says.{field}.words does not have\n"
                f"add it there, or {_KEY_FOR_OTHER_EXIT_CODES}; known are {known}"
            )
        return words.get(str(value), words.get(_KEY_FOR_OTHER_EXIT_CODES))

    return read


def _parse_toml_table(place: str, table: Any, field: str) -> Mapping[str, Any]:
    """Give a table whose keys are text, as those of TOML always are."""
    if not isinstance(table, Mapping) or not table:
        raise UsageError(f"{place} is {table!r}", "write a table, such as {0: completed, other: failed}")
    for word in table.values():
        if field == "outcome" and word not in _OUTCOME_WORDS:
            hint = suggest_known_word(word, _OUTCOME_WORDS, remedy=find_remedy("outcome", word))
            raise UsageError(f"{place}: {word!r} is no outcome", hint)
    return {str(key): word for key, word in table.items()}
