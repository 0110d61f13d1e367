"""The packages that were tried: version, scenario, and the place in their code that was read. Runs none of them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NEWEST_ON", "NOT_JUDGED", "PACKAGES", "Package"]

NEWEST_ON = "2026-11-29"
"""The day on which these versions were the newest that the registries gave."""


@dataclass(frozen=True)
class Package:
    """A package that starts an agent CLI, and a fault of it.

    Args:
        registry: `PyPI` or `npm`.
        name: its name there.
        version: the version that was tried.
        agent: the dialect of the agent that it starts.
        scenario: the bundled scenario that it fails.
        suffers: what somebody who uses it suffers, in one sentence.
        checked: the place in its code that was read, and what it does there.
        beside: what else is installed, as its registry names it.
    """

    registry: str
    name: str
    version: str
    agent: str
    scenario: str
    suffers: str
    checked: str
    beside: str = ""

    @property
    def scenario_id(self) -> str:
        """Give the id of the scenario for its agent."""
        own = self.scenario.startswith(self.agent)
        return self.scenario if own else f"{self.scenario}[{self.agent}]"


_CHILD, _LONG_LINE = "leaves-a-child-on-its-pipes", "writes-a-long-line"
_WAITS_FOR_CHILD = "The answer never comes, as long as a process that the agent has left holds its stdout."
_LOST_WITH_CHILD = (
    "The answer is lost and reported as a timeout, if a process that the agent has left holds its stdout."
)
_LINE_LIMIT = "A message of more than 64 KiB on one line, such as a long file, ends the run with an error."
_EXIT_CODE = "A finished answer is thrown away, because the agent exits with another code than 0 after it."
_HALF = "Half an answer counts as the whole one, if the agent is killed while it writes."
_NO_RESULT = "A run that ended without a result counts as a good one, with an empty or half an answer."


PACKAGES = (
    Package(
        "PyPI", "agentabi", "0.4.0", "claude", f"claude-{_LONG_LINE}", _LINE_LIMIT,
        "`providers/claude_native.py`, `stream`: asyncio's reader keeps its limit of 64 KiB",
    ),
    Package(
        "PyPI", "albeorla-claude-cli-bridge", "0.2.1", "claude", "claude-exits-1-after-a-good-result", _EXIT_CODE,
        "`bridge.py`, `query`: another exit code than 0 returns before stdout is parsed",
    ),
    Package(
        "PyPI", "asys", "0.1.0", "claude", _CHILD, _WAITS_FOR_CHILD,
        "`agent.py`, `run`: `subprocess.run` without a limit waits for the end of stdout",
    ),
    Package(
        "PyPI", "claude-code-botman", "1.3.0", "claude", _CHILD,
        "The prompt is sent three times, each answer is lost, and 15 minutes later the run fails.",
        "`core.py`, `_execute_claude_command`: `subprocess.run` with 300 s, below `retry_on_failure`",
    ),
    Package(
        "PyPI", "claude-code-headless", "0.1.2", "claude", _CHILD, _WAITS_FOR_CHILD,
        "`client.py`, `_run_claude_command`: `subprocess.run` without a limit",
    ),
    Package(
        "PyPI", "claude-code-python", "0.0.1", "claude", f"claude-{_LONG_LINE}", _LINE_LIMIT,
        "`_exec.py`, `run`: asyncio's reader keeps its limit of 64 KiB",
    ),
    Package(
        "PyPI", "claude-code-python-wrapper", "0.3.0", "claude", _CHILD, _WAITS_FOR_CHILD,
        "`wrapper.py`, `query`: `subprocess.run`, whose limit is None without one",
    ),
    Package(
        "PyPI", "claude-code-queue", "0.4.3", "claude", "claude-lingers",
        "An agent that lives on after its answer costs an hour, and then the answer is lost.",
        "`claude_interface.py`, `execute_prompt`: after the limit the result has no output",
    ),
    Package(
        "PyPI", "claude-code-sdk", "0.0.25", "claude", "claude-noise-between-the-lines",
        "One byte on stdout that is no UTF-8 ends the run, and the answer is lost.",
        "`_internal/transport/subprocess_cli.py`: stdout is decoded strictly",
    ),
    Package(
        "PyPI", "claude-rotator", "1.1.0", "claude", _CHILD, _LOST_WITH_CHILD,
        "`runner.py`, `run`: the threads that read are joined for 600 s, then it raises",
    ),
    Package(
        "PyPI", "claude-sdk-lite", "0.3.0", "claude", "stderr-flood",
        "An agent that says much on stderr blocks for ever, and the caller with it.",
        "`executors.py`, `SyncProcessExecutor.execute`: stderr is a pipe that is read only after the end",
    ),
    Package(
        "PyPI", "claude-subprocess-sdk", "0.1.0", "claude", "claude-exits-1-after-a-good-result", _EXIT_CODE,
        "`client.py`, `_run`: another exit code than 0 raises before stdout is parsed",
    ),
    Package(
        "PyPI", "claude-wrapper", "0.1.dev15", "claude", "claude-lingers",
        "The prompt is sent three times, each answer is lost, and the agents run on.",
        "`core/client.py`, `_execute_claude`: after its limit it tries again, and ends no process",
    ),
    Package(
        "PyPI", "claudecodestreaming", "0.1.0", "claude", "claude-killed", _HALF,
        "`stream.py`, `stream_text`: the exit code counts only if there was no text",
    ),
    Package(
        "PyPI", "codesys", "0.1.6", "claude", _CHILD, _WAITS_FOR_CHILD,
        "`agent.py`, `run`: `subprocess.run` without a limit",
    ),
    Package(
        "PyPI", "codex-local-sdk-python", "0.1.4", "codex", "stdin-ends-with-the-prompt",
        "In a service whose stdin is an open pipe, each run fails after its whole limit.",
        "`client.py`: `subprocess.run` without `stdin`, so codex inherits it and waits for its end",
    ),
    Package(
        "PyPI", "codex-sdk-py", "0.0.9", "codex", "codex-exits-without-a-result", _NO_RESULT,
        "`thread.py`: the turn begins with an empty `final_response`, and nothing asks for `turn.completed`",
    ),
    Package(
        "PyPI", "codex-sdk-python", "0.117.0", "codex", f"codex-{_LONG_LINE}", _LINE_LIMIT,
        "`exec.py`, `_iter_lines`: asyncio's reader keeps its limit of 64 KiB",
    ),
    Package(
        "PyPI", "codex-sdk-unofficial", "0.1.3", "codex", "codex-exits-3-after-a-good-result", _EXIT_CODE,
        "`exec.py`, `run`: another exit code than 0 raises, whatever was said",
    ),
    Package(
        "PyPI", "codexapi", "0.12.11", "codex", "line-separator-inside-a-string",
        "An answer with the character U+2028 is lost, and an older message is given in its place.",
        "`agent.py`, `_parse_jsonl`: `str.splitlines` ends a line at U+2028",
    ),
    Package(
        "PyPI", "coding-agent-wrapper", "0.1.9", "claude", "claude-killed", _HALF,
        "`caw/providers/claude_code.py`: the exit code counts only if there was no line", beside="mcp<2",
    ),
    Package(
        "PyPI", "gemini-cli-agent", "0.1.0", "gemini", "gemini-fails-and-exits-0",
        "A run that gemini reports as an error counts as a success.",
        "`core/agent.py`, `_execute`: `success` is the exit code alone",
    ),
    Package(
        "PyPI", "gemini-cli-sdk-py", "0.1.1", "gemini", "stdin-is-not-the-users",
        "Every answer is refused as one of another form, because gemini counts its tools in it.",
        "`models.py`, `HeadlessStats`: `tools` is a table of tables, and gemini's `totalCalls` is a number",
    ),
    Package(
        "PyPI", "harness-cli", "0.3.2", "claude", _CHILD, _LOST_WITH_CHILD,
        "`_subproc.py`, `run_subprocess`: `subprocess.run` with 1800 s waits for the end of stdout",
    ),
    Package(
        "PyPI", "jaymd96-psclaude", "0.2.3", "claude", _CHILD,
        "The answer is lost after two minutes, if a process that the agent has left holds its stdout.",
        "`_client.py`, `send`: after its 120 s the response has no text",
    ),
    Package(
        "PyPI", "langchain-claude-code-cli", "0.1.0", "claude", "claude-exits-without-a-result", _NO_RESULT,
        "`chat_models.py`: the parts of the text are joined, and nothing asks for a `ResultMessage`",
    ),
    Package(
        "PyPI", "llm-claude-cli", "0.1.3", "claude", "claude-max-turns",
        "A run that claude reports as an error counts as a good one.",
        "`llm_claude_cli.py`, `_execute_streaming`: of the result it reads the usage alone",
    ),
    Package(
        "npm", "@choplin/mcp-gemini-cli", "0.2.0", "gemini", _CHILD, _WAITS_FOR_CHILD,
        "`dist/index.js`, `executeGeminiCli`: it answers at `close`, and has no limit",
    ),
    Package(
        "npm", "@instantlyeasy/claude-code-sdk-ts", "0.3.3", "claude", "claude-exits-1-after-a-good-result", _EXIT_CODE,
        "`dist/index.js`: another exit code than 0 throws a `ProcessError`, whatever was said",
    ),
    Package(
        "npm", "@openai/codex-sdk", "0.163.0", "codex", "codex-exits-3-after-a-good-result", _EXIT_CODE,
        "`dist/index.js`, `run`: another exit code than 0 throws, whatever was said",
    ),
    Package(
        "npm", "ai-sdk-provider-codex-cli", "1.4.1", "codex", "codex-exits-without-a-result", _NO_RESULT,
        "`dist/index.js`: the exit code 0 is a success, and nothing asks for `turn.completed`", beside="ai@6",
    ),
    Package(
        "npm", "claude-max-api-proxy", "1.0.0", "claude", "claude-in-pieces",
        "Letters outside ASCII are broken, wherever the pipe cuts one in the middle.",
        "`dist/subprocess/manager.js`: `chunk.toString()` for each chunk",
    ),
    Package(
        "npm", "codex-mcp-server", "1.4.10", "codex", "codex-fails",
        "A run of codex that has failed is given as its answer.",
        "`dist/utils/command.js`, `executeCommand`: whatever stands on stdout or stderr is a success",
    ),
)  # fmt: skip

NOT_JUDGED = {
    "agentwrap 0.1.1 (PyPI)": "on CPython 3.11 its import is a SyntaxError, though it asks for 3.8 or newer",
    "claude-cli-sdk 0.2.1 (PyPI)": "it asks for a session by its options; these scenarios are for one-shot agents",
    "claude-max 0.0.10 (PyPI)": "its import needs aiofiles, which it does not name",
    "claudestream 0.15.3 (PyPI)": "it holds a session; these scenarios are for one-shot agents",
    "driangle-agentrunner 0.1.0 (PyPI)": "the functions of its documentation are not in the package",
    "gemini-cli-sdk 0.1.0 (PyPI)": "it needs a key of a model's API to read gemini's answer",
    "langchain-claude-cli 1.2.1 (PyPI)": "it starts the CLI of claude-agent-sdk, which holds a session",
}
"""The packages that were tried and could not be judged, and why."""
