"""Owns the JSON Schema of the language for editors, made from the tables that check.

Draft-07, which every editor reads. A step is one object with all steps as its properties, of which it takes one: with
`oneOf` an editor would show what is wrong with it as every step that it is not. The schema ties a
mode to its dialect, and sees else one value at a time: only the loader knows what depends on the dialect, on other
parts of the file or on the limits of a subject. Equal values stand once, among the definitions: editors and validators
read `$ref` in all drafts, and texts beside it are shown.
"""

from __future__ import annotations

import json
from functools import singledispatch
from itertools import count
from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._expressions import TIME_MEASURE
from pytest_agentproc.scenario._fields import (
    AnyOfType,
    ChoiceType,
    EitherType,
    EmptyListType,
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
from pytest_agentproc.scenario._file import AGENT_VALUE_TYPE, SCENARIO_FILE_TYPE, SESSION_KEY_BY_NAME
from pytest_agentproc.scenario._open_values import DOC_BY_OPEN_WORD, MAX_OPEN_VALUE_OPTIONS
from pytest_agentproc.scenario._script import ScriptStepsType
from pytest_agentproc.scenario._steps import STEP_ENTRY_BY_NAME
from pytest_agentproc.vocabulary import DIALECTS, LIMITS_IN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.scenario._file_check import Key
    from pytest_agentproc.vocabulary import Dialect


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


SCHEMA_FILE_NAME = "agentproc.schema.json"
"""Its file in the wheel, in the folder of the package, and on the site, beside the first page."""
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
    definitions: dict[str, Any] = {}
    described: dict[str, Any] = _share_values(_make_whole_schema(), definitions, {})
    described["definitions"] |= definitions
    return described


def format_schema() -> str:
    """Give the text of the schema's file."""
    return json.dumps(build_schema(), indent=1, ensure_ascii=False) + "\n"


_SHORTEST_SHARED_TEXT = 100
"""A shorter value, in characters, stays where it is: a reference has about 30."""


def _share_values(node: Any, definitions: dict[str, Any], name_by_text: dict[str, str], name: str = "") -> Any:
    """Move values to the definitions, equal ones once, each under the name of the first key that has it."""
    if not isinstance(node, dict):
        return node

    def share(value: Any, key: str) -> Any:
        shared = _share_values(value, definitions, name_by_text, key)
        words = {name: shared[name] for name in ("description", "markdownDescription") if name in shared}
        bare = {name: item for name, item in shared.items() if name not in words}
        text = json.dumps(bare)
        if len(text) < _SHORTEST_SHARED_TEXT:
            return shared
        if text not in name_by_text:
            taken = sum(name.rpartition("-")[0] == key for name in definitions)
            name_by_text[text] = f"{key}-{taken + 1}"
            definitions[name_by_text[text]] = bare
        return words | {"$ref": f"#/definitions/{name_by_text[text]}"}

    shared = dict(node)
    for part in ("properties", "definitions"):
        if part in node:
            shared[part] = {
                key: share(value, key) if part == "properties" else _share_values(value, definitions, name_by_text, key)
                for key, value in node[part].items()
            }
    if "anyOf" in node:
        shared["anyOf"] = [share(value, name) for value in node["anyOf"]]
    for part in ("items", "additionalProperties"):
        if isinstance(node.get(part), dict):
            shared[part] = share(node[part], name)
    return shared


def _make_whole_schema() -> dict[str, Any]:
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "urn:pytest-agentproc:scenario",
        "title": "scenario of pytest-agentproc",
        "description": "One file is one behaviour of an agent, or one bug report, and what must then be true.",
        **_make_file_schema(),
        "definitions": {
            "steps": {
                "type": "array",
                "items": {"$ref": "#/definitions/open_step"},
            },
            "open_step": {
                "anyOf": [
                    {"$ref": "#/definitions/step"},
                    *(
                        _make_open_value_schema(word, {"$ref": "#/definitions/open_step"})
                        for word in ("one_of", "any_order", "some_of")
                    ),
                ]
            },
            "step": _make_step_schema(),
            "between": _make_between_schema(),
        },
    }


def _allow_open_value(shown: dict[str, Any]) -> dict[str, Any]:
    """Show a value that a file may leave open."""
    between = {"$ref": "#/definitions/between"}
    return {"anyOf": [shown, between, _make_open_value_schema("one_of", {"anyOf": [shown, between]})]}


def _make_open_value_schema(word: str, item: dict[str, Any]) -> dict[str, Any]:
    """Show an open value, with one of its items."""
    low, high = (2, 2) if word == "between" else (1, MAX_OPEN_VALUE_OPTIONS)
    return {
        "type": "object",
        "description": DOC_BY_OPEN_WORD[word],
        "properties": {word: {"type": "array", "items": item, "minItems": low, "maxItems": high}},
        "required": [word],
        "additionalProperties": False,
    }


def _make_between_schema() -> dict[str, Any]:
    """Show a range: two values of one kind."""
    shown = _make_open_value_schema("between", {"type": ["string", "number"]})
    kinds = (
        _make_time_schema(TimeType()),
        _make_pattern_schema(TextPattern(_SIZE_PATTERN)),
        {"type": "integer"},
    )
    shown["properties"]["between"]["anyOf"] = [{"items": kind} for kind in kinds]
    return shown


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
    at_one_start = {"type": "object", "required": ["start"]}
    never_starts = {"properties": {"cannot_spawn": {"not": at_one_start}}, "required": ["cannot_spawn"]}
    cannot_start = {"properties": {"agent": {"type": "object", **never_starts}}, "required": ["agent"]}
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
    if kind.pattern:
        return {"type": _SCALAR_JSON_TYPES, "pattern": f"^(?:{kind.pattern})$"}
    if kind.may_be_empty:
        return {"type": _SCALAR_JSON_TYPES, "errorMessage": 'this must be text: write "" for empty text'}
    return {"type": _SCALAR_JSON_TYPES, "minLength": 1, "errorMessage": "this must be text, and not empty"}


@_make_shape_schema.register
def _make_regex_schema(_kind: RegexType) -> dict[str, Any]:
    return {"type": _SCALAR_JSON_TYPES}  # Python's own syntax: a format of ECMAScript's would refuse some of it


@_make_shape_schema.register
def _make_word_schema(_kind: NameType) -> dict[str, Any]:
    wrong = 'write a name of letters, digits, "-" and "_"'
    return {"type": ["string", "boolean"], "pattern": f"^{_NAME_PATTERN}$", "errorMessage": wrong}


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
    pattern = TextPattern("|".join((*kind.words, _TIME_EXPRESSION_PATTERN)), (*kind.words, "10s"))
    wrong = "write a time with its unit, such as 10s, or with limits, such as inactivity_timeout + 1s"
    return _require_unit(_make_pattern_schema(pattern), wrong, "10s", may_be_zero=not kind.positive)


@_make_shape_schema.register
def _make_size_schema(kind: SizeType) -> dict[str, Any]:
    shown = {"type": "string"} if kind.bindable else _make_pattern_schema(TextPattern(_SIZE_PATTERN, ("64 KiB",)))
    return _require_unit(shown, "write a size with its unit, such as 64 KiB", "64 KiB")


def _require_unit(shown: dict[str, Any], wrong: str, example: str, *, may_be_zero: bool = False) -> dict[str, Any]:
    """Say of a number what it lacks: of a wrong type an editor says which other types may stand there, too."""
    message = f"a number has no unit: write {example}, not {example.rstrip('sKiB ')}"
    bare = {"const": 0 if may_be_zero else example, "errorMessage": message}
    return {**shown, "type": ["string", "number"], "if": {"type": "number"}, "then": bare, "errorMessage": wrong}


@_make_shape_schema.register
def _make_signal_schema(kind: SignalType) -> dict[str, Any]:
    return {"enum": list(kind.names)}


@_make_shape_schema.register
def _make_list_schema(kind: ListOfType) -> dict[str, Any]:
    return {
        "type": "array",
        "items": _allow_open_value(_make_type_schema(kind.kind)),
        **({"uniqueItems": True} if kind.unique else {}),
        **({} if kind.may_be_empty else {"minItems": 1}),
    }


@_make_shape_schema.register
def _make_empty_list_schema(_kind: EmptyListType) -> dict[str, Any]:
    return {"type": "array", "maxItems": 0}


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
    if kind is AGENT_VALUE_TYPE.mapping:
        shown["allOf"] = [_tie_mode_to_dialect(dialect) for dialect in DIALECTS.values()]
    if kind.one_of:
        shown["oneOf"] = [{"required": [name]} for name in kind.one_of]
    return shown


def _tie_mode_to_dialect(dialect: Dialect) -> dict[str, Any]:
    return {
        "if": {"properties": {"dialect": {"const": dialect.name}}, "required": ["dialect"]},
        "then": {"properties": {"mode": {"anyOf": [{"enum": list(dialect.modes)}, {"type": "object"}]}}},
    }


@_make_shape_schema.register
def _make_either_schema(kind: EitherType) -> dict[str, Any]:
    return {"anyOf": [_make_type_schema(kind.scalar), _make_type_schema(kind.mapping)]}
