"""The real CLIs go on with the session that a fake has kept on disk, and the fake goes on with theirs."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from tests.fidelity.model_server import ModelServer
from tests.fidelity.running import RealCLI, run_program

pytestmark = pytest.mark.slow

CASES = [
    ("claude", ("-p",), ("--continue",), "Bash"),
    ("codex", ("exec", "--skip-git-repo-check"), ("resume", "--last"), "command_execution"),
    ("pi", ("--provider", "fake", "--model", "m1", "-p"), ("--continue",), "bash"),
]


@pytest.mark.parametrize(("name", "run", "latest", "tool"), CASES, ids=[case[0] for case in CASES])
def test_the_real_cli_and_the_fake_share_a_session(name: str, run: list[str], latest: list[str], tool: str) -> None:
    """A file that the real CLI could not read, or in which the fake found no session, would be no session file."""
    call = f"{{tool: {json.dumps({'id': 'a', 'name': tool, 'input': {'command': 'ls'}})}}}"
    script = f"[{{say: look}}, {call}, {{tool_done: {{id: a, output: hi}}}}, {{answer: done}}]"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, ModelServer() as server:
        cli = RealCLI(name, Path(home), server.url)
        with ScenarioRunner() as runner:
            fake = runner.make_fake(loads(f"scenario: x\nagent: {name}\nscript: {script}\n", "x"))
            environ = {name: cli.environ[name] for name in ("HOME", "LANG")}
            done = [run_program([fake.path, *run, "first"], environ, cli.folder)]
            done.append(run_program([cli.path, *run, *latest, "second"], cli.environ, cli.folder))
            done.append(run_program([fake.path, *run, *latest, "third"], environ, cli.folder))
            fake.finish()
        assert [each.code for each in done] == [0, 0, 0], done
        (text,) = [file.read_text("utf-8") for file in Path(home).rglob("*.jsonl")]
        assert [word in text for word in ("first", "second", "third")] == [True, True, True]
