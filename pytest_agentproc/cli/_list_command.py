"""Owns `agentproc list`: the bundled scenarios, chosen and grouped, the defects, the fakes. Plays none."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_agentproc.corpus import list_corpus_files
from pytest_agentproc.errors import UsageError, suggest_known_word
from pytest_agentproc.scenario import find_key_uses, load_for_each_agent
from pytest_agentproc.terminal import format_columns
from pytest_agentproc.vocabulary import BUG_FAMILIES, DIALECTS, RULES, list_remedies

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_agentproc.defects import Defect
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
  agentproc list --defects never sends cancel  # the defects that are like a report
  agentproc list --agents                   # the fakes, and the versions that they imitate
  agentproc list --json | jq -r '.[].id'
"""

_ROW_FIELD_BY_GROUPING = {"rule": "rules", "family": "families", "dialect": "dialects"}
"""What can be chosen and grouped by, with its name in a row."""

_SYNONYM_GROUPS = (
    ("partial", "half", "pieces", "chunk", "split", "flush", "delta"),
    ("zombie", "defunct", "unreaped", "reaped"),
    ("orphan", "daemon", "double_fork", "launcher", "refork", "leftover", "leftovers", "left", "detached", "setsid"),
    ("docker", "container", "systemd", "daemon", "leaves its session", "own session", "away from"),
    ("oom", "out of memory", "killed", "killed-from-outside"),
    ("429", "rate_limit", "overloaded", "api_retry"),
    ("ctrl-c", "ctrl+c", "sigint", "int", "interrupt", "cancelled"),
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

_OWN_WORD_WEIGHT = 4
_SHORTEST_STEM = 3
_MOST_SHOWN = 12
_STOP_WORDS = frozenset(
    "a an and are as at be by for from has have in is it its no not of on or that the to was with".split()  # noqa: SIM905
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("words", nargs="*", metavar="WORD", help="a word for the behaviour, such as zombie or timeout")
    parser.add_argument("--rule", help="only those that cover this rule, such as C1")
    parser.add_argument("--family", help="only those of this kind of bug report, such as K01")
    parser.add_argument("--dialect", help="only those whose agent speaks it, such as claude or acp")
    parser.add_argument("--by", choices=_ROW_FIELD_BY_GROUPING, help="group them")
    parser.add_argument("--defects", action="store_true", help="list the defects that are like the words, best first")
    parser.add_argument("--agents", action="store_true", help="list the fakes and the versions that they imitate")
    parser.add_argument("--json", action="store_true", help="print a JSON array of objects")


def run_command(options: argparse.Namespace) -> int:
    """List what is left of the corpus.

    Raises:
        UsageError: an option names what there is not.
    """
    if options.agents:
        return _list_agents(options)
    if options.defects:
        return _list_defects(options)
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


def _list_agents(options: argparse.Namespace) -> int:
    _refuse_choices_of_scenarios(options, "--agents", ("words", "rule", "family", "dialect", "by"))
    rows = [
        {"dialect": dialect.name, "versions": list(dialect.versions), "modes": list(dialect.modes)}
        for dialect in DIALECTS.values()
    ]
    if options.json:
        sys.stdout.write(f"{json.dumps(rows, indent=2)}\n")
        return 0
    versions = {dialect.name: ", ".join(dialect.versions) or "no version" for dialect in DIALECTS.values()}
    width, wide = max(map(len, versions)), max(map(len, versions.values()))
    for dialect in DIALECTS.values():
        modes = ", ".join(dialect.modes)
        sys.stdout.write(f"{dialect.name:{width}}  {versions[dialect.name]:{wide}}  {modes}\n")
    return 0


def _refuse_choices_of_scenarios(options: argparse.Namespace, listing: str, names: Sequence[str]) -> None:
    unfit = [name for name in names if getattr(options, name) not in (None, [])]
    if unfit:
        shown = "a WORD" if unfit[0] == "words" else f"--{unfit[0]}"
        raise UsageError(f"{shown} is about scenarios, and {listing} lists none", f"leave {shown} out")


def _list_defects(options: argparse.Namespace) -> int:
    from pytest_agentproc.defects import DEFECTS  # needs anyio, which an installation of the language alone lacks

    _refuse_choices_of_scenarios(options, "--defects", ("rule", "family", "dialect", "by"))
    found = _find_similar_defects(options.words) if options.words else [*DEFECTS.values()]
    if options.json:
        rows = [_make_defect_row(defect) for defect in found]
        sys.stdout.write(f"{json.dumps(rows, indent=2, ensure_ascii=False)}\n")
        return 0 if rows else 1
    lines = format_columns([(defect.name, str(defect.breaks), defect.story) for defect in found], sys.stdout)
    lines = lines or ["no defect has such words: `agentproc list --defects` shows them all"]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0 if found else 1


def _rank_scenario(scenario: Scenario, words: list[str]) -> int:
    """Rank a scenario; the order is: the word in its id, a word of the same meaning in its id, either in its text."""
    if not words:
        return 0
    used = (text for use in find_key_uses(scenario.text) for text in (use.key.name, *use.words))
    text = " ".join((scenario.claim, *used)).lower()
    phrase = " ".join(words).lower()
    is_known = any({phrase, phrase.removesuffix("s")} & {*group} for group in _SYNONYM_GROUPS)
    wanted = [phrase] if is_known else phrase.split()
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
    if by is None:
        return format_columns([(row["id"], row["claim"]) for row in rows], sys.stdout)
    found: list[str] = []
    for head, title in _make_group_titles(rows, by).items():
        those = [row for row in rows if head in row[_ROW_FIELD_BY_GROUPING[by]]]
        if those:
            found += [
                *([""] if found else []),
                *(format_columns([(head, title)], sys.stdout) if title else [head]),
                *format_columns([(row["id"], row["claim"]) for row in those], sys.stdout, "  "),
            ]
    return found


def _make_group_titles(rows: list[dict[str, Any]], by: str) -> dict[str, str]:
    if by == "rule":
        return {name: rule.demands for name, rule in RULES.items()}
    if by == "family":
        return {name: title for name, (title, _) in BUG_FAMILIES.items()}
    return dict.fromkeys(_collect_dialects(rows), "")


def _find_similar_defects(words: list[str]) -> list[Defect]:
    """Give the defects that are most like a report, the best first.

    A rare word counts more than a common one, and a word of the defect itself more than one of a scenario that catches
    it. A word of another tool counts as what it means here.

    Args:
        words: the words of the report, such as `never sends cancel`.
    """
    from pytest_agentproc.defects import DEFECTS

    own = {name: _count_stems(f"{name} {defect.story}") for name, defect in DEFECTS.items()}
    about: dict[str, Counter[str]] = {name: Counter(stems) for name, stems in own.items()}
    for file in list_corpus_files():
        for scenario in load_for_each_agent(file)[:1]:
            for name in scenario.catches.keys() & own.keys():
                about[name] += _count_stems(f"{scenario.claim} {scenario.harm or ''}")
    spread = Counter(stem for stems in about.values() for stem in stems)

    def rate(name: str) -> float:
        total = 0.0
        for meant in wanted:
            total += max(
                (
                    math.log(1 + len(own) / spread[stem]) * (_OWN_WORD_WEIGHT if stem in own[name] else 1) / rank
                    for rank, stem in meant
                    if stem in about[name]
                ),
                default=0.0,
            )
        return total

    wanted = [_list_meanings(word) for word in re.findall(r"[\w-]+", " ".join(words).lower())]
    rated = sorted(((rate(name), name) for name in own), key=lambda pair: (-pair[0], pair[1]))
    best = rated[0][0]
    return [DEFECTS[name] for rate_of_it, name in rated[:_MOST_SHOWN] if rate_of_it > best / 3 and best]


def _list_meanings(word: str) -> list[tuple[int, str]]:
    """Give the stems of a word, and of what it means here; its own ones rank first."""
    meant = " ".join(list_remedies(word).values())
    meant += " ".join(f" {other}" for group in _SYNONYM_GROUPS if word in group for other in group)
    return [*((1, stem) for stem in _count_stems(word)), *((3, stem) for stem in _count_stems(meant))]


def _count_stems(text: str) -> Counter[str]:
    words = re.findall(r"[a-z]+", text.lower())
    return Counter(_cut_to_stem(word) for word in words if word not in _STOP_WORDS)


def _cut_to_stem(word: str) -> str:
    """Give a word without its ending, so that `kills`, `killed` and `killing` are one."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


def _make_defect_row(defect: Defect) -> dict[str, Any]:
    """Give a defect as an object of JSON."""
    return {"name": defect.name, "rule": defect.breaks, "story": defect.story, "harmless": defect.harmless}
