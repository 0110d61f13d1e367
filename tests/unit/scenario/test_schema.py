"""The JSON Schema against the loader: an independent validator says of every file what the loader says.

The validator reads YAML as editors do, in YAML 1.2's core schema. `UNSEEN` lists the files that it cannot see, each
with the reason; a file there that it does see is a mistake, too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pytest_agentproc.scenario import build_schema
from tests.architecture.sources import ROOT

pytestmark = pytest.mark.once

MALFORMED = Path(__file__).parents[1] / "malformed"
BUNDLED = [
    file
    for folder in (ROOT / "scenarios", ROOT / "tests" / "mirrors", Path(__file__).parents[1] / "pasted")
    for file in sorted(folder.rglob("*.yaml"))
]

_BY_DIALECT = "what a step can say hangs on the agent's dialect"
_ELSEWHERE = "what is wrong hangs on another part of the file"
UNSEEN = {
    "abandoned": "what may stand under expect depends on the drive",
    "abandoned-session": _BY_DIALECT,
    "abandoned-when": "of two keys beside another one is needed, and that in a run",
    "acp-only": _BY_DIALECT,
    "asks-for-ever": _BY_DIALECT,
    "asks-request-fields": _BY_DIALECT,
    "continues": _BY_DIALECT,
    "history-unloaded": _ELSEWHERE,
    "host": "an empty mapping is one of the type",
    "inherits": "a stream of the parent is seen step by step",
    "mode-of-another": _BY_DIALECT,
    "modes": _BY_DIALECT,
    "no-asks": _BY_DIALECT,
    "no-beginnings": _BY_DIALECT,
    "no-history": _BY_DIALECT,
    "no-plans": _BY_DIALECT,
    "no-requests": _BY_DIALECT,
    "no-scripts": "an empty list is one of the type",
    "no-tasks": _BY_DIALECT,
    "duplicate-keys": "the reader of YAML decides about keys given twice, before a schema sees them",
    "raw-together": "sizes are added up over the whole file",
    "raw-together-sized": "sizes are added up over the whole file",
    "sessions-background": _ELSEWHERE,
    "sessions-none": _ELSEWHERE,
    "sessions-order": _ELSEWHERE,
    "tool-done-twice": _ELSEWHERE,
}
"""Files that the loader refuses and the schema lets pass."""


class _CoreSchemaLoader(yaml.SafeLoader):
    """YAML 1.2's core schema, which editors read."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 -- PyYAML's own form


for _tag, _pattern, _first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", "[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _CoreSchemaLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
_CoreSchemaLoader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(node.value))
_CoreSchemaLoader.add_constructor("tag:yaml.org,2002:float", lambda _, node: float(node.value))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft7Validator:
    """Take the schema in, and see that it is one."""
    described = build_schema()
    jsonschema.Draft7Validator.check_schema(described)
    return jsonschema.Draft7Validator(json.loads(json.dumps(described)))


def list_schema_errors(text: str, validator: jsonschema.Draft7Validator) -> list[str]:
    """Say what is wrong with a file, without the loader."""
    try:
        read: Any = yaml.load(text, _CoreSchemaLoader)  # noqa: S506 -- a safe loader with other types of scalars
    except yaml.YAMLError as error:
        return [str(error)]
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(read)]


@pytest.mark.slow
def test_the_schema_accepts_every_bundled_scenario(validator: jsonschema.Draft7Validator) -> None:
    """An editor that underlines what runs teaches its user to look away."""
    assert len(BUNDLED) > 200
    refused = {file.name: list_schema_errors(file.read_text("utf-8"), validator)[:3] for file in BUNDLED}
    assert {name: reported for name, reported in refused.items() if reported} == {}


def test_the_schema_refuses_what_the_loader_refuses(validator: jsonschema.Draft7Validator) -> None:
    """A mistake that an editor passes without a reason is found a step later than it could be."""
    files = sorted(MALFORMED.glob("*.yaml"))
    passed = {file.stem for file in files if not list_schema_errors(file.read_text("utf-8"), validator)}
    assert passed == set(UNSEEN)


@pytest.mark.parametrize(
    "script",
    [
        "[{say: a, answer: b}]",
        "[{when: eof}]",
        "[{do: []}]",
        "[{say: a, do: []}]",
        "[{when: eof, do: [], say: a}]",
        "[{when: eof, do: [{sya: a}]}]",
        "[{tool: {name: Bash}}]",
        "[{silence: 10}]",
        "[{silence: 10 parsecs}]",
        "[{silence: inactivity_timeuot}]",
        "[{raw: {hex: e2, text: a}}]",
        "[{}]",
        "[answer]",
    ],
)
def test_the_schema_refuses_a_wrong_step(validator: jsonschema.Draft7Validator, script: str) -> None:
    """One step has one name, and beside it only what belongs to it."""
    assert list_schema_errors(f"scenario: a\nagent: claude\nscript: {script}\n", validator) != []


@pytest.mark.parametrize(
    "script",
    [
        "[{when: {signal: TERM}, do: [{silence: 1s}, {exit: 143}]}]",
        "[{silence: (inactivity_timeout - 1 ms) / 2}, {linger: for ever}, {silence: 0}]",
        "[{say: yes}, {say: 1.5}, {say: true}, {answer: 10}]",
        "[{meanwhile: [{drip: {stderr: ., every: 30s}}]}]",
    ],
)
def test_the_schema_accepts_a_right_step(validator: jsonschema.Draft7Validator, script: str) -> None:
    """Text is text, however a reader of YAML would type it."""
    assert list_schema_errors(f"scenario: a\nagent: claude\nscript: {script}\n", validator) == []


def test_every_step_has_its_words_and_its_snippet() -> None:
    """An editor offers the words of the reference, and each snippet is a step that the schema takes."""
    step = build_schema()["definitions"]["step"]
    names = [name for name in step["properties"] if name != "do"]
    assert [snippet["label"] for snippet in step["defaultSnippets"]] == names
    assert all(step["properties"][name]["description"] for name in names)
    bodies = {snippet["label"]: snippet["body"] for snippet in step["defaultSnippets"]}
    assert bodies["silence"] == {"silence": "${1:10s}"}
    assert bodies["when"] == {"when": "${1|eof,epipe,cancel|}", "do": [{"answer": "${2:done}"}]}
    assert bodies["tool"] == {"tool": {"id": "${1:ID}", "name": "${2:NAME}"}}
