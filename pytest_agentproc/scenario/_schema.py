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
    Fields,
    Flag,
    Form,
    ListOf,
    MapOf,
    Only,
    Regex,
    Signal,
    Size,
    Text,
    Time,
    Whole,
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


def snippets() -> list[dict[str, Any]]:
    """Give one snippet for each step: its shortest form, with a tab stop at each value."""
    return [
        {"label": entry.name, "description": entry.doc, "body": _body(entry.name, count(1))} for entry in STEPS.values()
    ]


def _body(name: str, stops: Iterator[int]) -> dict[str, Any]:
    entry = STEPS[name]
    body = {name: _value(entry.kind, stops)}
    if entry.also is not None and entry.also.required:
        body[entry.also.name] = _value(entry.also.kind, stops)
    return body


def _value(kind: Any, stops: Iterator[int]) -> Any:
    kind = getattr(kind, "shape", kind)
    if isinstance(kind, Either):
        return _value(kind.scalar, stops)
    if isinstance(kind, Fields):
        needed = [key for key in kind.keys if key.required or key.name in kind.one_of[:1]]
        return {key.name: _value(key.kind, stops) for key in needed}
    if isinstance(kind, Steps):
        return [{"answer": _stop(stops, "done")}]
    if isinstance(kind, ListOf):
        return [_value(kind.kind, stops)]
    return _scalar(kind, stops)


def _scalar(kind: Any, stops: Iterator[int]) -> str:
    if isinstance(kind, Choice | Only):
        words = kind.options if isinstance(kind, Choice) else kind.words
        return f"${{{next(stops)}|{','.join(words)}|}}"
    if isinstance(kind, Time):
        return _stop(stops, "10s")
    if isinstance(kind, Whole):
        return _stop(stops, str(kind.low))
    examples = getattr(kind, "examples", ())
    return _stop(stops, examples[0] if examples else getattr(kind, "label", "").partition(" ")[0] or "TEXT")


def _stop(stops: Iterator[int], text: str) -> str:
    return f"${{{next(stops)}:{text}}}"


MODELINE = "# yaml-language-server: $schema={}"
"""The first line of a file that has an editor use a schema, whose place counts from the folder of the file."""

_SCALAR = ["string", "number", "boolean"]
"""What a text may look like: an unquoted number is text where a text is asked for."""

_NAME = "[A-Za-z][A-Za-z0-9_-]*"
_OPERAND = rf"(?:[0-9]+(?:\.[0-9]+)?\s*(?:{'|'.join(TIMES.units)})|[0-9]+(?:\.[0-9]+)?|{'|'.join(TIME_NAMES)})"
_TIME = rf"[\s(-]*{_OPERAND}[\s)]*(?:[-+*/][\s(-]*{_OPERAND}[\s)]*)*"
_SIZE = r"[0-9]+\s*(?:B|KiB|MiB|GiB)"


def schema() -> dict[str, Any]:
    """Write the language as a JSON Schema, draft-07."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "scenario of pytest-agentproc",
        "description": "One file is one behaviour of an agent, or one bug report, and what must then be true.",
        **_whole(),
        "definitions": {
            "steps": {"type": "array", "items": _or_open({"$ref": "#/definitions/step"}, _STEP_WORDS)},
            "step": _step(),
            **{word: _open(word, doc) for word, doc in OPEN_WORDS.items()},
        },
    }


_VALUE_WORDS = ("between", "one_of")
_STEP_WORDS = ("one_of", "any_order", "some_of")


def _or_open(shown: dict[str, Any], words: tuple[str, ...] = _VALUE_WORDS) -> dict[str, Any]:
    """Show a value that a file may leave open."""
    return {"anyOf": [shown, *({"$ref": f"#/definitions/{word}"} for word in words)]}


def _open(word: str, doc: str) -> dict[str, Any]:
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


def _whole() -> dict[str, Any]:
    """Show a file: beside its table there is a script for each agent that can be started."""
    described = _of(FILE)
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


def _step() -> dict[str, Any]:
    """Show a step: one of all, and beside some the key that belongs to them."""
    beside = {entry.name: entry.also for entry in STEPS.values() if entry.also is not None}
    properties = {name: _of_key(entry) for name, entry in STEPS.items()}
    properties |= {also.name: _of_key(also) for also in beside.values()}
    described: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "defaultSnippets": snippets(),
    }
    single: dict[str, Any] = {"maxProperties": 1}
    for name, also in beside.items():
        described["dependencies"] = {**described.get("dependencies", {}), also.name: [name]}
        pair = {"required": [name, also.name]} if also.required else {}
        single = {"if": {"required": [name]}, "then": {**pair, "maxProperties": 2}, "else": single}
        if not also.required:
            single["then"]["propertyNames"] = {"enum": [name, also.name]}
    return described | single


def _of_key(key: Key) -> dict[str, Any]:
    shown = {"description": key.doc, "markdownDescription": f"{key.doc}\n\n`{key.name}:` {key.kind.label}"}
    inner = _of(key.kind)
    is_value = isinstance(key.kind, (Time, Size, Whole, Flag, Choice, Signal, Text, Either)) or hasattr(
        key.kind, "shape"
    )
    return {**shown, **(_or_open(inner) if is_value and not isinstance(key.kind, Fields) else inner)}


def _of(kind: Any) -> dict[str, Any]:
    return _show(getattr(kind, "shape", kind))


@singledispatch
def _show(kind: Any) -> dict[str, Any]:
    if hasattr(kind, "shape"):
        return _of(kind)
    raise AssertionError(f"the schema does not know the type of value {type(kind).__name__}: give it a shape")


@_show.register
def _text(kind: Text) -> dict[str, Any]:
    return {"type": _SCALAR} if kind.may_be_empty else {"type": _SCALAR, "minLength": 1}


@_show.register
def _regex(_kind: Regex) -> dict[str, Any]:
    return {"type": _SCALAR}  # Python's own syntax: a format of ECMAScript's would refuse some of it


@_show.register
def _word(_kind: Word) -> dict[str, Any]:
    return {"type": ["string", "boolean"], "pattern": f"^{_NAME}$"}


@_show.register
def _choice(kind: Choice) -> dict[str, Any]:
    return {"enum": list(kind.options)}


@_show.register
def _only(kind: Only) -> dict[str, Any]:
    return {"enum": list(kind.words)}


@_show.register
def _whole_number(kind: Whole) -> dict[str, Any]:
    return {"type": "integer", "minimum": kind.low, "maximum": kind.high}


@_show.register
def _flag(_kind: Flag) -> dict[str, Any]:
    return {"type": "boolean"}


@_show.register
def _time(kind: Time) -> dict[str, Any]:
    shown = _form(Form("|".join((*kind.words, _TIME)), (*kind.words, "10s")))
    return shown if kind.positive else {**shown, "type": ["string", "integer"], "minimum": 0, "maximum": 0}


@_show.register
def _size(kind: Size) -> dict[str, Any]:
    return {"type": "string"} if kind.bindable else _form(Form(_SIZE, ("64 KiB",)))


@_show.register
def _signal(kind: Signal) -> dict[str, Any]:
    return {"enum": list(kind.names)}


@_show.register
def _list(kind: ListOf) -> dict[str, Any]:
    return {
        "type": "array",
        "items": _or_open(_of(kind.kind), ("one_of", "between")),
        **({"uniqueItems": True} if kind.unique else {}),
        **({} if kind.may_be_empty else {"minItems": 1}),
    }


@_show.register
def _data(_kind: Data) -> dict[str, Any]:
    return {"type": "object"}


@_show.register
def _steps(_kind: Steps) -> dict[str, Any]:
    return {"$ref": "#/definitions/steps"}


@_show.register
def _form(kind: Form) -> dict[str, Any]:
    shown = {"type": "string", "pattern": f"^(?:{kind.pattern})$"}
    return {**shown, "examples": list(kind.examples)} if kind.examples else shown


@_show.register
def _map(kind: MapOf) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": "object", "additionalProperties": _of(kind.value)}
    if kind.names is not None:
        names = _of(kind.names)
        shown["propertyNames"] = {key: names[key] for key in ("enum", "pattern", "minLength") if key in names}
    return shown | ({"minProperties": 1, "maxProperties": 1} if kind.single else {})


@_show.register
def _any(kind: AnyOf) -> dict[str, Any]:
    return {"anyOf": [_of(shape) for shape in kind.shapes]}


@_show.register
def _fields(kind: Fields) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": "object",
        "properties": {key.name: _of_key(key) for key in kind.keys},
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


@_show.register
def _either(kind: Either) -> dict[str, Any]:
    return {"anyOf": [_of(kind.scalar), _of(kind.mapping)]}
