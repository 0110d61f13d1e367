"""A secret that a program prints in any escape, cut anywhere, is in no file that `record` writes."""

from __future__ import annotations

import base64
import json
import os
import random
import string
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.architecture.sources import ROOT
from tests.attacks import SEED, TIMES
from tests.attacks.trials import AGENTPROC
from tests.unit.capture.test_redaction_places import PLACES
from tests.unit.capture.test_redaction_readings import WRITTEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIGNS = "/+=&\"\\<%'"
PROGRAM = """
import json, os, sys
for piece in json.loads(os.environ["PRINTED"]):
    os.write(1, piece.encode("utf-8", "surrogateescape"))
"""
LINES: dict[str, Callable[[str], str]] = {
    "claude": lambda text: json.dumps({"event": {"delta": {"type": "text_delta", "text": text}}}),
    "pi": lambda text: json.dumps({"assistantMessageEvent": {"type": "text_delta", "delta": text}}),
    "acp": lambda text: json.dumps({"params": {"update": {"content": {"type": "text", "text": text}}}}),
}
"""How each dialect prints a piece of a text."""

pytestmark = pytest.mark.slow


def cut_into_pieces(text: str, rnd: random.Random) -> list[str]:
    """Cut a text into writes."""
    places = sorted(rnd.randrange(len(text) + 1) for _ in range(rnd.choice([0, 1, 5, len(text)])))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True) if start < end]


def draw_pieces_with_secret(rnd: random.Random, secret: str) -> tuple[str, list[str]]:
    """Say the secret in some way, and in the pieces of some dialect or in lines."""
    way = rnd.choice([*WRITTEN, "base64", "hex", "URL", *LINES])
    if way in LINES:
        pieces = cut_into_pieces(f"it is {secret} here", rnd)
        return way, [f"{LINES[way](piece)}\n" for piece in pieces]
    more: dict[str, Callable[[str], str]] = {
        "base64": lambda text: base64.b64encode(f"u:{text}".encode()).decode(),
        "hex": lambda text: text.encode().hex(),
        "URL": lambda text: quote(text, safe=""),
    }
    return way, cut_into_pieces(f"it is {({**WRITTEN, **more})[way](secret)} here\n", rnd)


def list_forbidden_parts(secret: str) -> list[str]:
    """Give the parts of a secret that no output may contain: every eight characters, also in base64 and hex."""
    parts = [secret[at : at + 8] for at in range(len(secret) - 7)]
    inner = base64.b64encode(f"u:{secret}".encode()).decode()[4:-8]
    return [*parts, secret.encode().hex()[2:-2], *(inner[at : at + 12] for at in range(0, len(inner) - 11, 4))]


def record_pieces(folder: Path, pieces: list[str], env: dict[str, str]) -> str:
    """Record a program that prints these pieces; give all that is on the disk, and what a reader makes of it."""
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **env, "PRINTED": json.dumps(pieces)}
    program = [sys.executable, "-S", "-c", PROGRAM]
    line = [*AGENTPROC, "record", "--yes", "--out", "x.scenario.yaml", "--", *program]
    completed = subprocess.run(line, cwd=folder, env=environment, capture_output=True, check=False, timeout=60)
    assert completed.returncode == 0, completed.stderr.decode()
    files = "".join(file.read_bytes().decode("utf-8", "replace") for file in sorted(folder.iterdir()))
    events = [json.loads(line) for line in (folder / "x.record.jsonl").read_text("utf-8").splitlines()[1:]]
    texts = [event[2]["bytes"] for event in events if event[1] == "o" and isinstance(event[2].get("bytes"), str)]
    return files + "\n" + "".join(texts) + completed.stderr.decode()


def test_a_secret_in_any_escape_is_in_no_file(tmp_path: Path) -> None:
    """It is the value of a variable, or its prefix gives it away."""
    rnd = random.Random(SEED)  # noqa: S311  # the same secrets each time
    found = []
    for number in range(8 * TIMES):
        body = "".join(rnd.choice(string.ascii_letters + string.digits) for _ in range(40))
        is_variable = rnd.random() < 0.6
        secret = (
            "".join(sign + rnd.choice(SIGNS) * (rnd.random() < 0.2) for sign in body) if is_variable else f"ghp_{body}"
        )
        way, pieces = draw_pieces_with_secret(rnd, secret)
        if not is_variable and way in ("base64", "base64 in lines", "base64 in JSON of PHP", "hex"):
            continue  # what nobody knew is not looked for in what nobody can read
        shown = record_pieces(tmp_path / str(number), pieces, {"MY_API_KEY": secret} if is_variable else {})
        left = [form for form in list_forbidden_parts(secret) if form in shown]
        if left:
            found.append(f"seed {SEED}, number {number}, {way}: {left[:3]} of {secret!r} in {pieces!r}")
    assert not found, "\n".join(found)


def test_a_secret_in_any_place_is_in_no_file(tmp_path: Path) -> None:
    """Where it stands gives it away, also if two writes cut it there."""
    rnd = random.Random(SEED)  # noqa: S311  # as above
    texts = {}
    for place, form in PLACES.items():
        secret = "".join(rnd.choice(string.ascii_letters + string.digits) for _ in range(15)) + "aB3"
        texts[place, secret] = cut_into_pieces(form.format(secret), rnd)
    pieces = [piece for some in texts.values() for piece in some]
    shown = record_pieces(tmp_path / "all", pieces, {})
    found = [place for place, secret in texts if secret[:10] in shown or secret[-10:] in shown]
    assert not found, found
