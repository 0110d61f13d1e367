"""An agent-side ACP program as the supervisor under test: the kit is its editor, without a line of Python."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import _acp_program, load_command_file
from pytest_agentproc.verdict import Verdict, explain_play, judge_play
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.subjects import Command

CRASH = """\
scenario: an agent dies in the middle of its answer
agent: acp
drive: [{prompt: hi}]
script: [{wait_for: prompt 1}, {say: well}, {exit: 3}]
expect: {turns: [{outcome: agent_lost}]}
"""


def describe_program(folder: Path) -> Command:
    """Describe a program that is the agent itself, so that everything in it is right that an agent does right."""
    file = folder / "mine.toml"
    limits = "[limits]\nclose_grace = 2\nkill_grace = 2\n"
    file.write_text(f'command = "env {{agent}}"\nsessions = "acp"\ndialects = ["acp"]\n{limits}', "utf-8")
    return load_command_file(file)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "acp-session-cancel",
        "acp-session-question-gets-one-answer",
        "acp-session-load-replays-its-history",
        "acp-session-resume-has-no-history",
    ],
)
def test_its_session_is_driven_over_its_stdin_and_stdout(runner: ScenarioRunner, name: str, tmp_path: Path) -> None:
    """Prompts, a cancel, questions and the close go through it, in virtual time."""
    played = runner.play(load_bundled(name), describe_program(tmp_path))
    assert played.record.header["arm"] == "preload"
    assert judge_play(played).verdict is Verdict.PASSED


@pytest.mark.slow
def test_a_turn_of_a_program_that_has_died_has_no_answer(runner: ScenarioRunner, tmp_path: Path) -> None:
    """The prompt in flight is lost, and nothing waits for it."""
    assert judge_play(runner.play(loads(CRASH), describe_program(tmp_path))).verdict is Verdict.PASSED


ANSWERS_AND_ENDS = """\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps({"id": message["id"], "result": {"sessionId": "s", "stopReason": "end_turn"}}), flush=True)
    if message["method"] == "session/prompt":
        sys.exit(0)
"""


@pytest.mark.slow
def test_an_answer_that_is_read_after_the_end_of_the_program_counts(
    runner: ScenarioRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On trio the end of the program may be seen before its last line: here the reader gets no turn for that line."""

    async def read_until_prompted(editor: Any) -> None:
        while len(editor._answers) < 2:  # noqa: SLF001  # initialize and session/new
            await anyio.wait_readable(editor._stdout.source)  # noqa: SLF001
            editor._handle_printed_messages()  # noqa: SLF001
        await anyio.Event().wait()

    monkeypatch.setattr(_acp_program._AcpEditorClient, "_read_messages", read_until_prompted)  # noqa: SLF001
    (tmp_path / "ends.py").write_text(ANSWERS_AND_ENDS)
    file = tmp_path / "mine.toml"
    file.write_text(f'command = "{sys.executable} {tmp_path}/ends.py {{agent}}"\nsessions = "acp"\n', "utf-8")
    played = runner.play_real(loads(CRASH), load_command_file(file))
    assert played.answer is not None
    assert [turn.outcome for turn in played.answer.turns or ()] == ["completed"]


ASKS_WRONGLY = """\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {"sessionId": "s", "stopReason": "end_turn"}
    result["agentCapabilities"] = {"loadSession": False, "_meta": {"loadSession": True}}
    if message.get("method") == "session/prompt":
        for number, params in enumerate(([1], {"options": [3]}, {"options": [{}]})):
            asked = {"id": number, "method": "session/request_permission", "params": params}
            print(json.dumps(asked), flush=True)
            result["stopReason"] = json.loads(sys.stdin.readline())["error"]["code"] == -32602 and "end_turn"
    print(json.dumps({"id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.slow
def test_a_program_that_asks_without_options_gets_an_error(runner: ScenarioRunner, tmp_path: Path) -> None:
    """The mistake is the program's: it is answered as any other editor would, and is no error of an adapter."""
    (tmp_path / "asks.py").write_text(ASKS_WRONGLY)
    file = tmp_path / "mine.toml"
    file.write_text(f'command = "{sys.executable} {tmp_path}/asks.py {{agent}}"\nsessions = "acp"\n', "utf-8")
    played = runner.play(loads(CRASH), load_command_file(file))
    assert played.answer is not None
    assert [turn.outcome for turn in played.answer.turns or ()] == ["completed"]


FAILS = """\
import sys
print("no licence", file=sys.stderr)
sys.exit(3)
"""


@pytest.mark.slow
def test_the_record_says_how_it_ended_and_what_it_printed_on_stderr(runner: ScenarioRunner, tmp_path: Path) -> None:
    """A program that cannot start says why on stderr alone, and its user reads that first."""
    (tmp_path / "fails.py").write_text(FAILS)
    file = tmp_path / "mine.toml"
    file.write_text(f'command = "{sys.executable} {tmp_path}/fails.py {{agent}}"\nsessions = "acp"\n', "utf-8")
    (row, *_) = judge_play(runner.play(loads(CRASH), load_command_file(file))).rows
    assert row.verdict is Verdict.ADAPTER_ERROR
    assert row.seen.splitlines()[0] == "it exits with code 3 before it starts an agent: no licence"


LOADS = """\
scenario: a program loads a session
agent: acp
continues: {load: monday}
script: [{wait_for: prompt 1}, {answer: hi}]
expect: {turns: [{text: hi}]}
"""


EAGER = """\
import json, subprocess, sys
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
number = json.loads(sys.stdin.readline())["id"]
print(json.dumps({"jsonrpc": "2.0", "id": number, "result": {"protocolVersion": 1}}), flush=True)
sys.stdin.read()
agent.stdin.close()
agent.wait()
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [ASKS_WRONGLY, EAGER], ids=["starts no agent", "starts its agent early"])
def test_a_program_that_cannot_load_a_session_is_not_judged_by_it(
    runner: ScenarioRunner, tmp_path: Path, program: str
) -> None:
    """It says so in the handshake. The kit ends the session then, so the end is no mistake of the program."""
    (tmp_path / "program.py").write_text(program)
    file = tmp_path / "mine.toml"
    file.write_text(f'command = "{sys.executable} {tmp_path}/program.py {{agent}}"\nsessions = "acp"\n', "utf-8")
    with pytest.raises(NotApplicable, match="a program that can load a session"):
        runner.play(loads(LOADS), load_command_file(file))


def test_there_is_one_kind_of_sessions(tmp_path: Path) -> None:
    """Another word is a mistake of the file."""
    file = tmp_path / "mine.toml"
    file.write_text("command = 'x {agent}'\nsessions = 'lsp'\n", "utf-8")
    with pytest.raises(UsageError) as refused:
        load_command_file(file)
    assert str(refused.value) == "mine.toml: sessions is 'lsp'\nwrite acp: it is an ACP agent, and the kit its editor"


CLOSES = """\
import json, os, signal, subprocess, sys
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
for line in sys.stdin.buffer:
    agent.stdin.write(line)
    agent.stdin.flush()
    if b'"id"' in line:
        answer = b""
        while b'"result"' not in answer:
            answer = agent.stdout.readline()
            sys.stdout.buffer.write(answer)
            sys.stdout.flush()
agent.stdin.close()
for grace, number in ((2, signal.SIGTERM), (3, signal.SIGKILL)):
    try:
        agent.wait(grace)
    except subprocess.TimeoutExpired:
        os.killpg(agent.pid, number)
agent.wait()
"""


@pytest.mark.slow
def test_a_program_may_use_all_its_graces_at_the_close(runner: ScenarioRunner, tmp_path: Path) -> None:
    """It ends its agent by its own graces, so the editor's TERM must not end the program in the middle of them."""
    (tmp_path / "closes.py").write_text(CLOSES)
    file = tmp_path / "mine.toml"
    limits = "[limits]\nclose_grace = 2\nkill_grace = 3\nleftover_kill_grace = 0\n"
    command = f'command = "{sys.executable} {tmp_path}/closes.py {{agent}}"\nsessions = "acp"\n'
    file.write_text(f"{command}{limits}", "utf-8")
    played = runner.play(load_bundled("session-close-kills-an-agent-that-ignores-term[acp]"), load_command_file(file))
    judgement = judge_play(played, is_reference=False)
    assert judgement.verdict is Verdict.PASSED, judgement.rows


RUN = """\
scenario: an agent answers
agent: raw
script: [{say: hello}]
expect: {outcome: completed}
"""

HANGS = """\
import sys, threading
print("no licence", file=sys.stderr, flush=True)
threading.Event().wait()
"""


@pytest.mark.slow
@pytest.mark.parametrize("sessions", ["", 'sessions = "acp"\n'], ids=["run", "session"])
def test_the_stderr_of_a_program_that_never_returns_is_shown(
    sessions: str, runner: ScenarioRunner, tmp_path: Path
) -> None:
    """The traceback of a thread or a callback is often why a program hangs."""
    (tmp_path / "hangs.py").write_text(HANGS)
    file = tmp_path / "mine.toml"
    file.write_text(f'command = "{sys.executable} {tmp_path}/hangs.py {{agent}}"\n{sessions}', "utf-8")
    played = runner.play(loads(CRASH if sessions else RUN), load_command_file(file))
    text = explain_play(played, judge_play(played).rows)
    assert "  the program is given up, and on its stderr stands\n    no licence\n" in text
