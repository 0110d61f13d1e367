"""The JSON Schema against the loader: an independent validator says of every file what the loader says.

The validator reads YAML as editors do, in YAML 1.2's core schema. `UNSEEN` lists the files that it cannot see, each
with the reason; a file there that it does see is a mistake, too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import jsonschema
import pytest
import yaml

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import build_schema, loads
from pytest_agentproc.scenario._loading import find_agent_names
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
    "abandoned-session-first": "an item that must be the last one is a matter of its place",
    "abandoned-sessions": "what a drive may hold depends on the number of sessions",
    "abandoned-when": "of two keys beside another one is needed, and that in a run",
    "acp-only": _BY_DIALECT,
    "asks-for-ever": _BY_DIALECT,
    "written-files-of-a-session": _BY_DIALECT,
    "asks-request-fields": _BY_DIALECT,
    "continues": _BY_DIALECT,
    "continues-raw": _BY_DIALECT,
    "history-unloaded": _ELSEWHERE,
    "host": "an empty mapping is one of the type",
    "inherits": "a stream of the parent is seen step by step",
    "mistake-13dup": "the reader of YAML decides about keys given twice, before a schema sees them",
    "mistake-23anchor": "the reader of YAML puts the value of an anchor in its place",
    "mistake-27turns": _BY_DIALECT,
    "mistake-31negative": "the value of an expression is seen by the loader alone",
    "mistake-39acp": _BY_DIALECT,
    "no-asks": _BY_DIALECT,
    "no-beginnings": _BY_DIALECT,
    "no-history": _BY_DIALECT,
    "no-plans": _BY_DIALECT,
    "no-requests": _BY_DIALECT,
    "no-scripts": "an empty list is one of the type",
    "no-tasks": _BY_DIALECT,
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


class _CoreSchemaDumper(yaml.SafeDumper):
    """YAML 1.2's core schema, for writing."""

    yaml_implicit_resolvers = _CoreSchemaLoader.yaml_implicit_resolvers

    def ignore_aliases(self, data: Any) -> bool:
        """Write what stands twice twice."""
        return True


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
        "[{silence: (inactivity_timeout - 1 ms) / 2}, {silence: for ever}, {silence: 0}]",
        "[{say: yes}, {say: 1.5}, {say: true}, {answer: 10}]",
        "[{meanwhile: [{drip: {stderr: ., every: 30s}}]}]",
    ],
)
def test_the_schema_accepts_a_right_step(validator: jsonschema.Draft7Validator, script: str) -> None:
    """Text is text, however a reader of YAML would type it."""
    assert list_schema_errors(f"scenario: a\nagent: claude\nscript: {script}\n", validator) == []


@pytest.mark.parametrize(
    "agent", ["claude session", "{each: [claude session, pi]}", "\n  each:\n    - claude\n    - pi rpc"]
)
def test_the_schema_accepts_every_form_of_an_agent(validator: jsonschema.Draft7Validator, agent: str) -> None:
    """The loader accepts them, too."""
    assert list_schema_errors(f"scenario: a\nagent: {agent}\nscript: [answer: done]\n", validator) == []


_REFERS = re.compile(
    "unknown (key of this scenario's expect|task|tool|process|session) "
    "|.* is taken by |.* has ended in line |there is no turn|no tool was started before"
)
"""A message about a name that another part of the file has not, or has already."""
_WORDS = [
    *("", "5", "-1", "1.5", "0", "true", "off", "null", "~", "word", "two words"),
    *("10s", "3 parsecs", "64 KiB", "TERM", "for ever"),
]


def make_scalar(text: str) -> yaml.ScalarNode:
    """Make an unquoted scalar."""
    resolve: Any = _CoreSchemaLoader("").resolve
    return yaml.ScalarNode(resolve(yaml.ScalarNode, text, (True, False)), text)


def spoil_value(value: yaml.Node, random: Random) -> yaml.Node:
    """Give another value: no value, another word, none of the characters at the end, or a list where none was."""
    flow = random.random() < 0.5
    others: list[yaml.Node] = [
        make_scalar(random.choice(_WORDS)),
        yaml.SequenceNode("tag:yaml.org,2002:seq", [], flow_style=True),
        yaml.MappingNode("tag:yaml.org,2002:map", [], flow_style=True),
        yaml.SequenceNode("tag:yaml.org,2002:seq", [value], flow_style=flow),
    ]
    if isinstance(value, yaml.SequenceNode):
        others += value.value[:1]
    if isinstance(value, yaml.ScalarNode):
        middle = random.randrange(max(len(value.value), 1))
        others += [
            make_scalar(value.value.rstrip("nsumhBKiMG ")),
            make_scalar(value.value[:middle] + value.value[middle + 1 :]),
        ]
    return random.choice(others)


def spoil_file(root: yaml.Node, random: Random) -> None:
    """Spoil one place of a file: leave it out, misspell its key, put another value there, or a key that is none."""
    parents, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.CollectionNode) and node.value:
            parents.append(node)
            waiting += [pair[1] for pair in node.value] if isinstance(node, yaml.MappingNode) else node.value
    parent, index = random.choice([(node, index) for node in parents for index in range(len(node.value))])
    way = random.choice(["leave out", "misspell", "add", "spoil", "spoil", "spoil"])
    if way == "leave out":
        del parent.value[index]
    elif isinstance(parent, yaml.SequenceNode):
        parent.value[index] = spoil_value(parent.value[index], random)
    elif way == "misspell":
        name = parent.value[index][0].value
        parent.value[index] = make_scalar(name[1:] + name[:1]), parent.value[index][1]
    elif way == "add":
        parent.value.append((make_scalar("note"), make_scalar("a")))
    else:
        parent.value[index] = parent.value[index][0], spoil_value(parent.value[index][1], random)
    if random.random() < 0.5:
        for node in parents:
            node.flow_style = False


def list_loader_problems(text: str, file: Path) -> list[str]:
    """Say what is wrong with a file, with the loader."""
    found: list[str] = []
    try:
        for agent in find_agent_names(text) or ("",):
            loads(text, str(file), str(file.parent), agent=agent)
    except ScenarioError as error:
        found += [problem.message for problem in error.problems]
    return found


def spoil_and_read(file: Path, random: Random, validator: jsonschema.Draft7Validator) -> tuple[list[str], list[str]]:
    """Spoil one place of a file, and say what is wrong with it, with the loader and with the schema."""
    root = yaml.compose(file.read_text("utf-8"), _CoreSchemaLoader)
    assert root is not None
    spoil_file(root, random)
    text = yaml.serialize(root, Dumper=_CoreSchemaDumper, width=1000, allow_unicode=True)
    text = text.replace("!!null ''", "null")  # no author writes it so, as PyYAML does within brackets
    return list_loader_problems(text, file), list_schema_errors(text, validator)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["", "b"])
def test_the_schema_and_the_loader_agree_on_spoilt_files(validator: jsonschema.Draft7Validator, seed: str) -> None:
    """What an editor passes, and `check` refuses, or the other way round, makes an author trust neither."""
    files = sorted((ROOT / "scenarios").rglob("*.scenario.yaml"), key=lambda file: crc32(file.name.encode()))
    apart = []
    for file in files[:260]:
        random = Random(seed + file.name)  # noqa: S311 -- each run spoils the same places, whatever files are added
        found, seen = spoil_and_read(file, random, validator)
        while found and not seen and all(map(_REFERS.match, found)):
            found, seen = spoil_and_read(file, random, validator)
        if bool(found) != bool(seen):
            apart.append(f"{file.name}: {(found or seen)[0]}")
    assert len(apart) <= 2, "\n".join(apart)


@pytest.mark.parametrize("null", ["null", "Null", "NULL", "~", ""])
@pytest.mark.parametrize("script", ["[{{say: {} }}]", "[{{tool: {{id: {}, name: a}}}}]", "[{{answer: {{text: {} }}}}]"])
def test_both_refuse_nothing_where_a_text_is_needed(
    validator: jsonschema.Draft7Validator, script: str, null: str
) -> None:
    """Every other reader of YAML sees no text there."""
    text = f"scenario: a\nagent: claude\nscript: {script.format(null)}\n"
    assert list_schema_errors(text, validator) != []
    assert list_loader_problems(text, ROOT / "a.scenario.yaml") != []


@pytest.mark.parametrize(
    ("agent", "is_right"),
    [
        ("{dialect: claude, mode: session}", True),
        ("{dialect: claude, mode: {one_of: [print, session]}}", True),
        ("{dialect: claude, mode: rpc}", False),
        ("{dialect: pi, mode: rpc}", True),
        ("{each: [claude session, pi rpc]}", True),
        ("{each: [claude rpc]}", False),
        ("{each: [clade]}", False),
        ("{dialect: {one_of: [claude, pi]}}", True),
        ("{dialect: {one_of: [claude, clade]}}", False),
    ],
)
def test_both_know_the_modes_of_a_dialect(validator: jsonschema.Draft7Validator, agent: str, *, is_right: bool) -> None:
    """A mode is one of its dialect's, wherever the dialect is named."""
    text = f"scenario: a\nagent: {agent}\nscript: [answer: done]\n"
    assert (list_schema_errors(text, validator) == []) is is_right
    assert (list_loader_problems(text, ROOT / "a.scenario.yaml") == []) is is_right


def assert_both_say(text: str, validator: jsonschema.Draft7Validator, *, is_right: bool) -> None:
    """Have the schema and the loader accept a text, or refuse it."""
    assert (list_schema_errors(text, validator) == []) is is_right
    assert (list_loader_problems(text, ROOT / "a.scenario.yaml") == []) is is_right


@pytest.mark.parametrize(
    ("step", "is_right"),
    [
        ("{silence: {between: [0, 700s]}}", True),
        ("{silence: {between: [1s, inactivity_timeout + 1s]}}", True),
        ("{silence: {between: [5, 700s]}}", False),
        ("{silence: {between: [1s, 1 KiB]}}", False),
        ("{silence: {between: [1s, [2s]]}}", False),
        ("{raw: {hex: e2 82 AC}}", True),
        ("{raw: {hex: 00}}", True),
        ("{raw: {hex: e2 8}}", False),
        ("{raw: {hex: no digits}}", False),
    ],
)
def test_both_read_a_range_and_hexadecimal_digits_alike(
    validator: jsonschema.Draft7Validator, step: str, *, is_right: bool
) -> None:
    """Two values of one kind, and pairs of digits."""
    assert_both_say(f"scenario: a\nagent: claude\nscript: [{step}, answer: done]\n", validator, is_right=is_right)


@pytest.mark.parametrize(
    ("keys", "is_right"),
    [
        ("agent: claude\ndrive: []", False),
        ("agent: {dialect: claude, mode: session}\ndrive: []", False),
        ("agent: {each: []}", False),
        ("agent: claude\ndrive: [{prompt: hi}]", True),
    ],
)
def test_both_know_the_lists_that_need_an_item(
    validator: jsonschema.Draft7Validator, keys: str, *, is_right: bool
) -> None:
    """An empty list says nothing there."""
    assert_both_say(f"scenario: a\n{keys}\nscript: [answer: done]\n", validator, is_right=is_right)


@pytest.mark.parametrize("words", ["covers:", "covers: []", "covers:\n- L3", "covers: [L3, L3]", "covers: ~"])
def test_both_judge_a_list_of_rules_alike(validator: jsonschema.Draft7Validator, words: str) -> None:
    """A list may be empty or in block style, and no value is no list."""
    text = f"scenario: a\nagent: claude\nscript: [answer: done]\n{words}\n"
    file = ROOT / "a.scenario.yaml"
    assert bool(list_schema_errors(text, validator)) == bool(list_loader_problems(text, file))


def test_the_schema_is_small() -> None:
    """An editor reads all of it before it offers the first word, so no table stands in it twice."""
    described = build_schema()
    assert len(json.dumps(described, indent=1)) < 230_000
    assert described["$id"] == "urn:pytest-agentproc:scenario"
    references = {described["properties"][key]["$ref"] for key in ("expect", "should", "info")}
    assert len(references) == 1


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
