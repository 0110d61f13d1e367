"""Does with each code block of a page what its reader would do, in one folder a page. Knows no page.

CONTRIBUTING.md says how a block shows what it is. `play_page` raises an AssertionError that names the line of the
block.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from pytest_agentproc.scenario import loads

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CodeBlock", "find_blocks", "matches_shown", "play_page", "run_command"]

HOME = "/home/me/project"
"""What a page writes for the folder in which its reader works."""

_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[^\s`]*)[^\n]*\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
_NAMED = re.compile(r"(?:#|//) (?P<name>[\w./-]+\.[a-z]+)\n")
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_INSTALLS = re.compile(r"(python3 -m venv|pip install|\.venv/bin/pip install|npm install)\b")
_LONGEST = 60  # seconds for one command, on a machine under load
_VARIES = (
    (re.compile(r"\bpid \d+"), "pid N"),
    (re.compile(r"\bin \d+\.\d+s\b.*"), "in Ns"),
    (re.compile(r"\b\d+\.\d (?=s old|MiB\b)"), "N "),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b\d+ deselected"), "N deselected"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "HASH"),
    (re.compile(r"={3,}"), "==="),
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
    (re.compile(r"[\w./-]*/(?:scenarios|_corpus)/(?=(?:[\w-]+/)+[\w-]+\.scenario\.yaml)"), "CORPUS/"),
)
_NEIGHBOURS = ("asyncio", "hypothesispytest", "random_order", "rerunfailures", "timeout", "trio")
"""Plugins that are installed to be tested beside ours; a reader has none of them."""


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One block of code.

    Args:
        language: the word after its fence; empty: none.
        text: what it has.
        line: the line of the page at which it begins.
    """

    language: str
    text: str
    line: int

    @property
    def file(self) -> str:
        """The file that a first line such as `# hang.scenario.yaml` names; empty: none."""
        named = _NAMED.match(self.text)
        return named["name"] if named else ""

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Each command with what is shown below it."""
        return _COMMAND.findall(self.text)


def find_blocks(page: str) -> list[CodeBlock]:
    """Find the blocks of a page; directives of the page itself, such as `{toctree}`, are none."""
    found = (
        CodeBlock(match["language"], match["text"], page.count("\n", 0, match.start()) + 1)
        for match in _FENCE.finditer(page)
    )
    return [block for block in found if not block.language.startswith("{") or block.language == "{code-block}"]


def matches_shown(shown: str, printed: str) -> bool:
    """Say whether a command printed what is shown: `...` alone on a line stands for any lines."""
    for varies, constant in _VARIES:
        shown, printed = varies.sub(constant, shown), varies.sub(constant, printed)
    lines = (r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in shown.splitlines())
    return (
        re.fullmatch("".join(lines), printed if not printed or printed.endswith("\n") else printed + "\n") is not None
    )


def play_page(page: Path, folder: Path) -> None:
    """Write each named file, run each command and each example, in the order of the page.

    Scenarios and tests that no command of the page names are run at the end, and have to pass.
    """
    left: list[str] = []
    found = find_blocks(page.read_text("utf-8"))
    text = " ".join(block.text for block in found if block.language in ("console", "sh"))
    for block in found:
        where = f"{page.name}:{block.line}"
        if block.language not in _HOW:
            raise AssertionError(
                f"{where}: a block is one of {', '.join(_HOW)}, not {block.language or 'without a word'}"
            )
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
            if _is_run(block.file) and block.file not in text:
                left.append(block.file)
            elif block.file.endswith((".yaml", ".yml")) and not _is_run(block.file):
                yaml.safe_load(block.text)
        elif name := _HOW[block.language](block, where, folder):
            folder.joinpath(name).write_text(block.text, "utf-8")
            left.append(name)
    if left:
        completed = run_command([f"{sys.executable}", "-m", "pytest", "-q", "-W", "error", *left], folder)
        assert completed.returncode == 0, f"{page.name}: {' '.join(left)}\n{completed.stdout}{completed.stderr}"


def _is_run(file: str) -> bool:
    return file.endswith(".scenario.yaml") or re.search(r"(^|/)test_\w+\.py$", file) is not None


def run_command(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as the reader of a page would, in that folder."""
    tools = [Path(sys.executable).parent, *(Path(found).parent for name in ("node",) if (found := shutil.which(name)))]
    env = {
        "PATH": os.pathsep.join(dict.fromkeys([*map(str, tools), "/usr/local/bin", "/usr/bin", "/bin"])),
        "HOME": str(folder),
        "PWD": str(folder),
        "COLUMNS": "80",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": " ".join(["-p no:cacheprovider", *(f"-p no:{name}" for name in _NEIGHBOURS)]),
    }
    bounded = ["timeout", "--kill-after=5", f"{_LONGEST:d}", *command]  # it ends all that the command has started
    return subprocess.run(
        bounded,
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


# What is done with a block of each language that names no file: the name of a file to run at the end, or nothing.


def _play_yaml(block: CodeBlock, where: str, _folder: Path) -> str:
    """A whole scenario is run. Steps alone are checked, as those of the agent that the first line may name."""
    if re.search(r"^scenario:", block.text, re.MULTILINE):
        return f"block_{block.line}.scenario.yaml"
    agent = re.match(r"# agent: (.*)\n", block.text)
    assert agent or block.text.startswith("- "), (
        f"{where}: name the file in the first line, such as # hang.scenario.yaml"
    )
    steps = "\n".join(f"  {line}" for line in block.text.splitlines() if not line.startswith("# agent:"))
    drive = "drive: [prompt: hi]\n" if agent and "session" in agent[1] else ""
    loads(f"scenario: a block\nagent: {agent[1] if agent else 'raw'}\n{drive}script:\n{steps}\nexpect: {{}}\n", where)
    return ""


def _play_python(block: CodeBlock, where: str, folder: Path) -> str:
    """A test is run by pytest, and any other program by Python."""
    if re.search(r"^(async )?def test_|^class Test", block.text, re.MULTILINE):
        return f"test_block_{block.line}.py"
    completed = run_command([sys.executable, "-W", "error", "-c", block.text], folder)
    assert completed.returncode == 0, f"{where}: {completed.stderr}"
    return ""


def _play_console(block: CodeBlock, where: str, folder: Path) -> str:
    """Each command prints what is shown below it, on stdout and then on stderr."""
    assert block.text.startswith("$ "), f"{where}: a console block begins with a command, such as $ agentproc list"
    for command, shown in block.commands:
        completed = run_command(["sh", "-c", command], folder)
        printed = (completed.stdout + completed.stderr).replace(str(folder), HOME)
        assert matches_shown(shown, printed), f"{where}: $ {command}\nshown:\n{shown}\nprinted:\n{printed}"
    return ""


def _play_shell(block: CodeBlock, where: str, folder: Path) -> str:
    """Every command ends well; those that install something are not run."""
    if not _INSTALLS.match(block.text):
        completed = run_command(["sh", "-euc", block.text], folder)
        assert completed.returncode == 0, f"{where}: {block.text}\n{completed.stdout}{completed.stderr}"
    return ""


def _play_toml(block: CodeBlock, _where: str, _folder: Path) -> str:
    tomllib.loads(block.text)
    return ""


def _play_json(block: CodeBlock, _where: str, _folder: Path) -> str:
    json.loads(block.text)
    return ""


def _play_text(_block: CodeBlock, _where: str, _folder: Path) -> str:
    """Nothing runs: it is a picture, or what a person wrote."""
    return ""


def _refuse_unnamed_file(_block: CodeBlock, where: str, _folder: Path) -> str:
    raise AssertionError(f"{where}: name the file in the first line, such as // agent.test.mjs")


_HOW: dict[str, Callable[[CodeBlock, str, Path], str]] = {
    "yaml": _play_yaml,
    "python": _play_python,
    "console": _play_console,
    "sh": _play_shell,
    "toml": _play_toml,
    "json": _play_json,
    "text": _play_text,
    "js": _refuse_unnamed_file,
    "ini": _refuse_unnamed_file,
}
