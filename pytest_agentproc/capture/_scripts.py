"""Makes a script out of moments. Owns the order of steps and the pauses between them; knows no dialect.

Pauses are rounded to two digits that count, and those under 50 ms are dropped; what is lost goes into the next, so that
a step is never far from where it was.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from pytest_agentproc.capture._moments import NOTICED
from pytest_agentproc.capture._quoting import flow, rounded, seconds, text

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Script"]

_INLINE_BYTES = 4096
_FEW_LINES = 12


class Script:
    """Steps as they are written.

    Args:
        keep: takes bytes that are too many to stand in the file, and gives the name of a file beside it.
        says: whether plain lines are said; else they are raw.
    """

    def __init__(self, keep: Callable[[bytes], str], *, says: bool) -> None:
        self.steps: list[str] = []
        self.now = 0
        self._keep = keep
        self._says = says

    def wait_until(self, at: int) -> None:
        """Be silent until an instant, if that is a noticeable time."""
        gap = rounded(at - self.now) if at > self.now else 0
        if gap >= NOTICED:
            self.steps.append(f"silence: {seconds(gap)}")
            self.now += gap

    def add(self, step: str, at: int) -> None:
        """Add a step at its instant."""
        self.wait_until(at)
        self.steps.append(step)

    def raw(self, data: bytes, at: int, stream: str = "stdout") -> None:
        """Add bytes as they stand."""
        self.wait_until(at)
        lines = data.split(b"\n")
        is_plain = _is_printable(data)
        if self._says and stream == "stdout" and is_plain and not lines[-1] and len(lines) <= _FEW_LINES:
            self.steps += [f"say: {text(line.decode())}" for line in lines[:-1]]
            return
        to = {"to": stream} if stream != "stdout" else {}
        if len(data) > _INLINE_BYTES:
            form = {"file": self._keep(data)}
        elif is_plain:
            form = {"text": data.decode()}
        else:
            form = {"base64": base64.b64encode(data).decode()}
        self.steps.append(f"raw: {flow(form['text'] if [*form] == ['text'] and not to else {**form, **to})}")


def _is_printable(data: bytes) -> bool:
    try:
        shown = data.decode()
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter in "\n\t\r\x1b" for letter in shown)
