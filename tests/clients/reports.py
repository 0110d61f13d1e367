"""The programs of the five reports before and after their fixes, each with the scenario of its report; makes a page.

The packages of npm are unmodified. The other programs are no packages, so a program of ours has their structure and
their limits; for the one that was never fixed, it is the reference supervisor with a defect.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc import defects
from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import load
from pytest_agentproc.subjects import Command, ReferenceSupervisor, load_command_file, reference_supervisor
from pytest_agentproc.verdict import Verdict, judge_play
from tests.bundled import load_bundled
from tests.clients.comparison import shorten
from tests.clients.packages import fill_cached_folder, find_node, find_program_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_agentproc.vocabulary import Subject

__all__ = ["PAGE", "PROGRAMS", "Program", "build_acp_program", "run_report", "write_page_text"]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "programs-of-the-reports.md"
_FILES = Path(__file__).parent / "programs"
_ACP_FILE = _FILES / "claude_agent_acp.toml"
_OWN = {file.name.removesuffix(".scenario.yaml"): file for file in _FILES.glob("*.scenario.yaml")}
"""The scenarios that are not bundled."""


def build_acp_program(version: str) -> Command:
    """Give claude-agent-acp of a version. Its description stands beside its package, as a user has it."""
    made = load_command_file(find_program_beside(f"claude-agent-acp-{version}", _ACP_FILE.name))
    made.name = f"claude-agent-acp {version}"
    return made


def _build_bridge(version: str) -> Command:
    """Give the bridge of the first report: 180 s of silence, and after its fix 600 s for a tool of claude's own."""
    words = [find_node(), str(_FILES / "silence_bridge.mjs"), version, "{agent}"]
    limits = {"inactivity_timeout": 180, "internal_tool_timeout": 600}
    outcome = {"exit_code": {0: "completed", 10: "tool_use", 124: "inactive", "other": "failed"}}
    return Command(words, limits=limits, says={"outcome": outcome, "text": "stdout"}, dialects=["claude"])


def _build_wrapper(version: str) -> Command:
    """Give the wrapper of the second report: 250 ms to TERM and to KILL after its fix."""
    words = [find_node(), str(_FILES / "subagent_wrapper.mjs"), version, "{folder}/result.json", "{prompt}"]
    answer = {"json": "result.json", "key": "finalText"}
    outcome = {"json": "result.json", "key": "exitCode", "words": {0: "completed", "other": "failed"}}
    limits = {"linger_grace": 0.25, "linger_kill_grace": 0.25}
    return Command(words, limits=limits, says={"outcome": outcome, "text": answer}, dialects=["pi"], on_path=True)


def _build_subagents() -> Command:
    """Give pi-subagents: 1 s to TERM, and 3 s from there to KILL."""
    words = [find_node(), str(find_program_beside("pi-subagents", "pi_subagents.mjs")), "{prompt}"]
    says = {"outcome": {"exit_code": {0: "completed", "other": "failed"}}, "text": "stdout"}
    return Command(words, limits={"linger_grace": 1, "linger_kill_grace": 3}, says=says, dialects=["pi"], on_path=True)


def _build_server(version: str) -> Command:
    """Give the server of the fourth report, in Rust: 120 s for the whole run, and after its fix 120 s of silence."""
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("rustc is not installed")
    source = _FILES / "batch_server.rs"

    def compile_into(folder: Path) -> list[str]:
        return [compiler, str(source), "-o", str(folder / source.stem)]

    program = fill_cached_folder("batch-server", [source.read_text("utf-8")], compile_into) / source.stem
    outcome = {"exit_code": {0: "completed", 124: "inactive", "other": "failed"}}
    words = [str(program), version, "{agent}"]
    return Command(words, limits={"inactivity_timeout": 120}, says={"outcome": outcome, "text": "stdout"})


def _build_defective_supervisor(name: str) -> ReferenceSupervisor:
    defect = defects.find_defect(name)
    return ReferenceSupervisor(name, defect.deciders, defect.session_deciders)


@dataclass(frozen=True)
class Program:
    """A program of a report.

    Args:
        report: the heading of its report in docs/explanation/five-reports.md.
        name: the program and its state.
        scenario: the scenario of the report.
        subject: makes it.
        failed: the first check that fails, or nothing.
    """

    report: str
    name: str
    scenario: str
    subject: Callable[[], Subject]
    failed: str = ""


_SILENT, _LINGERS, _BATCH = "claude-silent-subagent", "lingers-after-its-answer", "byte-a-minute"
_TRAPS = "pi-traps-term-exits-143"
_TIMEOUT, _STALE, _LATE = "session-timeout-cancels-the-turn", "next-answer", "background-before-the-next-prompt"
PROGRAMS = (
    Program("pi-claude-cli", "Node program, before the fix", _SILENT, partial(_build_bridge, "before"), "outcome"),
    Program("pi-claude-cli", "Node program, after the fix", _SILENT, partial(_build_bridge, "after")),
    Program("pi-subagents", "Node program, before the fix", _LINGERS, partial(_build_wrapper, "before"), "outcome"),
    Program("pi-subagents", "Node program, after the fix", _LINGERS, partial(_build_wrapper, "after")),
    Program("pi-subagents", "pi-subagents 0.34.0", _LINGERS, _build_subagents),
    Program("pi-subagents", "Node program, after the fix", _TRAPS, partial(_build_wrapper, "after"), "outcome"),
    Program("pi-subagents", "pi-subagents 0.34.0", _TRAPS, _build_subagents),
    Program(
        "simple-agent-manager",
        "reference supervisor, defect `timeout-kills-the-agent`",
        _TIMEOUT,
        partial(_build_defective_supervisor, "timeout-kills-the-agent"),
        "turns.2.outcome",
    ),
    Program("simple-agent-manager", "reference supervisor", _TIMEOUT, reference_supervisor),
    Program("surreal-mind", "Rust program, before the fix", _BATCH, partial(_build_server, "before"), "outcome"),
    Program("surreal-mind", "Rust program, after the fix", _BATCH, partial(_build_server, "after")),
    *(
        Program(
            "claude-agent-acp", f"claude-agent-acp {version}", scenario, partial(build_acp_program, version), failed
        )
        for version, scenario, failed in (
            ("0.20.2", _STALE, "turns.2.text"),
            ("0.23.1", _STALE, ""),
            ("0.23.1", _LATE, "turns.2.text"),
            ("0.101.0", _LATE, ""),
        )
    ),
)

_HEAD = """# The programs of the five reports

The [five reports](five-reports.md) are about public programs. Here each program, or one with
its structure and its limits, runs against the scenario of its report: in virtual time, before its fix and after it. No
run takes more than a few real seconds. This page is made by `python -m tests.clients.reports`.

| report | program | scenario | result | virtual time |
| --- | --- | --- | --- | --- |
"""
_TAIL = """
claude-agent-acp and pi-subagents are unmodified, as npm installs them. Since version 0.24 the package of
claude-agent-acp is `@agentclientprotocol/claude-agent-acp`. Its fix in 0.23.1 holds a turn open until claude is idle.
That does not help if claude works again after it was idle. `next-answer` is the report's own case, in
`tests/clients/programs`. The other scenarios are bundled ones.

The other programs are no packages of npm, or npm has no version from before the fix. So programs with their structure
and their limits stand for them: `silence_bridge.mjs`, `subagent_wrapper.mjs` and `batch_server.rs` in
`tests/clients/programs`. The plan for simple-agent-manager was never carried out, so the {term}`reference supervisor`
stands for that program.

## Run claude-agent-acp yourself

Install a version, and describe it beside `node_modules`:

```sh
npm install @zed-industries/claude-agent-acp@0.20.2
```

```toml
# claude_agent_acp.toml
FILE
```

Then have it judged. The fake is its claude, and the kit is its editor:

```text
$ pytest --agentproc-corpus --agentproc-subject=claude_agent_acp.toml -k background
```
"""


def run_report(runner: ScenarioRunner, program: Program) -> tuple[str, str]:
    """Run a program with the scenario of its report; give the first check that fails, if any, and the page's row."""
    scenario = load(_OWN[program.scenario]) if program.scenario in _OWN else load_bundled(program.scenario)
    played = runner.play(scenario, program.subject())
    assert played.record.header["clock"] == "virtual", played.record.header
    failed, words = "", "passes"
    for row in judge_play(played, is_reference=False).rows:
        assert row.verdict not in (Verdict.ADAPTER_ERROR, Verdict.KIT_ERROR, Verdict.CRASHED), row.seen
        if row.verdict is Verdict.FAILED and row.level == "must" and not failed:
            failed, words = row.key, f"`{row.key}`: expected {shorten(row.wanted)}, seen {shorten(row.seen)}"
    # On a machine without a free core Node may see two events of one instant in two rounds of its loop, and takes a
    # millisecond more: so the page has hundredths.
    seconds = round(max(event.at for event in played.record.events) / 1e9, 2)
    link = f"[{program.report}](five-reports.md#{program.report})"
    return failed, f"| {link} | {program.name} | `{program.scenario}` | {words} | {seconds:g} s |"


def write_page_text(rows: Sequence[str]) -> str:
    """Write the page."""
    description = _ACP_FILE.read_text("utf-8").partition("\n")[2].strip()
    return "\n".join([_HEAD.rstrip(), *rows, _TAIL.replace("FILE", description)])


def main() -> None:
    """Write the page."""
    with ScenarioRunner() as runner:
        PAGE.write_text(write_page_text([run_report(runner, program)[1] for program in PROGRAMS]), "utf-8")


if __name__ == "__main__":
    main()
