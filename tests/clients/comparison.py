"""Public supervisors and the kit's own, judged by the same scenarios; makes COMPARISON.md of it. Knows no client.

Scenarios that need what a client does not have, in its adapter's words or in the kit's, are not applicable to it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.harness import Lab, NotForReal
from pytest_agentproc.scenario import NotApplicable, load
from pytest_agentproc.subjects import core
from pytest_agentproc.verdict import Verdict, compare, conclude, unmet
from pytest_agentproc.vocabulary import RULES
from tests.clients import codex_subject
from tests.clients.packages import NPM, PYPI, from_pypi

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject

__all__ = ["ADAPTERS", "PAGE", "page"]

_HERE = Path(__file__).parent
PAGE = _HERE / "COMPARISON.md"
ADAPTERS = sorted(_HERE.glob("*_subject.py"))
_SCENARIOS = _HERE.parent.parent / "scenarios"
_HEAD = """# Public supervisors, judged by the bundled scenarios

Each is unmodified, behind an adapter that states the limits that it keeps by itself, and is asked only for what it has.
The kit's own core is judged by the same scenarios, side by side. A time is one of the scenario's clock; nothing here
depends on how fast a machine is. Made by `python -m tests.clients.comparison`.

Not judged: the command-line mode of claude (both Python clients hold sessions), several sessions at a time, and, of a
program in real time, three scenarios that are decided by how fast it starts: codex-fails, codex-gives-up and
codex-lingers-after-its-failure. What else is not applicable is listed with what it needs; prompts that wait for one
another wait in the kit, not in a client.
"""
_LONGEST = 90
_HURRIED = ("codex-fails", "codex-gives-up", "codex-lingers-after-its-failure")
"""In real time these are decided by how fast Node starts."""
_CODEX = "@openai/codex-sdk"


@dataclass(frozen=True)
class _Contender:
    """A subject, and what it is judged by.

    Args:
        package: what is installed.
        version: of it.
        subject: behind its adapter.
        agent: the dialect and mode of the scenarios.
        is_real: whether it is a program, so that its clock is the machine's.
    """

    package: str
    version: str
    subject: Subject
    agent: tuple[str, str]
    is_real: bool = False


@dataclass(frozen=True)
class _Result:
    scenario: Scenario
    verdict: Verdict
    words: str
    core: Verdict


def _contenders() -> list[_Contender]:
    folder = str(from_pypi())
    sys.path.append(folder)
    try:
        claude = import_module("tests.clients.claude_subject").SUBJECT
        acp = import_module("tests.clients.acp_subject").SUBJECT
    finally:
        sys.path.remove(folder)
    codex = codex_subject.subject()
    return [
        _Contender("claude-agent-sdk", PYPI["claude-agent-sdk"], claude, ("claude", "session")),
        _Contender("agent-client-protocol", PYPI["agent-client-protocol"], acp, ("acp", "session")),
        _Contender(_CODEX, NPM["codex-sdk"][_CODEX], codex, ("codex", "exec"), is_real=True),
    ]


def _judged(lab: Lab, one: _Contender) -> Iterator[_Result]:
    for path in sorted(_SCENARIOS.glob("*.scenario.yaml")):
        scenario = load(path)
        if scenario.parts or (scenario.dialect, scenario.mode) != one.agent or scenario.level == "info":
            continue
        if one.is_real and scenario.id in _HURRIED:
            continue
        verdict, words = _verdict(lab, scenario, one)
        yield _Result(scenario, verdict, words, conclude(compare(lab.play(scenario, core()))))


def _verdict(lab: Lab, scenario: Scenario, one: _Contender) -> tuple[Verdict, str]:
    """Play a scenario, and give what it came to with the gravest of its reds, or what it needs, in words."""
    try:
        played = (lab.play_real if one.is_real else lab.play)(scenario, one.subject)
    except NotApplicable as limit:
        return Verdict.NOT_APPLICABLE, limit.name
    except NotForReal:
        return Verdict.NOT_APPLICABLE, "virtual time"
    rows = compare(played)
    verdict = conclude(rows)
    assert verdict not in (Verdict.ADAPTER_ERROR, Verdict.KIT_ERROR), f"{scenario.id}: {rows[0].seen}"
    if verdict is not Verdict.FAILED:
        return verdict, "other limits" if verdict is Verdict.NOT_APPLICABLE else ""
    row = unmet(rows)[0]
    return verdict, f"`{row.key}`: expected {_short(row.wanted)}, seen {_short(row.seen)}"


def _short(text: str) -> str:
    """Make it short, and leave out what is of this play alone: who of whom waits for what, and any pid."""
    text = re.sub(r"(no outcome: )?deadlock: .*", "no end: it waits for ever", " ".join(text.split()))
    text = re.sub(r"(no outcome: )?(stall|late): .*", "no end: it waits on and on", text)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return text.replace("|", "\\|")


def _count(verdicts: Sequence[Verdict]) -> list[int]:
    found = Counter(verdicts)
    undecided = found[Verdict.UNDECIDED] + found[Verdict.NOT_EXERCISED]
    return [found[Verdict.PASSED], found[Verdict.FAILED], undecided, found[Verdict.NOT_APPLICABLE]]


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def page() -> str:
    """Play everything, and write the page: figures, rule by rule, and every red in one line."""
    with Lab() as lab:
        found = [(one, [*_judged(lab, one)]) for one in _contenders()]
    figures: list[list[object]] = []
    for one, results in found:
        clock = "real" if one.is_real else "virtual"
        figures.append([f"{one.package} {one.version}", clock, *_count([result.verdict for result in results])])
        judged = [result.core for result in results if result.verdict is not Verdict.NOT_APPLICABLE]
        figures.append(["core, on those that apply", "virtual", *_count(judged)])
    head = ["supervisor", "clock", "passed", "failed", "undecided", "not applicable"]
    parts = [_HEAD, _table(head, figures)]
    parts += ["## By rule\n\nA cell is passed / failed / undecided; no cell: nothing applied.\n", _by_rule(found)]
    parts += ["## What is not applicable, by what it needs\n", _by_need(found)]
    for one, results in found:
        reds = [[result.scenario.id, result.words] for result in results if result.verdict is Verdict.FAILED]
        parts += [f"## What {one.package} {one.version} fails\n", _table(["scenario", "check"], reds)]
    return "\n".join(parts)


def _by_rule(found: Sequence[tuple[_Contender, Sequence[_Result]]]) -> str:
    names = [f"{name}" for one, _ in found for name in (one.package, "core")]
    rows: list[list[object]] = []
    for rule in RULES:
        cells: list[object] = []
        for _, results in found:
            applied = [one for one in results if rule in one.scenario.covers and one.verdict != Verdict.NOT_APPLICABLE]
            for verdicts in ([one.verdict for one in applied], [one.core for one in applied]):
                cells += [" / ".join(str(count) for count in _count(verdicts)[:3]) if verdicts else ""]
        if any(cells):
            rows.append([f"{rule} {RULES[rule]}", *cells])
    return _table(["rule", *names], rows)


def _by_need(found: Sequence[tuple[_Contender, Sequence[_Result]]]) -> str:
    counts = [Counter(one.words for one in results if one.verdict is Verdict.NOT_APPLICABLE) for _, results in found]
    needs = sorted({need for count in counts for need in count})
    rows = [[need, *(count[need] or "" for count in counts)] for need in needs]
    return _table(["needs", *(one.package for one, _ in found)], rows)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
