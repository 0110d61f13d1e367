"""`agentproc record`: a program runs in our place, and the scenario that is made of it does the same."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.capture import normalize_output_line
from pytest_agentproc.capture._record_writer import RecordWriter
from pytest_agentproc.events import ProcessStarted
from pytest_agentproc.scenario import load, loads
from pytest_agentproc.supervisor import Policy, open_session
from pytest_agentproc.tree import adopt_orphans_in_block, list_descendants
from tests.mirrors.test_mirrors import find_mirror

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.harness import ScenarioRunner

CEILING = 30.0
RECORD = [sys.executable, "-m", "pytest_agentproc", "record", "--yes"]
_SEEN_FOR_SURE = 0.3
_LONG = 1 << 20

PROGRAMS: dict[str, str] = {
    "pipeline": "printf 'b\\na\\n' | sort; echo done >&2; (sleep 0.4; echo late) | cat; exit 3",
    "quiet": "exit 0",
    "half a line": "printf 'half a '; sleep 0.3; echo line",
    "daemon": "setsid sh -c 'sleep 0.8 >/dev/null 2>&1 & exit' & sleep 0.5; echo left it",
    "binary": "head -c 10485760 /dev/zero | tr '\\0' '\\377'; printf 'end\\n'",
}


def record_program(out: Path, command: list[str], *options: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """Record a program to its end."""
    line = [*RECORD, "--out", str(out), *options, "--", *command]
    return subprocess.run(line, capture_output=True, check=False, timeout=CEILING, **{"input": b"", **how})


def list_relevant_parts(stream: bytes) -> list[Any]:
    """Give the relevant part of each line; of a line that a reader of a failure could not read, its digest."""
    return [normalize_output_line(line) if len(line) < _LONG else sha256(line).digest() for line in stream.split(b"\n")]


def normalize_recording(file: Path) -> dict[str, Any]:
    """Give what a record says, without what is never the same twice: pids, chunks, times, whose command line it is.

    Its `tree` is how each descendant was started, and for how many seconds it lived.
    """
    streams: dict[str, bytes] = defaultdict(bytes)
    seen: dict[str, tuple[float, str]] = {}
    lives: dict[str, float] = {}
    at, ends = 0.0, {}
    for line in file.read_text("utf-8").splitlines()[1:]:
        interval, code, data = json.loads(line)
        at += interval
        if "bytes" in data:
            text = data["bytes"]
            streams[code] += text.encode() if isinstance(text, str) else base64.b64decode(text["b64"])
        elif code == "p" and "how" in data:
            seen[data["process"]] = data["since"] / 1e9, data["how"]
        elif code == "p" and "gone" in data and data["process"] in seen:
            lives[data["process"]] = at - seen[data["process"]][0]
        elif code == "x":
            ends = {key: value for key, value in data.items() if key != "process"}
    tree = [(how, lives.get(name, CEILING)) for name, (_, how) in seen.items()]
    fields = {code: list_relevant_parts(data) for code, data in streams.items()}
    return {"streams": fields, "ends": ends, "tree": tree, "left": sorted(seen.keys() - lives.keys()) != []}


def assert_alike(first_path: Path, second_path: Path) -> None:
    """Have two records say the same; a process seen for sure in one of them must be in the other."""
    first, second = normalize_recording(first_path), normalize_recording(second_path)
    trees = first.pop("tree"), second.pop("tree")
    assert first == second
    for tree, other in (trees, trees[::-1]):
        sure = Counter(how for how, life in tree if life >= _SEEN_FOR_SURE)
        assert sure <= Counter(how for how, _ in other), trees


def read_duration(file: Path) -> float:
    """Give the time until the program had ended, in seconds."""
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()[1:]]
    end = next(index for index, line in enumerate(lines) if line[1] == "x")
    return sum(float(line[0]) for line in lines[: end + 1])


def record_twice(runner: ScenarioRunner, folder: Path, command: list[str], **how: Any) -> tuple[Path, Path]:
    """Record a program, and the fake that plays the recording; give both records."""
    first, second = folder / "one.scenario.yaml", folder / "two.scenario.yaml"
    record_program(first, command, **how)
    fake = runner.make_fake(load(first))
    try:
        record_program(second, fake.argv, **how)
    finally:
        fake.finish()
    return folder / "one.record.jsonl", folder / "two.record.jsonl"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_second_recording_of_a_program_equals_the_first(name: str, runner: ScenarioRunner, tmp_path: Path) -> None:
    """The recording holds the scenario's actions: bytes, ends, the descent of each process and how long it takes."""
    first, second = record_twice(runner, tmp_path, ["sh", "-c", PROGRAMS[name]])
    assert_alike(first, second)
    assert read_duration(second) >= read_duration(first) - 0.25


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude/tool", "codex/tool", "gemini/stream", "pi/hello"])
def test_a_fake_of_a_real_cli_is_recorded_in_its_dialect(name: str, runner: ScenarioRunner, tmp_path: Path) -> None:
    """One of each dialect runs with processes and pipes; all others run in memory (tests/mirrors)."""
    fake = runner.make_fake(load(find_mirror(name)))
    first, second = record_twice(runner, tmp_path, fake.argv)
    fake.finish()
    assert_alike(first, second)
    text = (tmp_path / "one.scenario.yaml").read_text("utf-8")
    assert f"agent: {name.split('/', maxsplit=1)[0]}" in text.replace("{dialect: ", "")
    assert "raw:" not in text.replace('raw: {text: "Reading additional input from stdin...\\n", to: stderr}', "")


@pytest.mark.slow
def test_a_supervisor_does_not_notice_the_recorder(runner: ScenarioRunner, tmp_path: Path) -> None:
    """It holds a session through the recorder; the file has that session, prompt by prompt."""
    script = "{wait_for: prompt 1}, {answer: one}, {wait_for: prompt 2}, {answer: two}"
    fake = runner.make_fake(loads(f"scenario: x\nagent: {{dialect: pi, mode: rpc}}\nscript: [{script}]\n"))
    out = tmp_path / "x.scenario.yaml"

    async def hold() -> list[tuple[Any, ...]]:
        argv = [*RECORD, "--out", str(out), "--", *fake.argv]
        async with open_session(argv, dialect="pi", policy=Policy(close_grace=CEILING)) as session:
            asked = [await session.prompt(text) for text in ("first", "second")]
            return [(turn.outcome, turn.text) for turn in asked]

    assert anyio.run(hold) == [("completed", "one"), ("completed", "two")]
    fake.finish()
    written = load(out)
    assert (written.dialect, written.mode) == ("pi", "rpc")
    steps = [line.strip() for line in written.text.splitlines() if "wait_for" in line or "answer" in line]
    assert steps == ["- wait_for: prompt 1", "- answer: one", "- wait_for: prompt 2", "- answer: two"]


@pytest.mark.slow
def test_the_bytes_pass_through_as_they_are(tmp_path: Path) -> None:
    """A supervisor sees the same with the recorder and without it."""
    completed = record_program(
        tmp_path / "x.scenario.yaml", ["sh", "-c", "cat; printf '\\377\\000'; echo oops >&2; exit 5"], input=b"in"
    )
    assert (completed.stdout, completed.stderr[:5], completed.returncode) == (b"in\xff\x00", b"oops\n", 5)


def record_stubborn_program(folder: Path, name: str, command: list[str]) -> Path:
    """Record a program that is terminated once it is heard of; give its record."""
    line = [*RECORD, "--out", str(folder / f"{name}.scenario.yaml"), "--", *command]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        process.communicate(timeout=CEILING)
    return folder / f"{name}.record.jsonl"


@pytest.mark.slow
def test_a_program_that_ignores_the_signal_goes_on_in_both(runner: ScenarioRunner, tmp_path: Path) -> None:
    """TERM passes through and is deadly for neither: not for the program, and not for the fake that plays it."""
    first = record_stubborn_program(
        tmp_path, "one", ["sh", "-c", "trap '' TERM; echo ready; sleep 0.4; echo still here; exit 4"]
    )
    fake = runner.make_fake(load(tmp_path / "one.scenario.yaml"))
    second = record_stubborn_program(tmp_path, "two", fake.argv[:1])
    fake.finish()
    assert "when: {signal: TERM}\n    do: []" in (tmp_path / "one.scenario.yaml").read_text("utf-8")
    assert '"s", {"process": "agent", "signal": "TERM"' in second.read_text("utf-8")
    assert_alike(first, second)


@pytest.mark.slow
def test_a_program_that_dies_of_the_signal_is_reported_by_its_code(tmp_path: Path) -> None:
    """The sender of the signal sees the same end as from a shell: 128 and the signal's number."""
    line = [*RECORD, "--out", str(tmp_path / "x.scenario.yaml"), "--", "sh", "-c", "echo ready; exec sleep 1000"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        process.communicate(timeout=CEILING)
    assert process.returncode == 128 + signal.SIGTERM
    assert '"x", {"process": "agent", "signal": "TERM"}' in (tmp_path / "x.record.jsonl").read_text("utf-8")


@pytest.mark.slow
def test_a_kill_of_the_recorder_is_one_of_the_program_and_recorded(tmp_path: Path) -> None:
    """The last step of every escalation is KILL: a program that ignores TERM is worth a recording."""
    command = ["sh", "-c", "trap '' TERM; echo ready; exec sleep 1000"]
    line = [*RECORD, "--out", str(tmp_path / "x.scenario.yaml"), "--", *command]
    with adopt_orphans_in_block(), subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        left = list_descendants(process.pid)
        process.kill()
        process.wait(CEILING)
        for pid in left:
            os.waitpid(pid, 0)
    assert '"x", {"process": "agent", "signal": "KILL"}' in (tmp_path / "x.record.jsonl").read_text("utf-8")
    assert "  - say: ready\n  - silence: for ever\n" in load(tmp_path / "x.scenario.yaml").text


def test_a_kill_of_the_recorder_is_recorded_though_the_program_has_ended_before(tmp_path: Path) -> None:
    """A short program has ended before the process that keeps its record hears of it."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    written = tmp_path / "written"
    writer = RecordWriter(lambda record: written.write_text(str(len(record.events)), "utf-8"))
    writer.send_event(ProcessStarted(0, "agent", gone.pid))
    os.close(writer._writing)  # noqa: SLF001  # as the kernel does when the recorder is killed
    os.waitpid(writer._pid, 0)  # noqa: SLF001  # as above
    assert written.read_text("utf-8") == "2"


@pytest.mark.slow
def test_a_terminal_is_one(tmp_path: Path) -> None:
    """A program that asks whether it talks to a terminal gets yes, and its size is ours, or the usual one."""
    command = ["sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty size"]
    completed = record_program(tmp_path / "x.scenario.yaml", command, "--terminal")
    assert (completed.returncode, completed.stdout) == (0, b"24 80\r\n")


@pytest.mark.slow
def test_a_recording_ends_with_a_report(tmp_path: Path) -> None:
    """These lines and this file are the first sight for a first-time user of the recorder."""
    command = ["sh", "-c", 'echo "$MY_TOKEN"; echo "a rather long text"; exit 3']
    env = {**os.environ, "MY_TOKEN": "s3cr3t-v4lu3", "OTHER_TOKEN": "1"}
    completed = record_program(tmp_path / "x.scenario.yaml", command, "--shorten", "14", env=env, cwd=tmp_path)
    assert re.sub(rb"\S*/(?=x\.)", b"", completed.stderr).decode() == (
        "agentproc record: wrote x.scenario.yaml and x.record.jsonl\n"
        "agentproc record: redacted redacted1: value of MY_TOKEN (1 in stdout)\n"
        "agentproc record: not looked for: OTHER_TOKEN (too short, or a common word)\n"
        "agentproc record: shortened 1 texts in the scenario; the record has them whole\n"
        "agentproc record: played again: the same\n"
    )
    assert (tmp_path / "x.scenario.yaml").read_text("utf-8") == (
        '# recorded: sh -c echo "$MY_TOKEN"; echo "a rather long text"; exit 3\n'
        "# redacted: redacted1: value of MY_TOKEN (1 in stdout)\n"
        "# shortened: 1 texts to 14 characters\n"
        "scenario: sh as it was recorded\n"
        "agent: raw\n"
        "script:\n"
        "  - say: redacted1xxx\n"
        '  - say: "a rather long ...[+4]"\n'
        "  - exit: 3\n"
        "expect:  # what the reference supervisor makes of it\n"
        "  outcome: failed\n"
    )


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--out", "x.yaml", "--", "true"], 2, '--out is "x.yaml"\nname a file that ends in .scenario.yaml\n'),
        (
            ["--out", "no/x.scenario.yaml", "--", "true"],
            2,
            '--out is "no/x.scenario.yaml", and there is no folder "no"\nmake it first\n',
        ),
        (
            ["--out", "x.scenario.yaml", "--shorten", "0", "--", "true"],
            2,
            "--shorten is 0\ngive the number of characters to keep, 1 or more\n",
        ),
        (
            ["--out", "x.scenario.yaml", "--dialect", "klaude", "--", "true"],
            2,
            'the dialect "klaude" is unknown\nknown are raw, claude, pi, codex, gemini, opencode, acp\n',
        ),
        (
            ["--out", "x.scenario.yaml", "--", "no-such-program"],
            127,
            '"no-such-program" cannot be started: No such file or directory\nname a program after --\n',
        ),
    ],
)
@pytest.mark.slow
def test_a_mistake_is_reported_before_anything_runs(
    options: list[str], code: int, message: str, tmp_path: Path
) -> None:
    """The message says the mistake and the remedy; no file is left."""
    completed = subprocess.run(
        [*RECORD, *options], capture_output=True, text=True, check=False, timeout=CEILING, cwd=tmp_path
    )
    assert (completed.returncode, completed.stderr) == (code, f"agentproc record: {message}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "least"), [("head -c 20000000 /dev/zero", 16_000_000), ("yes | head -c 20000000", 60_000)]
)
def test_a_flood_is_passed_on_and_its_beginning_is_recorded(program: str, least: int, tmp_path: Path) -> None:
    """It once took 14 bytes of memory for each byte that the program printed, and 150 for each byte of short lines."""
    out = tmp_path / "x.scenario.yaml"
    completed = record_program(out, ["sh", "-c", program], "--dialect", "raw")
    told = completed.stderr.decode().splitlines()[2]
    found = re.fullmatch(
        r"agentproc record: not faithful: (what came after the first (\d+) bytes was passed on, not recorded)", told
    )
    assert (len(completed.stdout), completed.returncode) == (20_000_000, 0)
    assert found is not None
    assert least < int(found[2]) < 1 << 24
    assert out.read_text("utf-8").splitlines()[1] == f"# {found[1]}"
    assert sum(file.stat().st_size for file in tmp_path.glob("*.bin")) == int(found[2])


@pytest.mark.slow
def test_a_pipe_in_the_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    """Opening it for writing waits for a reader, which never comes."""
    out = tmp_path / "x.scenario.yaml"
    os.mkfifo(tmp_path / "x.record.jsonl")
    assert record_program(out, ["echo", "hi"]).returncode == 0
    assert (tmp_path / "x.record.jsonl").is_file()


@pytest.mark.slow
def test_a_folder_in_the_place_of_a_file_is_found_before_anything_runs(tmp_path: Path) -> None:
    """The effects of the program were lost, with a traceback."""
    (tmp_path / "x.record.jsonl").mkdir()
    completed = record_program(tmp_path / "x.scenario.yaml", ["touch", str(tmp_path / "ran")])
    place = f'--out is "{tmp_path}/x.scenario.yaml", and {tmp_path}/x.record.jsonl is a folder'
    assert (completed.returncode, completed.stderr.decode()) == (2, f"agentproc record: {place}\nname another file\n")
    assert not (tmp_path / "ran").exists()
