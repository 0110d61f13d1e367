"""JSON text as the real CLIs print it: an object on one line, or over many, and a time of day. Knows no dialect.

The C encoder alone, since the `json` package loads `re`.
"""

from __future__ import annotations

import _json
import time


def _raise_no_json_form(value: object) -> object:
    raise TypeError(f"{value!r} has no JSON form")


_encode_compact_json = _json.make_encoder(
    None, _raise_no_json_form, _json.encode_basestring, None, ":", ",", False, False, True
)
_encode_spaced_json = _json.make_encoder(
    None, _raise_no_json_form, _json.encode_basestring, None, ": ", ", ", False, False, True
)


def encode_json_line(value: object) -> bytes:
    """Give one JSON line without its end."""
    return "".join(_encode_compact_json(value, 0)).encode()


def encode_spaced_json(value: object) -> str:
    """Give JSON on one line, with a blank after each colon and comma."""
    return "".join(_encode_spaced_json(value, 0))


def encode_indented_json(value: object, indent: str = "") -> str:
    """Give JSON over many lines, each level two blanks deeper, as JavaScript's `JSON.stringify(value, null, 2)`."""
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        items = [f"{_json.encode_basestring(key)}: {encode_indented_json(value[key], deeper)}" for key in value]
        return "{\n" + deeper + f",\n{deeper}".join(items) + "\n" + indent + "}"
    if isinstance(value, list) and value:
        items = [encode_indented_json(item, deeper) for item in value]
        return "[\n" + deeper + f",\n{deeper}".join(items) + "\n" + indent + "]"
    return "".join(_encode_compact_json(value, 0))


def encode_timestamp(unix_ms: int) -> str:
    """Give a time of day as JavaScript writes it."""
    seconds, milliseconds = divmod(unix_ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03}Z"
