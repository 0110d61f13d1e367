"""Owns the value types of fields, and mappings with known keys. Refuses to know any entry of a table.

A type of value that is not made of others as they stand has an attribute `shape`: a type, or one of these.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import Any

from pytest_agentproc.scenario._expressions import SIZE_MEASURE
from pytest_agentproc.scenario._file_check import FileCheck, Key, ValueType
from pytest_agentproc.scenario._python_data import MAX_TEXT_BYTES
from pytest_agentproc.scenario._suggestions import (
    describe_unknown_word,
    find_meant_option,
    join_choices,
    shorten_text,
)
from pytest_agentproc.scenario._yaml import (
    AS_WRITTEN,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    describe_node,
    format_node_inline,
    quote_for_message,
)
from pytest_agentproc.vocabulary import SIGNAL_NUMBER_BY_NAME


@dataclass(frozen=True)
class TextPattern:
    """A text that fits a pattern, for the JSON Schema.

    Args:
        pattern: a regular expression for all of it, as Python and ECMAScript both have it.
        examples: what an editor offers.
    """

    pattern: str
    examples: tuple[str, ...] = ()


HEX_DIGITS_PATTERN = r"\s*(?:[0-9A-Fa-f]{2}\s*)*"


@dataclass(frozen=True)
class MapOfType:
    """A mapping of free names to one type; `single` if it has one name only."""

    value: Any
    names: Any = None
    single: bool = False


@dataclass(frozen=True)
class AnyOfType:
    """One of several shapes."""

    shapes: tuple[Any, ...]

    @property
    def label(self) -> str:
        """Join them."""
        return " / ".join(shape.label for shape in self.shapes)


_MAX_DIGITS_OF_REQUEST_ID = 15
_SIZE_PATTERN = re.compile(r"([0-9]{1,15})\s*([A-Za-z]*)")


def _is_null_of_yaml(node: YamlScalar) -> bool:
    """Tell whether every other reader of YAML sees nothing where a text is written."""
    return node.plain and node.text in ("null", "Null", "NULL", "~")


@dataclass(frozen=True)
class TextType:
    """Any scalar, read as it stands; `pattern` is for the JSON Schema, as that of a `TextPattern`."""

    label: str = "TEXT"
    may_be_empty: bool = True
    pattern: str = ""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the text; an empty one must be quoted."""
        if not isinstance(node, YamlScalar) or isinstance(node.value, bool | timedelta):
            remedy = f"write {quote_for_message(str(node.value))}" if isinstance(node, YamlScalar) else ""
            check.report_wrong_value(node, what, "text", remedy)
        elif isinstance(node.value, bytes):
            check.report_wrong_value(node, what, "text", "write bytes in a raw step, or .decode() after them")
        elif node.plain and not node.text:
            check.report_wrong_value(node, what, "text", 'write "" for empty text' if self.may_be_empty else "")
        elif _is_null_of_yaml(node):
            check.report_wrong_value(node, what, "text", f"write {quote_for_message(node.text)}")
        elif not node.text and not self.may_be_empty:
            check.report_at(node, f"{what} must not be empty")
        else:
            return node.text
        return ""


@dataclass(frozen=True)
class RequestIdType(TextType):
    """The id of a request: a number that is written as one, which only JSON-RPC sends as one, or a text."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Take the number or the text."""
        text = super().read_node(node, what, check)
        is_number = isinstance(node, YamlScalar) and node.plain and text.isdecimal() and text.isascii()
        return int(text) if is_number and len(text) <= _MAX_DIGITS_OF_REQUEST_ID and str(int(text)) == text else text


@dataclass(frozen=True)
class OutputType(TextType):
    """What a program writes: text, which is written in UTF-8, or in Python data bytes."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Take the bytes."""
        if isinstance(node, YamlScalar) and isinstance(node.value, bytes):
            if not node.value and not self.may_be_empty:
                check.report_at(node, f"{what} must not be empty")
            return node.value
        return super().read_node(node, what, check).encode()


@dataclass(frozen=True)
class NameType:
    """A name: letters, digits, `-` and `_`, beginning with a letter."""

    label: str = "ID"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the name."""
        is_null = isinstance(node, YamlScalar) and _is_null_of_yaml(node)
        if isinstance(node, YamlScalar) and not is_null and re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", node.text):
            return node.text
        check.report_wrong_value(node, what, 'a name of letters, digits, "-" and "_"')
        return ""


@dataclass(frozen=True)
class ChoiceType:
    """One word of a closed set.

    Args:
        options: the words.
        synonyms: their kind in the table of synonyms.
        meanings: what each word means, for the reference; empty: the words say it.
    """

    options: tuple[str, ...]
    synonyms: str = ""
    meanings: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """Join the options."""
        return " / ".join(self.options)

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the word."""
        if not isinstance(node, YamlScalar) or not node.text:
            check.report_wrong_value(node, what, join_choices(self.options))
        elif node.text not in self.options and len(self.options) == 1:
            check.report_wrong_value(node, what, self.options[0])
        elif node.text not in self.options:
            check.report_at(node, describe_unknown_word(what, node.text, self.options, kind=self.synonyms))
        else:
            return node.text
        return ""


@dataclass(frozen=True)
class WordsOrMappingType:
    """One of a few words, where the other form of the field is a mapping; `wanted` shows both."""

    words: tuple[str, ...]
    wanted: str

    @property
    def label(self) -> str:
        """Join the words."""
        return " / ".join(self.words)

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the word."""
        if not isinstance(node, YamlScalar) or node.text not in self.words:
            check.report_wrong_value(node, what, self.wanted)
            return ""
        return node.text


@dataclass(frozen=True)
class WholeNumberType:
    """A whole number between two bounds; `of_signal` is what to write for the name of a signal."""

    low: int
    high: int
    label: str = "N"
    of_signal: str = ""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> int:
        """Take the number."""
        if isinstance(node, YamlScalar) and re.fullmatch(r"-?[0-9]{1,18}", node.text, re.ASCII):
            number = int(node.text)
            if self.low <= number <= self.high:
                return number
        name = _suggest_signal_name(node.text) if isinstance(node, YamlScalar) and self.of_signal else None
        remedy = f"write {self.of_signal.format(name)}" if name else ""
        check.report_wrong_value(node, what, f"a whole number from {self.low} to {self.high}", remedy)
        return 0


def _suggest_signal_name(text: str) -> str | None:
    """Find the signal that is meant by a long name, small letters or a number."""
    if re.fullmatch(r"-?[0-9]{1,2}", text, re.ASCII):
        return next((name for name, number in SIGNAL_NUMBER_BY_NAME.items() if number == abs(int(text))), None)
    name = text.upper().removeprefix("SIG")
    return name if name in SIGNAL_NUMBER_BY_NAME else None


_WORDS_BY_TRUTH_VALUE = {"true": ("yes", "y", "on", "1", "true"), "false": ("no", "n", "off", "0", "false", "none")}


@dataclass(frozen=True)
class FlagType:
    """Yes or no."""

    label: str = "true / false"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> bool:
        """Take the truth value."""
        if isinstance(node, YamlScalar) and node.text in ("true", "false"):
            return node.text == "true"
        text = node.text.lower() if isinstance(node, YamlScalar) else ""
        meant = next((value for value, words in _WORDS_BY_TRUTH_VALUE.items() if text in words), "")
        check.report_wrong_value(node, what, "true or false", f"write {meant}" if meant else "")
        return False


@dataclass(frozen=True)
class TimeType:
    """A time, or one of some words that stand for none; gives an Expression or the word."""

    words: tuple[str, ...] = ()
    positive: bool = False

    @property
    def label(self) -> str:
        """Name the time and the words."""
        return " / ".join(("T", *self.words))

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Take the word, or parse the time."""
        if not isinstance(node, YamlScalar) or not node.text.strip():
            check.report_wrong_value(node, what, join_choices(("a time such as 10s", *self.words)))
            return None
        if node.text in self.words:
            return node.text
        return check.read_time(node, self.words, positive=self.positive)


@dataclass(frozen=True)
class DurationType(TimeType):
    """How long something lasts that has no end without this key."""

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Parse the time; a word for no end has nothing to say here."""
        if isinstance(node, YamlScalar) and node.text in ("ever", "for ever"):
            key = what.rpartition(".")[2]
            check.report_wrong_value(node, what, "a time such as 10s", f'remove "{key}": without it there is no end')
            return None
        return super().read_node(node, what, check)


@dataclass(frozen=True)
class EmptyListType:
    """The empty list, where the other form of the field is a mapping."""

    label: str = "[]"


@dataclass(frozen=True)
class SizeType:
    """A number of bytes with its unit; where it is `bindable` also an expression, which may name limits."""

    low: int = 0
    high: int = 64 * 1024**3
    bindable: bool = False
    label: str = "SIZE"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Take the size, or parse its expression."""
        found = _SIZE_PATTERN.fullmatch(node.text) if isinstance(node, YamlScalar) else None
        if self.bindable and found is None and isinstance(node, YamlScalar) and node.text.strip():
            return check.read_size(node, self.low, self.high)
        if found is None:
            check.report_wrong_value(node, what, "a size such as 64 KiB")
        elif not found[2]:
            check.report_at(node, f"{what} has no unit: write {found[1]} B, or KiB, MiB, GiB")
        elif found[2] not in SIZE_MEASURE.units:
            check.report_at(node, describe_unknown_word("unit", found[2], SIZE_MEASURE.units))
        else:
            size = int(found[1]) * SIZE_MEASURE.units[found[2]]
            if self.low <= size <= self.high:
                return size
            check.report_at(node, f"{what} is {size} bytes: at least {self.low}, at most {self.high} are possible")
        return 0


@dataclass(frozen=True)
class SignalType:
    """The name of a signal, without SIG."""

    names: tuple[str, ...] = tuple(SIGNAL_NUMBER_BY_NAME)
    why: str = ""
    label: str = "SIGNAL"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the name."""
        if isinstance(node, YamlScalar) and node.text in self.names:
            return node.text
        if not isinstance(node, YamlScalar) or not node.text:
            check.report_wrong_value(node, what, "a signal such as TERM")
        else:
            name = _suggest_signal_name(node.text)
            if name is not None and name not in self.names:
                check.report_at(node, f"{what} cannot be {name}: {self.why}")
            elif name is not None:
                check.report_at(node, f'unknown signal "{node.text}": did you mean "{name}"?')
            else:
                check.report_at(node, describe_unknown_word("signal", node.text, self.names))
        return ""


@dataclass(frozen=True)
class RegexType:
    """A regular expression of Python's."""

    label: str = "REGEX"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> str:
        """Take the pattern, and try it."""
        text = TextType().read_node(node, what, check)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(text)
        except (re.error, OverflowError, RecursionError, ValueError) as error:  # the last: 5000 digits
            check.report_at(node, f"{what} is no regular expression: {error}")
        return text


@dataclass(frozen=True)
class ListOfType:
    """A list of one type; `unique` refuses what is given twice."""

    kind: ValueType
    unique: bool = False
    may_be_empty: bool = True

    @property
    def label(self) -> str:
        """Show the brackets."""
        return f"[{self.kind.label}, ...]"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> list[Any]:
        """Read every item."""
        if not isinstance(node, YamlSequence):
            text = node.text if isinstance(node, YamlScalar) else ""
            remedy = "write [] for none" if text == "none" else f"write [{format_node_inline(node)}]"
            check.report_wrong_value(node, what, f"a list such as {self.label}", remedy if text else "")
            return []
        if not node.items and not self.may_be_empty:
            check.report_at(node, f"{what} must not be empty: name at least one")
        values: list[Any] = []
        seen: set[Any] = set()
        for item in node.items:
            before = len(check.problems)
            value = self.kind.read_node(item, what, check)
            if len(check.problems) > before:
                continue
            if self.unique and value in seen:
                check.report_at(item, f'"{shorten_text(value)}" is given twice in {what}')
            if self.unique:
                seen.add(value)
            values.append(value)
        return values


@dataclass(frozen=True)
class PlainDataType:
    """Data as JSON has it; unquoted numbers, true, false and null are what they look like."""

    label: str = "{NAME: VALUE, ...}"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Read a mapping."""
        if not isinstance(node, YamlMapping):
            check.report_wrong_value(node, what, f"a mapping such as {self.label}")
            return {}
        return self._convert_node(node, what, check)

    def _convert_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        if isinstance(node, YamlMapping):
            return {key.text: self._convert_node(value, what, check) for key, value in node.pairs}
        if isinstance(node, YamlSequence):
            return [self._convert_node(item, what, check) for item in node.items]
        if isinstance(node.value, bytes | timedelta):
            check.report_at(node, f"{what} must be data as JSON has it, which {describe_node(node)} is not: write text")
        if node.value is not AS_WRITTEN:
            return node.value
        return self._convert_text(node.text) if node.plain else node.text

    def _convert_text(self, text: str) -> Any:
        words: dict[str, Any] = {"true": True, "false": False, "null": None, "": None}
        if text in words:
            return words[text]
        if re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
            return int(text)
        return float(text) if re.fullmatch(r"-?[0-9]{1,18}\.[0-9]{1,18}", text, re.ASCII) else text


WHOLE_SCENARIO_NAME = "the scenario"

FieldsFinisher = Callable[[dict[str, Any], YamlNode, str, FileCheck], Any]


@dataclass(frozen=True)
class FieldsType:
    """A mapping with the keys of a table.

    Args:
        keys: the table; values are read in its order.
        one_of: of these keys exactly one must be there.
        finish: looks at the values together, and makes the result of them; not called if one of them is wrong.
        elsewhere: keys that are none here, with what to do instead.
        synonyms: the kind of these keys in the table of synonyms.
        example: what to write in place of a value that is no mapping.
    """

    keys: tuple[Key, ...]
    one_of: tuple[str, ...] = ()
    finish: FieldsFinisher | None = None
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    synonyms: str = ""
    example: str = ""

    @cached_property
    def _keys_by_name(self) -> dict[str, Key]:
        return {key.name: key for key in self.keys}

    @cached_property
    def _required_keys(self) -> tuple[Key, ...]:
        return tuple(key for key in self.keys if key.required)

    @property
    def label(self) -> str:
        """Show the keys."""
        return "{" + ", ".join(key.name for key in self.keys) + "}"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Read a mapping into a dict of the values that are there."""
        before = len(check.problems)
        pairs = self.match_keys(node, what, check)
        path = "" if what == WHOLE_SCENARIO_NAME else f"{what}."
        values = {key.name: key.kind.read_node(value, f"{path}{key.name}", check) for key, _, value in pairs}
        if len(check.problems) > before:
            return None
        return self.finish(values, node, what, check) if self.finish else values

    def match_keys(self, node: YamlNode, what: str, check: FileCheck) -> list[tuple[Key, YamlScalar, YamlNode]]:
        """Match each key of a mapping with its entry, in the order of the table; report all that is wrong."""
        if not isinstance(node, YamlMapping):
            check.report_wrong_value(node, what, f"a mapping such as {self.label}", self.example)
            return []
        table = self._keys_by_name
        misspelt: list[str | None] = []
        given: dict[str, tuple[Key, YamlScalar, YamlNode]] = {}
        for name, value in node.pairs:
            entry = table.get(name.text)
            if entry is not None:
                given[name.text] = entry, name, value
            else:
                message = describe_unknown_word(f"key in {what}", name.text, table, self.elsewhere, self.synonyms)
                check.report_at(name, message)
                misspelt.append(find_meant_option(name.text, table, self.synonyms))
        for key in self._required_keys:
            stands_in = key.unless and (key.unless in given or key.unless in misspelt)
            if key.name not in given and key.name not in misspelt and not stands_in:
                check.report_at(node, f"{what} needs the key {key.name}: {key.doc}")
        if self.one_of and not misspelt:
            chosen = [name for name in given if name in self.one_of]
            if len(chosen) != 1:
                found = f", not {join_choices(chosen, 'and')}" if chosen else ""
                check.report_at(node, f"{what} needs exactly one of {join_choices(self.one_of)}{found}")
        return [given[name] for name in table if name in given] if len(given) > 1 else [*given.values()]


@dataclass(frozen=True)
class EitherType:
    """A short form, a scalar, which is the long form, a mapping, with nothing but `key`."""

    scalar: ValueType
    mapping: FieldsType
    key: str

    @property
    def label(self) -> str:
        """Show both forms."""
        return f"{self.scalar.label} or {self.mapping.label}"

    def read_node(self, node: YamlNode, what: str, check: FileCheck) -> Any:
        """Read the form that is there; both give the same kind of value."""
        if isinstance(node, YamlMapping):
            return self.mapping.read_node(node, what, check)
        if isinstance(node, YamlSequence):
            check.report_wrong_value(node, what, self.label)
            return None
        before = len(check.problems)
        values = {self.key: self.scalar.read_node(node, what, check)}
        if len(check.problems) > before:
            return None
        return self.mapping.finish(values, node, what, check) if self.mapping.finish else values


@lru_cache(maxsize=16)  # a text of many MiB is made and held once, however many files have it
def _repeat_text(unit: str, size: int) -> str:
    """Give this number of bytes of a text that is repeated, without a piece of a character at the end."""
    encoded = unit.encode()
    return (encoded * (size // len(encoded) + 1))[:size].decode(errors="ignore")


def read_text_value(values: dict[str, Any], *_: object) -> str:
    """Give a text, or one that is repeated."""
    return str(values["text"]) if "text" in values else _repeat_text(values["repeat"], values["size"])


LONG_TEXT_TYPE = EitherType(
    TextType(),
    FieldsType(
        (
            Key("repeat", TextType(may_be_empty=False), "a text that is repeated", required=True),
            Key("size", SizeType(high=MAX_TEXT_BYTES), "until it is that long", required=True),
        ),
        finish=read_text_value,
    ),
    key="text",
)
"""A text that may be too long to be written."""
