"""Owns how text of anybody becomes HTML: shown as it is, never markup, never more than there is room for."""

from __future__ import annotations

from html import escape

from pytest_agentproc.record._payload import Payload

__all__ = ["Room", "clipped", "payload_text", "safe"]

_KEPT = "\n\t"


class Room:
    """What a page may still spend on text that is not needed to follow it.

    Args:
        size: so many bytes of HTML.
    """

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size

    def takes(self, html: str) -> bool:
        """Spend the size of a text, if there is room for it; say whether there was."""
        size = len(html.encode())
        if size > self.left:
            return False
        self.left -= size
        return True


def safe(text: object) -> str:
    """Make HTML of a text: markup is shown, and so is what cannot be printed or would turn the line around."""
    words = str(text)
    if not words.isprintable():
        words = "".join(one if one.isprintable() or one in _KEPT else _named(one) for one in words)
    return escape(words)


def clipped(text: str, width: int) -> str:
    """Cut a text to a width, with an ellipsis where something is missing."""
    return text if len(text) <= width else text[: width - 1] + "\N{HORIZONTAL ELLIPSIS}"


def payload_text(payload: bytes | Payload, width: int) -> str:
    """Give the beginning of what was written or read, and how much is missing, as text."""
    known = payload.head if isinstance(payload, Payload) else payload
    # Four bytes are at most one character, so this many are enough for the width.
    start = known[: 4 * width].decode(errors="backslashreplace")[:width]
    missing = len(payload) - len(start.encode(errors="replace"))
    return start if missing <= 0 else f"{start}\n\N{HORIZONTAL ELLIPSIS} {len(payload)} bytes in all"


def _named(character: str) -> str:
    return character.encode("unicode_escape").decode() if character <= "\uffff" else "\N{REPLACEMENT CHARACTER}"
