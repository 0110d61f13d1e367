"""Owns the JSON Schema of the language for editors, made from the tables that check.

Draft-07, which every editor reads. A step is one object with all steps as its properties, of which it takes one: with
`oneOf` an editor would show what is wrong with it as every step that it is not. The schema sees one value at a time:
only the loader knows what depends on the dialect, on other parts of the file or on the limits of a subject.
"""

from __future__ import annotations

from functools import singledispatch
from itertools import count
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._expressions import TIMES
from pytest_agentproc.scenario._fields import (
    AnyOf,
    Choice,
    Data,
    Either,
    FewWords,
    Fields,
    Flag,
    ListOf,
    MapOf,
    Regex,
    Signal,
    Size,
    Text,
    TextPattern,
    Time,
    WholeNumber,
    Word,
)
from pytest_agentproc.scenario._file import FILE, SESSION_KEYS
from pytest_agentproc.scenario._open import MOST_OPTIONS, OPEN_WORDS
from pytest_agentproc.scenario._script import Steps
from pytest_agentproc.scenario._steps import STEPS
from pytest_agentproc.vocabulary import DIALECTS, TIME_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.scenario._check import Key


def build_snippets() -> list[dict[str, Any]]:
    """Give one snippet for each step: its shortest form, with a tab stop at each value."""
    return [
        {"label": entry.name, "description": entry.doc, "body": _build_snippet_body(entry.name, count(1))}
        for entry in STEPS.values()
    ]


def _build_snippet_body(name: str, stops: Iterator[int]) -> dict[str, Any]:
    entry = STEPS[name]
    body = {name: _build_snippet_value(entry.kind, stops)}
    if entry.also is not None and entry.also.required:
        body[entry.also.name] = _build_snippet_value(entry.also.kind, stops)
    return body


def _build_snippet_value(kind: Any, stops: Iterator[int]) -> Any:
    kind = getattr(kind, "shape", kind)
    if isinstance(kind, Either):
        return _build_snippet_value(kind.scalar, stops)
    if isinstance(kind, Fields):
        needed = [key for key in kind.keys if key.required or key.name in kind.one_of[:1]]
        return {key.name: _build_snippet_value(key.kind, stops) for key in needed}
    if isinstance(kind, Steps):
        return [{"answer": _format_tab_stop(stops, "done")}]
    if isinstance(kind, ListOf):
        return [_build_snippet_value(kind.kind, stops)]
    return _build_snippet_scalar(kind, stops)


def _build_snippet_scalar(kind: Any, stops: Iterator[int]) -> str:
    if isinstance(kind, Choice | FewWords):
        words = kind.options if isinstance(kind, Choice) else kind.words
        return f"${{{next(stops)}|{','.join(words)}|}}"
    if isinstance(kind, Time):
        return _format_tab_stop(stops, "10s")
    if isinstance(kind, WholeNumber):
        return _format_tab_stop(stops, str(kind.low))
    examples = getattr(kind, "examples", ())
    return _format_tab_stop(stops, examples[0] if examples else getattr(kind, "label", "").partition(" ")[0] or "TEXT")


def _format_tab_stop(stops: Iterator[int], text: str) -> str:
    return f"${{{next(stops)}:{text}}}"


MODELINE = "# yaml-language-server: $schema={}"
"""The first line of a file that has an editor use a schema, whose place counts from the folder of the file."""

_SCALAR = ["string", "number", "boolean"]
"""What a text may look like: an unquoted number is text where a text is asked for."""

_NAME = "[A-Za-z][A-Za-z0-9_-]*"
_OPERAND = rf"(?:[0-9]+(?:\.[0-9]+)?\s*(?:{'|'.join(TIMES.units)})|[0-9]+(?:\.[0-9]+)?|{'|'.join(TIME_NAMES)})"
_TIME = rf"[\s(-]*{_OPERAND}[\s)]*(?:[-+*/][\s(-]*{_OPERAND}[\s)]*)*"
_SIZE = r"[0-9]+\s*(?:B|KiB|MiB|GiB)"


def build_schema() -> dict[str, Any]:
    """Write the language as a JSON Schema, draft-07."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "scenario of pytest-agentproc",
        "description": "One file is one behaviour of an agent, or one bug report, and what must then be true.",
        **_describe_file(),
        "definitions": {
            "steps": {"type": "array", "items": _allow_open_value({"$ref": "#/definitions/step"}, _STEP_WORDS)},
            "step": _describe_step(),
            **{word: _describe_open_value(word, doc) for word, doc in OPEN_WORDS.items()},
        },
    }


_VALUE_WORDS = ("between", "one_of")
_STEP_WORDS = ("one_of", "any_order", "some_of")


def _allow_open_value(shown: dict[str, Any], words: tuple[str, ...] = _VALUE_WORDS) -> dict[str, Any]:
    """Show a value that a file may leave open."""
    return {"anyOf": [shown, *({"$ref": f"#/definitions/{word}"} for word in words)]}


def _describe_open_value(word: str, doc: str) -> dict[str, Any]:
    """Show an open value: the loader alone checks the items of its list."""
    most = 2 if word == "between" else MOST_OPTIONS
    items = {"type": "array", "minItems": 2 if word == "between" else 1, "maxItems": most}
    return {
        "type": "object",
        "description": doc,
        "properties": {word: items},
        "required": [word],
        "additionalProperties": False,
    }


def _describe_file() -> dict[str, Any]:
    """Show a file: beside its table there is a script for each agent that can be started."""
    described = _describe_type(FILE)
    described["defaultSnippets"] = [
        {
            "label": "a scenario",
            "description": "a whole file",
            "body": {
                "scenario": "${1:what must be true, in a sentence}",
                "agent": "${2|" + ",".join(DIALECTS) + "|}",
                "script": [{"answer": "${3:done}"}],
                "expect": {"outcome": "completed", "text": "${3:done}"},
            },
        }
    ]
    cannot_start = {"properties": {"agent": {"required": ["cannot_spawn"], "type": "object"}}, "required": ["agent"]}
    described["allOf"] = [
        {"anyOf": [{"required": [key]} for key in ("script", "scripts", "sessions")] + [cannot_start]},
        {"not": {"required": ["script", "scripts"]}},
        {
            "if": {"required": ["sessions"]},
            "then": {
                "required": ["drive"],
                "not": {"anyOf": [{"required": [key]} for key in SESSION_KEYS]},
            },
        },
    ]
    return described


def _describe_step() -> dict[str, Any]:
    """Show a step: one of all, and beside some the key that belongs to them."""
    beside = {entry.name: entry.also for entry in STEPS.values() if entry.also is not None}
    properties = {name: _describe_key(entry) for name, entry in STEPS.items()}
    properties |= {also.name: _describe_key(also) for also in beside.values()}
    described: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "defaultSnippets": build_snippets(),
    }
    single: dict[str, Any] = {"maxProperties": 1}
    for name, also in beside.items():
        described["dependencies"] = {**described.get("dependencies", {}), also.name: [name]}
        pair = {"required": [name, also.name]} if also.required else {}
        single = {"if": {"required": [name]}, "then": {**pair, "maxProperties": 2}, "else": single}
        if not also.required:
            single["then"]["propertyNames"] = {"enum": [name, also.name]}
    return described | single


def _describe_key(key: Key) -> dict[str, Any]:
    shown = {"description": key.doc, "markdownDescription": f"{key.doc}\n\n`{key.name}:` {key.kind.label}"}
    inner = _describe_type(key.kind)
    is_value = isinstance(key.kind, (Time, Size, WholeNumber, Flag, Choice, Signal, Text, Either)) or hasattr(
        key.kind, "shape"
    )
    return {**shown, **(_allow_open_value(inner) if is_value and not isinstance(key.kind, Fields) else inner)}


def _describe_type(kind: Any) -> dict[str, Any]:
    return _describe_shape(getattr(kind, "shape", kind))


@singledispatch
def _describe_shape(kind: Any) -> dict[str, Any]:
    if hasattr(kind, "shape"):
        return _describe_type(kind)
    raise AssertionError(f"the schema does not know the type of value {type(kind).__name__}: give it a shape")


@_describe_shape.register
def _describe_text(kind: Text) -> dict[str, Any]:
    return {"type": _SCALAR} if kind.may_be_empty else {"type": _SCALAR, "minLength": 1}


@_describe_shape.register
def _describe_regex(_kind: Regex) -> dict[str, Any]:
    return {"type": _SCALAR}  # Python's own syntax: a format of ECMAScript's would refuse some of it


@_describe_shape.register
def _describe_word(_kind: Word) -> dict[str, Any]:
    return {"type": ["string", "boolean"], "pattern": f"^{_NAME}$"}


@_describe_shape.register
def _describe_choice(kind: Choice) -> dict[str, Any]:
    return {"enum": list(kind.options)}


@_describe_shape.register
def _describe_few_words(kind: FewWords) -> dict[str, Any]:
    return {"enum": list(kind.words)}


@_describe_shape.register
def _describe_whole_number(kind: WholeNumber) -> dict[str, Any]:
    return {"type": "integer", "minimum": kind.low, "maximum": kind.high}


@_describe_shape.register
def _describe_flag(_kind: Flag) -> dict[str, Any]:
    return {"type": "boolean"}


@_describe_shape.register
def _describe_time(kind: Time) -> dict[str, Any]:
    shown = _describe_pattern(TextPattern("|".join((*kind.words, _TIME)), (*kind.words, "10s")))
    return shown if kind.positive else {**shown, "type": ["string", "integer"], "minimum": 0, "maximum": 0}


@_describe_shape.register
def _describe_size(kind: Size) -> dict[str, Any]:
    return {"type": "string"} if kind.bindable else _describe_pattern(TextPattern(_SIZE, ("64 KiB",)))


@_describe_shape.register
def _describe_signal(kind: Signal) -> dict[str, Any]:
    return {"enum": list(kind.names)}


@_describe_shape.register
def _describe_list(kind: ListOf) -> dict[str, Any]:
    return {
        "type": "array",
        "items": _allow_open_value(_describe_type(kind.kind), ("one_of", "between")),
        **({"uniqueItems": True} if kind.unique else {}),
        **({} if kind.may_be_empty else {"minItems": 1}),
    }


@_describe_shape.register
def _describe_data(_kind: Data) -> dict[str, Any]:
    return {"type": "object"}


@_describe_shape.register
def _describe_steps(_kind: Steps) -> dict[str, Any]:
    return {"$ref": "#/definitions/steps"}


@_describe_shape.register
def _describe_pattern(kind: TextPattern) -> dict[str, Any]:
    shown = {"type": "string", "pattern": f"^(?:{kind.pattern})$"}
    return {**shown, "examples": list(kind.examples)} if kind.examples else shown


@_describe_shape.register
def _describe_map(kind: MapOf) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": "object", "additionalProperties": _describe_type(kind.value)}
    if kind.names is not None:
        names = _describe_type(kind.names)
        shown["propertyNames"] = {key: names[key] for key in ("enum", "pattern", "minLength") if key in names}
    return shown | ({"minProperties": 1, "maxProperties": 1} if kind.single else {})


@_describe_shape.register
def _describe_any_of(kind: AnyOf) -> dict[str, Any]:
    return {"anyOf": [_describe_type(shape) for shape in kind.shapes]}


@_describe_shape.register
def _describe_fields(kind: Fields) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": "object",
        "properties": {key.name: _describe_key(key) for key in kind.keys},
        "additionalProperties": False,
    }
    required = [key.name for key in kind.keys if key.required and not key.unless]
    if required:
        shown["required"] = required
    for key in kind.keys:
        if key.unless:
            shown["anyOf"] = [{"required": [key.name]}, {"required": [key.unless]}]
    if kind.one_of:
        shown["oneOf"] = [{"required": [name]} for name in kind.one_of]
    return shown


@_describe_shape.register
def _describe_either(kind: Either) -> dict[str, Any]:
    return {"anyOf": [_describe_type(kind.scalar), _describe_type(kind.mapping)]}
