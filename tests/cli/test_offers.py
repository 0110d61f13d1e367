"""Other tools start the kit for a user: the GitHub Action and the hook for pre-commit. Each runs what it names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest
import yaml

from pytest_agentproc.cli import main
from tests.architecture.sources import ROOT

ACTION = ROOT / ".github/actions/judge/action.yml"
INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")
GOOD = "scenario: it says hello\nagent: raw\nscript: [{answer: hello}]\nexpect: {text: hello}\n"
BAD = "scenario: it says hello\nagent: raw\nscript: [{answer: hello}]\nexpect: {text: bye}\n"
SYNTAX = "scenario: it says hello\nagent: raw\nscript: [{sya: hello}]\n"


def run_action(folder: Path, arguments: str) -> tuple[int, str]:
    """Run the steps of the action but for the installation; give the exit code of pytest, and the job's summary."""
    action = yaml.safe_load(ACTION.read_text("utf-8"))
    inputs = {name: given["default"] for name, given in action["inputs"].items()} | {"arguments": arguments}
    steps = [step for step in action["runs"]["steps"] if "run" in step and "pip install" not in step["run"]]
    summary = folder / "summary.md"
    codes = []
    for step in steps:
        own = {name: INPUT.sub(lambda found: inputs[found[1]], value) for name, value in step.get("env", {}).items()}
        path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],  # as GitHub starts it
            cwd=folder,
            env={**os.environ, **own, "PATH": path, "GITHUB_STEP_SUMMARY": str(summary)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=300,
        )
        codes.append(ran.returncode)
    return codes[0], summary.read_text("utf-8")


@pytest.mark.slow
def test_the_action_judges_and_keeps_the_pages(tmp_path: Path) -> None:
    """The verdict stands in the summary; a failed scenario fails the job, and its page is kept all the same."""
    tmp_path.joinpath("good.scenario.yaml").write_text(GOOD, "utf-8")
    tmp_path.joinpath("bad.scenario.yaml").write_text(BAD, "utf-8")
    assert run_action(tmp_path, "-k 'good or nothing' .") == (0, "- **reference** is conformant\n")
    code, summary = run_action(tmp_path, ".")
    assert code != 0
    assert summary.endswith("- **reference** is not conformant\n")
    assert tmp_path.joinpath("agentproc/pages/index.html").is_file()


def test_the_hook_of_pre_commit_checks_the_files_that_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pre-commit gives the changed files that fit the pattern, and refuses the commit if the command fails."""
    (hook,) = yaml.safe_load(ROOT.joinpath(".pre-commit-hooks.yaml").read_text("utf-8"))
    monkeypatch.chdir(tmp_path)
    Path("wrong.scenario.yaml").write_text(SYNTAX, "utf-8")
    Path("good.scenario.yaml").write_text(GOOD, "utf-8")
    Path("other.yaml").write_text("a: 1\n", "utf-8")
    changed = sorted(name.name for name in tmp_path.iterdir() if re.search(hook["files"], name.name))
    program, *words = shlex.split(hook["entry"])
    assert (program, main([*words, *changed])) == ("agentproc", 1)
    assert capsys.readouterr().out.startswith('wrong.scenario.yaml:3:11: unknown step "sya"')
    assert main([*words, "good.scenario.yaml"]) == 0
