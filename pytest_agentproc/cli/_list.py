"""Owns `agentproc list`: the bundled scenarios, chosen and grouped. Plays none and runs on any platform."""

from __future__ import annotations

import json
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pytest_agentproc.corpus import corpus_files
from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import load_each
from pytest_agentproc.vocabulary import ARCHETYPES, RULES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from pytest_agentproc.scenario import Scenario

__all__ = ["HELP", "declare", "run"]

HELP = """\
A behaviour is the file's name and its claim. An archetype is a kind of bug that users report: K01 lingers after the
final result, K13 a background turn in the next one; `agentproc list --by archetype` shows them all.

exit codes:
  0  something is listed
  1  no scenario is like that
  2  there is no such rule, archetype or dialect

examples:
  agentproc list                            # every scenario: its id and its claim
  agentproc list linger                     # those with a word in the id or the claim
  agentproc list --rule C1 --dialect claude
  agentproc list --by rule                  # one heading for each rule
  agentproc list --json | jq -r '.[].id'
"""

_BY = ("rule", "archetype", "dialect")


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("words", nargs="*", metavar="WORD", help="a word of the behaviour: of the id or the claim")
    parser.add_argument("--rule", help="only those that cover this rule, such as C1")
    parser.add_argument("--archetype", help="only those of this kind of bug report, such as K01")
    parser.add_argument("--dialect", help="only those whose agent speaks it, such as claude or acp")
    parser.add_argument("--by", choices=_BY, help="group them")
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def run(options: argparse.Namespace) -> int:
    """List what is left of the corpus.

    Raises:
        UsageError: an option names what there is not.
    """
    rows = [_row(scenario) for file in corpus_files() for scenario in load_each(file)]
    for name, known in (("rule", RULES), ("archetype", ARCHETYPES), ("dialect", _dialects(rows))):
        wanted = getattr(options, name)
        if wanted is not None:
            _require(name, wanted, known)
            rows = [row for row in rows if wanted in row[f"{name}s"]]
    words = [word.lower() for word in options.words]
    rows = [row for row in rows if all(word in f"{row['id']} {row['claim']}".lower() for word in words)]
    if options.json:
        sys.stdout.write(f"{json.dumps(rows, indent=2, ensure_ascii=False)}\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(rows, options.by))
    return 0 if rows else 1


def _row(scenario: Scenario) -> dict[str, Any]:
    parts = scenario.parts.values() or (scenario,)
    return {
        "id": scenario.id,
        "claim": scenario.claim,
        "rules": list(scenario.covers),
        "archetypes": [name for name, (_, rules) in ARCHETYPES.items() if {*rules} & {*scenario.covers}],
        "dialects": sorted({part.dialect for part in parts}),
        "modes": sorted({part.mode for part in parts}),
        "level": scenario.level,
        "harm": scenario.harm,
        "source": scenario.source,
        "catches": list(scenario.catches),
        "file": scenario.path,
    }


def _dialects(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted({dialect for row in rows for dialect in row["dialects"]})


def _require(name: str, wanted: str, known: Iterable[str]) -> None:
    if wanted not in known:
        near = get_close_matches(wanted, known, 1) or [one for one in known if one.lower() == wanted.lower()]
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"--{name} {wanted}: there is no such {name}", hint)


def _lines(rows: list[dict[str, Any]], by: str | None) -> list[str]:
    if not rows:
        return ["no scenario is like that: `agentproc list` shows them all"]
    width = max(len(row["id"]) for row in rows)
    if by is None:
        return [_line(row, width) for row in rows]
    found: list[str] = []
    for head, title in _heads(rows, by).items():
        those = [row for row in rows if head in row[f"{by}s"]]
        if those:
            found += [
                *([""] if found else []),
                f"{head}  {title}".rstrip(),
                *(f"  {_line(row, width)}" for row in those),
            ]
    return found


def _heads(rows: list[dict[str, Any]], by: str) -> dict[str, str]:
    if by == "rule":
        return {name: rule.demands for name, rule in RULES.items()}
    if by == "archetype":
        return {name: title for name, (title, _) in ARCHETYPES.items()}
    return dict.fromkeys(_dialects(rows), "")


def _line(row: Mapping[str, Any], width: int) -> str:
    return f"{row['id']:{width}}  {row['claim']}"
