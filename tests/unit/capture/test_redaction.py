"""No secret reaches the disk: kinds of them, where they are planted, how they are cut. A second detector looks, too."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import default_settings

from pytest_agentproc.capture import Redactor, write_capture_files
from pytest_agentproc.record import Record
from tests.event_lines import add_line

if TYPE_CHECKING:
    from pathlib import Path

_A, _B = "Zq7hT2mXw9Lk4RbN8vYc", "p3Jd6FsG1uHe5KaW0iQo"
_LONG = _A + _B
_HEX = "9f3c1a7e5b2d4860c8e1f7a3b6d90245"

KINDS = {
    "anthropic": f"sk-ant-api03-{_LONG}",
    "openai": f"sk-proj-{_LONG}",
    "openrouter": f"sk-or-v1-{_LONG}",
    "stripe": f"sk_{'live'}_{_A}",
    "stripe webhook": f"whsec_{_LONG}",
    "github": f"ghp_{_LONG[:36]}",
    "github fine": f"github_pat_{_LONG}",
    "gitlab": f"glpat-{_A}",
    "aws id": "AKIA" + _A[:16].upper(),
    "google": f"AIza{_LONG[:35]}",
    "google oauth": f"ya29.{_LONG}",
    "slack": f"xoxb-123456789012-{_A}",
    "npm": f"npm_{_LONG[:36]}",
    "pypi": f"pypi-AgEIcHlwaS5vcmc{_A}",
    "hugging face": f"hf_{_LONG[:34]}",
    "sendgrid": f"SG.{_LONG[:22]}.{_LONG}{_A[:3]}",
    "twilio": f"SK{_HEX}",
    "telegram": f"123456789:AA{_LONG[:33]}",
    "discord": f"M{_LONG[:23]}.Gabcde.{_LONG[:30]}",
    "digitalocean": f"dop_v1_{_HEX}{_HEX}",
    "groq": f"gsk_{_LONG}",
    "xai": f"xai-{_LONG}",
    "replicate": f"r8_{_LONG[:37]}",
    "perplexity": f"pplx-{_LONG}",
    "linear": f"lin_api_{_LONG}",
    "notion": f"ntn_{_LONG}",
    "shopify": f"shpat_{_HEX}",
    "databricks": f"dapi{_HEX}",
    "vault": f"hvs.{_LONG}",
    "doppler": f"dp.pt.{_LONG}",
    "mailgun": f"key-{_HEX}",
    "age": f"AGE-SECRET-KEY-1{_LONG.upper()}",
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{_A}",
}
"""A secret that shows itself wherever it stands."""

PLACED = {
    "json key": ('{{"api_key": "{}"}}\n', "correct-horse-staple"),
    "json in json": ('{{"text": "{{\\"password\\": \\"{}\\"}}"}}\n', "swordfish-and-chips"),
    "authorization": ("Authorization: Bearer {}\n", "abc.def-ghi_jkl"),
    "basic": ("authorization: Basic {}\n", base64.b64encode(b"user:swordfish").decode()),
    "cookie": ("Set-Cookie: {}\n", "sid=tasty-cookie-of-mine"),
    "own header": ("x-api-key: {}\n", "plain-words-as-key"),
    "url password": ("postgres://app:{}@db.example/app\n", "tr0ub4dor"),
    "url parameter": ("https://x.example/cb?user=1&access_token={}&z=1\n", "opaque-access-words"),
    "signed url": ("https://x.example/o?X-Amz-Signature={}\n", _HEX),
    "slack webhook": ("https://hooks.slack.com/services/{}\n", "T0000AAAA/B0000BBBB/" + _A),
    "assignment": ("export DB_PASSWORD={}\n", "hunter2hunter2"),
    "option": ("run --auth-token {} now\n", "option-value-here"),
    "azure": ("AccountName=x;AccountKey={};Suffix=y\n", base64.b64encode(_A.encode()).decode()),
}
"""A secret that its place shows."""

PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join([_LONG, _LONG[::-1]]) + "\n-----END RSA PRIVATE KEY-----\n"


def write_and_read_all(folder: Path, record: Record, argv: list[str], env: dict[str, str]) -> str:
    """Write it all, and give every byte that is on the disk then."""
    out = folder / "x.scenario.yaml"
    write_capture_files(record, argv, out, env=env)
    return "".join(file.read_text("utf-8") for file in sorted(folder.iterdir()))


def cut_inside_secret(text: str, secret: str) -> list[bytes]:
    """Cut a text in the middle of a secret, as two writes do."""
    place = text.index(secret) + len(secret) // 2
    return [text[:place].encode(), text[place:].encode()]


def build_record(streams: dict[str, list[bytes]]) -> Record:
    """Make a record of chunks, each at an instant of its own."""
    record, at = Record(), 0
    for code, chunks in streams.items():
        for chunk in chunks:
            at += 1_000_000
            add_line(record, at, code, {"process": "agent", "bytes": chunk})
    add_line(record, at + 1, "x", {"process": "agent", "code": 0})
    return record


def scan_with_detect_secrets(folder: Path) -> set[str]:
    """Give the kinds that detect-secrets finds in a folder, but for the placeholders that it takes for values."""
    collection = SecretsCollection()
    with default_settings():
        for file in folder.iterdir():
            collection.scan_file(str(file))
    return {secret.type for _file, secret in collection if not str(secret.secret_value).startswith("redacted")}


@pytest.mark.slow
@pytest.mark.parametrize("place", ["argv", "stdout", "stderr", "stdin", "env"])
def test_no_planted_secret_reaches_the_disk(place: str, tmp_path: Path) -> None:
    """Each kind stands in one place only, so that no other gives it away; in streams two writes cut it."""
    planted = [(f"say {secret} again\n", secret) for secret in KINDS.values()]
    planted += [(form.format(secret), secret) for form, secret in PLACED.values()]
    assert len(planted) >= 30
    cut = [half for text, secret in planted for half in cut_inside_secret(text, secret)]
    argv = ["agent", *(text.strip() for text, _ in planted if place == "argv")]
    env = {f"LC_{number}": text for number, (text, _) in enumerate(planted) if place == "env"}
    code = {"stdout": "o", "stderr": "e", "stdin": "i"}.get(place)
    shown = write_and_read_all(tmp_path, build_record({code: cut} if code else {}), argv, env)
    assert [secret for _, secret in planted if secret in shown] == []
    assert "redacted" in shown
    assert scan_with_detect_secrets(tmp_path) == set()


def test_the_name_of_a_parent_is_redacted_as_that_of_its_process(tmp_path: Path) -> None:
    """A process is named after its command, which a caller may name after a secret, and its children name it."""
    secret = next(iter(KINDS.values()))
    record = build_record({})
    for name, parent in ((secret, "agent"), ("child", secret)):
        add_line(record, 0, "p", {"process": name, "seen": True, "pid": 7, "parent": parent, "since": 0, "argv": name})
    assert secret not in write_and_read_all(tmp_path, record, ["agent"], {})


@pytest.mark.slow
def test_the_other_detector_sees_what_is_not_redacted(tmp_path: Path) -> None:
    """A tripwire that never fires guards nothing."""
    (tmp_path / "x.jsonl").write_text("".join(f'["{secret}"]\n' for secret in KINDS.values()), "utf-8")
    assert len(scan_with_detect_secrets(tmp_path)) > 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_is_found_without_the_help_of_others(kind: str) -> None:
    """The same value in another place would hide that its kind is unknown."""
    redactor = Redactor()
    text = redactor.redact_text(f"it is {KINDS[kind]}.", "stdout")
    assert KINDS[kind] not in text
    assert len(text) == len(f"it is {KINDS[kind]}.")


@pytest.mark.parametrize("kind", PLACED)
def test_a_secret_is_known_by_its_place(kind: str) -> None:
    """A password is a word like any other: only where it stands tells."""
    form, secret = PLACED[kind]
    text = Redactor().redact_text(form.format(secret), "stdout")
    assert secret not in text
    assert len(text) == len(form.format(secret))


def test_a_variable_is_found_in_all_its_forms() -> None:
    """A program prints what it was given as JSON, in URLs, in base64, in hex."""
    value = 'pa"ss/wörd+1'
    redactor = Redactor({"MY_TOKEN": value})
    data = value.encode()
    forms = [value, json.dumps(value), json.dumps(json.dumps(value)), quote(value, safe=""), data.hex()]
    forms += [base64.b64encode(prefix + data).decode() for prefix in (b"", b"u", b"u:")]
    shown = redactor.redact_bytes("\n".join(forms).encode(), "stdout").decode()
    assert [line for line in shown.split("\n") if "redacted1" not in line] == []
    assert [len(line.encode()) for line in shown.split("\n")] == [len(form.encode()) for form in forms]


def test_a_secret_that_a_model_says_in_pieces_is_found() -> None:
    """Each delta is a line of its own: a reader who joins the texts has the secret."""
    pieces = [KINDS["github"][start : start + 7] for start in range(0, len(KINDS["github"]), 7)]
    lines = "".join(f'{{"type":"delta","text":"{piece}"}}\n' for piece in pieces)
    redactor = Redactor()
    redactor.learn_secrets(lines.encode())
    shown = redactor.redact_bytes(lines.encode(), "stdout").decode()
    message = "".join(json.loads(line)["text"] for line in shown.splitlines())
    assert message == "redacted1".ljust(len(KINDS["github"]), "x")


def test_a_private_key_goes_whole_and_its_lines_stay() -> None:
    """The count of lines is behaviour, the key is not."""
    shown = Redactor().redact_text(PEM, "stdout")
    assert _LONG not in shown
    assert _LONG[::-1] not in shown
    assert shown.count("\n") == PEM.count("\n")


def test_what_one_place_gives_away_is_replaced_everywhere() -> None:
    """The option names it a token; on stdout it is a word."""
    redactor = Redactor()
    redactor.learn_secrets(b"agent\0--token\0tasty-words-here")
    assert redactor.redact_bytes(b"I got tasty-words-here!", "stdout") == b"I got redacted1xxxxxxx!"
    assert [str(secret) for secret in redactor.redacted_secrets] == [
        "redacted1: value of a telling option (1 in stdout)"
    ]


def test_common_words_and_counts_are_no_secrets() -> None:
    """A scenario of placeholders tells nothing."""
    innocent = '{"apiKeySource":"none","input_tokens":123456,"max_tokens":100000,"token":null,"key":"value"}\n'
    innocent += "the tokenizer and the secretary asked for a task-force\n"
    assert Redactor({"PWD": "/home/somebody", "SHELL": "/bin/sh"}).redact_text(innocent, "stdout") == innocent


def test_a_value_too_short_to_be_looked_for_is_named() -> None:
    """Every "1" of the output would be redacted; the user is warned that it is not."""
    assert Redactor({"DEBUG_TOKEN": "1"}).too_short == ["DEBUG_TOKEN"]


@pytest.mark.parametrize(("secret", "is_found"), [("qZ7vw", False), ("qZ7vwX", True)])
def test_a_secret_of_six_bytes_is_found_and_a_shorter_one_is_not(secret: str, is_found: bool) -> None:
    """SECURITY.md names this limit: a shorter value would be replaced in half of all words."""
    redactor = Redactor({"MY_TOKEN": secret})
    shown = redactor.redact_bytes(f"it is {secret} here\n".encode(), "stdout")
    assert (secret.encode() not in shown, redactor.too_short) == (is_found, [] if is_found else ["MY_TOKEN"])


def test_the_environment_is_an_allow_list(tmp_path: Path) -> None:
    """A value that is not known to be harmless is not written, whatever its name."""
    env = {"TERM": "xterm", "INNOCENT": "who-knows", "ANTHROPIC_API_KEY": "abcdefghijkl"}
    shown = write_and_read_all(tmp_path, build_record({"o": [b"abcdefghijkl\n"]}), ["agent"], env)
    assert '"env": {"TERM": "xterm"}' in shown
    assert "who-knows" not in shown
    assert "abcdefghijkl" not in shown
