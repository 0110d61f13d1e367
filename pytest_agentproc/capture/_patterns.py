"""What a secret looks like: prefixes of providers, names, headers, URLs, keys. Owns the looks; replaces nothing."""

from __future__ import annotations

import base64
import itertools
import json
import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from pytest_agentproc.capture._views import View, flattened, layers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SHORTEST", "forms", "is_dull", "is_telling", "secrets_in", "wrapped_in"]

SHORTEST = 6
"""A value with fewer bytes is no secret that can be told from other words."""

_PREFIXED = {
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
_NAMES = (
    rb"api[_-]?key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|private[_-]?key|access[_-]?key"
    rb"|account[_-]?key|auth[_-]?key|master[_-]?key|encryption[_-]?key|signing[_-]?key|session[_-]?key"
)
_PLACED = {
    "authorization header": rb"(?i:authorization\\*[\"']?\s*[:=]\s*\\*[\"']?)((?:[A-Za-z]+ )?[^\s\"'\\,;\x00]{6,})",
    "bearer token": rb"[Bb]earer[ +]([\w.~+/=-]{6,})",
    "basic credentials": rb"[Bb]asic ([A-Za-z0-9+/=_-]{8,})",
    "cookie": rb"(?i:cookie: ?)([^\r\n\"'\x00]{6,})",
    "URL credentials": rb"://[^\s/:@\"'\\\x00]*:([^\s/@\"'\\\x00]{3,})@",
    "URL parameter": rb"[?&](?i:sig|signature|x-amz-signature|x-amz-security-token|code|key|auth)"
    rb"=([^\s&#\"'\\\x00]{6,})",
    "Slack webhook": rb"hooks\.slack\.com/(?:services|workflows)/([\w/]{20,})",
}
_LOOKS = {name: (re.compile(look), 0) for name, look in _PREFIXED.items()}
_LOOKS |= {name: (re.compile(look), 1) for name, look in _PLACED.items()}
_ANY = (b"",)
_HEADS: dict[str, tuple[bytes, ...]] = {
    "authorization header": (b"authorization",),
    "bearer token": (b"bearer",),
    "basic credentials": (b"basic",),
    "cookie": (b"cookie",),
    "URL credentials": (b"://",),
    "Slack webhook": (b"hooks.slack",),
    "JSON web token": (b"eyj",),
    "Telegram token": (b":aa",),
}
"""Words without which there is none of a kind; they are looked for first, as that costs next to nothing."""
_NAME = re.compile(_NAMES)
_IN_QUOTES = rb"\"((?:[^\"\\\r\n]++|\\[\x00-\xff])++)(?:\"|\Z)"
_QUOTED = _IN_QUOTES + rb"|'((?:[^'\\\r\n]++|\\[\x00-\xff])++)(?:'|\Z)"
_BARE = (
    rb"""["']?((?:[^\s"'`\\&,;<>()\x00-\x1f]++|[&;](?![\w.-]{1,40}=)(?=[^\s"'`])|,(?![\w.-]{1,40}[=:])(?=[^\s"'`])"""
    rb"""|[<>()](?=[^\s"'`,;]))+)"""
)
"""A value without quotes: `&`, `,` and `;` end it before the next assignment; a bracket at its end is no part of it.

The group as a whole is not repeated possessively, as CPython before 3.11.5 skips the look-aheads in such a group.
"""
_KEYED = re.compile(rb"\"\s{0,64}:\s{0,64}" + _IN_QUOTES)
_ASSIGNED = re.compile(rb"[\"']?[ \t]*+(?::=|=>|[=:])[ \t]*+(?:" + _QUOTED + rb"|" + _BARE + rb")")
_OPTION = re.compile(rb"[ \t=\x00]++(?:" + _QUOTED + rb"|" + _BARE + rb")")
_OPTION_HEAD = re.compile(rb"(?<![\w-])--?[\w-]*\Z")
_LONGEST_OPTION = 80
_KEY_BEGIN = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,60}-----")
_LONGEST_KEY = 20_000
_RUN = re.compile(rb"[\t\r\n\x20-\x7e]{6,}")
_CHANCE = re.compile(rb"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")
_WORD_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_TELLING = frozenset(
    (
        *("KEY", "APIKEY", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE", "PWD"),
        *("CREDENTIAL", "CREDENTIALS", "COOKIE", "DSN", "PAT", "JWT"),
    )
)
_TELLING_LAST = frozenset({"AUTH", "AUTHORIZATION", "WEBHOOK"})
_INNOCENT = frozenset({"PWD", "OLDPWD"})
_DULL = re.compile(
    rb"(?i:true|false|none|null|undefined|default|disabled|enabled|redacted\d*x*|x+|\*+|\.+|<.*|\$.*|%\w+%|\{.*"
    rb"|string|required|optional|process\.env.*|os\.environ.*)"
)


def is_telling(name: str) -> bool:
    """Say whether an environment variable's name tells that its value is secret."""
    words = re.split(r"[_\-.]", name.upper())
    return name not in _INNOCENT and (not _TELLING.isdisjoint(words) or words[-1] in _TELLING_LAST)


def is_dull(value: bytes) -> bool:
    """Say whether a value is too short, or too common a word, to be a secret; placeholders are."""
    return len(value) < SHORTEST or _DULL.fullmatch(value) is not None


def secrets_in(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield what looks like a secret: its kind, and where it begins and ends. They may overlap."""
    for begin, text in _texts(data):
        small = text.lower()
        for kind, (look, group) in _LOOKS.items():
            if all(head not in small for head in _HEADS.get(kind, _ANY)):
                continue
            for found in look.finditer(text):
                start, end = found.span(group)
                if not group and start and text[start - 1] in _WORD_BYTES:
                    continue
                if not is_dull(text[start:end]) or kind == "URL credentials":
                    yield kind, begin + start, begin + end
        for kind, start, end in (*_named_in(text, small), *_keys_in(text)):
            if not is_dull(text[start:end]):
                yield kind, begin + start, begin + end


def _named_in(text: bytes, small: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the values of telling names: what stands after `password:`, `"token":` or `--secret`."""
    tails = {
        "value of a telling key": _KEYED,
        "value of a telling name": _ASSIGNED,
        "value of a telling option": _OPTION,
    }
    ends = dict.fromkeys(tails, 0)
    for name in _NAME.finditer(small):
        head = text[max(name.start() - _LONGEST_OPTION, 0) : name.start()]
        for kind, tail in tails.items():
            if name.start() < ends[kind] or (tail is _OPTION and not _OPTION_HEAD.search(head)):
                continue
            if (found := tail.match(text, name.end())) is not None:
                ends[kind] = found.end()
                yield kind, *found.span(found.lastindex or 0)


def _keys_in(text: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield private keys: to their last line, to the quote that ends their text, or to the end of all."""
    for begin in _KEY_BEGIN.finditer(text):
        limit = begin.end() + _LONGEST_KEY
        quote = text.find(b'"', begin.end(), limit)
        last = text.find(b"-----END ", begin.end(), limit if quote < 0 else quote)
        end = _KEY_END.match(text, last) if last >= 0 else None
        if end is not None:
            yield "private key", begin.start(), end.end()
        elif quote >= 0:
            yield "private key", begin.start(), quote
        elif limit >= len(text):
            yield "private key", begin.start(), len(text)


def wrapped_in(text: bytes, breaks: Sequence[int]) -> Iterator[tuple[str, int, int]]:
    """Yield secrets with a provider's prefix that the end of a line cuts.

    Args:
        text: what is read when lines are joined.
        breaks: where lines were joined. What stands after one is part of a secret only if it looks like chance.
    """
    joined = set(breaks)
    for kind in _PREFIXED if breaks else ():
        for found in _LOOKS[kind][0].finditer(text):
            start, end = found.span()
            if start and text[start - 1] in _WORD_BYTES and start not in joined:
                continue
            inside = breaks[bisect_right(breaks, start) : bisect_left(breaks, end)]
            pieces = [text[one:other] for one, other in itertools.pairwise((*inside, end))]
            count = next((at for at, piece in enumerate(pieces) if not _CHANCE.match(piece)), len(pieces))
            if count:
                yield kind, start, (*inside, end)[count]


def _texts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where text begins, and the text: all of it, or of what is no UTF-8 the runs of letters."""
    try:
        data.decode()
    except UnicodeDecodeError:
        yield from ((run.start(), run[0]) for run in _RUN.finditer(data))
    else:
        yield 0, data


def forms(value: bytes) -> set[bytes]:
    """Give the forms in which a value may be read: as it is, escaped, with its escapes resolved, in base64 and hex."""
    text = value.decode(errors="surrogateescape")
    found = {value, value.hex().encode(), value.hex().upper().encode()}
    with_json = [text]
    for _ in range(2):
        with_json += [json.dumps(one, ensure_ascii=ascii_)[1:-1] for one in with_json for ascii_ in (True, False)]
    safe = [*with_json, quote(value, safe=""), quote(value), quote_plus(value), quote(value, safe="").lower()]
    found.update(one.encode(errors="surrogateescape") for one in safe)
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + value).rstrip(b"=")
        inner = whole[-(-8 * shift // 6) : len(whole) - (1 if (shift + len(value)) % 3 else 0)]
        found |= {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}
    for one in layers(View.plain(value)):
        found.add(one.text)
        if (flat := flattened(one, joins_lines=True)) is not None:
            found.add(flat.text)
    return {one for one in found if len(one) >= SHORTEST}
