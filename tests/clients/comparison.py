"""Public supervisors and the kit's own, judged by the same scenarios; makes COMPARISON.md of it. Knows no client.

Scenarios that need a missing ability of a client, in its adapter's words or the kit's, are not applicable to it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.verdict import Verdict, choose_overall_verdict, judge_all_expectations, list_unmet_checks
from pytest_agentproc.vocabulary import RULES
from tests.bundled import load_all_for_functions
from tests.clients import codex_subject
from tests.clients.packages import NPM, PYPI, install_from_pypi

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject

__all__ = ["ADAPTERS", "PAGE", "shorten", "write_page_text"]

_HERE = Path(__file__).parent
PAGE = _HERE / "COMPARISON.md"
ADAPTERS = sorted(_HERE.glob("*_subject.py"))
_HEAD = """# Public supervisors, judged by the bundled scenarios

Each is unmodified, behind an adapter that states the limits that it keeps by itself, and is asked only for what it has.
The kit's own supervisor passes all of these scenarios. All run in virtual time, so nothing here depends on how fast a
machine is. Made by `python -m tests.clients.comparison`.

A check at level `must` that fails harms a user, and the table says how. A check at level `should` is good practice that
a careful program may do otherwise.

Not judged: the command-line mode of claude (both Python clients hold sessions), and several sessions at a time. What
else is not applicable is listed with what it needs; prompts that wait for one another wait in the kit, not in a client.
"""
_BY_RULE = """## By rule

A cell is passed / must failed / should failed / undecided. An empty cell: nothing applied.
"""
_NEED = "need"
_LONGEST = 90
_CODEX = "@openai/codex-sdk"


@dataclass(frozen=True)
class _ComparedClient:
    """A supervisor under test, and the facts for judging it.

    Args:
        package: the installed package.
        version: its version.
        subject: the supervisor under test, in its adapter.
        agent: the dialect and mode of the scenarios.
    """

    package: str
    version: str
    subject: Subject
    agent: tuple[str, str]


@dataclass(frozen=True)
class _ScenarioResult:
    """The result of a scenario.

    Args:
        verdict: over all of it.
        failed: the checks that failed, by level, in words; or what it needs, if it is not applicable.
        reference: the verdict on the kit's own supervisor.
    """

    scenario: Scenario
    verdict: Verdict
    failed: dict[str, str]
    reference: Verdict


def _list_clients() -> list[_ComparedClient]:
    folder = str(install_from_pypi())
    sys.path.append(folder)
    try:
        claude = import_module("tests.clients.claude_subject").SUBJECT
        acp = import_module("tests.clients.acp_subject").SUBJECT
    finally:
        sys.path.remove(folder)
    codex = codex_subject.build_subject()
    return [
        _ComparedClient("claude-agent-sdk", PYPI["claude-agent-sdk"], claude, ("claude", "session")),
        _ComparedClient("agent-client-protocol", PYPI["agent-client-protocol"], acp, ("acp", "session")),
        _ComparedClient(_CODEX, NPM["codex-sdk"][_CODEX], codex, ("codex", "exec")),
    ]


def _judge_client(runner: ScenarioRunner, client: _ComparedClient) -> Iterator[_ScenarioResult]:
    for scenario in load_all_for_functions():
        if scenario.parts or (scenario.dialect, scenario.mode) != client.agent or scenario.level == "info":
            continue
        verdict, failed = _judge_scenario(runner, scenario, client)
        yield _ScenarioResult(
            scenario,
            verdict,
            failed,
            choose_overall_verdict(judge_all_expectations(runner.play(scenario, reference_supervisor()))),
        )


def _judge_scenario(
    runner: ScenarioRunner, scenario: Scenario, client: _ComparedClient
) -> tuple[Verdict, dict[str, str]]:
    """Run a scenario, and give its result with the first failed check of each level, or with its needs."""
    try:
        played = runner.play(scenario, client.subject)
    except NotApplicable as limit:
        return Verdict.NOT_APPLICABLE, {_NEED: limit.name}
    rows = judge_all_expectations(played)
    verdict = choose_overall_verdict(rows, counts_info=False)
    assert verdict not in (Verdict.ADAPTER_ERROR, Verdict.KIT_ERROR), f"{scenario.id}: {rows[0].seen}"
    if verdict is Verdict.NOT_APPLICABLE:
        return verdict, {_NEED: "other limits"}
    failed = {
        row.level: f"`{row.key}`: expected {shorten(row.wanted)}, seen {shorten(row.seen)}"
        for row in reversed(list_unmet_checks(rows))
        if row.verdict is Verdict.FAILED and row.level != "info"
    }
    return verdict, failed


def shorten(text: str) -> str:
    """Make it short, and leave out the details of this run alone: the chain of waiting processes, and any pid."""
    text = re.sub(r"(no outcome: )?deadlock: .*", "no end: it waits for ever", " ".join(text.split()))
    text = re.sub(r"(no outcome: )?(stall|endless wait|late): .*", "no end: it waits on and on", text)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return text.replace("|", "\\|")


def _count_verdicts(results: Sequence[_ScenarioResult]) -> list[int]:
    """Count what passed, failed at level must, failed at level should, is undecided, and is not applicable."""
    found = Counter(result.verdict for result in results)
    failed = [sum(level in result.failed for result in results) for level in ("must", "should")]
    undecided = found[Verdict.UNDECIDED] + found[Verdict.NOT_EXERCISED]
    return [found[Verdict.PASSED], *failed, undecided, found[Verdict.NOT_APPLICABLE]]


def _format_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def write_page_text() -> str:
    """Play everything, and write the page: figures, rule by rule, and every red in one line."""
    with ScenarioRunner() as runner:
        found = [(client, [*_judge_client(runner, client)]) for client in _list_clients()]
    figures: list[list[object]] = [
        [f"{client.package} {client.version}", *_count_verdicts(results)] for client, results in found
    ]
    head = ["supervisor", "passed", "must failed", "should failed", "undecided", "not applicable"]
    red = [result.scenario.id for _, results in found for result in results if result.reference is not Verdict.PASSED]
    assert red == [], "the kit's own supervisor passes every scenario of this page"
    parts = [_HEAD, _format_table(head, figures)]
    parts += [_BY_RULE, _build_table_by_rule(found)]
    parts += ["## What is not applicable, by what it needs\n", _build_table_by_need(found)]
    for client, results in found:
        name = f"{client.package} {client.version}"
        musts = [[it.scenario.id, it.failed["must"], it.scenario.harm] for it in results if "must" in it.failed]
        shoulds = [[it.scenario.id, it.failed["should"]] for it in results if "should" in it.failed]
        parts += [f"## What {name} fails at level must\n", _format_table(["scenario", "check", "harm"], musts)]
        parts += [f"## What {name} fails at level should\n", _format_table(["scenario", "check"], shoulds)]
    return "\n".join(parts)


def _build_table_by_rule(found: Sequence[tuple[_ComparedClient, Sequence[_ScenarioResult]]]) -> str:
    rows: list[list[object]] = []
    for rule in RULES:
        cells: list[object] = []
        for _, results in found:
            applied = [it for it in results if rule in it.scenario.covers and it.verdict != Verdict.NOT_APPLICABLE]
            cells += [" / ".join(str(count) for count in _count_verdicts(applied)[:4]) if applied else ""]
        if any(cells):
            rows.append([f"{rule} {RULES[rule].demands}", *cells])
    return _format_table(["rule", *(client.package for client, _ in found)], rows)


def _build_table_by_need(found: Sequence[tuple[_ComparedClient, Sequence[_ScenarioResult]]]) -> str:
    counts = [Counter(it.failed[_NEED] for it in results if _NEED in it.failed) for _, results in found]
    needs = sorted({need for count in counts for need in count})
    rows = [[need, *(count[need] or "" for count in counts)] for need in needs]
    return _format_table(["needs", *(client.package for client, _ in found)], rows)


def main() -> None:
    """Write the page."""
    PAGE.write_text(write_page_text(), "utf-8")


if __name__ == "__main__":
    main()
