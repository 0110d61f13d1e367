"""Every form of a secret is found, wherever it stands; ordinary output stays; SECURITY.md names what is not found."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import random
import re
import shlex
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.capture import Redactor, redact_record
from tests.architecture.sources import ROOT
from tests.unit.capture.secret_forms import (
    ATTACKED,
    NOT_FOUND,
    PUBLISHED,
    WRITTEN_OTHERWISE,
    expand_form,
    list_all_forms,
)
from tests.unit.capture.test_redaction import build_record

if TYPE_CHECKING:
    from collections.abc import Callable

FORMS = list_all_forms()
COMMAND_PATTERN = re.compile(
    r"(?:\$ )?(?:curl|wget|http|docker|mysql|sshpass|redis-cli|openssl|htpasswd|ldapsearch|smbclient"
    r"|az|aws|kubectl|vault|helm|terraform|unzip|keytool)\b[^|<\n]*\n"
)
"""A form that is one command line."""


def find_pieces(shown: str, secret: str) -> list[str]:
    """Give the pieces of a secret, of eight letters each, that a reader still finds in a text."""
    views = [shown, html.unescape(shown), shown.replace("\\/", "/"), json.dumps(shown)]
    pieces = [secret[at : at + 8] for at in range(max(len(secret) - 7, 1))]
    return [piece for piece in pieces if any(piece in view for view in views)]


WAYS: dict[str, Callable[[str], str]] = {
    "alone": lambda text: text,
    "between other lines": lambda text: f"first line\n{text}last line\n",
    "in a string of JSON": lambda text: json.dumps({"type": "text", "text": text}) + "\n",
    "in JSON in JSON": lambda text: json.dumps({"line": json.dumps({"text": text})}) + "\n",
}
"""Where a text may stand."""


def test_there_are_enough_forms() -> None:
    """The first 132 are those of an attack; the others come from public documents."""
    assert len(ATTACKED) + len(WRITTEN_OTHERWISE) == 132
    assert len(PUBLISHED) >= 100


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_found(name: str, way: str) -> None:
    """The text keeps its length, so that a placeholder moves nothing."""
    text, secret = FORMS[name]
    written = WAYS[way](text)
    shown = Redactor().redact_text(written, "stdout")
    assert find_pieces(shown, secret) == []
    assert len(shown) == len(written)


@pytest.mark.slow
def test_a_form_is_found_in_two_writes_wherever_they_are_cut() -> None:
    """Each write is a chunk of its own in the record."""
    left = []
    for name, (text, secret) in FORMS.items():
        data = text.encode()
        redactor = Redactor()
        redactor.learn_secrets(data)
        for at in range(1, len(data), max(len(data) // 8, 1)):
            chunks = redactor.redact_chunks([data[:at], data[at:]], "stdout")
            if find_pieces(b"".join(chunks).decode(), secret) or [len(chunk) for chunk in chunks] != [
                at,
                len(data) - at,
            ]:
                left.append((name, at))
    assert left == []


@pytest.mark.parametrize("name", [name for name, (text, _) in FORMS.items() if COMMAND_PATTERN.fullmatch(text)])
def test_a_command_line_is_found_as_words(name: str) -> None:
    """The words of a program's own command line have no blanks and quotes between them."""
    text, secret = FORMS[name]
    words = Redactor().redact_argv(shlex.split(text.removeprefix("$ ")), "argv")
    assert find_pieces("\0".join(words), secret) == []


@pytest.mark.parametrize("place", ["argv", "env", "path"])
def test_a_key_of_a_provider_is_found_in_words_of_the_machine(place: str) -> None:
    """It shows itself, so it needs no name beside it."""
    left = []
    for name, form in PUBLISHED.items():
        _text, secret = expand_form(name, form)
        if not re.fullmatch(r"(?:\w+ )?«[^»]*»\n", form):
            continue
        argv = {"argv": ["agent", secret], "path": ["agent", f"/srv/{secret}/x.txt"]}.get(place, ["agent"])
        env = {"LC_NAME": secret} if place == "env" else {}
        shown = redact_record(build_record({}), argv, env, Redactor(env))
        if find_pieces(json.dumps(shown.header), secret):
            left.append(name)
    assert left == []


def test_a_secret_has_the_same_stand_in_wherever_it_stands() -> None:
    """One place gives it away; it is printed, logged and passed on elsewhere."""
    redactor = Redactor()
    for data in (b"agent\0--token\0Zq7hT2mXw9Lk", b'{"out": "Zq7hT2mXw9Lk"}\n', b"see /tmp/Zq7hT2mXw9Lk/log\n"):
        redactor.learn_secrets(data)
    assert redactor.redact_argv(["agent", "--token", "Zq7hT2mXw9Lk"], "argv")[2] == "redacted1xxx"
    assert redactor.redact_bytes(b'{"out": "Zq7hT2mXw9Lk"}\n', "stdout") == b'{"out": "redacted1xxx"}\n'
    assert redactor.redact_bytes(b"see /tmp/Zq7hT2mXw9Lk/log\n", "stderr") == b"see /tmp/redacted1xxx/log\n"


@pytest.mark.parametrize("name", NOT_FOUND)
def test_what_is_not_found_is_named(name: str) -> None:
    """A limit that nobody writes down is a promise that is broken."""
    text, secret = expand_form(name, NOT_FOUND[name])
    assert secret in Redactor().redact_text(text, "stdout")
    assert f"| {name} |" in (ROOT / "SECURITY.md").read_text("utf-8")


RND = random.Random(5)  # noqa: S311  # the same output each time
IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + RND.randbytes(30_000)).decode()
SHA = [hashlib.sha1(b"%d" % number).hexdigest() for number in range(200)]  # noqa: S324  # names of commits
LONG_SHA = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(200)]
IDS = [str(uuid.UUID(int=RND.getrandbits(128), version=4)) for _ in range(200)]

ORDINARY = {
    "commits": "".join(f"commit {sha}\nAuthor: A <a@example.com>\n    {sha[:7]} Fix it\n" for sha in SHA),
    "hashes": "".join(f"sha256:{sha}  dist/x-{sha[:8]}.tar.gz\n" for sha in LONG_SHA),
    "hashes of an index": "".join(f"--hash=sha256:{sha} \\\n" for sha in LONG_SHA),
    "ids": "".join(f'{{"session_id":"{one}","uuid":"{one}"}}\n' for one in IDS),
    "ids of tools": "".join(f'{{"id":"toolu_01{sha[:22]}","tool_use_id":"call_{sha[:24]}"}}\n' for sha in SHA),
    "ids of messages": "".join(f'{{"id":"msg_01{sha[:22]}","requestId":"req_01{sha[:22]}"}}\n' for sha in SHA),
    "threads": "".join(f'{{"thread_id":"0199{one[4:]}","turnId":"{number}"}}\n' for number, one in enumerate(IDS)),
    "an image": json.dumps({"type": "image", "source": {"media_type": "image/png", "data": IMAGE}}) + "\n",
    "an image in a page": f'<img src="data:image/png;base64,{IMAGE}">\n',
    "integrity of packages": "".join(
        f'"integrity": "sha512-{base64.b64encode(hashlib.sha512(sha.encode()).digest()).decode()}"\n' for sha in SHA
    ),
    "sums of modules": "".join(
        f"example.com/x v1.2.{number} h1:{base64.b64encode(bytes.fromhex(sha)).decode()}\n"
        for number, sha in enumerate(LONG_SHA)
    ),
    "times": "".join(f"{1_732_824_000 + number}:{sha}\n20241128:{sha[:35]}\n" for number, sha in enumerate(SHA)),
    "counts": '{"usage":{"input_tokens":123456,"cache_read_input_tokens":890123},"total_tokens":1013579}\n',
    "tests": "tests/test_login.py::test_password_reset[user-1] PASSED\npass: 120 fail: 3 skip: 4\nPASS=120 FAIL=3\n",
    "names of CSS": '<div class="sk-toggleable__control sk-container-id-1"></div>\n.fw_update_available_on_device {}\n',
    "names in C": "napi_get_value_string_utf8(env, value, NULL, 0, &length); EAGAIN; EZONE_MAX\n",
    "a table of tests": "| name | passed | tokens |\n|---|---|---|\n| login | 12 | 345678 |\n",
    "a list of names": "name,count,token_count\nalpha,1,123456\n",
    "a trace": 'File "/home/me/app/token_store.py", line 33\n    return self.token_by_user[user_id1234]\n',
    "settings of git": "git config user.name me\ngit config --global core.autocrlf input\nset -euo pipefail\nset -x\n",
    "commands": "mkdir -p build/output1\nssh -p 2222 me@host1\nzip -r out1.zip dir1\nhttp -v GET x.example\n",
    "addresses": "https://example.com/@scope/package-name-1234567\ngit@github.com:me/project-2024-x.git\n",
    "sentences": "The token is base64-encoded. Password for production: see the vault. The secret is out of scope.\n",
    "types": "password: Optional[SecretStr] = None\nlet token: Option<String> = None;\napiKey?: string\n",
    "code of a web server": "def f(authorization: str) -> None:\n    if authorization:\n        if self.auto_error:\n"
    "_assertion_pass = call_assertion_pass_hook\ntoken: object\n"
    'raise Failed(f"{credentials.password}", scheme="Bearer", kind="apiKey")  # Bearer tokens, Basic Meta-Data\n',
    "a diff": f"index {SHA[0][:7]}..{SHA[1][:7]} 100644\n--- a/token.py\n+++ b/token.py\n+token = next(tokens)\n",
    "a block of YAML": "password: |\n  ${{ secrets.PASSWORD }}\non:\n  push:\n    branches: [main]\n",
    "a form": '<form><input name="password" type="password" id="login-password-1"></form>\n',
}
"""What agents print all day long: nothing of it is a secret."""


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_output_stays_as_it_is(name: str) -> None:
    """A scenario whose hashes and ids are replaced does not do what was recorded."""
    redactor = Redactor()
    assert redactor.redact_text(ORDINARY[name], "stdout") == ORDINARY[name]
    assert redactor.redacted_secrets == []


def test_our_own_source_stays_as_it_is() -> None:
    """Agents print files of code; ours speak of tokens, passwords and keys on many lines."""
    files = [file for file in (ROOT / "pytest_agentproc").rglob("*.py") if file.parent.name != "secrets"]
    changed = {}
    for file in files:
        redactor = Redactor()
        redactor.learn_secrets(file.read_bytes())
        redactor.redact_bytes(file.read_bytes(), "stdout")
        if redactor.redacted_secrets:
            changed[file.name] = [str(secret) for secret in redactor.redacted_secrets]
    assert changed == {}


def test_the_library_is_not_imported_before_a_search() -> None:
    """Its import costs a tenth of a second, and it loads an HTTP client."""
    code = "import sys, pytest_agentproc.cli, pytest_agentproc.plugin, pytest_agentproc.capture.secrets"
    code += "; print([name for name in ('detect_secrets', 'requests') if name in sys.modules])"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert completed.stdout == "[]\n"
