"""Several fakes by name on one PATH, and the arguments of their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.plugin.first_contact.errors import list_error_lines

if TYPE_CHECKING:
    import pytest

SUPERVISOR = """
import anyio, shutil


async def review(prompt, session=None):
    resume = ["--resume", session] if session else []
    first = await anyio.run_process(["claude", "-p", *resume], input=prompt.encode(), check=False)
    if first.returncode == 0:
        return first.stdout
    return (await anyio.run_process(["codex", "exec", "--yolo", prompt])).stdout
"""

TEST = """
from supervisor import review


def test_codex_is_asked_if_claude_fails(fake_agents, virtual_clock):
    fails = "- wait_for: eof\\n- exit: 1"
    fake_agents.on_path(claude={"--resume abc": fails, "": fails}, codex="- answer: fine")
    assert b"fine" in virtual_clock.run(review, "hi", "abc")
    fake_agents["claude"].assert_called_once_with("-p", "--resume", "abc", stdin="hi", env={"API_KEY": None})
    fake_agents["codex"].assert_called_once_with("exec", "--yolo", "hi")
"""


def test_two_fakes_serve_one_test(pytester: pytest.Pytester) -> None:
    """A supervisor that falls back finds both by their names, and each call is asserted in a line."""
    pytester.makepyfile(supervisor=SUPERVISOR, test_fallback=TEST)
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_wrong_call_fails_with_what_was_expected_and_what_came(pytester: pytest.Pytester) -> None:
    """The twin: a supervisor that forgets the session, and hands on a key."""
    fault = SUPERVISOR.replace('"--resume", session', '"--continue"').replace("import anyio", "import os, anyio")
    fault = fault.replace("check=False", "check=False, env={**os.environ, 'API_KEY': 'x'}")
    pytester.makepyfile(supervisor=fault, test_fallback=TEST)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    assert list_error_lines(result) == [
        "AssertionError: claude was called once, but with something else",
        "  expected  claude -p --resume abc",
        "            stdin: 'hi'",
        "            env API_KEY: not set",
        "  seen      claude -p --continue",
        "            env API_KEY: 'x'",
        "            (different: argv, env API_KEY)",
    ]
    assert "_calls.py" not in result.stdout.str()


SYNC = """
import subprocess


def review(prompt):
    first = subprocess.run(["claude", "-p"], input=prompt, capture_output=True, text=True, timeout=20)
    if first.returncode == 0:
        return first.stdout
    return subprocess.run(["codex", "exec", "--yolo", prompt], capture_output=True, text=True, timeout=20).stdout
"""
SYNC_TEST = """
from supervisor import review


def test_codex_is_asked_if_claude_fails(fake_agents):
    fake_agents.on_path(
        claude={"--resume": "- answer: again", "": "- wait_for: eof\\n- exit: 1"}, codex="- answer: fine")
    assert "fine" in review("hi")
    fake_agents["claude"].assert_called_once_with("-p", stdin="hi")
    fake_agents["codex"].assert_called_once_with("exec", "--yolo", "hi")
    assert fake_agents["claude"].starts[0].status == 1
"""


def test_plain_subprocess_code_has_fakes_in_real_time(pytester: pytest.Pytester) -> None:
    """Code without an event loop needs no clock, either."""
    pytester.makepyfile(supervisor=SYNC, test_fallback=SYNC_TEST)
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_wrong_call_fails_in_real_time_as_well(pytester: pytest.Pytester) -> None:
    """The twin: a supervisor that asks codex only."""
    pytester.makepyfile(supervisor=SYNC.replace('["claude", "-p"]', '["codex", "-p", prompt]'), test_fallback=SYNC_TEST)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    *lines, note = list_error_lines(result)
    assert lines == [
        "AssertionError: claude was never called",
        "  expected  claude -p",
        "            stdin: 'hi'",
    ]
    assert note.endswith(" refused this start with code 1, as its CLI does: Error: stdin is not a terminal")


def test_no_other_agent_is_installed(pytester: pytest.Pytester) -> None:
    """PATH has the named fakes and no other agent; afterwards it is as it was."""
    pytester.makepyfile(
        """
        import os, shutil

        BEFORE = os.environ["PATH"]

        def test_claude_alone(fake_agents):
            fake_agents.on_path("claude")
            assert shutil.which("claude").endswith("/claude")
            assert (shutil.which("codex"), shutil.which("sh") is None) == (None, False)
            fake_agents.on_path("codex")
            assert shutil.which("claude") and shutil.which("codex")

        def test_none(fake_agents):
            fake_agents.on_path()
            assert shutil.which("claude") is None

        def test_afterwards():
            assert os.environ["PATH"] == BEFORE
        """
    )
    pytester.runpytest().assert_outcomes(passed=3)


def test_beside_the_real_path_no_real_agent_is_reached(pytester: pytest.Pytester) -> None:
    """A supervisor needs `sh` or `git`. Another CLI that is installed is as if it were not."""
    pytester.makepyfile(
        """
        import anyio, os, pathlib, pytest, shutil
        from pytest_agentproc.plugin import FakeAgents

        def test_kept(fake_agents, virtual_clock, tmp_path, monkeypatch):
            (tmp_path / "bin").mkdir()
            (tmp_path / "word").write_text("helped")
            for name in ("gemini", "claude", "helper"):
                real = tmp_path / "bin" / name
                real.write_text("#!/bin/sh\\ncat $(dirname $0)/../word\\n")
                real.chmod(0o700)
            monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
            fake_agents.on_path("claude")

            async def ask(*argv):
                done = await anyio.run_process(argv, check=False)
                return done.stdout, done.stderr, done.returncode

            assert virtual_clock.run(ask, "sh", "-c", "echo hi") == (b"hi\\n", b"", 0)
            assert virtual_clock.run(ask, "helper") == (b"helped", b"", 0)
            with pytest.raises(FileNotFoundError):
                virtual_clock.run(ask, "gemini")
            assert b"done" in virtual_clock.run(ask, "claude", "-p", "hi")[0]
            again = shutil.which("helper")
            fake_agents.on_path("codex")
            assert shutil.which("helper") == again
            with FakeAgents() as inner:
                inner.on_path("codex", keep_path=True)
                assert virtual_clock.run(ask, "claude", "--version")[2] == 0
            fake_agents.on_path("gemini", keep_path=False)
            assert [shutil.which(name) for name in ("sh", "helper")] == [None, None]
            fake_agents.on_path("pi")
            assert shutil.which("sh") is None
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_reply_depends_on_the_arguments(pytester: pytest.Pytester) -> None:
    """A session that is resumed answers otherwise than a new one; a call that fits no script is an error."""
    pytester.makepyfile(
        """
        import anyio

        def test_resume(fake_agents, virtual_clock):
            agents = fake_agents.on_path(
                claude={
                    "--resume *": "- silence: 1h\\n- answer: again",
                    "--output-format text": {"agent": "raw", "script": [{"say": "plain"}]},
                    "": "- answer: new",
                },
                codex={"exec": "- answer: hi"},
            )

            async def ask(*argv):
                done = await anyio.run_process(argv, check=False)
                return done.stdout + done.stderr

            assert virtual_clock.run(ask, "claude", "-p", "hi") == b"new\\n"
            assert virtual_clock.run(ask, "claude", "--resume", "abc", "go on") == b"again\\n"
            assert virtual_clock.run(ask, "claude", "--output-format=text") == b"plain\\n"
            assert virtual_clock.run(ask, "codex", "login") == (
                b'no script is for these arguments; there are scripts for: exec\\n"" is for all other calls\\n')
            calls = [(start.argv, start.at) for start in agents["claude"].starts]
            assert calls == [
                (("-p", "hi"), 0.0), (("--resume", "abc", "go on"), 0.0), (("--output-format=text",), 3600.0)]
            agents["claude"].assert_any_call("--resume", "abc", "go on")
            assert agents["codex"].starts[0].status == 2
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_name_that_cannot_be_is_refused(pytester: pytest.Pytester) -> None:
    """Each mistake says what to write."""
    pytester.makepyfile(
        """
        import pytest
        from pytest_agentproc.errors import UsageError
        from pytest_agentproc.plugin import FakeAgents

        def test_names(fake_agents):
            with pytest.raises(UsageError) as wrong:
                fake_agents.on_path("bin/claude")
            assert str(wrong.value) == (
                "'bin/claude' cannot be the name of a program\\nwrite the name alone, such as claude")
            with pytest.raises(UsageError) as unknown:
                fake_agents["codex"]
            assert str(unknown.value) == (
                "there is no fake called codex\\nfake_agents.on_path('codex') makes one")
            with pytest.raises(UsageError) as closed:
                FakeAgents().on_path("claude")
            assert str(closed.value) == (
                "these fakes have no block to live in\\nwrite: with FakeAgents() as agents: ...")
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_blocks_of_one_object_share_nothing(pytester: pytest.Pytester) -> None:
    """After a block the calls can be read, no fake can be made, and a second block begins with none."""
    pytester.makepyfile(
        """
        import os
        import subprocess

        import pytest
        from pytest_agentproc.errors import UsageError
        from pytest_agentproc.plugin import FakeAgents

        def test_again():
            agents, before = FakeAgents(), os.environ["PATH"]
            with agents:
                agents.on_path("claude")
                subprocess.run(["claude", "-p", "hi"], timeout=30)
            agents["claude"].assert_called_once_with("-p", "hi")
            with pytest.raises(UsageError, match="these fakes have no block to live in"):
                agents.on_path("pi")
            assert os.environ["PATH"] == before
            with agents:
                agents.on_path("pi")
                with pytest.raises(FileNotFoundError):
                    subprocess.run(["claude"], timeout=30)
                with pytest.raises(UsageError, match="these fakes live in a block already"), agents:
                    pass
            assert os.environ["PATH"] == before
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)


MISSING = """
import shutil, subprocess
import pytest

GONE = {"agent": {"dialect": "claude", "cannot_spawn": "not_found"}, "script": []}

@pytest.mark.parametrize("keep_path", [False, True])
def test_missing(fake_agents, keep_path):
    fake_agents.on_path("codex", claude=GONE, keep_path=keep_path)
    assert (shutil.which("claude"), shutil.which("codex") is None) == (None, False)
    with pytest.raises(FileNotFoundError):
        subprocess.run(["claude", "-p"])

@pytest.fixture
def real(tmp_path, monkeypatch):
    (tmp_path / "claude").touch(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))

def test_real(real, fake_agents):
    fake_agents.on_path(claude=GONE)
    assert shutil.which("claude") is None

def test_pattern(fake_agents):
    fake_agents.on_path(claude={"-p": GONE, "": "- answer: hi"})
"""


def test_an_agent_that_is_not_installed_is_nowhere_on_path(pytester: pytest.Pytester) -> None:
    """A real one is hidden, too; an impossible request is refused."""
    pytester.makepyfile(MISSING)
    result = pytester.runpytest("--tb=short")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E   *UsageError: claude cannot be not_found for the arguments '-p' alone",
            "E   give claude one script with cannot_spawn, for all of its calls",
        ]
    )
