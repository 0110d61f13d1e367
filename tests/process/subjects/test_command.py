"""A program as the supervisor under test: its input, the meaning of its end, and its mistakes in both."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import Command, Function, _command, load_command_file
from pytest_agentproc.verdict import CheckRow, Verdict, choose_overall_verdict, explain_play, judge_all_expectations
from pytest_agentproc.vocabulary import LimitsRequest
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import RunRequest

HELLO = loads(
    "scenario: hello\nagent: {dialect: raw, prompt: stdin}\ndrive: [{prompt: hi you}]\n"
    "script: [wait_for: eof, say: hello]\n"
    "expect: {outcome: completed, exit_code: 0, text: hello, received: {stdin: hi you}}\n"
)
SILENT = loads(
    "scenario: silent\nagent: raw\nscript: [silence: inactivity_timeout + 40s, say: late]\n"
    "expect: {outcome: inactive}\n"
)
LIMITS = {"inactivity_timeout": 60, "kill_grace": 60}
ENDS = {"exit_code": {0: "completed", "124": "inactive", "other": "failed"}}


def play_real(
    runner: ScenarioRunner, subject: Command | Function, scenario: Any = HELLO, scale: float = 100
) -> dict[str, CheckRow]:
    """Give the rows of a play in real time."""
    return {row.key: row for row in judge_all_expectations(runner.play_real(scenario, subject, scale=scale))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "options"),
    [
        ('"$0" "$@"', {"argv": ["{agent}"]}),
        ('sh -c "$0"', {"argv": ["{agent} "]}),
        ("$AGENT", {"env": {"AGENT": "{agent}"}}),
        ("$AGENT", {"env": {"AGENT": "{agent_path}"}}),
        ("agent", {"on_path": True}),
    ],
    ids=["words", "one word", "environment", "executable", "PATH"],
)
def test_it_gets_the_agent_in_each_of_five_ways(runner: ScenarioRunner, script: str, options: dict[str, Any]) -> None:
    """A wrapper takes its agent as it always has; with a name or a path alone it makes the command line itself."""
    argv = ["sh", "-c", script, *options.pop("argv", [])]
    makes_it = "{agent}" not in f"{argv} {options}"
    says = {"outcome": ENDS, "exit_code": "exit_code", "text": "stdout"}
    rows = play_real(runner, Command(argv, says=says, **options))
    given = rows.pop("received.stdin")
    assert given.verdict is (Verdict.NOT_APPLICABLE if makes_it else Verdict.PASSED)
    assert {row.verdict for row in rows.values()} == {Verdict.PASSED}, rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "word", "on_stdin"),
    [
        ('[ "$0" = "hi you" ]', "{prompt}", False),
        ('grep -qx "hi you" "$0"', "{prompt_file}", False),
        ("grep -qx 'hi you'", "", True),
    ],
    ids=["argv", "file", "stdin"],
)
def test_a_program_takes_the_prompt_in_the_way_of_its_own(
    runner: ScenarioRunner, script: str, word: str, on_stdin: bool
) -> None:
    """It need not be the way in which its agent gets it."""
    scenario = loads(
        "scenario: hello\nagent: raw\ndrive: [{prompt: hi you}]\nscript: [exit: 0]\nexpect: {outcome: completed}\n"
    )
    argv = ["sh", "-c", f'{script} && exec "$@"', word, "{agent}"]
    subject = Command(argv, says={"outcome": ENDS}, prompt_on_stdin=on_stdin)
    assert play_real(runner, subject, scenario)["outcome"].verdict is Verdict.PASSED


STREAM = (
    "scenario: hello\nagent: {dialect: gemini, mode: MODE}\nscript: [answer: hello]\nexpect: {outcome: completed}\n"
)


@pytest.mark.slow
def test_a_shell_around_an_agent_that_a_program_leaves_is_a_leak(runner: ScenarioRunner) -> None:
    """The fake's name is among its words, but it is no fake."""
    around = '"$0" >/dev/null; kill -KILL $PPID; sleep 1000'
    row = play_real(runner, Command(["sh", "-c", f"sh -c '{around}' \"$0\" & wait", "{agent}"]))["leaks"]
    assert row.verdict is Verdict.FAILED
    assert re.match(r"sh -c \"\$0\" >/dev/null; kill .*, sleep 1000 \(still alive\)", row.seen)


@pytest.mark.slow
def test_a_program_may_speak_one_mode_of_a_dialect(runner: ScenarioRunner) -> None:
    """A mode that the program does not support gives no verdict about it."""
    subject = Command(["timeout", "60", "{agent}"], says={"outcome": ENDS}, dialects=["gemini stream"])
    assert (
        choose_overall_verdict(tuple(play_real(runner, subject, loads(STREAM.replace("MODE", "stream")), 1).values()))
        is Verdict.PASSED
    )
    with pytest.raises(NotApplicable, match="agents of gemini json"):
        runner.play_real(loads(STREAM.replace("MODE", "json")), subject)


@pytest.mark.slow
@pytest.mark.parametrize(("said", "word"), [('"fine"', "fine"), ("0", 0)])
def test_a_file_of_its_own_says_what_its_exit_code_does_not(runner: ScenarioRunner, said: str, word: str | int) -> None:
    """The words are its own, numbers too; a key that is not there says nothing, and is undecided."""
    result = f'{{"result": {{"status": {said}, "text": "hello"}}}}'
    program = f'"$@" >/dev/null; echo \'{result}\' >"$0/result.json"; exit 7'
    status = {"json": "result.json", "key": "result.status", "words": {word: "completed", "other": "failed"}}
    says = {"outcome": status, "text": {"json": "result.json", "key": "result.text"}}
    rows = play_real(runner, Command(["sh", "-c", program, "{folder}", "{agent}"], says=says))
    found = {key: row.verdict for key, row in rows.items()}
    assert found.pop("exit_code") is Verdict.UNDECIDED
    assert set(found.values()) == {Verdict.PASSED}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "why"),
    [("", "there is no r.json in its {folder}"), ('{"end": {"text": "hello"}}', "there is no end.how in r.json")],
)
def test_a_program_that_does_not_report_is_explained_with_its_end(
    runner: ScenarioRunner, written: str, why: str
) -> None:
    """Its author sees the missing file, the end of the program, and its words about that."""
    program = (
        '"$@" >/dev/null; [ -z "$WRITTEN" ] || echo "$WRITTEN" >"$0/r.json"; echo no such thing >&2; kill -TERM $$'
    )
    says = {"outcome": {"json": "r.json", "key": "end.how"}}
    subject = Command(["sh", "-c", program, "{folder}", "{agent}"], env={"WRITTEN": written}, says=says)
    play = runner.play_real(HELLO, subject, scale=100)
    rows = judge_all_expectations(play)
    told = explain_play(play, rows)
    assert {row.key: row.verdict for row in rows}["outcome"] is Verdict.UNDECIDED
    assert f"does not say outcome: {why}" in told
    assert "  the program dies of TERM, and on its stderr stands\n    no such thing\n" in told


@pytest.mark.slow
def test_a_program_that_dies_of_a_realtime_signal_is_reported_by_its_number(runner: ScenarioRunner) -> None:
    """The signal has no name, and that is no mistake of the kit."""
    play = runner.play_real(HELLO, Command(["sh", "-c", "kill -40 $$", "{agent}"]), scale=100)
    assert "  the program dies of signal 40" in explain_play(play, judge_all_expectations(play))


@pytest.mark.slow
@pytest.mark.parametrize("text", ['"text": null', '"other": 0'])
def test_a_final_text_that_a_program_does_not_report_is_lost(runner: ScenarioRunner, text: str) -> None:
    """The text of a completed run survives, whatever happened to the agent (C3)."""
    program = f'"$@" >/dev/null; echo \'{{"status": "completed", {text}}}\' >"$0/r.json"'
    says = {"outcome": {"json": "r.json", "key": "status"}, "text": {"json": "r.json", "key": "text"}}
    rows = play_real(runner, Command(["sh", "-c", program, "{folder}", "{agent}"], says=says))
    assert rows["outcome"].verdict is Verdict.PASSED
    assert rows["text"].verdict is Verdict.FAILED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "observed"),
    [
        ("{", "r.json is no JSON: *\nhave it written whole, or not at all"),
        ("[" * 100_000, "r.json is no JSON: maximum recursion depth*\nhave it written whole, or not at all"),
        (
            '{"end": "odd"}',
            "end in r.json is 'odd', which says.outcome.words does not have\nadd it there, or other; known are ok",
        ),
        ('{"end": "ok", "n": "x"}', "it returned noise 'x'\nnoise must be a whole number, *"),
    ],
)
def test_a_file_that_says_nonsense_is_the_adapters_error(runner: ScenarioRunner, written: str, observed: str) -> None:
    """The error names file, key and value."""
    says = {
        "outcome": {"json": "r.json", "key": "end", "words": {"ok": "completed"}},
        "noise": {"json": "r.json", "key": "n"},
    }
    program = 'printf %s "$1" >"$0/r.json"; : \'{agent}\''
    rows = play_real(runner, Command(["sh", "-c", program, "{folder}", written], says=says))
    assert rows["answer"].verdict is Verdict.ADAPTER_ERROR
    assert re.fullmatch(re.escape(observed).replace(r"\*", ".*"), rows["answer"].seen)


@pytest.mark.slow
@pytest.mark.parametrize("script", ["exec yes", "yes | head -c 9000000", "exec yes >&2"])
def test_a_program_that_prints_without_end_is_the_adapters_error(
    runner: ScenarioRunner, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """It is ended before it fills the disk, and its output is never all in memory."""
    monkeypatch.setattr(_command, "_MAX_OUTPUT_BYTES", 8 * 1024**2)
    answer = play_real(runner, Command(["sh", "-c", script, "{agent}"]))["answer"]
    stream = "stderr" if "2" in script else "stdout"
    assert answer.verdict is Verdict.ADAPTER_ERROR
    assert answer.seen == f"it printed more than 8388608 bytes on its {stream}, and was ended\nhave it print less there"


def test_a_program_that_is_not_there_is_the_adapters_error(runner: ScenarioRunner) -> None:
    """A user should not have to read a stack to learn that."""
    rows = play_real(runner, Command(["no-such-program", "{agent}"]))
    assert rows["answer"].seen.startswith("no-such-program could not be started: No such file or directory\nname an ex")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("command = ''", "command is ''\nwrite a text or a list of texts"),
        ("limits = {}", 'there is no command\nwrite command = "my-supervisor {agent}", for example'),
        ("comand = 'x {agent}'", "there is no key 'comand'\ndid you mean command?"),
        ("command = 'x {agent}'\noutcome = 'stdout'", "outcome stands outside [says]\nwrite it below a line [says]: *"),
        ("inactivity_timeout = 60", "inactivity_timeout stands outside [limits]\nwrite it below a line [limits]: *"),
        ("command = 'x'", "command 'x' has no {agent} in it\nwrite command = *"),
        ("command = 'x \"{agent}'", "command 'x \"{agent}' cannot be split: no closing quotation\nquote it *"),
        (
            "command = 'x {agent} {foo}'",
            "{foo} in the command stands for nothing\nknown are agent, agent_path, prompt, *",
        ),
        ("command = 'x {agent}'\ndialects = ['pie']", "there is no dialect 'pie', did you mean pi?"),
        (
            "command = 'x {agent}'\ndialects = ['gemini xml']",
            "there is no dialect 'gemini xml', did you mean gemini?",
        ),
        ("command = 'x {agent}'\ndialects = []", "dialects is empty\nleave it out for all, or name some of raw, *"),
        (
            "command = 'x {agent} {max_runtime}'",
            "{max_runtime} in the command has no value where a scenario sets none\nstate one under limits, such as *",
        ),
        ("command = 'x {agent}'\nprompt_on_stdin = 'yes'", "prompt_on_stdin is 'yes'\nwrite true or false"),
        ("command = 'x {Agent}'", "{Agent} in the command stands for nothing\nwrite {agent}"),
        ("command = 'x {agent}'\n[limits]\nx = 1", "there is no limit 'x'\n*"),
        ("command = 'x {agent}'\n[says]\nlimits = {}", "limits stands in [says]\nwrite it above the first line in *"),
        ("command = 'x {agent}'\n[says]\noutcom = 'stdout'", "says: there is no field 'outcom'\ndid you mean outcome?"),
        ("command = 'x {agent}'\n[says]\ntext = 'stdin'", "says.text is 'stdin'\nwrite *"),
        (
            "command = 'x {agent}'\n[says]\ntext = {json = '/etc/passwd'}",
            "says.text.json is '/etc/passwd'\nname a file in the run's own folder, {folder}, or stdout",
        ),
        (
            "command = 'x {agent}'\n[says.outcome.exit_code]\n0 = 'complete'",
            "says.outcome.exit_code: 'complete' is no outcome\nwrite completed",
        ),
        (
            "command = 'x {agent}'\n[says.outcome.exit_code]\nzero = 'completed'",
            "says.outcome.exit_code: 'zero' is no exit code\nwrite a number, or other",
        ),
        ("command = ", "Invalid value (at end of document)\nwrite TOML"),
        *(
            pytest.param(
                f"limits = {{kill_grace = {digits}}}",
                "a number is too large\nwrite a whole number of at most 64 bits",
                id=f"digits, {digits[:3]}, {len(digits)}",
            )
            for digits in ("9" * 5000, "9" * 400, "0x" + "f" * 5000, "[{a = 0b1" + "0" * 20000 + "}]")
        ),
        pytest.param(
            f"says = {'[' * 20000}",
            "it is nested too deeply\nwrite TOML with fewer brackets in brackets",
            id="brackets",
        ),
    ],
)
def test_a_wrong_file_is_explained_in_one_clause(tmp_path: Path, written: str, message: str) -> None:
    """Place, value and what to do."""
    file = tmp_path / "mine.toml"
    file.write_text(written, "utf-8")
    with pytest.raises(UsageError) as refused:
        load_command_file(file)
    assert re.fullmatch(re.escape(f"mine.toml: {message}").replace(r"\*", ".*"), str(refused.value))


def test_a_program_claims_what_its_file_says(tmp_path: Path, runner: ScenarioRunner) -> None:
    """One file is the whole statement: its name, its dialects, its limits; sessions and artifacts it never has."""
    file = tmp_path / "mine.toml"
    limits = "limits = {kill_grace = 5, max_runtime = 60, handshake_timeout = 'none'}"
    file.write_text(f"command = 'x {{agent}} {{max_runtime}}'\ndialects = ['pi']\n{limits}\n", "utf-8")
    subject = load_command_file(file)
    assert (subject.name, subject.dialects, subject.holds_sessions, subject.keeps_artifacts) == (
        "mine",
        ("pi",),
        False,
        False,
    )
    policy = subject.policy(LimitsRequest({"max_runtime": 9, "kill_grace": 1}, "pi"))
    assert (policy.max_runtime, policy.kill_grace, policy.inactivity_timeout) == (9, 5, None)
    assert policy.handshake_timeout is None, "TOML has no None"
    with pytest.raises(NotApplicable, match="agents of raw"):
        runner.play_real(HELLO, subject)


async def supervise_unscaled(order: RunRequest) -> str:
    """Keep sixty seconds of the machine's, however fast time goes."""
    import anyio

    fields: dict[str, Any] = {"stdin": subprocess.DEVNULL, "env": order.env, "start_new_session": True}
    try:
        with anyio.fail_after(60):
            await anyio.run_process(order.argv, check=False, **fields)
    except TimeoutError:
        return "inactive"
    return "completed"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subject", "word"),
    [
        (Function(supervise_unscaled, limits=LIMITS), "order.scale"),
        (Command(["timeout", "60", "{agent}"], says={"outcome": ENDS}, limits=LIMITS), "{scale}"),
    ],
    ids=["function", "command"],
)
def test_a_supervisor_that_does_not_divide_its_limits_gets_a_hint(
    runner: ScenarioRunner, subject: Any, word: str
) -> None:
    """Time ran faster than the supervisor knew, so red gives no verdict about it; a green scenario stays green."""
    rows = tuple(play_real(runner, subject, SILENT).values())
    assert choose_overall_verdict(rows) is Verdict.ADAPTER_ERROR
    assert rows[0].seen == (
        f"it keeps limits and never asked for {word}, which was 100 here\n"
        f"have it divide its limits by {word}, or choose --agentproc-scale=1"
    )
    assert Verdict.FAILED not in {row.verdict for row in rows}
    assert play_real(runner, subject)["outcome"].verdict is Verdict.PASSED


@pytest.mark.slow
def test_who_keeps_no_time_need_not_divide_it(runner: ScenarioRunner) -> None:
    """If a supervisor waits for ever, the red is its own."""

    async def waits(order: RunRequest) -> str:
        return await supervise_unscaled(order)

    rows = play_real(runner, Function(waits), HELLO)
    assert rows["received.stdin"].verdict is Verdict.FAILED


@pytest.mark.slow
def test_what_a_program_gives_its_agent_beside_the_command_is_its_own(runner: ScenarioRunner) -> None:
    """It is given a command, but no environment and no folder for it; it adds its own."""
    scenario = load_bundled("sees-its-command-line-plain")
    program = Command(["sh", "-c", 'HOME=/ exec "$0" "$@" </dev/null', "{agent}"])
    rows = play_real(runner, program, scenario)
    assert {key: rows[key].verdict.value for key in ("received.argv", "received.env", "received.cwd")} == {
        "received.argv": "passed",
        "received.env": "not applicable",
        "received.cwd": "not applicable",
    }
