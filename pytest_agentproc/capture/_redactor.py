"""Replaces secrets by placeholders of the same length. Owns which secret has which; knows no stream and no file.

First everything is shown to it (`learn`), then everything is redacted: what one place gives away as a secret, such as
an option, is replaced wherever it stands. What was redacted is told by kind and placeholder, never by value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_agentproc.capture._patterns import forms, is_dull, is_telling, secrets_in
from pytest_agentproc.capture._pieces import joined_pieces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Redacted", "Redactor"]


@dataclass
class Redacted:
    """What is told of one secret.

    Args:
        placeholder: how every placeholder of it begins.
        kind: what gave it away.
        places: how often it stood where.
    """

    placeholder: str
    kind: str
    places: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        places = ", ".join(f"{count} in {place}" for place, count in sorted(self.places.items()))
        return f"{self.placeholder}: {self.kind} ({places})"


class Redactor:
    """Know secrets, and keep them out of what is written.

    Args:
        env: the environment that the recorded program is given; values of telling names are secrets from the start.
    """

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._known: dict[bytes, Redacted] = {}
        self._forms: dict[bytes, Redacted] = {}
        self.too_short: list[str] = []
        """Variables with telling names whose values are too short to be found in what is printed."""
        for name, value in (env or {}).items():
            if is_telling(name) and value:
                data = value.encode(errors="surrogateescape")
                if is_dull(data):
                    self.too_short.append(name)
                else:
                    self._know(data, f"value of {name}")
            else:
                self.learn(value.encode(errors="surrogateescape"))

    @property
    def redacted(self) -> list[Redacted]:
        """What was replaced so far, in the order in which it was found."""
        return [one for one in self._known.values() if one.places]

    def learn(self, data: bytes) -> None:
        """Look for secrets, also for such as stand in pieces in the lines of a dialect."""
        for kind, start, end in secrets_in(data):
            self._know(data[start:end], kind)
        for text, _places in joined_pieces(data):
            for kind, start, end in secrets_in(text):
                self._know(text[start:end], kind)

    def _know(self, value: bytes, kind: str) -> None:
        if value in self._known or value in self._forms:
            return
        told = self._known[value] = Redacted(f"redacted{len(self._known) + 1}", kind)
        for form in forms(value):
            self._forms.setdefault(form, told)

    def redact(self, data: bytes, place: str) -> bytes:
        """Give the bytes with every secret replaced; they are as many as before, and their lines end where they did.

        Args:
            data: the whole of it: a secret that is cut in two by its end is not seen.
            place: what is told of where it stood, such as `stdout`.
        """
        changed = bytearray(data)
        for text, places in joined_pieces(data):
            for start, end, told in self._spans(text):
                told.places[place] += 1
                _fill(changed, places[start:end], told.placeholder)
        for start, end, told in self._spans(bytes(changed)):
            told.places[place] += 1
            _fill(changed, [at for at in range(start, end) if changed[at] not in b"\r\n"], told.placeholder)
        return bytes(changed)

    def redact_chunks(self, chunks: Sequence[bytes], place: str) -> list[bytes]:
        """Give the chunks of one stream redacted, each as long as before: a secret may be cut by the chunks."""
        whole, at, result = self.redact(b"".join(chunks), place), 0, []
        for chunk in chunks:
            result.append(whole[at : at + len(chunk)])
            at += len(chunk)
        return result

    def text(self, text: str, place: str) -> str:
        """Give a text redacted."""
        self.learn(text.encode(errors="surrogateescape"))
        return self.redact(text.encode(errors="surrogateescape"), place).decode(errors="surrogateescape")

    def words(self, argv: Sequence[str], place: str) -> list[str]:
        """Give the words of a command line redacted; an option's value may be the next word."""
        return self.text("\0".join(argv), place).split("\0")

    def _spans(self, data: bytes) -> list[tuple[int, int, Redacted]]:
        """Find what is known, in order; the longest where they overlap."""
        found: list[tuple[int, int, Redacted]] = []
        for form, told in self._forms.items():
            at = data.find(form)
            while at >= 0:
                found.append((at, at + len(form), told))
                at = data.find(form, at + len(form))
        spans: list[tuple[int, int, Redacted]] = []
        for span in sorted(found, key=lambda one: (one[0] - one[1], one[0])):
            if all(span[1] <= start or end <= span[0] for start, end, _ in spans):
                spans.append(span)
        return sorted(spans, key=lambda one: one[0])


def _fill(data: bytearray, places: Sequence[int], name: str) -> None:
    """Put a placeholder on these places; a secret shorter than its name leaves the name's beginning."""
    filling = name.encode()[: len(places)].ljust(len(places), b"x")
    for place, byte in zip(places, filling, strict=True):
        data[place] = byte
