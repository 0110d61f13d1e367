"""The programs and their bugs: commits, scenario, driver and installation. Plays nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["CASES", "DRIVERS", "NOT_PLAYED", "OWN_SCENARIOS", "Case", "Program"]

_HERE = Path(__file__).parent
_CLIENTS = _HERE.parent / "clients"
DRIVERS = {
    file.name: file for file in (*(_CLIENTS / "found").glob("adapters.*"), *(_HERE / "drivers").glob("[a-z]*.*"))
}
"""The programs that call a public program as its documentation says, by file name."""
OWN_SCENARIOS = {
    file.name.removesuffix(".scenario.yaml"): file
    for folder in (_HERE, _CLIENTS / "programs")
    for file in folder.glob("*.scenario.yaml")
}
"""The scenarios that were written from a report, by id; all others are bundled."""


@dataclass(frozen=True)
class Program:
    """A public program that starts an agent CLI, and how it is called.

    Args:
        repository: its owner and name on GitHub.
        agent: the dialect of the agent that it starts.
        driver: a file of `DRIVERS` and its arguments; it runs in the checkout.
        install: the shell commands that install what it needs, in the checkout; `$PIP` and `$NPM` install packages.
        paths: what of the repository is checked out; without it, all.
        holds_sessions: the driver is an ACP agent, and the kit is its editor.
        limits: its limits, in seconds, and the tools of its host.
        env: variables of its environment.
    """

    repository: str
    agent: str
    driver: str
    install: str = ":"
    paths: str = ""
    holds_sessions: bool = False
    limits: dict[str, float | list[str]] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A bug of a program, and its fix.

    Args:
        program: the program.
        before: the last commit without the fix.
        after: the commit of the fix.
        says: what the fix is for, in one sentence of ours.
        scenario: the scenario that plays the report.
        key: the check that the report is about.
        note: what a reader has to know; a case that is not reproduced has the reason here.
    """

    program: Program
    before: str
    after: str
    says: str
    scenario: str
    key: str = "outcome"
    note: str = ""

    @property
    def name(self) -> str:
        """Give its name."""
        return f"{self.program.repository}@{self.after} {self.scenario}"


_BUNDLE = "npx esbuild --bundle --platform=node --format=esm --packages=external --log-level=error --outfile=wild.mjs"
_NO_DEV = "npm pkg delete devDependencies peerDependencies"
_TOOLS_OF_PI: list[str] = ["Read", "Write", "Edit", "Bash", "Grep", "Glob"]

_PI_CLAUDE_CLI_INSTALL = (
    f"{_NO_DEV}; $NPM cross-spawn@7.0.6 @mariozechner/pi-ai@0.52.12 esbuild@0.25.0; {_BUNDLE} src/provider.ts"
)
_PI_CLAUDE_CLI = Program(
    "teepark/pi-claude-cli",
    "claude",
    "pi_claude_cli.mjs",
    _PI_CLAUDE_CLI_INSTALL,
    holds_sessions=True,
    limits={"host_tools": _TOOLS_OF_PI},
)
_PI_CLAUDE_CLI_FORK = Program(
    "masonc15/pi-claude-cli", "claude", "pi_claude_cli.mjs", _PI_CLAUDE_CLI_INSTALL, holds_sessions=True
)
_PI_SUBAGENTS = Program(
    "nicobailon/pi-subagents",
    "pi",
    "pi_subagents.mjs wild.mjs {prompt}",
    f"{_NO_DEV}; $NPM esbuild@0.25.0; {_BUNDLE} execution.ts",
)
_CLAUDE_ACP = Program(
    "agentclientprotocol/claude-agent-acp",
    "claude",
    "acp_agent.mjs",
    "$NPM; npx tsc || test -f dist/index.js",  # one commit has a mistake of types in its tests
    holds_sessions=True,
    limits={"close_grace": 2, "kill_grace": 2},
    env={"CLAUDE_CODE_EXECUTABLE": "{agent_path}"},
)
_SDK_PY_RUN = Program(
    "anthropics/claude-agent-sdk-python", "claude", "adapters.py claude-code-sdk {prompt}", "$PIP anyio==4.9.0"
)
_SDK_PY = Program(
    "anthropics/claude-agent-sdk-python",
    "claude",
    "claude_agent_sdk.py",
    "$PIP anyio==4.9.0 mcp==1.12.4 pydantic==2.11.7 pydantic-settings==2.10.1",
    holds_sessions=True,
    limits={"close_grace": 5, "kill_grace": 5},
)
_SDK_TS = Program(
    "instantlyeasy/claude-code-sdk-ts",
    "claude",
    "claude_code_sdk_ts.mjs {prompt}",
    "$NPM; npm run build",
    limits={"max_runtime": 300},
)
_PI_ACP = Program(
    "svkozak/pi-acp",
    "pi",
    "acp_agent.mjs",
    "npm pkg delete peerDependencies; $NPM; npm run build",
    holds_sessions=True,
    limits={"close_grace": 2, "kill_grace": 2},
    env={"npm_config_offline": "true"},  # it asks npm for the newest pi, and virtual time ends at the network
)
_FACTORY = Program(
    "akashgit/remote-factory",
    "claude",
    "remote_factory.py {prompt}",
    "$PIP pydantic==2.11.7 structlog==25.4.0 pyyaml==6.0.2 filelock==3.18.0",
)
_KAI = Program("dcellison/kai", "claude", "kai.py", holds_sessions=True)
_DFIR = Program(
    "hasamba/DFIR-Companion",
    "codex",
    "dfir_companion.mjs {prompt}",
    f"$NPM --no-package-lock --prefix . esbuild@0.25.0 cross-spawn@7.0.6; {_BUNDLE} companion/src/providers/codex.ts",
    paths="companion/src",
)
_CODEX_MCP = Program(
    "tuannvm/codex-mcp-server",
    "codex",
    "adapters.mjs codex-mcp-server {prompt}",
    "$NPM; npx tsc; ln -s .. node_modules/codex-mcp-server",
)
_AI_SDK_CODEX = Program(
    "ben-vargas/ai-sdk-provider-codex-cli",
    "codex",
    "ai_sdk_codex.mjs {prompt_file}",
    "$NPM --legacy-peer-deps; npm run build; $NPM --no-save --legacy-peer-deps ai@6.0.30",
)

CASES = (
    Case(
        _PI_CLAUDE_CLI,
        "38b228d9",
        "ada9d3b6",
        "A tool that a sub-agent of claude uses no longer ends the run.",
        "claude-session-subagent-reads",
        "turns.1.outcome",
    ),
    Case(
        _PI_CLAUDE_CLI_FORK,
        "6a704666",
        "7c8b6a79",
        "The limit on silence is 360 s instead of 180 s.",
        "claude-session-sub-agent-is-silent-for-200-s",
        "turns.1.outcome",
        "This is the first of the [five reports](five-reports.md#pi-claude-cli). The report plans 600 s for a tool of "
        "claude's own. No public history that could be read has that commit. This fork has a longer limit on silence.",
    ),
    Case(
        _PI_SUBAGENTS,
        "51bfd708",
        "cf4cbe54",
        "An agent that lives on after its answer is ended.",
        "lingers-after-its-answer",
        note="This is the second of the [five reports](five-reports.md#pi-subagents). The fix gives SIGTERM, and so "
        "reports a success only for an agent that dies of it.",
    ),
    Case(
        _PI_SUBAGENTS,
        "51bfd708",
        "cf4cbe54",
        "A process that holds the stdout of an ended agent no longer blocks the run.",
        "leaves-a-child-on-its-pipes[pi]",
    ),
    Case(
        _PI_SUBAGENTS,
        "1311cb83",
        "27a677b3",
        "An agent that is ended after its answer counts as a success.",
        "lingers-after-its-answer",
        note="The bug came in between: at f1e27c5e, an end by a signal began to count as a failure.",
    ),
    Case(
        _CLAUDE_ACP,
        "3500b6c1",
        "7f1c6c20",
        "A turn ends when claude says that it is idle.",
        "next-answer",
        "turns.2.text",
        "This is the fifth of the [five reports](five-reports.md#claude-agent-acp).",
    ),
    Case(
        _CLAUDE_ACP,
        "2193a13a",
        "87a0886a",
        "The result of a background task does not end the next prompt.",
        "background-before-the-next-prompt",
        "turns.2.text",
        "The fix helps half: the prompt is no longer answered too early, but the words of the background turn still "
        "stand before its answer. The same check is red before and after.",
    ),
    Case(
        _CLAUDE_ACP,
        "5fd7873c",
        "91d629d6",
        "A cancel that crosses the first result no longer blocks the session for ever.",
        "session-cancel-before-the-turn-begins",
        "turns.2.outcome",
    ),
    Case(
        _SDK_PY_RUN,
        "7efa8b39",
        "87e2699f",
        "Two messages that arrive in one read are both read.",
        "claude-events-of-a-later-version",
    ),
    Case(
        _SDK_PY_RUN,
        "012e1d1f",
        "24295417",
        "A message of more than 64 KiB is read whole.",
        "claude-writes-a-long-line",
    ),
    Case(
        _SDK_PY_RUN,
        "0de87a2a",
        "fbda510e",
        "An agent that writes much to stderr no longer blocks for ever.",
        "stderr-flood[claude]",
    ),
    Case(
        _SDK_PY,
        "24b9b683",
        "c290bbf1",
        "A line on stdout that is no JSON is skipped.",
        "session-one-write-of-noise-and-the-answer[claude]",
        "turns.1.outcome",
    ),
    Case(
        _SDK_PY,
        "6bb9f155",
        "b642400c",
        "An agent that ignores TERM is killed at a close.",
        "session-close-kills-an-agent-that-ignores-term[claude]",
        "leaks",
    ),
    Case(
        _SDK_PY,
        "c892e71e",
        "1dcde95f",
        "Blanks in a line of more than 64 KiB are kept.",
        "claude-session-answer-of-many-blanks",
        "turns.1.text",
        "`claude-in-pieces` shows the same loss in the commit 24295417, which is a year older: the answer is `naïve€5` "
        "there.",
    ),
    Case(
        _SDK_PY,
        "c892e71e",
        "1dcde95f",
        "A broken line is reported instead of joined to the next.",
        "session-noise-between-the-lines[claude]",
        "turns.1.outcome",
        "Before, the client waits for ever. After, it reports an error and no answer, as its authors wanted. The kit "
        "wants the answer.",
    ),
    Case(
        _SDK_TS,
        "fbe31677",
        "172955e8",
        "The limit of `withTimeout` is kept.",
        "claude-never-prints",
    ),
    Case(
        _PI_ACP,
        "0a9ebd67",
        "4a37ce57",
        "A turn that runs a tool ends with `agent_end` and not with `turn_end`.",
        "pi-session-answers-after-a-tool",
        "turns.1.text",
    ),
    Case(
        _PI_ACP,
        "2f6e3c53",
        "cfa8e82f",
        "A prompt ends with `agent_settled`, after all tries of pi.",
        "pi-session-run-ends-before-a-retry",
        "turns.2.text",
        "The level of this scenario is `should`. The fake pi listed no models before, so pi-acp opened no session.",
    ),
    Case(
        _FACTORY,
        "17e0a417",
        "275903fa",
        "A line of more than 64 KiB no longer ends the run.",
        "claude-writes-a-long-line",
        note="The scenario names this report as its source.",
    ),
    Case(
        _FACTORY,
        "daa90628",
        "574a0565",
        "An agent that works is no longer ended for its silence: claude prints as it works.",
        "claude-works-for-twenty-minutes",
    ),
    Case(
        _KAI,
        "f033a8b6",
        "8c656e21",
        "A tool that takes more than 120 s no longer costs the session.",
        "claude-session-tool-takes-minutes",
        "turns.1.outcome",
    ),
    Case(
        _KAI,
        "82b2a7e3",
        "17b486c3",
        "A line of more than 64 KiB no longer ends the turn.",
        "claude-session-writes-a-long-line",
        "turns.1.outcome",
        "After the fix the text check is red: kai gives all texts of a turn and not the last one, as it means to.",
    ),
    Case(
        _DFIR,
        "415bbdb2",
        "043d673c",
        "A character that is cut between two reads is kept.",
        "codex-in-pieces",
        "text",
    ),
    Case(
        _CODEX_MCP,
        "5bb7935a",
        "13382b4b",
        "codex no longer waits for ever for the end of its input.",
        "stdin-ends-with-the-prompt[codex]",
    ),
    Case(
        _AI_SDK_CODEX,
        "979b9a64",
        "a9d6c69a",
        "The prompt goes to stdin, and is no longer too long for a command line.",
        "sees-a-large-prompt-on-stdin[codex]",
        "received.stdin",
        "Before the fix, the start of codex fails with E2BIG. No agent ever runs, so the failed check is `answer`.",
    ),
)

NOT_PLAYED = (
    (
        "8agana/surreal-mind",
        "d3f66fc",
        "the third of the five reports, in Rust; this command builds Python and Node only",
    ),
    (
        "raphaeltm/simple-agent-manager",
        "1dd8f902",
        "the fourth of the five reports, in Go; this command builds Python and Node only",
    ),
    ("watt-mind/factory", "0b8609d6", "its adapter loads `bun:sqlite`; virtual time does not reach Bun"),
    ("dtzp555-max/ocp", "a6868658", "its server needs Node 22.5; the command has one Node, the one on PATH"),
    ("littlebearapps/untether", "20c0eb36", "it needs Python 3.12; the command has one Python, its own"),
    ("orion-gz/EasyPaper", "#86", "the copy that could be read ends before this fix"),
    ("pocketpaw/pocketpaw", "#640", "the copy that could be read ends before this fix"),
    ("bobum/open-dispatch", "15215c50", "the function that starts opencode is inside a Slack bot that logs in first"),
)
"""Bugs that were looked at and not played: repository, commit or pull request, and why."""
