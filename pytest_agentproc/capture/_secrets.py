"""Secrets in recordings: what they look like, and placeholders of the same length.

First the redactor reads everything (`learn_secrets`), then everything is redacted: what one place gives away as a
secret, such as an option, is replaced wherever it stands. Each redaction is reported by kind and placeholder, never by
value.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from pytest_agentproc.capture._views import (
    TextView,
    find_continued_texts,
    join_text_pieces,
    list_unescaped_views,
    strip_colours_and_line_breaks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


MIN_SECRET_BYTES = 6
"""A value with fewer bytes is no secret that can be told from other words."""

_PREFIXED_SECRET_PATTERNS = {
    "Anthropic key": rb"sk-ant-[\w-]{16,}",
    "OpenAI-like key": rb"sk-[\w-]{16,}",
    "Stripe key": rb"[sr]k_(?:live|test)_\w{10,}|whsec_[\w+/=]{16,}",
    "GitHub token": rb"gh[pousr]_\w{20,}|github_pat_\w{20,}",
    "GitLab token": rb"gl(?:pat|ptt|dt|rt|cbt|soat)-[\w.-]{16,}",
    "AWS key id": rb"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",
    "Google key": rb"AIza[\w-]{30,}|GOCSPX-[\w-]{20,}|ya29\.[\w.-]{20,}|1//0[\w-]{20,}",
    "Slack token": rb"xox[a-z]-[\w.-]{10,}|xapp-[\w-]{10,}|xoxe\.[\w.-]{10,}",
    "npm token": rb"npm_\w{30,}",
    "PyPI token": rb"pypi-[\w-]{16,}",
    "Hugging Face token": rb"hf_\w{20,}|api_org_\w{20,}",
    "SendGrid key": rb"SG\.[\w-]{16,}\.[\w-]{16,}",
    "Twilio key": rb"SK[0-9a-f]{32}",
    "Telegram token": rb"\d{8,10}:AA[\w-]{30,}",
    "Discord token": rb"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}",
    "DigitalOcean token": rb"do[opr]_v1_[0-9a-f]{32,}",
    "Groq key": rb"gsk_\w{20,}",
    "xAI key": rb"xai-\w{20,}",
    "Replicate token": rb"r8_\w{20,}",
    "Perplexity key": rb"pplx-\w{20,}",
    "Fireworks key": rb"fw_\w{20,}",
    "Linear key": rb"lin_(?:api|oauth)_\w{20,}",
    "Notion token": rb"ntn_\w{20,}|secret_\w{40,}",
    "Shopify token": rb"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    "Databricks token": rb"dapi[0-9a-f]{32}",
    "Vault token": rb"hv[sbr]\.[\w-]{20,}",
    "Doppler token": rb"dp\.(?:pt|st|sa|ct|scim|audit)\.[\w.-]{20,}",
    "Mailgun key": rb"key-[0-9a-f]{32}",
    "age key": rb"AGE-SECRET-KEY-1[0-9A-Z]{20,}",
    "JSON web token": rb"eyJ(?<!\weyJ)[\w-]{8,2000}\.eyJ[\w-]{8,}(?:\.[\w-]*)?",
}
_SECRET_NAME_ALTERNATIVES = (
    rb"api[_-]?key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|private[_-]?key|access[_-]?key"
    rb"|account[_-]?key|auth[_-]?key|master[_-]?key|encryption[_-]?key|signing[_-]?key|session[_-]?key"
)
_WORDS_BEFORE_OPTION_PATTERN = rb"(?:[^\r\n]{0,400}?[\s\"'\x00])?"
"""What may stand between a command and its option."""
_WORD_SEPARATOR_PATTERN = rb"[\s\"',=\x00]{1,16}"
"""What separates two words of a command line in a shell, in a list of JSON, and where the kernel gives them."""
_MIXED_CHARACTERS_LOOKAHEAD = rb"(?=[^\s\"']*?[0-9])(?=[^\s\"']*?[a-z])(?=[^\s\"']*?[A-Z])"
_SPOKEN_SECRET_NAME_PATTERN = rb"(?i:\b(?:password|passphrase|passcode|token|secret|api[ _-]?key|access[ _-]?key))"
_SECRET_PATTERNS_BY_CONTEXT = {
    "authorization header": rb"(?i:authorization\\*[\"']?\s*[:=]\s*\\*[\"']?)((?:[A-Za-z]+ )?[^\s\"'\\,;\x00]{6,})",
    "bearer token": rb"[Bb]earer[ +]([\w.~+/=-]{6,})",
    "basic credentials": rb"[Bb]asic (?=\w[\w+/=-]*?[A-Z0-9])([\w+/=-]{8,})",
    "cookie": rb"(?i:cookie: ?)([^\s=;\"'\x00]{1,200}=[^\r\n\"'\x00]{3,})",
    "URL credentials": rb"://[^\s/:@\"'\\\x00]*:([^\s/@\"'\\\x00]{3,})@",
    "URL parameter": rb"[?&](?i:sig|signature|x-amz-signature|x-amz-security-token|code|key|auth)"
    rb"=([^\s&#\"'\\\x00]{6,})",
    "Slack webhook": rb"hooks\.slack\.com/(?:services|workflows)/([\w/]{20,})",
    "cookie in JSON": rb"(?i:\"cookies?)\"\s{0,64}:\s{0,64}\"([^\"=\\\r\n]{1,100}=[^\"\\\r\n]{3,})",
    "registry login": rb"\b_?auth\"?\s{0,64}[:=]\s{0,64}\"?" + _MIXED_CHARACTERS_LOOKAHEAD + rb"([\w+/=-]{12,})",
    "login of curl": rb"\b(?:curl|wget)\b"
    + _WORDS_BEFORE_OPTION_PATTERN
    + rb"(?:-\w{0,8}[uU]|--(?:proxy-)?user)"
    + _WORD_SEPARATOR_PATTERN
    + rb"?"
    rb"[^\s:/\"'\x00]{1,100}:(?!//)([^\s\"'\x00]{6,})",
    "password of a database": rb"\b(?:mysql\w*|mariadb[\w-]*)\b"
    + _WORDS_BEFORE_OPTION_PATTERN
    + rb"-p[\"']?([^\s\"'\x00]{6,})",
    "password of a command": rb"(?>\bsshpass\b|\bmongo\w*|\b(?:docker|podman|helm|az|oc|cf)\b"
    + _WORDS_BEFORE_OPTION_PATTERN
    + rb"login\b)"
    + _WORDS_BEFORE_OPTION_PATTERN
    + rb"(?<=[\s\"'\x00])-p"
    + _WORD_SEPARATOR_PATTERN
    + rb"?([^\s\"'\x00]{6,})",
    "password of redis-cli": rb"\bredis-cli\b"
    + _WORDS_BEFORE_OPTION_PATTERN
    + rb"-a"
    + _WORD_SEPARATOR_PATTERN
    + rb"([^\s\"'\x00]{6,})",
    "password of openssl": rb"-pass\w{0,8}" + _WORD_SEPARATOR_PATTERN + rb"pass:([^\s\"'\x00]{6,})",
    "password on a pipe": rb"\becho \"?([^\s\"'|]{6,})\"? ?\| ?[^\r\n|]{0,100}?(?:--password-stdin|\bsudo -S|passwd)",
    "netrc": rb"\b(?:machine\s{1,64}\S{1,200}|default)\s{1,64}(?:(?:login|account)\s{1,64}\S{1,200}\s{1,64}){0,2}"
    rb"password\s{1,64}(\S{6,})",
    "pgpass": rb"(?m:^)[\w.*-]{1,100}:(?:\d{4,5}|\*):(?!\d+:)[^:\s]{1,100}:[^:\s]{1,100}:([^\s:]{6,})(?m:$)",
    "said password": _SPOKEN_SECRET_NAME_PATTERN
    + rb" (?:is|was):? {1,4}[\"'`]?"
    + _MIXED_CHARACTERS_LOOKAHEAD
    + rb"([^\s\"'`,;]{8,})",
}
_PATTERN_AND_GROUP_BY_KIND = {name: (re.compile(look), 0) for name, look in _PREFIXED_SECRET_PATTERNS.items()}
_PATTERN_AND_GROUP_BY_KIND |= {name: (re.compile(look), 1) for name, look in _SECRET_PATTERNS_BY_CONTEXT.items()}
_NO_REQUIRED_WORD = (b"",)
_REQUIRED_WORDS_BY_KIND: dict[str, tuple[bytes, ...]] = {
    "authorization header": (b"authorization",),
    "bearer token": (b"bearer",),
    "basic credentials": (b"basic",),
    "cookie": (b"cookie",),
    "URL credentials": (b"://",),
    "Slack webhook": (b"hooks.slack",),
    "JSON web token": (b"eyj",),
    "cookie in JSON": (b"cookie",),
    "registry login": (b"auth",),
    "login of curl": (b"curl", b"wget"),
    "password of a database": (b"mysql", b"mariadb"),
    "password of a command": (b"sshpass", b"mongo", b"login"),
    "password of redis-cli": (b"redis-cli",),
    "password of openssl": (b"pass:",),
    "password on a pipe": (b"echo",),
    "netrc": (b"machine", b"default"),
    "pgpass": (b":",),
    "said password": (b" is", b" was"),
    "Telegram token": (b":aa",),
}
"""Words without which there is none of a kind; they are looked for first, as that costs next to nothing."""
_SECRET_NAME_PATTERN = re.compile(_SECRET_NAME_ALTERNATIVES)
_DOUBLE_QUOTED_VALUE_PATTERN = rb"\"((?:[^\"\\\r\n]++|\\[\x00-\xff])++)(?:\"|\Z)"
_QUOTED_VALUE_PATTERN = _DOUBLE_QUOTED_VALUE_PATTERN + rb"|'((?:[^'\\\r\n]++|\\[\x00-\xff])++)(?:'|\Z)"
_UNQUOTED_VALUE_PATTERN = (
    rb"""["']?((?:[^\s"'`\\&,;<>()\x00-\x1f]++|[&;](?![\w.-]{1,40}=)(?=[^\s"'`])|,(?![\w.-]{1,40}[=:])(?=[^\s"'`])"""
    rb"""|[<>()](?=[^\s"'`,;]))+)"""
)
"""A value without quotes: `&`, `,` and `;` end it before the next assignment; a bracket at its end is no part of it.

The group as a whole is not repeated possessively, as CPython before 3.11.5 skips the look-aheads in such a group.
"""
_ANY_VALUE_PATTERN = rb"(?:" + _QUOTED_VALUE_PATTERN + rb"|" + _UNQUOTED_VALUE_PATTERN + rb")"
_RANDOM_LOOKING_LOOKAHEAD = rb"(?=[^\s\"']*?[0-9])(?=[^\s\"']*?[A-Za-z])(?!-)"
_JSON_KEY_VALUE_PATTERN = re.compile(rb"\"\s{0,64}:\s{0,64}" + _DOUBLE_QUOTED_VALUE_PATTERN)
_ASSIGNED_VALUE_PATTERN = re.compile(rb"[\"']?[ \t]*+(?::=|=>|[=:])[ \t]*+" + _ANY_VALUE_PATTERN)
_OPTION_VALUE_PATTERN = re.compile(rb"[ \t=\x00]++" + _ANY_VALUE_PATTERN)
_OPTION_PREFIX_PATTERN = re.compile(rb"(?<![\w-])--?[\w-]*\Z")
_NESTED_OBJECT_VALUE_PATTERN = re.compile(
    rb"s?\"\s{0,64}:\s{0,64}\{\s{0,64}\"(?:value|raw|plain|data)\"\s{0,64}:\s{0,64}" + _DOUBLE_QUOTED_VALUE_PATTERN
)
_LIST_ITEM_VALUE_PATTERN = re.compile(
    rb"s?\"\s{0,64}:\s{0,64}\[\s{0,64}\"" + _RANDOM_LOOKING_LOOKAHEAD + rb"([^\s\"\\]{6,})\""
)
_NAME_VALUE_PAIR_PATTERN = re.compile(
    rb"([\"'])\s{0,64},\s{0,64}[\"']" + _RANDOM_LOOKING_LOOKAHEAD + rb"([^\s\"'\\]{6,})\1"
)
_SEPARATE_VALUE_FIELD_PATTERN = re.compile(
    rb"[\"']?\s{0,64},?\s{0,64}[\"']?(?:[vV]alue|VALUE)[\"']?\s{0,64}[:=]\s{0,64}(?:"
    + _QUOTED_VALUE_PATTERN
    + rb"|"
    + _RANDOM_LOOKING_LOOKAHEAD
    + _UNQUOTED_VALUE_PATTERN
    + rb")"
)
_XML_ELEMENT_VALUE_PATTERN = re.compile(rb"(?:\s[^<>]{0,200})?>\s{0,64}([^\s<>]{6,})\s{0,64}</")
_XML_ELEMENT_PREFIX_PATTERN = re.compile(rb"<[\w:.-]*\Z")
_XML_NAMED_ENTRY_PATTERN = re.compile(
    rb"(?:[\"'][^<>]{0,100}>|</key>\s{0,64}<string>)\s{0,64}" + _RANDOM_LOOKING_LOOKAHEAD + rb"([^\s<>]{6,})\s{0,64}</"
)
_PATTERNS_AFTER_SECRET_NAME: tuple[tuple[str, re.Pattern[bytes], re.Pattern[bytes] | None], ...] = (
    ("value of a telling key", _JSON_KEY_VALUE_PATTERN, None),
    ("value of a telling name", _ASSIGNED_VALUE_PATTERN, None),
    ("value of a telling option", _OPTION_VALUE_PATTERN, _OPTION_PREFIX_PATTERN),
    ("value of a telling element", _XML_ELEMENT_VALUE_PATTERN, _XML_ELEMENT_PREFIX_PATTERN),
    *(("value within a telling key", look, None) for look in (_NESTED_OBJECT_VALUE_PATTERN, _LIST_ITEM_VALUE_PATTERN)),
    *(
        ("value beside a telling name", look, None)
        for look in (_NAME_VALUE_PAIR_PATTERN, _SEPARATE_VALUE_FIELD_PATTERN, _XML_NAMED_ENTRY_PATTERN)
    ),
)
"""What stands after a telling name, and what stands before it if the value is to be one."""
_CODE_EXPRESSION_PATTERN = re.compile(
    rb"(?:[A-Za-z_]+\.)+[A-Za-z_]+|[A-Za-z_][\w.]*[(\[].*"
    rb"|(?:[\w.]*[_.]|[A-Za-z]*(?=[A-Z]))?(?i:" + _SECRET_NAME_ALTERNATIVES + rb")s?"
)
"""A call, a field, or a variable that is called as its value: `get_token()`, `self.token`, `user_password`."""
_MAX_OPTION_PREFIX_BYTES = 80
_PRIVATE_KEY_BEGIN_PATTERN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PRIVATE_KEY_END_PATTERN = re.compile(rb"-----END [A-Z0-9 ]{0,60}-----")
_MAX_PRIVATE_KEY_BYTES = 20_000
_PRINTABLE_RUN_PATTERN = re.compile(rb"[\t\r\n\x20-\x7e]{6,}")
_RANDOM_LOOKING_PATTERN = re.compile(rb"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")
_WORD_CHARACTER_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_WORDS_OF_SECRET_NAMES = frozenset(
    (
        *("KEY", "APIKEY", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE", "PWD"),
        *("CREDENTIAL", "CREDENTIALS", "COOKIE", "DSN", "PAT", "JWT"),
    )
)
_LAST_WORDS_OF_SECRET_NAMES = frozenset({"AUTH", "AUTHORIZATION", "WEBHOOK"})
_HARMLESS_VARIABLE_NAMES = frozenset({"PWD", "OLDPWD"})
_HARMLESS_VALUE_PATTERN = re.compile(
    rb"(?i:(?:true|false|none|null)\W*|undefined|default|disabled|enabled|redacted\d*x*|x+|\*+|\.+|<.*|\$.*|%\w+%|\{.*"
    rb"|string|required|optional|process\.env.*|os\.environ.*|(?:bearer|basic|token)(?: [$<{].*)?)"
)


def is_secret_name(name: str) -> bool:
    """Say whether an environment variable's name shows that its value is secret."""
    words = re.split(r"[_\-.]", name.upper())
    return name not in _HARMLESS_VARIABLE_NAMES and (
        not _WORDS_OF_SECRET_NAMES.isdisjoint(words) or words[-1] in _LAST_WORDS_OF_SECRET_NAMES
    )


def is_unlikely_secret(value: bytes) -> bool:
    """Say whether a value is too short, or too common a word, to be a secret; placeholders are."""
    return len(value) < MIN_SECRET_BYTES or _HARMLESS_VALUE_PATTERN.fullmatch(value) is not None


def find_secrets(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield what looks like a secret: its kind, and where it begins and ends. They may overlap."""
    for begin, text in _find_text_runs(data):
        small = text.lower()
        for kind, (look, group) in _PATTERN_AND_GROUP_BY_KIND.items():
            if all(head not in small for head in _REQUIRED_WORDS_BY_KIND.get(kind, _NO_REQUIRED_WORD)):
                continue
            for found in look.finditer(text):
                start, end = found.span(group)
                if not group and start and text[start - 1] in _WORD_CHARACTER_BYTES:
                    continue
                if kind == "authorization header" and _is_code_expression(text, start, end):
                    continue
                if not is_unlikely_secret(text[start:end]) or kind == "URL credentials":
                    yield kind, begin + start, begin + end
        for kind, start, end in (*_find_named_secrets(text, small), *_find_private_keys(text)):
            if not is_unlikely_secret(text[start:end]):
                yield kind, begin + start, begin + end


def _find_named_secrets(text: bytes, small: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the values of telling names: what stands after `password:`, `"token":` or `--secret`."""
    ends = dict.fromkeys(_PATTERNS_AFTER_SECRET_NAME, 0)
    for name in _SECRET_NAME_PATTERN.finditer(small):
        head = text[max(name.start() - _MAX_OPTION_PREFIX_BYTES, 0) : name.start()]
        for row in _PATTERNS_AFTER_SECRET_NAME:
            kind, tail, before = row
            if name.start() < ends[row] or (before is not None and not before.search(head)):
                continue
            if (found := tail.match(text, name.end())) is not None:
                ends[row] = found.end()
                start, end = found.span(found.lastindex or 0)
                if tail is _OPTION_VALUE_PATTERN or not _is_code_expression(text, start, end):
                    yield kind, start, end


def _is_code_expression(text: bytes, start: int, end: int) -> bool:
    """Say whether what stands there without quotes is an expression, whose value is not told."""
    is_bare = text[start - 1] not in b"\"'>"
    return is_bare and (
        text[end : end + 1] in (b"(", b"[") or _CODE_EXPRESSION_PATTERN.fullmatch(text, start, end) is not None
    )


def _find_private_keys(text: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield private keys: to their last line, to the quote that ends their text, or to the end of all."""
    for begin in _PRIVATE_KEY_BEGIN_PATTERN.finditer(text):
        limit = begin.end() + _MAX_PRIVATE_KEY_BYTES
        quote = text.find(b'"', begin.end(), limit)
        last = text.find(b"-----END ", begin.end(), limit if quote < 0 else quote)
        end = _PRIVATE_KEY_END_PATTERN.match(text, last) if last >= 0 else None
        if end is not None:
            yield "private key", begin.start(), end.end()
        elif quote >= 0:
            yield "private key", begin.start(), quote
        elif limit >= len(text):
            yield "private key", begin.start(), len(text)


def find_wrapped_secrets(text: bytes, breaks: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    """Yield secrets with a provider's prefix that the end of a line cuts.

    Args:
        text: the text of the joined lines.
        breaks: where lines were joined. The text after a break is part of a secret only if it looks random.
    """
    joined = set(breaks)
    for kind in _PREFIXED_SECRET_PATTERNS if breaks else ():
        for found in _PATTERN_AND_GROUP_BY_KIND[kind][0].finditer(text):
            start, end = found.span()
            if start and text[start - 1] in _WORD_CHARACTER_BYTES and start not in joined:
                continue
            inside = breaks[bisect_right(breaks, start) : bisect_left(breaks, end)]
            pieces = [text[begin:stop] for begin, stop in itertools.pairwise((*inside, end))]
            count = next(
                (at for at, piece in enumerate(pieces) if not _RANDOM_LOOKING_PATTERN.match(piece)), len(pieces)
            )
            if count:
                yield kind, start, (*inside, end)[count]


def _find_text_runs(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where text begins, and the text: all of it, or of what is no UTF-8 the runs of letters."""
    try:
        data.decode()
    except UnicodeDecodeError:
        yield from ((run.start(), run[0]) for run in _PRINTABLE_RUN_PATTERN.finditer(data))
    else:
        yield 0, data


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
        """Look for secrets in every reading: escaped, coloured, cut by lines, in pieces in the lines of a dialect."""
        for layer in _list_views_to_search(TextView.from_bytes(data), whole=True):
            found = [(layer, secret) for secret in find_secrets(layer.text)]
            if (plain := strip_colours_and_line_breaks(layer, joins_lines=False)) is not None:
                found += [(plain, secret) for secret in find_secrets(plain.text)]
            if (joined := strip_colours_and_line_breaks(layer, joins_lines=True)) is not None:
                found += [(joined, secret) for secret in find_wrapped_secrets(joined.text, joined.line_join_offsets)]
            for view, (kind, start, end) in found:
                self._add_secret(view.text[start:end], kind)

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
