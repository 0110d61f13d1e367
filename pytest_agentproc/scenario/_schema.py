"""Owns the JSON Schema of the language for editors, made from the tables that check.

Draft-07, which every editor reads. A step is one object with all steps as its properties, of which it takes one: with
`oneOf` an editor would show what is wrong with it as every step that it is not. The schema sees one value at a time:
only the loader knows what depends on the dialect, on other parts of the file or on the limits of a subject.
"""

from __future__ import annotations

from functools import singledispatch
from itertools import count
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._expressions import TIME_MEASURE
from pytest_agentproc.scenario._fields import (
    AnyOfType,
    ChoiceType,
    EitherType,
    FieldsType,
    FlagType,
    ListOfType,
    MapOfType,
    NameType,
    PlainDataType,
    RegexType,
    SignalType,
    SizeType,
    TextPattern,
    TextType,
    TimeType,
    WholeNumberType,
    WordsOrMappingType,
)
from pytest_agentproc.scenario._file import SCENARIO_FILE_TYPE, SESSION_KEY_BY_NAME
from pytest_agentproc.scenario._open_values import DOC_BY_OPEN_WORD, MAX_OPEN_VALUE_OPTIONS
from pytest_agentproc.scenario._script import ScriptStepsType
from pytest_agentproc.scenario._steps import STEP_ENTRY_BY_NAME
from pytest_agentproc.vocabulary import DIALECTS, LIMITS_IN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.scenario._file_check import Key


def build_snippets() -> list[dict[str, Any]]:
    """Give one snippet for each step: its shortest form, with a tab stop at each value."""
    return [
        {"label": entry.name, "description": entry.doc, "body": _build_snippet_body(entry.name, count(1))}
        for entry in STEP_ENTRY_BY_NAME.values()
    ]


def _build_snippet_body(name: str, stops: Iterator[int]) -> dict[str, Any]:
    entry = STEP_ENTRY_BY_NAME[name]
    body = {name: _build_snippet_value(entry.kind, stops)}
    if entry.also is not None and entry.also.required:
        body[entry.also.name] = _build_snippet_value(entry.also.kind, stops)
    return body


def _build_snippet_value(kind: Any, stops: Iterator[int]) -> Any:
    kind = getattr(kind, "shape", kind)
    if isinstance(kind, EitherType):
        return _build_snippet_value(kind.scalar, stops)
    if isinstance(kind, FieldsType):
        needed = [key for key in kind.keys if key.required or key.name in kind.one_of[:1]]
        return {key.name: _build_snippet_value(key.kind, stops) for key in needed}
    if isinstance(kind, ScriptStepsType):
        return [{"answer": _format_tab_stop(stops, "done")}]
    if isinstance(kind, ListOfType):
        return [_build_snippet_value(kind.kind, stops)]
    return _build_snippet_scalar(kind, stops)


def _build_snippet_scalar(kind: Any, stops: Iterator[int]) -> str:
    if isinstance(kind, ChoiceType | WordsOrMappingType):
        words = kind.options if isinstance(kind, ChoiceType) else kind.words
        return f"${{{next(stops)}|{','.join(words)}|}}"
    if isinstance(kind, TimeType):
        return _format_tab_stop(stops, "10s")
    if isinstance(kind, WholeNumberType):
        return _format_tab_stop(stops, str(kind.low))
    examples = getattr(kind, "examples", ())
    return _format_tab_stop(stops, examples[0] if examples else getattr(kind, "label", "").partition(" ")[0] or "TEXT")


def _format_tab_stop(stops: Iterator[int], text: str) -> str:
    return f"${{{next(stops)}:{text}}}"


SCHEMA_MODELINE_FORMAT = "# yaml-language-server: $schema={}"
"""The first line of a file that has an editor use a schema, whose place counts from the folder of the file."""

_SCALAR_JSON_TYPES = ["string", "number", "boolean"]
"""What a text may look like: an unquoted number is text where a text is asked for."""

_NAME_PATTERN = "[A-Za-z][A-Za-z0-9_-]*"
_TIME_OPERAND_PATTERN = (
    rf"(?:[0-9]+(?:\.[0-9]+)?\s*(?:{'|'.join(TIME_MEASURE.units)})|[0-9]+(?:\.[0-9]+)?|{'|'.join(LIMITS_IN_SECONDS)})"
)
_TIME_EXPRESSION_PATTERN = rf"[\s(-]*{_TIME_OPERAND_PATTERN}[\s)]*(?:[-+*/][\s(-]*{_TIME_OPERAND_PATTERN}[\s)]*)*"
_SIZE_PATTERN = r"[0-9]+\s*(?:B|KiB|MiB|GiB)"


def build_schema() -> dict[str, Any]:
    """Write the language as a JSON Schema, draft-07."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "scenario of pytest-agentproc",
        "description": "One file is one behaviour of an agent, or one bug report, and what must then be true.",
        **_make_file_schema(),
        "definitions": {
            "steps": {
                "type": "array",
                "items": _allow_open_value({"$ref": "#/definitions/step"}, _OPEN_WORDS_FOR_STEPS),
            },
            "step": _make_step_schema(),
            **{word: _make_open_value_schema(word, doc) for word, doc in DOC_BY_OPEN_WORD.items()},
        },
    }


_OPEN_WORDS_FOR_VALUES = ("between", "one_of")
_OPEN_WORDS_FOR_STEPS = ("one_of", "any_order", "some_of")


def _allow_open_value(shown: dict[str, Any], words: tuple[str, ...] = _OPEN_WORDS_FOR_VALUES) -> dict[str, Any]:
    """Show a value that a file may leave open."""
    return {"anyOf": [shown, *({"$ref": f"#/definitions/{word}"} for word in words)]}


def _make_open_value_schema(word: str, doc: str) -> dict[str, Any]:
    """Show an open value: the loader alone checks the items of its list."""
    most = 2 if word == "between" else MAX_OPEN_VALUE_OPTIONS
    items = {"type": "array", "minItems": 2 if word == "between" else 1, "maxItems": most}
    return {
        "type": "object",
        "description": doc,
        "properties": {word: items},
        "required": [word],
        "additionalProperties": False,
    }


def _make_file_schema() -> dict[str, Any]:
    """Show a file: beside its table there is a script for each agent that can be started."""
    described = _make_type_schema(SCENARIO_FILE_TYPE)
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
                "not": {"anyOf": [{"required": [key]} for key in SESSION_KEY_BY_NAME]},
            },
        },
    ]
    return described


def _make_step_schema() -> dict[str, Any]:
    """Show a step: one of all, and beside some the key that belongs to them."""
    beside = {entry.name: entry.also for entry in STEP_ENTRY_BY_NAME.values() if entry.also is not None}
    properties = {name: _make_key_schema(entry) for name, entry in STEP_ENTRY_BY_NAME.items()}
    properties |= {also.name: _make_key_schema(also) for also in beside.values()}
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


def _make_key_schema(key: Key) -> dict[str, Any]:
    shown = {"description": key.doc, "markdownDescription": f"{key.doc}\n\n`{key.name}:` {key.kind.label}"}
    inner = _make_type_schema(key.kind)
    is_value = isinstance(
        key.kind, (TimeType, SizeType, WholeNumberType, FlagType, ChoiceType, SignalType, TextType, EitherType)
    ) or hasattr(key.kind, "shape")
    return {**shown, **(_allow_open_value(inner) if is_value and not isinstance(key.kind, FieldsType) else inner)}


def _make_type_schema(kind: Any) -> dict[str, Any]:
    return _make_shape_schema(getattr(kind, "shape", kind))


@singledispatch
def _make_shape_schema(kind: Any) -> dict[str, Any]:
    if hasattr(kind, "shape"):
        return _make_type_schema(kind)
    raise AssertionError(f"the schema does not know the type of value {type(kind).__name__}: give it a shape")


@_make_shape_schema.register
def _make_text_schema(kind: TextType) -> dict[str, Any]:
    return {"type": _SCALAR_JSON_TYPES} if kind.may_be_empty else {"type": _SCALAR_JSON_TYPES, "minLength": 1}


@_make_shape_schema.register
def _make_regex_schema(_kind: RegexType) -> dict[str, Any]:
    return {"type": _SCALAR_JSON_TYPES}  # Python's own syntax: a format of ECMAScript's would refuse some of it


@_make_shape_schema.register
def _make_word_schema(_kind: NameType) -> dict[str, Any]:
    return {"type": ["string", "boolean"], "pattern": f"^{_NAME_PATTERN}$"}


@_make_shape_schema.register
def _make_choice_schema(kind: ChoiceType) -> dict[str, Any]:
    return {"enum": list(kind.options)}


@_make_shape_schema.register
def _make_few_words_schema(kind: WordsOrMappingType) -> dict[str, Any]:
    return {"enum": list(kind.words)}


@_make_shape_schema.register
def _make_whole_number_schema(kind: WholeNumberType) -> dict[str, Any]:
    return {"type": "integer", "minimum": kind.low, "maximum": kind.high}


@_make_shape_schema.register
def _make_flag_schema(_kind: FlagType) -> dict[str, Any]:
    return {"type": "boolean"}


@_make_shape_schema.register
def _make_time_schema(kind: TimeType) -> dict[str, Any]:
    shown = _make_pattern_schema(TextPattern("|".join((*kind.words, _TIME_EXPRESSION_PATTERN)), (*kind.words, "10s")))
    return shown if kind.positive else {**shown, "type": ["string", "integer"], "minimum": 0, "maximum": 0}


@_make_shape_schema.register
def _make_size_schema(kind: SizeType) -> dict[str, Any]:
    return {"type": "string"} if kind.bindable else _make_pattern_schema(TextPattern(_SIZE_PATTERN, ("64 KiB",)))


@_make_shape_schema.register
def _make_signal_schema(kind: SignalType) -> dict[str, Any]:
    return {"enum": list(kind.names)}


@_make_shape_schema.register
def _make_list_schema(kind: ListOfType) -> dict[str, Any]:
    return {
        "type": "array",
        "items": _allow_open_value(_make_type_schema(kind.kind), ("one_of", "between")),
        **({"uniqueItems": True} if kind.unique else {}),
        **({} if kind.may_be_empty else {"minItems": 1}),
    }


@_make_shape_schema.register
def _make_data_schema(_kind: PlainDataType) -> dict[str, Any]:
    return {"type": "object"}


@_make_shape_schema.register
def _make_steps_schema(_kind: ScriptStepsType) -> dict[str, Any]:
    return {"$ref": "#/definitions/steps"}


@_make_shape_schema.register
def _make_pattern_schema(kind: TextPattern) -> dict[str, Any]:
    shown = {"type": "string", "pattern": f"^(?:{kind.pattern})$"}
    return {**shown, "examples": list(kind.examples)} if kind.examples else shown


@_make_shape_schema.register
def _make_map_schema(kind: MapOfType) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": "object", "additionalProperties": _make_type_schema(kind.value)}
    if kind.names is not None:
        names = _make_type_schema(kind.names)
        shown["propertyNames"] = {key: names[key] for key in ("enum", "pattern", "minLength") if key in names}
    return shown | ({"minProperties": 1, "maxProperties": 1} if kind.single else {})


@_make_shape_schema.register
def _make_any_of_schema(kind: AnyOfType) -> dict[str, Any]:
    return {"anyOf": [_make_type_schema(shape) for shape in kind.shapes]}


@_make_shape_schema.register
def _make_fields_schema(kind: FieldsType) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "type": "object",
        "properties": {key.name: _make_key_schema(key) for key in kind.keys},
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


@_make_shape_schema.register
def _make_either_schema(kind: EitherType) -> dict[str, Any]:
    return {"anyOf": [_make_type_schema(kind.scalar), _make_type_schema(kind.mapping)]}
