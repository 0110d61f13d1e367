"""Keeps secrets out of recordings: puts placeholders of the same length in their places, in every form.

First the redactor reads everything (`learn_secrets`), then everything is redacted: what one place gives away as a
secret, such as an option, is replaced wherever it stands. Each redaction is reported by kind and placeholder, never by
value.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from pytest_agentproc.capture.secrets._rules import (
    MIN_SECRET_BYTES,
    find_secrets,
    find_wrapped_secrets,
    is_secret_name,
    is_unlikely_secret,
)
from pytest_agentproc.capture.secrets._views import (
    TextView,
    decode_base64_texts,
    find_continued_texts,
    join_text_pieces,
    list_unescaped_views,
    strip_colours_and_line_breaks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


def list_encoded_forms(value: bytes) -> set[bytes]:
    """Give the forms in which a value may be read: as it is, escaped, with its escapes resolved, in base64 and hex."""
    text = value.decode(errors="surrogateescape")
    found = {value, value.hex().encode(), value.hex().upper().encode()}
    with_json = [text]
    for _ in range(2):
        with_json += [json.dumps(form, ensure_ascii=ascii_)[1:-1] for form in with_json for ascii_ in (True, False)]
    safe = [*with_json, quote(value, safe=""), quote(value), quote_plus(value), quote(value, safe="").lower()]
    found.update(form.encode(errors="surrogateescape") for form in safe)
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + value).rstrip(b"=")
        inner = whole[-(-8 * shift // 6) : len(whole) - (1 if (shift + len(value)) % 3 else 0)]
        found |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    for layer in list_unescaped_views(TextView.from_bytes(value)):
        found.add(layer.text)
        if (flat := strip_colours_and_line_breaks(layer, joins_lines=True)) is not None:
            found.add(flat.text)
    return {form for form in found if len(form) >= MIN_SECRET_BYTES}


_MAX_PREFIXES_SEARCHED_SINGLY = 64
"""So many beginnings of forms are looked for one after the other; more are looked up at each place of the text."""
_MAX_INDEXED_FORM_BYTES = 1024
_MASKED_RUN_PATTERN = re.compile(rb"\x01+")


@dataclass
class RedactedSecret:
    """The report about one secret.

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
        self._known: dict[bytes, RedactedSecret] = {}
        self._forms: dict[bytes, RedactedSecret] = {}
        self._sizes: dict[bytes, list[int]] = {}
        self._long: dict[bytes, list[tuple[bytes, RedactedSecret]]] = {}
        self.too_short: list[str] = []
        """Variables with telling names whose values are too short to be found in what is printed."""
        for name, value in (env or {}).items():
            if is_secret_name(name) and value:
                data = value.encode(errors="surrogateescape")
                if is_unlikely_secret(data):
                    self.too_short.append(name)
                else:
                    self._add_secret(data, f"value of {name}")
            else:
                self.learn_secrets(value.encode(errors="surrogateescape"))

    @property
    def redacted_secrets(self) -> list[RedactedSecret]:
        """The replacements so far, in the order in which they were found."""
        return [secret for secret in self._known.values() if secret.places]

    def learn_secrets(self, data: bytes) -> None:
        """Look for secrets in every reading: escaped, coloured, in base64, cut by lines, in the pieces of a dialect."""
        for layer in _list_views_to_search(TextView.from_bytes(data), whole=True):
            found = [(layer, secret) for secret in find_secrets(layer.text)]
            if (plain := strip_colours_and_line_breaks(layer, joins_lines=False)) is not None:
                found += [(plain, secret) for secret in find_secrets(plain.text)]
            if (joined := strip_colours_and_line_breaks(layer, joins_lines=True)) is not None:
                found += [(joined, secret) for secret in find_wrapped_secrets(joined.text, joined.line_join_offsets)]
            for view, (kind, start, end) in found:
                self._add_secret(view.text[start:end], kind)
            for text in decode_base64_texts(layer.text):
                self.learn_secrets(text)

    def _add_secret(self, value: bytes, kind: str) -> None:
        if value in self._known or value in self._forms:
            return
        secret = self._known[value] = RedactedSecret(f"redacted{len(self._known) + 1}", kind)
        for form in list_encoded_forms(value):
            if form not in self._forms:
                self._forms[form] = secret
                self._index_secret_form(form, secret)

    def _index_secret_form(self, form: bytes, secret: RedactedSecret) -> None:
        """Have a form found: a short one by its size, a long one by comparing, as a copy of it would cost too much."""
        sizes = self._sizes.setdefault(form[:MIN_SECRET_BYTES], [])
        if len(form) > _MAX_INDEXED_FORM_BYTES:
            insort(self._long.setdefault(form[:MIN_SECRET_BYTES], []), (form, secret), key=lambda pair: -len(pair[0]))
        elif len(form) not in sizes:
            insort(sizes, len(form), key=lambda size: -size)

    def redact_bytes(self, data: bytes, place: str) -> bytes:
        """Give the bytes with every secret replaced; they are as many as before, and their lines end where they did.

        Args:
            data: the whole of it: a secret that is cut in two by its end is not seen.
            place: the place that is reported, such as `stdout`.
        """
        if not self._forms:
            return data
        covered = _RedactionMask(data)
        for ranges, secret in self._find_secret_spans(data):
            covered.mask_ranges(ranges, secret)
        for source, target, size in find_continued_texts(data):
            covered.copy_mask_to_text(source, target, size)
        for secret in covered.secret_by_place.values():
            secret.places[place] += 1
        return bytes(covered.data)

    def redact_chunks(self, chunks: Sequence[bytes], place: str) -> list[bytes]:
        """Give the chunks of one stream redacted, each as long as before: a secret may be cut by the chunks."""
        whole, at, result = self.redact_bytes(b"".join(chunks), place), 0, []
        for chunk in chunks:
            result.append(whole[at : at + len(chunk)])
            at += len(chunk)
        return result

    def redact_text(self, text: str, place: str) -> str:
        """Give a text redacted."""
        self.learn_secrets(text.encode(errors="surrogateescape"))
        return self.redact_bytes(text.encode(errors="surrogateescape"), place).decode(errors="surrogateescape")

    def redact_argv(self, argv: Sequence[str], place: str) -> list[str]:
        """Give the words of a command line redacted; an option's value may be the next word."""
        return self.redact_text("\0".join(argv), place).split("\0")

    def _find_secret_spans(self, data: bytes) -> list[tuple[list[tuple[int, int]], RedactedSecret]]:
        """Find what is known in every reading: its ranges in the data, the longest first."""
        found: dict[tuple[tuple[int, int], ...], RedactedSecret] = {}
        for layer in _list_views_to_search(TextView.from_bytes(data)):
            for view in (layer, strip_colours_and_line_breaks(layer, joins_lines=True)):
                for start, end in self._find_known_forms(view.text) if view is not None else ():
                    assert view is not None
                    found.setdefault(tuple(view.find_source_ranges(start, end)), self._forms[view.text[start:end]])
        spans = [(sum(end - start for start, end in ranges), list(ranges), secret) for ranges, secret in found.items()]
        spans.sort(key=lambda span: (-span[0], span[1]))
        return [(ranges, secret) for _size, ranges, secret in spans]

    def _find_known_forms(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield the longest known form at each place; a secret that overlaps itself counts once."""
        ends: dict[int, int] = {}
        for at in self._find_form_starts(text):
            for end, secret in self._find_form_ends_at(text, at, ends):
                if ends.get(id(secret), 0) <= at:
                    ends[id(secret)] = end
                    yield at, end
                    break

    def _find_form_ends_at(self, text: bytes, at: int, ends: Mapping[int, int]) -> Iterator[tuple[int, RedactedSecret]]:
        """Yield the ends of all forms that begin at a place, the longest first, but for long ones that overlap."""
        head = text[at : at + MIN_SECRET_BYTES]
        for form, secret in self._long.get(head, ()):
            if ends.get(id(secret), 0) <= at and text.startswith(form, at):
                yield at + len(form), secret
        for size in self._sizes[head]:
            if (found := self._forms.get(text[at : at + size])) is not None:
                yield at + size, found

    def _find_form_starts(self, text: bytes) -> Iterable[int]:
        """Give where a form may begin, in order. Few beginnings are looked for one by one, many at each place."""
        if len(self._sizes) > _MAX_PREFIXES_SEARCHED_SINGLY:
            return (
                at for at in range(len(text) - MIN_SECRET_BYTES + 1) if text[at : at + MIN_SECRET_BYTES] in self._sizes
            )
        return sorted(found.start() for head in self._sizes for found in re.finditer(b"(?=%b)" % re.escape(head), text))


def _list_views_to_search(data: TextView, *, whole: bool = False) -> Iterator[TextView]:
    """Yield the data and its joined pieces, each also with its escapes resolved."""
    yield from list_unescaped_views(data)
    for pieces in join_text_pieces(data, whole=whole):
        yield from list_unescaped_views(pieces)


class _RedactionMask:
    """Put placeholders on data, each byte of it once; line breaks stay."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self.secret_by_place: dict[int, RedactedSecret] = {}
        """Of which secret the placeholder is that begins at a place."""
        self._mask = bytearray(len(data))

    def mask_ranges(self, ranges: Sequence[tuple[int, int]], secret: RedactedSecret) -> None:
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
        self.secret_by_place[places[0]] = secret
        filling = secret.placeholder.encode()[: len(places)].ljust(len(places), b"x")
        for place, byte in zip(places, filling, strict=True):
            self.data[place] = byte
            self._mask[place] = 1

    def copy_mask_to_text(self, source: int, target: int, size: int) -> None:
        """Put on a text what stands on the text that continues it."""
        for run in _MASKED_RUN_PATTERN.finditer(self._mask, source, source + size):
            start, end = run.start() - source + target, run.end() - source + target
            for place in [at for at in range(start, end) if at in self.secret_by_place]:
                del self.secret_by_place[place]
            self.secret_by_place[start] = self.secret_by_place.get(run.start()) or self._find_secret_at(run.start())
            self.data[start:end] = self.data[run.start() : run.end()]
            self._mask[start:end] = run[0]

    def _find_secret_at(self, place: int) -> RedactedSecret:
        """Give the secret of the placeholder that covers a place, which began before it."""
        return self.secret_by_place[next(at for at in range(place, -1, -1) if at in self.secret_by_place)]
