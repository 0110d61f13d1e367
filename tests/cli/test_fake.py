"""`agentproc fake`: executables that play a scenario for tests in any language, and that never stay."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

HELLO = "scenario: it says hello\nagent: {dialect: claude, mode: print}\nscript: [{silence: 30s}, {answer: hello}]\n"
DEAF = """\
scenario: nothing but the end of its harness, or of its time, ends it, and the child that it has
agent: raw
script:
  - {{when: {{signal: TERM}}, do: []}}
  - spawn: {{id: child, how: daemon, ignores_signals: true, {more}: true}}
  - say: ready
  - silence: for ever
"""
SHELL = """
set -eu
[ "$(claude -p --output-format=stream-json --verbose hi | tail -n 1 | grep -c '"result":"hello"')" = 1 ]
set +e
codex exec hi 2> told
[ $? = 127 ] && grep -q 'codex: there is no fake of this name' told
"""
NODE = """
const { spawnSync } = require("node:child_process");
const done = spawnSync("claude", ["-p", "--output-format=stream-json", "--verbose", "hi"], { encoding: "utf8" });
const last = JSON.parse(done.stdout.trim().split("\\n").at(-1));
if (done.status !== 0 || last.result !== "hello") process.exit(1);
if (spawnSync("gemini", []).status !== 127) process.exit(2);
"""
PYTHON = """
import json, subprocess, sys
command = ["claude", "-p", "--output-format=stream-json", "--verbose", "hi"]
done = subprocess.run(command, capture_output=True, text=True)
assert done.returncode == 0 and json.loads(done.stdout.splitlines()[-1])["result"] == "hello", done
assert subprocess.run(["pi"], capture_output=True).returncode == 127
assert not {"pytest", "pytest_agentproc"} & set(sys.modules)
"""
CEILING = 20.0


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a fake claude whose seconds pass fast, and stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    Path("hello.scenario.yaml").write_text(HELLO, "utf-8")
    assert main(["fake", "hello.scenario.yaml", "--dir", "fakes", "--scale", "300"]) == 0
    return tmp_path / "fakes"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "script"),
    [(["sh", "-c"], SHELL), (["node", "-e"], NODE), ([sys.executable, "-Ic"], PYTHON)],
    ids=["shell", "node", "python"],
)
def test_a_script_in_any_language_uses_a_fake(made: Path, language: list[str], script: str) -> None:
    """Tests in another language have the fakes, without pytest and without this package."""
    program = shutil.which(language[0])
    if program is None:
        pytest.skip(f"there is no {language[0]} on this machine")
    env = {"PATH": f"{made}:/usr/bin:/bin", "AGENTPROC_HARNESS": str(os.getpid())}
    completed = subprocess.run(
        [program, *language[1:], script], env=env, capture_output=True, text=True, timeout=CEILING, check=False
    )
    assert (completed.returncode, completed.stderr) == (0, "")


def test_a_folder_of_fakes_is_written_anew_but_nothing_else_is(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second fake joins the first, a refusal gives way to a fake, and a program of the user's is never lost."""
    capsys.readouterr()
    assert main(["fake", "hello.scenario.yaml", "--dir", str(made), "--name", "codex", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["path"], output["refused"], (made / "claude").stat().st_mode & 0o777) == (
        str(made / "codex"),
        [],
        0o755,
    )
    (made / "pi").write_text("mine", "utf-8")
    assert main(["fake", "hello.scenario.yaml", "--dir", str(made), "--name", "pi"]) == 2
    assert capsys.readouterr().err == (
        f"agentproc fake: {made / 'pi'} is there and is no fake of ours\nname another folder, or remove it\n"
    )


@pytest.mark.slow
def test_a_harness_that_is_none_is_reported_at_once(made: Path) -> None:
    """It is better that a fake does not start than that a misspelling lets it outlive its harness."""
    for harness, reported in (("me", "AGENTPROC_HARNESS=me: it must be"), ("999999999", "process 999999999 is gone")):
        env = {"AGENTPROC_HARNESS": harness}
        completed = subprocess.run(
            [made / "claude"], env=env, capture_output=True, text=True, timeout=CEILING, check=False
        )
        assert (completed.returncode, completed.stdout) == (70, "")
        assert reported in completed.stderr


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def _find_processes_of_fake(fake: Path) -> list[int]:
    return [
        int(cmdline.parent.name)
        for cmdline in Path("/proc").glob("[0-9]*/cmdline")
        if str(fake).encode() in _read_bytes_if_there(cmdline)
    ]


def _read_bytes_if_there(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["lifetime", "harness"])
def test_nothing_of_a_fake_outlives_its_lifetime_or_its_harness(tmp_path: Path, end: str) -> None:
    """A deaf fake with a daemon that was left by a test has stopped whole machines."""
    script = tmp_path / "deaf.scenario.yaml"
    script.write_text(DEAF.format(more="stopped" if end == "lifetime" else "clear_env"), "utf-8")
    folder = tmp_path / "fakes"
    lifetime = "4" if end == "lifetime" else "60"
    assert main(["fake", str(script), "--dir", str(folder), "--lifetime", lifetime]) == 0
    harness = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    env = {"AGENTPROC_HARNESS": str(harness.pid)} if end == "harness" else {}
    fake = subprocess.Popen([folder / "agent"], stdout=subprocess.PIPE, env=env)
    with harness, fake:
        try:
            assert fake.stdout is not None
            assert fake.stdout.read(5) == b"ready"
            # the daemon has no arguments for an instant while it executes itself anew
            pids = _ask_until_yes(lambda: found if len(found := _find_processes_of_fake(folder / "agent")) == 2 else [])
            fake.terminate()
            if end == "harness":
                assert fake.poll() is None
                harness.kill()
            assert fake.wait(CEILING) == -9
            assert _ask_until_yes(lambda: all(map(_is_gone, pids)))
        finally:
            harness.kill()
            fake.kill()


def _ask_until_yes(what: Callable[[], Any]) -> Any:
    """Ask until the answer is yes, and give it."""
    until = time.monotonic() + CEILING
    while not (answer := what()):
        assert time.monotonic() < until
    return answer


@pytest.mark.parametrize(
    ("argv", "reported"),
    [
        (
            ["lingers-and-ignores-trm"],
            "lingers-and-ignores-trm: there is no such file, and no such bundled scenario\ndid you mean",
        ),
        (["lingers-and-ignores-term", "--scale", "0"], "--scale 0: it must be a number above 0, at most 100000\n"),
        (["lingers-and-ignores-term", "--harness", "999999999"], "there is no process 999999999\n"),
        (["lingers-and-ignores-term", "--name", "../x"], "--name ../x: it cannot be a command's name\n"),
        (["lingers-and-ignores-term", "--session", "a"], "--session a: "),
    ],
)
def test_what_cannot_be_made_is_a_sentence(
    argv: list[str], reported: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Place, value and remedy, and no file."""
    assert main(["fake", *argv, "--dir", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith(f"agentproc fake: {reported}")


def test_a_fake_is_written_to_no_file_that_somebody_planted(made: Path, tmp_path: Path) -> None:
    """In a folder that others may write to, a link of a name that can be guessed would lose its target."""
    victim = tmp_path / "victim"
    victim.write_text("mine", "utf-8")
    for name in ("claude", "pi"):
        (made / f".{name}.{os.getpid()}").symlink_to(victim)
    assert main(["fake", "hello.scenario.yaml", "--dir", str(made)]) == 0
    assert victim.read_text("utf-8") == "mine"
    assert not (made / "claude").is_symlink()


@pytest.mark.slow
def test_a_fake_that_could_not_be_written_leaves_nothing(made: Path, tmp_path: Path) -> None:
    """A disk that is full has no room for the half of a fake."""
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    words = f"['fake', 'hello.scenario.yaml', '--dir', {str(made)!r}]"
    code = f"{limit}; from pytest_agentproc.cli import main; sys.exit(main({words}))"
    before = {file.name: file.read_bytes() for file in made.iterdir()}
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (completed.returncode, completed.stderr.splitlines()[0]) == (
        2,
        f"agentproc fake: --dir {made}: File too large",
    )
    assert {file.name: file.read_bytes() for file in made.iterdir()} == before


def test_the_options_that_a_fake_does_not_obey_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """No scenario and no folder is needed for that."""
    assert main(["fake", "--help-dialect", "codex"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The fake codex imitates codex 0.171.0 in the modes exec, app-server."
    assert any(line.startswith("  --output-schema: the real CLI has its model answer in JSON") for line in lines)
    assert not any(line.startswith("  --output-last-message") for line in lines)
