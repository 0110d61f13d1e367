"""`agentproc time`: a command line in virtual time, with the fakes that were made for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_agentproc.cli import main

DRIP = """\
scenario: it says one thing after an hour, and ends
agent: raw
script: [{silence: 1h}, {say: hello}]
"""
CEILING = 60.0


def _run_time_command(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_agentproc", "time", "--", *words]
    return subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, timeout=CEILING, check=False
    )


def test_both_times_are_printed_and_the_exit_code_is_the_commands() -> None:
    """A script in CI sees at the end what it has saved; the words after the command are the command's own."""
    completed = _run_time_command("sh", "-c", 'echo "$@"; sleep 3600; exit 4', "sh", "--", "-x")
    assert (completed.returncode, completed.stdout) == (4, "-- -x\n")
    assert completed.stderr.startswith("agentproc time: 3600 s of virtual time in ")


def test_each_jump_is_a_row_with_who_held_time() -> None:
    """Whoever wonders why time moves slowly, or where, reads it from top to bottom."""
    command = [
        sys.executable,
        "-m",
        "pytest_agentproc",
        "time",
        "--explain",
        "--",
        "sh",
        "-c",
        "sleep 5; sleep 55.5; :",
    ]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=CEILING, check=True)
    head, first, second, last = (line.removeprefix("agentproc time: ") for line in completed.stderr.splitlines())
    assert head.split("  ")[-1].strip() == "held before by (ms of the machine)"
    row = re.compile(r"^ +(\S+ s) +(\S+ s)  sleep \(pid \d+\): a wait +(?:.+ \d+\.\d|nobody)$")
    rows = [found.groups() if (found := row.match(line)) else line for line in (first, second)]
    assert rows == [("0 s", "5 s"), ("5 s", "55.5 s")]
    assert last.startswith("60.5 s of virtual time in ")


@pytest.mark.parametrize("scale", ["1", "60"])
def test_a_fake_follows_the_virtual_time_at_any_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scale: str
) -> None:
    """The fake needs no rebuild: an hour is an hour there, and costs nothing."""
    monkeypatch.chdir(tmp_path)
    Path("drip.scenario.yaml").write_text(DRIP, "utf-8")
    assert main(["fake", "drip.scenario.yaml", "--dir", "fakes", "--name", "agent", "--scale", scale]) == 0
    completed = _run_time_command("sh", "-c", "agent", PATH=f"{tmp_path}/fakes:{os.environ['PATH']}")
    assert completed.stdout.startswith("hello"), completed.stderr
    assert completed.stderr.startswith("agentproc time: 3600 s of virtual time in "), completed.stderr


@pytest.mark.slow
def test_a_fake_of_a_test_may_be_silent_for_hours(tmp_path: Path) -> None:
    """In real time it would be ended after a minute; here an hour costs nothing."""
    Path(tmp_path, "test_it.py").write_text(
        "import subprocess\n\ndef test_it(fake_agent):\n    fake = fake_agent('- silence: 1h\\n- say: hello')\n"
        "    assert subprocess.run(fake.argv, capture_output=True).stdout == b'hello\\n'\n",
        "utf-8",
    )
    completed = _run_time_command(
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-pno:cacheprovider",
        "-pno:hypothesispytest",
        "-c",
        os.devnull,
        str(tmp_path),
    )
    assert completed.returncode == 0, completed.stdout


def test_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    """Where there is neither a coordinator nor a compiler, nothing else is printed."""
    completed = _run_time_command("true", PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert completed.returncode == 2
    assert completed.stderr == (
        "agentproc time: virtual time for programs needs a C compiler, once, and there is no `cc`\n"
        "install one, such as by `apt install gcc libc6-dev`\n"
    )
