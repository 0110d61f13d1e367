"""Owns `agentproc list`: the bundled scenarios, chosen and grouped. Plays none and runs on any platform."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

from pytest_agentproc.corpus import list_corpus_files
from pytest_agentproc.errors import UsageError, suggest_known_word
from pytest_agentproc.scenario import find_key_uses, load_for_each_agent
from pytest_agentproc.vocabulary import BUG_FAMILIES, RULES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from pytest_agentproc.scenario import Scenario


HELP_TEXT = """\
A word is looked for in the id, the claim, the steps and the keys of a scenario, and so are words of the same meaning:
`partial` finds half a line, too. A bug family is a kind of bug that users report: K01 lingers after the final result,
K13 a background turn in the next one; `agentproc list --by family` shows them all.

exit codes:
  0  something is listed
  1  no scenario is like that
  2  there is no such rule, bug family or dialect

examples:
  agentproc list                            # every scenario: its id and its claim
  agentproc list linger                     # those that have to do with a word
  agentproc list --rule C1 --dialect claude
  agentproc list --by rule                  # one heading for each rule
  agentproc list --json | jq -r '.[].id'
"""

_ROW_FIELD_BY_GROUPING = {"rule": "rules", "family": "families", "dialect": "dialects"}
"""What can be chosen and grouped by, with its name in a row."""

_SYNONYM_GROUPS = (
    ("partial", "half", "pieces", "chunk", "split", "flush", "delta"),
    ("zombie", "defunct", "unreaped", "reaped"),
    ("orphan", "daemon", "double_fork", "launcher", "refork", "leftover", "leftovers"),
    ("timeout", "timed_out", "inactive", "overran", "stalled"),
    ("permission", "approval", "approve", "ask"),
    ("hang", "freeze", "stuck", "never exits", "never ends", "lingers", "holds", "silent"),
    ("open handle", "handle", "holds", "inherits"),
    ("crash", "die", "dies", "segfault"),
    ("abandon", "cancelled", "interrupt", "abort"),
    ("bystander", "unrelated_processes", "unrelated"),
    ("flood", "verbose", "chatty", "spam"),
    ("sigterm", "term"),
    ("sigkill", "kill"),
    ("child", "subprocess", "descendant", "grandchild", "helper"),
    ("mcp", "server"),
    ("restart", "respawn", "restarting"),
    ("utf8", "unicode", "encoding", "emoji"),
    ("epipe", "broken pipe"),
    ("garbage", "noise", "malformed", "invalid"),
)
"""Words that people type for one thing: each finds what the others find, the words in front first."""
_RANK_OF_NO_MATCH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("words", nargs="*", metavar="WORD", help="a word for the behaviour, such as zombie or timeout")
    parser.add_argument("--rule", help="only those that cover this rule, such as C1")
    parser.add_argument("--family", help="only those of this kind of bug report, such as K01")
    parser.add_argument("--dialect", help="only those whose agent speaks it, such as claude or acp")
    parser.add_argument("--by", choices=_ROW_FIELD_BY_GROUPING, help="group them")
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def run_command(options: argparse.Namespace) -> int:
    """List what is left of the corpus.

    Raises:
        UsageError: an option names what there is not.
    """
    found = [
        (scenario, _rank_scenario(scenario, options.words))
        for file in list_corpus_files()
        for scenario in load_for_each_agent(file)
    ]
    every_row = [(_make_scenario_row(scenario), place) for scenario, place in sorted(found, key=lambda pair: pair[1])]
    dialects = _collect_dialects(row for row, _ in every_row)
    rows = [row for row, place in every_row if place < _RANK_OF_NO_MATCH]
    for name, known in (("rule", RULES), ("family", BUG_FAMILIES), ("dialect", dialects)):
        wanted = getattr(options, name)
        if wanted is not None:
            _require_known_value(name, wanted, known)
            rows = [row for row in rows if wanted in row[_ROW_FIELD_BY_GROUPING[name]]]
    if options.json:
        sys.stdout.write(f"{json.dumps(rows, indent=2, ensure_ascii=False)}\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _format_scenario_list(rows, options.by))
    return 0 if rows else 1


def _rank_scenario(scenario: Scenario, words: list[str]) -> int:
    """Rank a scenario; the order is: the word in its id, a word of the same meaning in its id, either in its text."""
    if not words:
        return 0
    used = (text for use in find_key_uses(scenario.text) for text in (use.key.name, *use.words))
    text = " ".join((scenario.claim, *used)).lower()
    phrase = " ".join(words).lower()
    is_known = any({phrase, phrase.removesuffix("s")} & {*group} for group in _SYNONYM_GROUPS)
    wanted = [phrase] if is_known else [word.lower() for word in words]
    return max(_rank_scenario_by_word(word, scenario.id, text) for word in wanted)


def _rank_scenario_by_word(word: str, name: str, claim: str) -> int:
    own = rf"(?<![a-z_]){re.escape(word)}"
    same = [other for group in _SYNONYM_GROUPS if {word, word.removesuffix("s")} & {*group} for other in group]
    meant = [rf"(?<![a-z_]){re.escape(other)}(?![a-z_])" for other in same]
    places = enumerate([(own, name), *((other, name) for other in meant), ("|".join([own, *meant]), claim)])
    return next((place for place, (pattern, text) in places if re.search(pattern, text)), _RANK_OF_NO_MATCH)


def _make_scenario_row(scenario: Scenario) -> dict[str, Any]:
    parts = scenario.parts.values() or (scenario,)
    return {
        "id": scenario.id,
        "claim": scenario.claim,
        "rules": list(scenario.covers),
        "families": [name for name, (_, rules) in BUG_FAMILIES.items() if {*rules} & {*scenario.covers}],
        "dialects": sorted({part.dialect for part in parts}),
        "modes": sorted({part.mode for part in parts}),
        "level": scenario.level,
        "harm": scenario.harm,
        "source": scenario.source,
        "catches": list(scenario.catches),
        "file": scenario.path,
    }


def _collect_dialects(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted({dialect for row in rows for dialect in row["dialects"]})


def _require_known_value(name: str, wanted: str, known: Iterable[str]) -> None:
    if wanted not in known:
        hint = suggest_known_word(wanted, known, f"there are {', '.join(known)}")
        raise UsageError(f"--{name} {wanted}: there is no such {name}", hint)


def _format_scenario_list(rows: list[dict[str, Any]], by: str | None) -> list[str]:
    if not rows:
        return ["no scenario matches: `agentproc list` shows them all"]
    width = max(len(row["id"]) for row in rows)
    if by is None:
        return [_format_scenario_row(row, width) for row in rows]
    found: list[str] = []
    for head, title in _make_group_titles(rows, by).items():
        those = [row for row in rows if head in row[_ROW_FIELD_BY_GROUPING[by]]]
        if those:
            found += [
                *([""] if found else []),
                f"{head}  {title}".rstrip(),
                *(f"  {_format_scenario_row(row, width)}" for row in those),
            ]
    return found


def _make_group_titles(rows: list[dict[str, Any]], by: str) -> dict[str, str]:
    if by == "rule":
        return {name: rule.demands for name, rule in RULES.items()}
    if by == "family":
        return {name: title for name, (title, _) in BUG_FAMILIES.items()}
    return dict.fromkeys(_collect_dialects(rows), "")


def _format_scenario_row(row: Mapping[str, Any], width: int) -> str:
    return f"{row['id']:{width}}  {row['claim']}"
