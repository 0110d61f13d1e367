"""`agentproc run` and `agentproc new`: a scenario is begun, and played by hand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.cli import main
from pytest_agentproc.cli._new_command import SCENARIO_TEMPLATE_BY_SHAPE
from pytest_agentproc.cli._run_command import format_defect_table, play_all_defects
from pytest_agentproc.vocabulary import DIALECTS
from tests.bundled import find_bundled_path, load_bundled

if TYPE_CHECKING:
    from collections.abc import Iterator

NEW = """\
# yaml-language-server: $schema=agentproc.schema.json
scenario: an agent that says nothing more is ended as inactive
agent: raw
script:                               # what the fake agent does
  - say: almost done                  # some output
  - silence: inactivity_timeout + 1m  # then nothing more
expect:                               # what must be true of its supervisor
  outcome: inactive
  elapsed: inactivity_timeout
"""
TOLD = """\
raw.scenario.yaml: an agent that says nothing more is ended as inactive
supervisor reference, virtual time, asyncio

     time  supervisor                                  agent and descendants
      0 s                                              starts
           closes stdin
           timer inactivity_timeout due at 120 s
                                                       stdout, 12 B "almost done\\n"  [line 5]
                                                       silence: inactivity_timeout + 1m  # then nothing more  [line 6]
           reads stdout, 12 B
                                                       reads the end of stdin
           ~~~ 120 s pass ~~~
    120 s  timer inactivity_timeout FIRES
           TERM ==> tree
           timer kill_grace due at 122 s
           timer inactivity_timeout off
           OUTCOME inactive
                                                       dies of TERM
           sees the end of stdout
           sees the end of stderr
           sees agent: dies of TERM
           timer kill_grace off
           RETURNS

passed, record 03131c842f25272ab019bec6e36e21b4ad2b475cb2b8f188c0f0a9440a172ef6
"""
CLOSES_A_PIPE = """
import subprocess


def supervise(order):
    with subprocess.Popen(order.argv, env=order.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as agent:
        next(line for line in agent.stdout if b"agent_end" in line)
        agent.stdout.close()
        return {"outcome": "completed", "exit_code": 0, "agent_status": agent.wait()}
"""
ENDS = """
import asyncio

async def supervise(order):
    agent = await asyncio.create_subprocess_exec(*order.argv, env=order.env)
    return {"outcome": "failed" if await agent.wait() else "completed", "elapsed": 0}
"""
BROKEN = """
async def supervise(order):
    raise RuntimeError("no idea")
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stand in a folder with a new scenario."""
    monkeypatch.chdir(tmp_path)
    before = sys.path[:]
    assert main(["new", "raw"]) == 0
    yield tmp_path
    sys.path[:] = before


def test_new_writes_what_an_editor_helps_with_and_over_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The first scenario of a user's is begun, not copied; work that is there stays."""
    assert Path("raw.scenario.yaml").read_text("utf-8") == NEW
    assert main(["new", "raw.scenario.yaml"]) == 2
    assert capsys.readouterr().err == (
        "agentproc new: raw.scenario.yaml is there already\nchoose another name, or remove it\n"
    )
    assert main(["new", "--claim", "yes: 'it' # \u2028holds", "--agent", "pi"]) == 0
    assert "scenario: \"yes: 'it' # \\u2028holds\"\nagent: pi\n" in capsys.readouterr().out


_SESSIONS = "it can be for claude, pi, codex, acp"
_RUNS = "it can be for raw, claude, pi, codex, gemini, opencode"
_REFUSED = {
    **dict.fromkeys(("crash", "cancel", "queue"), ({"claude", "pi", "codex", "acp"}, _SESSIONS)),
    "permission": ({"claude", "codex", "acp"}, "it can be for claude, codex, acp"),
    "background": ({"claude"}, "it can be for claude"),
}
"""By shape: the agents that it is for, and the last line of the refusal; all others are for every agent but acp."""


@pytest.mark.slow
@pytest.mark.parametrize("agent", [None, *DIALECTS])
@pytest.mark.parametrize("shape", SCENARIO_TEMPLATE_BY_SHAPE)
def test_a_shape_passes_or_is_refused_with_the_agents_that_it_is_for(
    shape: str, agent: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A draft passes on the reference supervisor, so that a user changes a file that works."""
    capsys.readouterr()
    fit, remedy = _REFUSED.get(shape, (set(DIALECTS) - {"acp"}, _RUNS))
    code = main(["new", shape, "--shape", shape, *([] if agent is None else ["--agent", agent])])
    if agent is not None and agent not in fit:
        refusal = f"agentproc new: the shape {shape} cannot be for {agent}\n{remedy}\n"
        assert (code, capsys.readouterr().err) == (2, refusal)
        return
    assert code == 0
    assert main(["run", f"{shape}.scenario.yaml", "--clock", "model"]) == 0
    assert "passed, record" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_new_writes_passes(dialect: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A beginning that fails teaches the wrong thing."""
    assert main(["new", dialect, "--agent", dialect]) in (0, 2)
    assert main(["run", f"{dialect}.scenario.yaml"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("passed, record ")


@pytest.mark.slow
def test_run_prints_the_timeline_as_it_happens_and_the_verdict_last(capsys: pytest.CaptureFixture[str]) -> None:
    """One looks at one scenario to see what happens, and when."""
    capsys.readouterr()
    assert main(["run", "raw.scenario.yaml"]) == 0
    assert capsys.readouterr().out == TOLD


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_reader_that_goes_ends_the_command_and_breaks_no_play(backend: str) -> None:
    """A user who pipes it to `head` gets the first lines, and no traceback out of the supervisor's loop."""
    code = [sys.executable, "-m", "pytest_agentproc", "run", "raw.scenario.yaml", "--backend", backend]
    with subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline().startswith(b"raw.scenario.yaml: ")
        command.stdout.close()
        assert command.stderr.read() == b""
    assert command.returncode == 141


@pytest.mark.slow
def test_a_full_disk_is_a_sentence() -> None:
    """A full disk is neither a mistake nor a verdict."""
    code = [sys.executable, "-m", "pytest_agentproc", "run", "raw.scenario.yaml"]
    with Path("/dev/full").open("wb") as full:
        completed = subprocess.run(code, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert completed.returncode == 3
    assert completed.stderr.startswith(
        "agentproc run: something could not be written: [Errno 28] No space left on device\n"
    )


def test_run_in_the_model_reports_the_same_without_a_process(capsys: pytest.CaptureFixture[str]) -> None:
    """The author of a scenario looks at it after each word; the record is that of virtual time."""
    capsys.readouterr()
    assert main(["run", "raw.scenario.yaml", "--clock", "model"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "supervisor reference, in the model"
    assert [line.split() for line in shown[2:]] == [line.split() for line in TOLD.splitlines()[2:]]


@pytest.mark.parametrize("name", ["pi-stderr-flood", "big-output-before-the-prompt", "claude-line-without-end"])
def test_more_than_is_kept_of_an_instant_is_printed_as_it_happens(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record that was joined already is not joined once more."""
    assert main(["run", str(find_bundled_path(name)), "--clock", "model"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"std(out|err), \d+ [KM]iB ", output)
    assert output.splitlines()[-1].startswith("passed, record ")


@pytest.mark.slow
def test_run_exits_1_for_a_supervisor_that_is_wrong_or_broken(capsys: pytest.CaptureFixture[str]) -> None:
    """A defect, a trivial supervisor and a raising supervisor are red, each in its words."""
    Path("mine.py").write_text(BROKEN, "utf-8")
    assert main(["run", "raw.scenario.yaml", "--defect", "stderr-blind"]) == 0
    assert main(["run", "raw.scenario.yaml", "--subject", "null", "--backend", "trio"]) == 1
    printed = capsys.readouterr().out
    assert "  outcome: undecided" in printed or "  outcome: failed" in printed
    Path("good.scenario.yaml").write_text(
        "scenario: it ends\nagent: raw\nscript: [{exit: 3}]\nexpect: {exit_code: 3}\n"
    )
    assert main(["run", "good.scenario.yaml", "--subject", "mine:supervise"]) == 1
    assert "no idea" in capsys.readouterr().out
    assert main(["run", "raw.scenario.yaml", "--subject", "mine:supervise", "--json"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["verdict"], output["subject"], output["rows"]) == ("not applicable", "supervise", [])


def test_a_check_for_information_binds_no_other_supervisor(capsys: pytest.CaptureFixture[str]) -> None:
    """So it is in pytest, too: the reference supervisor alone is held to its own choices."""
    text = "scenario: it ends\nagent: raw\nscript: [{exit: 0}]\nexpect: {outcome: completed}\ninfo: {elapsed: 1s}\n"
    Path("own.scenario.yaml").write_text(text, "utf-8")
    Path("mine.py").write_text(ENDS, "utf-8")
    assert main(["run", "own.scenario.yaml", "--subject", "mine:supervise"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("passed, record ")
    assert main(["run", "own.scenario.yaml", "--clock", "model"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("failed, record ")


@pytest.mark.slow
def test_what_a_supervisor_prints_is_no_part_of_the_object(capsys: pytest.CaptureFixture[str]) -> None:
    """A program reads the one and a person the other, as it is imported and as it plays."""
    Path("chatty.py").write_text("print('import')\nasync def supervise(order):\n    print('play')\n", "utf-8")
    Path("good.scenario.yaml").write_text("scenario: it ends\nagent: raw\nscript: [{exit: 3}]\n")
    assert main(["run", "good.scenario.yaml", "--subject", "chatty:supervise", "--json"]) in (0, 1, 3)
    output = capsys.readouterr()
    assert json.loads(output.out)["subject"] == "supervise"
    assert {"import", "play"} <= {*output.err.splitlines()}


@pytest.mark.slow
def test_a_program_is_run_in_virtual_time(capsys: pytest.CaptureFixture[str]) -> None:
    """A supervisor in any language is a command with the agent's command in it."""
    code = "import subprocess, sys; p = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL); sys.exit(p.returncode)"
    Path("supervisor.py").write_text(code, "utf-8")
    Path("good.scenario.yaml").write_text(
        "scenario: it ends\nagent: raw\nscript: [{exit: 3}]\nexpect: {exit_code: 3}\n"
    )
    assert main(["run", "good.scenario.yaml", "--command", f"{sys.executable} supervisor.py {{agent}}"]) == 0
    assert ", virtual time, in a process of its own, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "reported"),
    [
        (["nope"], "agentproc run: nope: there is no such file, and no such bundled scenario\n"),
        (["raw.scenario.yaml", "--subject", "nul"], "agentproc run: nul: there is no such subject, did you mean null?"),
        (["raw.scenario.yaml", "--defect", "stderr-blnd"], "agentproc run: --defect stderr-blnd: there is no such"),
        (["raw.scenario.yaml", "--scale", "0"], "agentproc run: --scale 0: it must be auto, or a number from 1 to"),
        (
            ["raw.scenario.yaml", "--subject", "null", "--clock", "model"],
            "agentproc run: --clock model: it plays the reference supervisor only, and null is another\nleave it out\n",
        ),
        (["raw.scenario.yaml", "--command", "x"], "agentproc run: the command 'x' has no {agent} in it\nwrite 'my-"),
        (["raw.scenario.yaml", "--command", "'x"], 'agentproc run: the command "\'x" cannot be split: no closing'),
    ],
)
def test_what_cannot_be_run_is_a_sentence_and_2(
    argv: list[str], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong word is no verdict."""
    assert main(["run", *argv]) == 2
    assert capsys.readouterr().err.startswith(reported)


def test_checks_that_need_an_unstated_limit_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the line, `passed` stood alone although the agent had died of a pipe that its supervisor closed."""
    script = '[{answer: x}, {drip: {stdout: ".", every: 50ms, for: 150ms}}, {exit: 0}]'
    expect = "{outcome: completed, agent_status: 0, signals: []}"
    Path("grace.scenario.yaml").write_text(f"scenario: a\nagent: pi\nscript: {script}\nexpect: {expect}\n")
    Path("closing_pipes.py").write_text(CLOSES_A_PIPE)
    assert main(["run", "grace.scenario.yaml", "--subject", "closing_pipes:supervise"]) == 0
    assert capsys.readouterr().out.splitlines()[-3:-1] == ["state linger_grace to have 2 more checks judged", ""]


def test_run_shows_which_defects_a_scenario_catches(capsys: pytest.CaptureFixture[str]) -> None:
    """Each is listed with the check that fails, the harmful ones first; the last line counts the others."""
    assert main(["run", "lingers-and-ignores-term", "--all-defects"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["level", "defect", "first", "check", "that", "fails", "what", "it", "does"]
    rows = [line.split()[:3] for line in lines[3:-2]]
    assert ["must", "waits-for-exit", "outcome"] in rows
    assert ["should", "one-grace", "returned"] in rows
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert re.fullmatch(r"\d+ of \d+ defects are caught; \d+ more cannot matter here", lines[-1])
    assert main(["run", "lingers-and-ignores-term", "--all-defects", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"defect": "waits-for-exit", "level": "must", "key": "outcome"} in found


def test_a_table_of_defects_names_what_it_had_no_time_for() -> None:
    """A slow scenario must not keep its author waiting for minutes."""
    seconds = iter(range(0, 10_000, 3))
    table = play_all_defects(load_bundled("lingers-and-ignores-term"), clock=lambda: float(next(seconds)))
    assert len(table.caught) + len(table.passed) == 2
    assert f"{len(table.unplayed)} were not played, as 8 s were over: " in "\n".join(format_defect_table(table))


def test_a_table_of_defects_leaves_out_what_the_reference_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """A check that is red without a defect shows nothing of one; and other supervisors have no defects built in."""
    Path("odd.scenario.yaml").write_text("scenario: a lie\nagent: raw\nscript: [{answer: a}]\nexpect: {text: b}\n")
    assert main(["run", "odd.scenario.yaml", "--all-defects"]) == 0
    assert "the reference supervisor itself fails: text; these keys are left out" in capsys.readouterr().out
    assert main(["run", "odd.scenario.yaml", "--all-defects", "--clock", "real"]) == 2
    assert "leave --clock out" in capsys.readouterr().err
