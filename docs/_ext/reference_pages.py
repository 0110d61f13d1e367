"""Writes the pages of the reference that are made from the tables of the code. Knows no text of its own but examples.

As a Sphinx extension it writes them into docs/reference before the sources are read. Git ignores them. The tests take
them from `pages`, and run every example.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints
from unittest import mock

from pytest_agentproc.cli._calls import HelpPrinted, parse_arguments
from pytest_agentproc.cli._commands import MODULE_AND_PURPOSE_BY_COMMAND
from pytest_agentproc.events import EVENT_TYPES, Event, SupervisorView, list_keys
from pytest_agentproc.plugin._options import _PLUGIN_OPTIONS
from pytest_agentproc.reference import (
    DANGERS,
    Danger,
    ReferenceEntry,
    find_page,
    find_reason,
    find_trials,
    format_as_markdown,
    list_agents,
    list_entries,
    make_heading_anchor,
    read_bundled_scenarios,
)
from pytest_agentproc.scenario import SCHEMA_FILE_NAME, format_schema
from pytest_agentproc.vocabulary import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sphinx.application import Sphinx

_ONE = "pytest --agentproc-corpus -k lingers-and-ignores-term"
OPTION_EXAMPLES = {
    "corpus": "pytest --agentproc-corpus -k lingers",
    "backend": f"{_ONE} --agentproc-backend=both",
    "clock": f"{_ONE} --agentproc-clock=model",
    "repeat": f"{_ONE} --agentproc-repeat=3",
    "search": "pytest --agentproc-corpus -k open-run-ending --agentproc-search=5",
    "explore": f"{_ONE} --agentproc-explore=5",
    "scale": f"{_ONE} --agentproc-clock=real --agentproc-scale=10",
    "process_tree": "pytest --agentproc-process-tree test_mine.py",
    "virtual_sync": "pytest --agentproc-virtual-sync test_mine.py",
    "subject": f"{_ONE} --agentproc-subject=null",
    "rule": "pytest --agentproc-corpus --agentproc-rule=T2,P3 --agentproc-clock=model",
    "level": f"{_ONE} --agentproc-level=must",
    "command": "pytest --agentproc-corpus -k claude-exits-1-after --agentproc-command='timeout 60 {agent}'",
    "baseline": f"{_ONE} --agentproc-subject=null --agentproc-baseline=known.yaml",
    "update_baseline": f"{_ONE} --agentproc-subject=null --agentproc-baseline=known.yaml --agentproc-update-baseline",
    "results": f"{_ONE} --agentproc-results=results.json",
    "report": f"{_ONE} --agentproc-report=pages",
    "timeline": f"{_ONE} --agentproc-report=pages --agentproc-timeline=on-failure",
    "defect": f"{_ONE} --agentproc-defect=waits-for-exit",
}
"""A command line for each option."""

COMMAND_EXAMPLES = {
    "check": "agentproc check hang.scenario.yaml",
    "conform": "agentproc conform reference --rule T2 --clock model",
    "explain": "agentproc explain T1",
    "fake": "agentproc fake hang.scenario.yaml --dir fakes --name claude",
    "import": "echo 'hello' | agentproc import - --dialect raw",
    "list": "agentproc list partial",
    "new": "agentproc new hang",
    "record": "agentproc record --yes --out hello.scenario.yaml -- echo hello",
    "run": "agentproc run lingers-and-ignores-term",
    "schema": "agentproc schema --out agentproc.schema.json",
    "search": "agentproc search open-run-ending --runs 5",
    "time": "agentproc time -- sleep 3600",
}
"""A command line for each command; `new` comes first."""

_TITLES = {
    "outcomes": ("Outcomes", "An outcome says how a run, or a turn of a session, ended. Each has an exit code."),
    "verdicts": (
        "Verdicts",
        "Each check of a scenario has a verdict. The verdict of the scenario is the first of these that a check has.",
    ),
    "levels": (
        "Levels",
        "The level of a check says how much it counts. The level of a file is `must` if it names none.",
    ),
    "limits": (
        "Limits",
        "The key `policy` sets limits of the supervisor. An expression such as `kill_grace + 1s` uses them.",
    ),
    "steps": (
        "Steps",
        "The key `script` of a scenario is a list of steps. The fake agent plays them in this order.",
    ),
    "expect": ("Expect keys", "The keys below `expect`, `should` and `info` say what must be true after the run."),
    "drive": ("Drive items", "The key `drive` lists what the caller of the supervisor does, one item after the other."),
    "scenarios": ("File keys", "These are the keys of a scenario file, and the keys below `agent`, `host` and others."),
    "signals": (
        "Signals",
        "A script catches these signals, sends them and dies of them. `signals` below `expect` lists those that came.",
    ),
    "defects": (
        "Defects",
        "A defect is a named fault that can be built into the reference supervisor. A scenario catches each of them.",
    ),
    "bug-families": ("Bug families", "A bug family is a kind of bug that users of supervisors report."),
}
_GROUPS = {
    "TEXT": "Forms of a text",
    "result.json": "Fields of result.json",
    "cannot_spawn": "Keys of cannot_spawn",
    "loop_blocked": "Keys of loop_blocked",
    "sleeps": "Keys of sleeps",
}


def is_made(name: str) -> bool:
    """Say whether a page below docs/reference is one of these."""
    return name.startswith("rules/") or name.removesuffix(".md") in (
        *_TITLES,
        "dangers",
        "options",
        "commands",
        "record-format",
    )


def pages() -> dict[str, str]:
    """Give every page by its file below docs/reference."""
    known = list_entries()
    made = {f"{name}.md": _page(title, about, _of(known, name)) for name, (title, about) in _TITLES.items()}
    rules = {f"{find_page(entry)}.md": _rule(entry) for entry in known if entry.kind == "rule"}
    own = {"rules/index.md": _rules(), "dangers.md": _dangers(), "options.md": _options(), "commands.md": _commands()}
    return {**made, **rules, **own, "record-format.md": _record_format()}


def _of(known: Iterable[ReferenceEntry], page: str) -> list[ReferenceEntry]:
    return [entry for entry in known if find_page(entry) == page]


def _page(title: str, about: str, those: list[ReferenceEntry]) -> str:
    parts = [f"# {title}", about, _contents(entry.name for entry in those if ": " not in entry.name)]
    below: dict[str, list[ReferenceEntry]] = {}
    for entry in those:
        head, colon, _ = entry.name.partition(": ")
        below.setdefault(head if colon else "", []).append(entry)
    for entry in below.pop("", []):
        parts += [format_as_markdown(entry), *(format_as_markdown(inner, "###") for inner in below.pop(entry.name, []))]
    for head, inner in below.items():
        parts += [f"## {_GROUPS[head]}", *(format_as_markdown(entry, "###") for entry in inner)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _contents(names: Iterable[str]) -> str:
    return " · ".join(f"[`{name}`](#{make_heading_anchor(name)})" for name in names)


def _rule(entry: ReferenceEntry) -> str:
    rows = [scenario for scenario in read_bundled_scenarios() if entry.name in scenario.covers]
    listed = [f"- `{scenario.id}` ({scenario.level}): {scenario.claim}" for scenario in rows]
    return "\n".join([format_as_markdown(entry, "#"), "## Scenarios", "", *listed, ""])


def _rules() -> str:
    listed = [f"| [{name}]({name}.md) | {rule.demands} |" for name, rule in RULES.items()]
    toc = ["```{toctree}", ":hidden:", "", *RULES, "```"]
    about = "A scenario covers one rule or more. A conformant supervisor breaks none of them at level `must`."
    return "\n".join(["# Rules", "", about, "", "| rule | what it demands |", "|---|---|", *listed, "", *toc, ""])


_RECORD_EXAMPLE = """\
```python
# test_record.py
import json


def test_a_record_has_lines(agent_run):
    record = agent_run("lingers-after-its-answer").record
    header, *events = [json.loads(line) for line in record.lines()]
    assert "programs" in header
    assert {code for _, code, _ in events} <= set("oeisptxm")
    assert len(record.digest()) == 64
```"""


def _record_format() -> str:
    about = (
        "A record has everything that happened in a run. The first line is the header. Each other line is a JSON "
        "array: the seconds since the line before, a code, and data. Equal runs in virtual time have equal records, "
        "and `digest()` is the same for them.\n\n"
        "In Python, `record.events` gives an object of a type of `pytest_agentproc.events` for each line. Its "
        "attributes are the keys, and `at` is its instant in nanoseconds."
    )
    keys = (
        "Every event names its `process`. `by: supervisor` says that the supervisor did or saw it. `line` is the line "
        "of the step in the scenario, and `session` the session, where there are several. A key that has nothing to "
        "say is left out."
    )
    table = ["| code | type | what happened | keys |", "|---|---|---|---|", *map(_event_row, EVENT_TYPES)]
    return "\n\n".join(["# The record of a run", about, _RECORD_EXAMPLE, keys, "\n".join(table)]) + "\n"


def _event_row(kind: type[Event]) -> str:
    hints = get_type_hints(kind, include_extras=True)
    keys = ["`by: supervisor`"] if issubclass(kind, SupervisorView) else []
    for key in list_keys(kind):
        if key in hints and key not in ("line", "session"):
            keys.append(f"`{key}`: {hints[key].__metadata__[0]}")
        elif key not in hints:
            keys.append(f"`{key}: {str(kind.mark_value).lower()}`")
    return (
        f"| {' '.join(f'`{code}`' for code in kind.letters)} | `{kind.__name__}` | {kind.meaning} | {', '.join(keys)} |"
    )


def _dangers() -> str:
    about = (
        "Each row is a danger for a supervisor. A cell is the number of bundled scenarios that try it with this "
        "dialect and mode. Below the table stand the scenarios, and the reason for each empty cell."
    )
    head = ["danger", "rule", *list_agents()]
    rows = [f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *map(_danger_cells, DANGERS)]]
    return "\n\n".join(["# Dangers by agent", about, "\n".join(rows), *map(_danger, DANGERS)]) + "\n"


def _danger_cells(danger: Danger) -> list[str]:
    tried = find_trials(danger)
    counts = [str(len(tried[agent])) if agent in tried else "" for agent in list_agents()]
    return [danger.name, f"[{danger.rule}](rules/{danger.rule}.md)", *counts]


def _danger(danger: Danger) -> str:
    tried = find_trials(danger)
    cells = {
        agent: ", ".join(f"`{scenario}`" for scenario in tried[agent])
        if agent in tried
        else f"none: {find_reason(danger, agent)}"
        for agent in list_agents()
    }
    rows = [f"| {agent} | {cell} |" for agent, cell in cells.items()]
    title = f"## {danger.name[0].upper()}{danger.name[1:]}"
    return "\n".join([title, "", "| agent | scenarios |", "|---|---|", *rows])


def _options() -> str:
    parts = [
        "# Options and ini keys",
        "Each option of pytest also has an ini key, with underscores. The command line wins over the ini file.",
    ]
    for option in _PLUGIN_OPTIONS:
        flag = f"--agentproc-{option.name.replace('_', '-')}"
        value = "" if option.read is None else f"={option.name.upper()}"
        default = "false" if option.read is None else option.default or "none"
        parts += [
            f"## {flag}",
            f"{option.doc[0].upper()}{option.doc[1:]}.",
            f"- **Value:** `{flag}{value}`\n- **Ini key:** `agentproc_{option.name}`\n- **Default:** {default}",
            f"```sh\n{OPTION_EXAMPLES[option.name]}\n```",
        ]
    return "\n\n".join(parts) + "\n"


def _commands() -> str:
    parts = ["# Commands", "`agentproc COMMAND --help` prints what stands here. Each command has its own exit codes."]
    for name, (_, about) in MODULE_AND_PURPOSE_BY_COMMAND.items():
        parts += [
            f"## {name}",
            f"`agentproc {name}`: {about}.",
            f"```sh\n{COMMAND_EXAMPLES[name]}\n```",
            f"```text\n{_help(name)}\n```",
        ]
    return "\n\n".join(parts) + "\n"


def _help(name: str) -> str:
    module, about = MODULE_AND_PURPOSE_BY_COMMAND[name]
    printed = io.StringIO()
    wide = mock.patch.dict(os.environ, COLUMNS="100")
    with wide, contextlib.redirect_stdout(printed), contextlib.suppress(HelpPrinted):
        parse_arguments(name, about, importlib.import_module(module), ["--help"])
    return printed.getvalue().rstrip()


def _write(app: Sphinx) -> None:
    for name, text in pages().items():
        file = Path(app.srcdir, "reference", name)
        file.parent.mkdir(exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:  # a page that stays as it is is not read again
            file.write_text(text, "utf-8")


def _write_schema(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        Path(app.outdir, SCHEMA_FILE_NAME).write_text(format_schema(), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages once Sphinx knows its folders, and the schema beside the first page."""
    app.connect("builder-inited", _write)
    app.connect("build-finished", _write_schema)
    return {"parallel_read_safe": True}
