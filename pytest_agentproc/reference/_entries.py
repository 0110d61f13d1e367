"""Owns the entries of the reference: each word with its text, facts and example. Refuses to write pages."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from shlex import quote
from typing import TYPE_CHECKING

from pytest_agentproc.defects import DEFECTS
from pytest_agentproc.reference._bundled_scenarios import choose_excerpts, read_bundled_scenarios
from pytest_agentproc.scenario import list_key_tables
from pytest_agentproc.verdict import VERDICT_TEXTS, Verdict
from pytest_agentproc.vocabulary import (
    BUG_FAMILIES,
    LEVEL_TEXTS,
    LIMIT_TEXTS,
    LIMITS_IN_BYTES,
    LIMITS_THAT_ARE_LISTS,
    OUTCOME_TEXTS,
    RULES,
    SIGNAL_NUMBER_BY_NAME,
    SIGNAL_TEXTS,
    Policy,
    list_remedies,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.reference._bundled_scenarios import BundledScenario
    from pytest_agentproc.scenario import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An example that runs.

    Args:
        text: lines of a file; empty: the commands are all.
        language: of these lines.
        file: the name of that file; empty: they are a part of what the commands run.
        commands: what to type, one after the other.
    """

    text: str = ""
    language: str = "yaml"
    file: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceEntry:
    """One word of the reference.

    Args:
        kind: what it is, such as `rule` or `step`.
        name: the word; a key that stands below another one is named with it: `turns: elapsed`.
        says: what it means, in whole sentences.
        facts: titles, each with its text.
        example: how it is used.
    """

    kind: str
    name: str
    says: str
    facts: tuple[tuple[str, str], ...] = ()
    example: Example


@cache
def list_entries() -> tuple[ReferenceEntry, ...]:
    """Give every entry, kind by kind, in the order of the tables."""
    return (
        *_list_rule_entries(),
        *_list_outcome_entries(),
        *_list_verdict_entries(),
        *_list_level_entries(),
        *_list_key_entries(),
        *_list_signal_entries(),
        *_list_defect_entries(),
        *_list_family_entries(),
    )


def find_entries(word: str) -> tuple[list[ReferenceEntry], list[str]]:
    """Find the entries of a word; if there is none, the names that it may mean.

    Small and capital letters are the same. The last part of a name is enough: `elapsed` finds `turns: elapsed`, too.
    A signal may have its SIG.
    """
    known = list_entries()
    wanted = _normalize_name(word)
    found = [entry for entry in known if wanted in _list_own_names(entry)]
    found += [
        entry for entry in known if wanted == _normalize_name(entry.name.rpartition(": ")[2]) and entry not in found
    ]
    return found, [] if found else _find_near_names(wanted, known)


def _list_own_names(entry: ReferenceEntry) -> tuple[str, ...]:
    name = _normalize_name(entry.name)
    return (name, f"sig{name}") if entry.kind == "signal" else (name,)


def _find_near_names(wanted: str, known: tuple[ReferenceEntry, ...]) -> list[str]:
    """Give the names that have the word in them, then those that are spelled like it, whole or in their last part."""
    names = {_normalize_name(entry.name): entry.name for entry in known}
    names |= {_normalize_name(entry.name.rpartition(": ")[2]): entry.name for entry in known if ": " in entry.name}
    near = [name for plain, name in names.items() if len(wanted) > 1 and wanted in plain.split()]
    near += [names[plain] for plain in get_close_matches(wanted, names, 3)]
    return [*dict.fromkeys(near)][:5]


def find_meanings(word: str) -> list[str]:
    """Say what to write for a word of other tools, once for each kind of word that it may be."""
    found = list_remedies(word, _KINDS_WITH_MEANINGS).items()
    return [
        says if kind == "note" else f"as {'an' if kind[0] in 'aeiou' else 'a'} {kind}: {says}" for kind, says in found
    ]


_KINDS_WITH_MEANINGS = ("note", "step", "limit", "expect key", "outcome", "verdict", "level", "drive item", "file key")
"""The kinds of words that are explained, of those in the table of synonyms; the others are keys of one mapping."""


def _normalize_name(name: str) -> str:
    return " ".join(re.split(r"[\s:._-]+", name.lower()))


def _make_sentence(clause: str) -> str:
    """Make a sentence of the clause that a table has."""
    clause = clause.strip()
    return f"{clause[0].upper()}{clause[1:]}{'' if clause[-1] in '.!?' else '.'}"


def _list_rule_entries() -> Iterator[ReferenceEntry]:
    for name, rule in RULES.items():
        facts = (
            ("Why", rule.why),
            ("A public report", rule.report),
            ("The reference supervisor", rule.reference),
            ("Left open", rule.open),
            ("Bug families", ", ".join(family for family, (_, rules) in BUG_FAMILIES.items() if name in rules)),
            ("Defects that break it", ", ".join(defect.name for defect in DEFECTS.values() if defect.breaks == name)),
            ("Bundled scenarios", str(sum(name in scenario.covers for scenario in read_bundled_scenarios()))),
        )
        example = Example(commands=(f"agentproc list --rule {name}", f"agentproc conform reference --rule {name}"))
        yield ReferenceEntry(
            kind="rule", name=name, says=_make_sentence(rule.demands), facts=_drop_empty_facts(facts), example=example
        )


def _drop_empty_facts(facts: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((title, text) for title, text in facts if text)


def _list_outcome_entries() -> Iterator[ReferenceEntry]:
    keys = [
        key for table in list_key_tables() for key in table.keys if key.name == "outcome" and table.kind == "expect key"
    ]
    for outcome, (says, advice) in OUTCOME_TEXTS.items():
        codes = " or ".join(map(str, outcome.exit_codes)) or "the agent's own, at least 1"
        facts = (("What to do", advice), ("Exit code", codes), ("Limit", outcome.limit or ""))
        yield ReferenceEntry(
            kind="outcome",
            name=outcome,
            says=says,
            facts=_drop_empty_facts(facts),
            example=_find_example(keys, outcome),
        )


def _find_example(keys: list[Key], value: str = "") -> Example:
    """Take the first excerpt that there is for one of these keys. A new key has none until a scenario uses it."""
    found = (choose_excerpts().get((id(key), value)) for key in keys)
    text, scenario = next(filter(None, found), ("", ""))
    return Example(text=text, commands=(f"agentproc run {quote(scenario)}",) if scenario else ())


_SCENARIO_THAT_COMPLETES, _SCENARIO_THAT_IS_INACTIVE = "claude-exits-1-after-a-good-result", "silent-past-the-limit"
_EXAMPLE_CORPUS_COMMAND = "pytest --agentproc-corpus -k lingers-and-ignores-term"
_EXAMPLE_OF_RAISING_SUPERVISOR = '''\
import subprocess


def supervise(request):
    """Raise CalledProcessError for an agent that exits with 1."""
    subprocess.run(request.argv, env=request.env, stdin=subprocess.DEVNULL, check=True)
'''
_EXAMPLES_BY_VERDICT = {
    Verdict.KIT_ERROR: Example(commands=(f"{_EXAMPLE_CORPUS_COMMAND} --agentproc-repeat=2",)),
    Verdict.ADAPTER_ERROR: Example(commands=(f"agentproc run {_SCENARIO_THAT_COMPLETES} --subject builtins:repr",)),
    Verdict.CRASHED: Example(
        text=_EXAMPLE_OF_RAISING_SUPERVISOR,
        language="python",
        file="mine.py",
        commands=(f"agentproc run {_SCENARIO_THAT_COMPLETES} --subject mine:supervise",),
    ),
    Verdict.FAILED: Example(commands=("agentproc run lingers-and-ignores-term --defect waits-for-exit",)),
    Verdict.UNDECIDED: Example(commands=(f"agentproc run {_SCENARIO_THAT_COMPLETES} --command '{{agent}}'",)),
    Verdict.KNOWN: Example(
        commands=(
            f"{_EXAMPLE_CORPUS_COMMAND} --agentproc-defect=waits-for-exit --agentproc-update-baseline",
            f"{_EXAMPLE_CORPUS_COMMAND} --agentproc-defect=waits-for-exit",
        )
    ),
    Verdict.NOT_EXERCISED: Example(commands=(f"agentproc run {_SCENARIO_THAT_IS_INACTIVE} --subject null",)),
    Verdict.NOT_APPLICABLE: Example(commands=(f"agentproc run {_SCENARIO_THAT_IS_INACTIVE} --command '{{agent}}'",)),
    Verdict.PASSED: Example(commands=("agentproc run lingers-and-ignores-term",)),
}


def _list_verdict_entries() -> Iterator[ReferenceEntry]:
    for verdict, (says, advice) in VERDICT_TEXTS.items():
        facts = (("What to do", advice),)
        yield ReferenceEntry(
            kind="verdict", name=verdict, says=says, facts=facts, example=_EXAMPLES_BY_VERDICT[verdict]
        )


def _list_level_entries() -> Iterator[ReferenceEntry]:
    keys = {
        key.name: key
        for table in list_key_tables()
        if table.kind == "file key" and not table.path
        for key in table.keys
    }
    effects = {
        "must": "The test fails, and the supervisor is not conformant.",
        "should": "The test fails. The check is counted, and decides nothing.",
        "info": "The test fails for the reference supervisor only. The check is not counted.",
    }
    for level, says in LEVEL_TEXTS.items():
        facts = (("If such a check fails", effects[level]),)
        example = _find_example([keys.get(level, keys["harm"])])
        yield ReferenceEntry(kind="level", name=level, says=says, facts=facts, example=example)


def _list_key_entries() -> Iterator[ReferenceEntry]:
    for table in list_key_tables():
        for key in table.keys:
            name = f"{table.path}: {key.name}" if table.path else key.name
            facts = _list_limit_facts(key) if table.kind == "limit" else _list_key_facts(key)
            says = LIMIT_TEXTS[key.name] if table.kind == "limit" else key.doc
            yield ReferenceEntry(
                kind=table.kind, name=name, says=_make_sentence(says), facts=facts, example=_find_example([key])
            )


def _list_key_facts(key: Key) -> tuple[tuple[str, str], ...]:
    also = getattr(key, "also", None)
    beside = f", and beside it `{also.name}:` {also.kind.label}" if also is not None else ""
    return (("Value", f"{key.kind.label}{beside}"), *getattr(key.kind, "meanings", ()))


def _list_limit_facts(key: Key) -> tuple[tuple[str, str], ...]:
    value = getattr(Policy(), key.name)
    if key.name in LIMITS_THAT_ARE_LISTS:
        default = "[]"
    elif value is None:
        default = "none"
    elif isinstance(value, str):
        default = value
    else:
        default = f"{value // 1024**2} MiB" if key.name in LIMITS_IN_BYTES else f"{value:g} s"
    return (("Value", key.kind.label), ("Default of the reference supervisor", default))


def _list_signal_entries() -> Iterator[ReferenceEntry]:
    keys = [key for table in list_key_tables() if table.kind == "step" for key in table.keys]
    users = [key for key in keys if key.name in ("signal", "die")]
    for name, says in SIGNAL_TEXTS.items():
        number = SIGNAL_NUMBER_BY_NAME.get(name, getattr(signal, f"SIG{name}", None))
        facts = (("Number", str(int(number)) if number is not None else ""),)
        yield ReferenceEntry(
            kind="signal", name=name, says=says, facts=_drop_empty_facts(facts), example=_find_example(users, name)
        )


def _list_defect_entries() -> Iterator[ReferenceEntry]:
    shown: dict[str, BundledScenario] = {}
    for bundled_scenario in read_bundled_scenarios():
        for name in bundled_scenario.catches:
            shown[name] = min(
                bundled_scenario, shown.get(name, bundled_scenario), key=lambda scenario: len(scenario.text)
            )
    for name, defect in DEFECTS.items():
        facts = (
            ("Rule", f"{defect.breaks}: {RULES[defect.breaks].demands}"),
            ("Why it fails no must", defect.harmless),
            ("Runs or sessions", defect.one_kind),
        )
        example = Example(commands=(f"agentproc run {quote(shown[name].id)} --defect {name}",) if name in shown else ())
        says = _make_sentence(f"a supervisor with this defect {defect.story}")
        yield ReferenceEntry(kind="defect", name=name, says=says, facts=_drop_empty_facts(facts), example=example)


def _list_family_entries() -> Iterator[ReferenceEntry]:
    for name, (title, rules) in BUG_FAMILIES.items():
        facts = (("Rules", ", ".join(rules)),)
        example = Example(commands=(f"agentproc list --family {name}",))
        yield ReferenceEntry(kind="bug family", name=name, says=_make_sentence(title), facts=facts, example=example)
