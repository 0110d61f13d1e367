"""A fake refuses the values that its real CLI refuses, with the same words; `tests/fidelity` compares both."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.process.fakes.test_flags import make_fake

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner

EXEC = ["exec", "--skip-git-repo-check"]
MAX_TURNS = "error: option '--max-turns <turns>' argument 'x' is invalid. must be a number"
REFUSED = [
    ("claude", ["-p", "--max-turns", "x"], 1, MAX_TURNS),
    ("claude", ["-p", "--max-budget-usd", "0"], 1, "must be a number greater than 0"),
    ("claude", ["-p", "--json-schema", "{bad"], 1, "Error: --json-schema is not valid JSON"),
    ("claude", ["-p", "--json-schema", "[]"], 1, "Error: --json-schema must be a JSON object"),
    ("claude", ["-p", "--agents", "{bad"], 1, "Error: Invalid --agents configuration:"),
    ("claude", ["-p", "--agents", "no.json"], 1, "Error: --agents file not found: {folder}/no.json"),
    ("claude", ["-p", "--setting-sources", "frob"], 1, "Invalid setting source: frob"),
    ("claude", ["-p", "--system-prompt-file", "no"], 1, "Error: System prompt file not found: {folder}/no"),
    ("codex", ["exec"], 1, "Not inside a trusted directory and --skip-git-repo-check was not specified."),
    ("codex", [*EXEC, "-C", "no"], 1, "Error: No such file or directory (os error 2)"),
    ("codex", [*EXEC, "-c", "foo"], 1, "Error parsing -c overrides: Invalid override (missing '='): foo"),
    ("codex", [*EXEC, "-c", "=x"], 1, "Error parsing -c overrides: Empty key in override: =x"),
    ("codex", [*EXEC, "-c", "sandbox_mode=nope"], 1, "unknown variant `nope`, expected one of `read-only`"),
    ("codex", [*EXEC, "--output-schema", "no"], 1, "Failed to read output schema file no: No such file"),
    ("codex", [*EXEC, "--output-schema", "bad.json"], 1, "Output schema file bad.json is not valid JSON"),
    ("gemini", ["-o", "json"], 55, "Gemini CLI is not running in a trusted directory."),
    ("gemini", ["--session-file", "no"], 42, "File not found or invalid format: no"),
    ("claude", ["-p", "--json-schema", '{"type": "nope"}'], 1, "data/type must be equal to one of the allowed values"),
    ("claude", ["-p", "--json-schema", '{"properties": 3}'], 1, "data/properties must be object"),
    ("claude", ["-p", "--agents", '{"a": {}}'], 1, "a.description: Invalid input: expected string, received undefined"),
    ("claude", ["-p", "--worktree"], 1, "but {folder} is not a git repository."),
    ("codex", [*EXEC, "-c", "model_provider=nope"], 1, "Error: Model provider `nope` not found"),
    ("codex", [*EXEC, "-c", "notify=3"], 1, "invalid type: integer `3`, expected a sequence"),
    ("codex", [*EXEC, "-c", "model_providers.openai.base_url=x"], 1, "reserved built-in provider IDs: `openai`"),
    ("codex", [*EXEC, "--enable", "nope"], 1, "Error: Unknown feature flag: nope"),
    ("codex", [*EXEC, "--oss"], 1, "Error: No default OSS provider configured."),
    ("codex", [*EXEC, "-o", ""], 2, "error: a value is required for '--output-last-message <FILE>'"),
    ("gemini", ["--session-file", "good.json"], 42, "File not found or invalid format: good.json"),
    ("gemini", ["--include-directories", "bad.json"], 1, "Path is not a directory: {folder}/bad.json"),
    ("opencode", ["run", "--model", "nope/m1"], 1, "Unexpected server error. Check server logs for details."),
    ("opencode", ["run", "--attach", "nope"], 1, 'Invalid URL "nope/session"'),
    ("pi", ["--provider", "nope", "--model", "m1"], 1, 'Error: Unknown provider "nope".'),
    ("pi", ["--model", "nope"], 1, 'Error: Model "nope" not found.'),
    ("pi", ["@no"], 1, "Error: File not found: {folder}/no"),
    ("pi", ["--export", "bad.json"], 1, "Error: Session file is not a valid pi session: {folder}/bad.json"),
    ("opencode", ["run", "--dir", "no"], 1, "Failed to change directory to no"),
    ("pi", ["--extension", "no"], 1, 'Error: Failed to load extension "{folder}/no"'),
]
ACCEPTED = [
    ("claude", ["-p", "--max-turns", "3"]),
    ("claude", ["-p", "--max-budget-usd", "1.5"]),
    ("claude", ["-p", "--json-schema", '{"type": "object"}']),
    ("claude", ["-p", "--agents", "{}"]),
    ("claude", ["-p", "--setting-sources", "user,project"]),
    ("claude", ["-p", "--setting-sources", ""]),
    ("codex", ["exec", "--yolo"]),
    ("codex", ["exec", "-C", "repo/inner"]),
    ("codex", [*EXEC, "-c", "sandbox_mode=read-only"]),
    ("codex", [*EXEC, "--output-schema", "good.json"]),
    ("opencode", ["run", "--dir", "repo"]),
    ("codex", [*EXEC, "-c", "model_provider=mine", "-c", "model_providers.mine.name=x"]),
    ("codex", [*EXEC, "--enable", "unified_exec"]),
    ("opencode", ["run", "--model", "anthropic/claude-sonnet-4-5"]),
    ("pi", ["--model", "claude-sonnet-4-5"]),
    ("pi", ["--provider", "anthropic", "--model", "anything"]),
]


def start(runner: ScenarioRunner, agent: str, argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Start a fake in a folder that has a repository and two files."""
    (folder / "repo" / ".git").mkdir(parents=True)
    (folder / "repo" / "inner").mkdir()
    (folder / "bad.json").write_text("{bad", "utf-8")
    (folder / "good.json").write_text("{}", "utf-8")
    command = [make_fake(runner, agent).path, *argv, "hi"]
    null = subprocess.DEVNULL
    return subprocess.run(command, stdin=null, capture_output=True, text=True, check=False, timeout=60, cwd=folder)


@pytest.mark.parametrize(("agent", "argv", "code", "words"), REFUSED)
def test_a_fake_refuses_what_the_real_cli_refuses(
    runner: ScenarioRunner, tmp_path: Path, agent: str, argv: list[str], code: int, words: str
) -> None:
    """It prints nothing on stdout."""
    completed = start(runner, agent, argv, tmp_path)
    assert (completed.returncode, completed.stdout) == (code, "")
    assert words.format(folder=tmp_path) in completed.stderr


@pytest.mark.parametrize(("agent", "argv"), ACCEPTED)
def test_a_fake_answers_if_the_value_is_good(
    runner: ScenarioRunner, tmp_path: Path, agent: str, argv: list[str]
) -> None:
    """The same options with values that the real CLI takes."""
    completed = start(runner, agent, argv, tmp_path)
    assert (completed.returncode, completed.stdout) == (0, "done\n")


TRUST = [
    ({}, {}, 55),
    ({"GEMINI_CLI_TRUST_WORKSPACE": "true"}, {}, 0),
    ({"GEMINI_CLI_TRUST_WORKSPACE": "1"}, {}, 55),
    ({}, {"trustedFolders.json": {"{folder}": "TRUST_FOLDER"}}, 0),
    ({}, {"trustedFolders.json": {"{above}": "TRUST_FOLDER"}}, 0),
    ({}, {"trustedFolders.json": {"{folder}/x": "TRUST_PARENT"}}, 0),
    ({}, {"trustedFolders.json": {"{folder}/x": "TRUST_FOLDER"}}, 55),
    ({}, {"trustedFolders.json": {"{folder}": "DO_NOT_TRUST"}}, 55),
    ({}, {"settings.json": {"security": {"folderTrust": {"enabled": False}}}}, 0),
]
"""Environment, files of the user below `.gemini`, and the exit code of the real CLI, 0.61.0."""


@pytest.mark.parametrize(("environ", "files", "code"), TRUST)
def test_gemini_runs_in_folders_that_its_user_trusts(
    runner: ScenarioRunner, tmp_path: Path, environ: dict[str, str], files: dict[str, Any], code: int
) -> None:
    """A supervisor that neither trusts its folder nor says `--skip-trust` gets no answer from the real CLI."""
    (tmp_path / ".gemini").mkdir()
    (tmp_path / "work").mkdir()
    for name, value in files.items():
        text = json.dumps(value).replace("{folder}", str(tmp_path / "work")).replace("{above}", str(tmp_path))
        (tmp_path / ".gemini" / name).write_text(text, "utf-8")
    completed = subprocess.run(
        [make_fake(runner, "gemini").path, "-p", "hi"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
        cwd=tmp_path / "work",
        env={"HOME": str(tmp_path), **environ},
    )
    assert completed.returncode == code
