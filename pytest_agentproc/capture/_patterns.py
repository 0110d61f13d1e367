"""What a secret looks like: prefixes of providers, names, headers, URLs, keys. Owns the looks; replaces nothing."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SHORTEST", "forms", "is_dull", "is_telling", "secrets_in"]

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
    "JSON web token": rb"eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?",
}
_VALUE = rb"""[^\s"'`\\&,;<>()\x00-\x1f]{6,}"""
_NAMES = (
    rb"api[_-]?key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|private[_-]?key|access[_-]?key"
    rb"|account[_-]?key|auth[_-]?key|master[_-]?key|encryption[_-]?key|signing[_-]?key|session[_-]?key"
)
_PLACED = {
    "private key": rb"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[^\"]{0,20000}?"
    rb"(?:-----END [A-Z0-9 ]*-----|(?=\")|\Z))",
    "authorization header": rb"(?i:authorization\\*[\"']?\s*[:=]\s*\\*[\"']?)((?:[A-Za-z]+ )?[^\s\"'\\,;\x00]{6,})",
    "bearer token": rb"[Bb]earer[ +]([\w.~+/=-]{6,})",
    "basic credentials": rb"[Bb]asic ([A-Za-z0-9+/=_-]{8,})",
    "cookie": rb"(?i:cookie: ?)([^\r\n\"'\x00]{6,})",
    "URL credentials": rb"://[^\s/:@\"'\\\x00]*:([^\s/@\"'\\\x00]{3,})@",
    "URL parameter": rb"[?&](?i:sig|signature|x-amz-signature|x-amz-security-token|code|key|auth)"
    rb"=([^\s&#\"'\\\x00]{6,})",
    "Slack webhook": rb"hooks\.slack\.com/(?:services|workflows)/([\w/]{20,})",
    "value of a telling key": rb"(?i:" + _NAMES + rb")\\*\"\s*:\s*\\*\"((?:[^\"\\]|\\[^\"])+)",
    "value of a telling name": rb"(?i:" + _NAMES + rb")[\"']?\s?[=:]\s?[\"']?(" + _VALUE + rb")",
    "value of a telling option": rb"--?(?i:[\w-]*?(?:" + _NAMES + rb"))[ =\x00][\"']?(" + _VALUE + rb")",
}
_LOOKS = {name: (re.compile(look), 0) for name, look in _PREFIXED.items()}
_LOOKS |= {name: (re.compile(look), 1) for name, look in _PLACED.items()}
_ANY = (b"",)
_NAME_HEADS = (b"key", b"token", b"secret", b"passw", b"passphrase", b"pwd", b"credential")
_HEADS: dict[str, tuple[bytes, ...]] = {
    "private key": (b"-----begin",),
    "authorization header": (b"authorization",),
    "bearer token": (b"bearer",),
    "basic credentials": (b"basic",),
    "cookie": (b"cookie",),
    "URL credentials": (b"://",),
    "Slack webhook": (b"hooks.slack",),
    "value of a telling key": _NAME_HEADS,
    "value of a telling name": _NAME_HEADS,
    "value of a telling option": _NAME_HEADS,
    "JSON web token": (b"eyj",),
    "Telegram token": (b":aa",),
}
"""Words without which there is none of a kind; they are looked for first, as that costs next to nothing."""
_RUN = re.compile(rb"[\t\r\n\x20-\x7e]{6,}")
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


def _texts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield where text begins, and the text: all of it, or of what is no UTF-8 the runs of letters."""
    try:
        data.decode()
    except UnicodeDecodeError:
        yield from ((run.start(), run[0]) for run in _RUN.finditer(data))
    else:
        yield 0, data


def forms(value: bytes) -> set[bytes]:
    """Give the forms in which a value may be printed: as it is, escaped for JSON and URLs, in base64 and hex."""
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
    return {one for one in found if len(one) >= SHORTEST}
