"""A secret is found however it is written, and what looks for it takes no longer than its text is long."""

from __future__ import annotations

import base64
import html
import json
import random
import re
import time
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.capture import Redactor, write_capture_files
from tests.unit.capture.test_redaction import KINDS, build_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRET = 'aB3z/xYq9+kQ7w&zLmN"R5tV<8wC1=dF4j\\H6jK0sU'  # noqa: S105  # of this test alone


def escape_as_javascript(text: str) -> str:
    r"""Escape every character that is no letter or digit as `\u0026`."""
    return "".join(sign if sign.isalnum() else f"\\u{ord(sign):04x}" for sign in text)


def insert_colour(text: str) -> str:
    """Begin a colour in the middle."""
    return f"{text[:12]}\x1b[31;1m{text[12:20]}\x1b]8;;https://x\x07{text[20:]}\x1b[0m"


WRITTEN: dict[str, Callable[[str], str]] = {
    "JSON": json.dumps,
    "JSON of PHP": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON with every sign escaped": escape_as_javascript,
    "JSON with capitals": lambda text: "".join(sign if sign.isalnum() else f"\\u{ord(sign):04X}" for sign in text),
    "JSON with every character escaped": lambda text: "".join(f"\\u{ord(sign):04x}" for sign in text),
    "JSON in JSON of PHP": lambda text: json.dumps(json.dumps(text).replace("/", "\\/")).replace("/", "\\/"),
    "JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps(text))),
    "JavaScript": lambda text: "".join(sign if sign.isalnum() else f"\\u{{{ord(sign):x}}}" for sign in text),
    "bytes": lambda text: "".join(sign if sign.isalnum() else f"\\x{ord(sign):02x}" for sign in text),
    "HTML": html.escape,
    "HTML by number": lambda text: "".join(sign if sign.isalnum() else f"&#{ord(sign)};" for sign in text),
    "HTML by hexadecimal number": lambda text: "".join(
        sign if sign.isalnum() else f"&#x{ord(sign):X};" for sign in text
    ),
    "HTML in JSON": lambda text: json.dumps(html.escape(text)),
    "URL with some signs escaped": lambda text: text.replace("/", "%2f").replace("&", "%26"),
    "shell": lambda text: "".join(sign if sign.isalnum() else f"\\{sign}" for sign in text),
    "colours": insert_colour,
    "colours in JSON": lambda text: json.dumps(insert_colour(text)),
    "a line break": lambda text: f"{text[:20]}\n{text[20:]}",
    "lines of a terminal": lambda text: f"{text[:15]}\r\n    {text[15:30]}  \r\n    {text[30:]}",
    "a line break in JSON": lambda text: json.dumps(f"{text[:20]}\n  {text[20:]}"),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode().replace("M", "M\n"),
    "base64 in JSON of PHP": lambda text: base64.b64encode(text.encode()).decode().replace("/", "\\/"),
}
"""How programs write a text."""

SAID = {
    "several blanks": ("password:   {}\n", "hX7pQ2mZ9tR4"),
    "blanks on both sides": ('api_key   =   "{}"\n', "hX7pQ2mZ9tR4"),
    "a tab": ("PASSWORD=\t{}\n", "hX7pQ2mZ9tR4"),
    "a blank option": ("run --auth-token    {} now\n", "hX7pQ2mZ9tR4"),
    "an ampersand": ("password={}\n", "hX7p&Q2m&Z9tR4xyz"),
    "signs": ("password={}\n", "hX7;p,Q2(m)Z9<t>R4xyz"),
    "an escaped quote": ('password="{}"\n', 'hX7p\\"Q2mZ9tR4xyz'),
    "an escaped quote in JSON": ('{{"password": "{}"}}\n', 'hX7p\\"Q2mZ9tR4xyz'),
    "single quotes": ("password='{}'\n", "hX7p\\'Q2m Z9tR4xyz"),
    "an arrow": ("password => '{}'\n", "hX7pQ2mZ9tR4"),
}
"""The values that only their place shows."""


def find_pieces_of_secret(text: str, secret: str) -> list[str]:
    """Give what of a secret stands in a text: each six characters of it."""
    return [secret[at : at + 6] for at in range(len(secret) - 5) if secret[at : at + 6] in text]


@pytest.mark.parametrize("way", WRITTEN)
def test_a_known_secret_is_found_however_it_is_written(way: str) -> None:
    """A writer may escape any character; the reader gets the secret all the same."""
    text = f"it is {WRITTEN[way](SECRET)} here"
    shown = Redactor({"MY_API_KEY": SECRET}).redact_text(text, "stdout")
    parts = re.findall("[A-Za-z0-9]{4,}", SECRET if SECRET[:4] in text else WRITTEN[way](SECRET))
    assert parts
    assert [part for part in parts if part in shown.replace("redacted1", "")] == []
    assert (len(shown), shown.count("\n")) == (len(text), text.count("\n"))
    assert (shown.startswith("it is "), shown.endswith(" here")) == (True, True)


@pytest.mark.parametrize("way", [*WRITTEN])
def test_a_secret_that_nobody_knew_is_found_however_it_is_written(way: str) -> None:
    """A key that gives itself away does so only when it is read as a reader would."""
    secret = KINDS["anthropic"]
    if way.startswith("base64"):
        return
    written = WRITTEN[way](secret)
    shown = Redactor().redact_text(f"it is {written} here", "stdout")
    assert find_pieces_of_secret(shown.replace("redacted1", ""), secret) == []


@pytest.mark.parametrize("way", SAID)
def test_a_value_is_known_by_its_name_whatever_it_is_made_of(way: str) -> None:
    """Blanks before a value and signs within it change nothing."""
    form, secret = SAID[way]
    text = form.format(secret)
    shown = Redactor().redact_text(text, "stdout")
    assert find_pieces_of_secret(shown, secret) == []
    assert len(shown) == len(text)


def test_what_stands_after_a_value_stays() -> None:
    """The next parameter, the next key and the closing bracket are no part of it."""
    text = "?token=abcdefgh&user=1 f(password=abcdefgh) {token:abcdefgh,name:x} password=abcdefgh; x\n"
    shown = Redactor().redact_text(text, "stdout")
    assert shown == text.replace("abcdefgh", "redacted")


def test_a_word_on_the_next_line_is_no_part_of_a_key() -> None:
    """A key may end where its line does."""
    text = f"the key is {KINDS['github']}\nhello and goodbye\n"
    assert Redactor().redact_text(text, "stdout").endswith("xx\nhello and goodbye\n")


@pytest.mark.parametrize("size", [1, 3, 4, 7])
@pytest.mark.parametrize("secret", [SECRET, KINDS["anthropic"]], ids=["known", "found"])
def test_an_update_that_repeats_the_text_so_far_has_no_part_of_a_secret(secret: str, size: int) -> None:
    """Each update of pi has the message so far: the last but one has all of a secret but its end."""
    text, lines = f"the key is {secret} ok", []
    for end in range(size, len(text) + size, size):
        message = {"role": "assistant", "content": [{"type": "text", "text": text[:end]}]}
        event = {"type": "text_delta", "delta": text[end - size : end], "partial": message}
        lines.append(json.dumps({"type": "message_update", "message": message, "assistantMessageEvent": event}) + "\n")
    data = "".join(lines)
    redactor = Redactor({"MY_API_KEY": secret} if secret == SECRET else {})
    shown = redactor.redact_text(data, "stdout")
    whole = json.loads(shown.splitlines()[-1])["message"]["content"][0]["text"]
    answer = [json.loads(line)["message"]["content"][0]["text"] for line in shown.splitlines()]
    assert find_pieces_of_secret(shown, secret[4:]) == []
    assert [whole.startswith(part) or len(part) <= 3 for part in answer] == [True] * len(answer)
    assert (len(shown), whole.startswith("the key is redacted"), whole.endswith(" ok")) == (len(data), True, True)


def test_a_line_that_grows_has_no_part_of_a_secret() -> None:
    """A terminal program draws its line again and again."""
    secret = KINDS["github"]
    text = "".join(f"\r> key {secret[:end]}" for end in range(len(secret) + 1))
    shown = Redactor({"MY_TOKEN": secret}).redact_text(text, "stdout")
    assert find_pieces_of_secret(shown, secret) == []


def list_hostile_texts() -> dict[str, bytes]:
    """Give texts at which a careless search does not come to an end."""
    chance = base64.urlsafe_b64encode(random.Random(3).randbytes(375_000))  # noqa: S311  # a fixed text
    known = KINDS["github"].encode()
    return {
        "base64url": chance + b" token",
        "base64url as a token": b'{"token":"' + chance + b'"}',
        "base64url in lines": b"\n".join(chance[at : at + 76] for at in range(0, len(chance), 76)) + b" token",
        "dashes": b"-" * 500_000 + b"token",
        "options": b"--token " * 60_000,
        "names": b"token:" * 80_000,
        "quotes": b'token="' * 70_000,
        "blanks": b"token" + b" " * 500_000 + b"\n",
        "backslashes": b"\\" * 500_000 + b"token",
        "web tokens": b"-eyJ" * 100_000,
        "command lines": b"docker login curl -u mysql -p redis-cli -a " * 12_000,
        "elements": b"<token " * 70_000,
        "an element": b"<token" + b" " * 500_000,
        "pairs": b'"token", "value"' * 33_000,
        "fields of code": b"token=" + b"a." * 250_000,
        "private keys": b"-----BEGIN PRIVATE KEY-----" * 10_000,
        "commands of a terminal": b"\x1b]" * 250_000,
        "a secret often": (b"a " + known + b" b\n") * 50_000,
        "a secret often, escaped": (json.dumps({"text": f'/"{KINDS["github"]}'}).encode() + b"\n") * 10_000,
        "many secrets": b"".join(b"sk-ant-%032d\n" % number for number in range(10_000)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", list_hostile_texts())
def test_the_time_of_a_search_grows_with_the_text_alone(kind: str) -> None:
    """The recorder searches when the program has ended, and its caller waits for that."""
    data = list_hostile_texts()[kind]
    began = time.process_time()
    redactor = Redactor({"MY_TOKEN": KINDS["github"]})
    redactor.learn_secrets(data)
    shown = redactor.redact_bytes(data, "stdout")
    assert time.process_time() - began < 10
    assert (len(shown), KINDS["github"].encode() in shown) == (len(data), False)


def test_what_was_recorded_is_for_its_owner_alone(tmp_path: Path) -> None:
    """No rule knows every secret: no other user of the machine reads the files, an older one included."""
    out = tmp_path / "x.scenario.yaml"
    out.write_text("older", "utf-8")
    write_capture_files(build_record({"o": [bytes(range(128, 256)) * 40 + b"\n"]}), ["agent"], out, env={})
    files = sorted(tmp_path.iterdir())
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in files} == {file.name: "0o600" for file in files}
    assert len(files) == 3
