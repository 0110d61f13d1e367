"""Replaces secrets by placeholders of the same length. Owns which secret has which; knows no stream and no file.

First everything is shown to it (`learn`), then everything is redacted: what one place gives away as a secret, such as
an option, is replaced wherever it stands. What was redacted is told by kind and placeholder, never by value.
"""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_agentproc.capture._patterns import SHORTEST, forms, is_dull, is_telling, secrets_in, wrapped_in
from pytest_agentproc.capture._pieces import growing_texts, joined_pieces
from pytest_agentproc.capture._views import View, flattened, layers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Redacted", "Redactor"]

_FEW = 64
"""So many beginnings of forms are looked for one after the other; more are looked up at each place of the text."""
_LONG = 1024
_MASKED = re.compile(rb"\x01+")


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
        self._sizes: dict[bytes, list[int]] = {}
        self._long: dict[bytes, list[tuple[bytes, Redacted]]] = {}
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
        """Look for secrets in every reading: escaped, coloured, cut by lines, in pieces in the lines of a dialect."""
        for layer in _layers(View.plain(data), whole=True):
            found = [(layer, one) for one in secrets_in(layer.text)]
            if (plain := flattened(layer, joins_lines=False)) is not None:
                found += [(plain, one) for one in secrets_in(plain.text)]
            if (joined := flattened(layer, joins_lines=True)) is not None:
                found += [(joined, one) for one in wrapped_in(joined.text, joined.joints)]
            for view, (kind, start, end) in found:
                self._know(view.text[start:end], kind)

    def _know(self, value: bytes, kind: str) -> None:
        if value in self._known or value in self._forms:
            return
        told = self._known[value] = Redacted(f"redacted{len(self._known) + 1}", kind)
        for form in forms(value):
            if form not in self._forms:
                self._forms[form] = told
                self._index(form, told)

    def _index(self, form: bytes, told: Redacted) -> None:
        """Have a form found: a short one by its size, a long one by comparing, as a copy of it would cost too much."""
        sizes = self._sizes.setdefault(form[:SHORTEST], [])
        if len(form) > _LONG:
            insort(self._long.setdefault(form[:SHORTEST], []), (form, told), key=lambda one: -len(one[0]))
        elif len(form) not in sizes:
            insort(sizes, len(form), key=lambda size: -size)

    def redact(self, data: bytes, place: str) -> bytes:
        """Give the bytes with every secret replaced; they are as many as before, and their lines end where they did.

        Args:
            data: the whole of it: a secret that is cut in two by its end is not seen.
            place: what is told of where it stood, such as `stdout`.
        """
        if not self._forms:
            return data
        covered = _Covered(data)
        for ranges, told in self._spans(data):
            covered.cover(ranges, told)
        for source, target, size in growing_texts(data):
            covered.repeat(source, target, size)
        for told in covered.told.values():
            told.places[place] += 1
        return bytes(covered.data)

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

    def _spans(self, data: bytes) -> list[tuple[list[tuple[int, int]], Redacted]]:
        """Find what is known in every reading: its ranges in the data, the longest first."""
        found: dict[tuple[tuple[int, int], ...], Redacted] = {}
        for layer in _layers(View.plain(data)):
            for view in (layer, flattened(layer, joins_lines=True)):
                for start, end in self._known_in(view.text) if view is not None else ():
                    assert view is not None
                    found.setdefault(tuple(view.ranges(start, end)), self._forms[view.text[start:end]])
        spans = [(sum(end - start for start, end in ranges), list(ranges), told) for ranges, told in found.items()]
        spans.sort(key=lambda one: (-one[0], one[1]))
        return [(ranges, told) for _size, ranges, told in spans]

    def _known_in(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield the longest known form at each place; a secret that overlaps itself counts once."""
        ends: dict[int, int] = {}
        for at in self._places(text):
            for end, told in self._matches(text, at, ends):
                if ends.get(id(told), 0) <= at:
                    ends[id(told)] = end
                    yield at, end
                    break

    def _matches(self, text: bytes, at: int, ends: Mapping[int, int]) -> Iterator[tuple[int, Redacted]]:
        """Yield the ends of all forms that begin at a place, the longest first, but for long ones that overlap."""
        head = text[at : at + SHORTEST]
        for form, told in self._long.get(head, ()):
            if ends.get(id(told), 0) <= at and text.startswith(form, at):
                yield at + len(form), told
        for size in self._sizes[head]:
            if (found := self._forms.get(text[at : at + size])) is not None:
                yield at + size, found

    def _places(self, text: bytes) -> Iterable[int]:
        """Give where a form may begin, in order. Few beginnings are looked for one by one, many at each place."""
        if len(self._sizes) > _FEW:
            return (at for at in range(len(text) - SHORTEST + 1) if text[at : at + SHORTEST] in self._sizes)
        return sorted(found.start() for head in self._sizes for found in re.finditer(b"(?=%b)" % re.escape(head), text))


def _layers(data: View, *, whole: bool = False) -> Iterator[View]:
    """Yield the data and what its pieces say together, and what both say when their escapes are resolved."""
    yield from layers(data)
    for pieces in joined_pieces(data, whole=whole):
        yield from layers(pieces)


class _Covered:
    """Put placeholders on data, each byte of it once; line breaks stay."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.told: dict[int, Redacted] = {}
        """Of which secret the placeholder is that begins at a place."""
        self._mask = bytearray(len(data))

    def cover(self, ranges: Sequence[tuple[int, int]], told: Redacted) -> None:
        """Put a placeholder on what is free of these ranges; a secret shorter than its name leaves the name's start."""
        places = [
            at
            for start, end in ranges
            if 0 in self._mask[start:end]
            for at in range(start, end)
            if not self._mask[at] and self.data[at] not in b"\r\n"
        ]
        if not places:
            return
        self.told[places[0]] = told
        filling = told.placeholder.encode()[: len(places)].ljust(len(places), b"x")
        for place, byte in zip(places, filling, strict=True):
            self.data[place] = byte
            self._mask[place] = 1

    def repeat(self, source: int, target: int, size: int) -> None:
        """Put on a text what stands on the text that continues it."""
        for run in _MASKED.finditer(self._mask, source, source + size):
            start, end = run.start() - source + target, run.end() - source + target
            for place in [at for at in range(start, end) if at in self.told]:
                del self.told[place]
            self.told[start] = self.told.get(run.start()) or self._of(run.start())
            self.data[start:end] = self.data[run.start() : run.end()]
            self._mask[start:end] = run[0]

    def _of(self, place: int) -> Redacted:
        """Give the secret of the placeholder that covers a place, which began before it."""
        return self.told[next(at for at in range(place, -1, -1) if at in self.told)]
