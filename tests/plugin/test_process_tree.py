"""The process tree of a user's test: a process that is left fails it, and no other is touched."""

from __future__ import annotations

import re
import sys

import pytest

from tests.plugin.leftovers import INNOCENTS, WAYS


def plain(text: str) -> str:
    """Take what differs from run to run out of a text."""
    return re.sub(r"(pid |pytest \(|sleep 2000 \()\d+", r"\1N", text)


@pytest.mark.slow
def test_whoever_is_left_is_named_with_its_line_however_it_was_started(pytester: pytest.Pytester) -> None:
    """One way that is not seen is a process that every later test has beside it."""
    source = f"import pytest\n{WAYS.source}\npytestmark = pytest.mark.process_tree"
    pytester.makepyfile(test_ways=source)
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-rN", "--tb=short")
    parts = re.split(r"_+ ERROR at teardown of (\w+) _+\n", result.stdout.str())
    texts = dict(zip(parts[1::2], parts[2::2], strict=True))
    result.assert_outcomes(passed=len(WAYS.expected), errors=len(WAYS.expected))
    lines = source.splitlines()
    for name, (command, state, kin, mark) in WAYS.expected.items():
        [line] = [number for number, text in enumerate(lines, 1) if mark in text]
        found = texts[f"test_{name}"]
        assert f"\n  {command}\n" in found, name
        assert f", {state}\n    {kin}" in found, name
        assert f"    started at test_ways.py:{line}" in found, name
        assert "Traceback" not in found


@pytest.mark.slow
def test_nobody_else_is_counted_or_ended(pytester: pytest.Pytester) -> None:
    """A wrong accusation costs more than a miss, and a wrong signal more than both."""
    pytester.makepyfile(test_innocents=INNOCENTS)
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-ra", "--agentproc-process-tree", "-W", "error")
    outcomes = result.parseoutcomes()
    assert set(outcomes) == {"passed"}, result.stdout.str()


def test_the_failure_word_for_word(pytester: pytest.Pytester) -> None:
    """The text is the product: command, state, kin, lines, and what to do; no stack."""
    pytester.makepyfile(
        started="""
        import subprocess

        def start():
            return subprocess.Popen("sleep 1000 & exec sleep 2000", shell=True)
        """,
        test_left="""
        import os, started, subprocess

        def test_left(process_tree):
            global child, dead
            child = started.start()
            while len(process_tree.processes) != 2 or "sh" in open(f"/proc/{child.pid}/comm").read():
                pass
            dead = subprocess.Popen(["true", "in vain"])
            os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        """,
    )
    result = pytester.runpytest_subprocess("-p", "no:xdist", "-rN")
    result.assert_outcomes(passed=1, errors=1)
    _, _, text = plain(result.stdout.str()).partition("ERROR at teardown of test_left")
    text = text.partition("\n")[2].partition("\n====")[0]
    assert text.splitlines() == [
        "the test left 3 processes behind; they have been ended:",
        "",
        "  sleep 1000 & exec sleep 2000",
        "    pid N, alive",
        "    a child of pytest (N)",
        "    started at started.py:4, by the test at test_left.py:5",
        "",
        "  true in vain",
        "    pid N, a zombie: it has exited, and no process waited for it",
        "    a child of pytest (N)",
        "    started at test_left.py:8",
        "",
        "  sleep 1000",
        "    pid N, alive",
        "    a descendant: sleep 2000 (N) < pytest (N)",
        "    started at started.py:4, by the test at test_left.py:5",
        "",
        "end what the test starts before it returns, and wait for it;",
        "process_tree.allow(...) is for a process that is meant to live on",
        "wait for every child: Popen.wait(), Popen.communicate(), Process.join(), os.waitpid()",
    ]


LEAK = """
import subprocess

def test_leak(MORE):
    global child
    child = subprocess.Popen(["sleep", "1000"])
"""


@pytest.mark.parametrize(
    ("head", "more", "arguments"),
    [
        ("", "process_tree", []),
        ("import pytest\npytestmark = pytest.mark.process_tree\n", "", []),
        ("import pytest\n@pytest.fixture(autouse=True)\ndef tree(process_tree): pass\n", "", []),
        ("", "", ["--agentproc-process-tree"]),
        ("", "", ["-o", "agentproc_process_tree=true"]),
    ],
    ids=["fixture", "marker", "autouse", "option", "ini"],
)
def test_it_is_asked_for_in_every_usual_way(
    pytester: pytest.Pytester, head: str, more: str, arguments: list[str]
) -> None:
    """A suite that has hundreds of tests does not name it hundreds of times."""
    pytester.makepyfile(head + LEAK.replace("MORE", more))
    result = pytester.runpytest("--strict-markers", *arguments)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["  sleep 1000"])


def test_a_doctest_has_lines_too(pytester: pytest.Pytester) -> None:
    """A request for all tests includes these."""
    pytester.makepyfile(documented="\">>> import subprocess; p = subprocess.Popen(['sleep', '1000'])\"")
    result = pytester.runpytest_subprocess("--doctest-modules", "--agentproc-process-tree", "-W", "ignore")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["    started at <doctest documented[[]0[]]>:1"])


def test_a_test_that_does_not_ask_is_left_alone(pytester: pytest.Pytester) -> None:
    """Installing the plugin changes no verdict; the test beside it that asks is not blamed for what was there."""
    source = LEAK.replace("MORE", "")
    pytester.makepyfile(
        source
        + """
def test_beside(process_tree):
    assert process_tree.processes == ()
    assert child.poll() is None

def teardown_module():
    child.kill()
    child.wait()
"""
    )
    pytester.runpytest().assert_outcomes(passed=2)


@pytest.mark.parametrize("arguments", ["process_tree, server", "server, process_tree"])
def test_fixtures_of_the_test_may_end_their_own(pytester: pytest.Pytester, arguments: str) -> None:
    """The order of a test's arguments decides nothing: a fixture that cleans up is clean, and any other is red."""
    pytester.makepyfile(
        f"""
        import pytest, subprocess

        @pytest.fixture(params=[True, False])
        def server(request):
            global process
            process = subprocess.Popen(["sleep", "1000"])
            yield process
            if request.param:
                process.kill()
                process.wait()

        def test_server({arguments}):
            assert [one.command for one in process_tree.processes] == ["sleep 1000"]
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*teardown of test_server[[]False[]]*", "    started at *.py:6"])


def test_what_it_can_be_asked(pytester: pytest.Pytester) -> None:
    """The living processes, whether they end, and the processes that may stay."""
    pytester.makepyfile(
        """
        import os, pytest, subprocess
        from pytest_agentproc.errors import UsageError

        def test_processes(process_tree):
            child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
            [one] = process_tree.processes
            assert (one.pid, one.command, one.parent, one.state) == (child.pid, "cat", os.getpid(), "alive")
            assert one.started == ("test_what_it_can_be_asked.py:5",)
            assert not process_tree.wait_gone(0.01)
            child.stdin.close()
            assert process_tree.wait_gone(20)
            assert process_tree.processes == ()
            child.wait()

        def test_allow(process_tree):
            global stays
            stays = subprocess.Popen(["sleep", "1000"]), subprocess.Popen(["sleep", "2000"])
            process_tree.allow(stays[0])
            process_tree.allow("*leep 2*")
            assert process_tree.processes == ()

        def test_they_stayed(process_tree):
            assert [one.poll() for one in stays] == [None, None]
            with pytest.raises(UsageError, match="is a pid, a Popen or a pattern, not 1.5"):
                process_tree.allow(1.5)

        def teardown_module():
            for one in stays:
                one.kill()
                one.wait()
        """
    )
    pytester.runpytest().assert_outcomes(passed=3)


POLLS = """
import os
import signal
import subprocess
import time

SHELL = ["sh", "-c", "sleep 1000 & exec sleep 2000"]


def ends(group):
    "Stand for a supervisor that polls until no process of a group is left; bounded here."
    os.killpg(group, signal.SIGTERM)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
    return False


def started(**options):
    agent = subprocess.Popen(SHELL, **options)
    while open(f"/proc/{agent.pid}/comm").read() != "sleep\\n":
        pass
    return agent


def test_group(process_tree):
    agent = started(process_group=0)
    os.kill(agent.pid, signal.SIGKILL)
    agent.wait()
    assert ends(agent.pid)


def test_session(process_tree):
    agent = started(start_new_session=True)
    agent.kill()
    agent.wait()
    assert ends(agent.pid)


def test_own_child_is_not_reaped(process_tree):
    own = subprocess.Popen(["sh", "-c", "exit 3"])
    forked = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 4"], os.environ)
    for pid in (own.pid, forked):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    agent = started(process_group=0)
    agent.kill()
    agent.wait()
    assert ends(agent.pid)
    assert (own.wait(), os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1])) == (3, 4)
"""


def test_a_supervisor_may_poll_for_the_end_of_a_group(pytester: pytest.Pytester) -> None:
    """Orphans of the group are adopted here, and init would reap them: a poll for their end must not last for ever."""
    pytester.makepyfile(POLLS)
    pytester.runpytest_subprocess().assert_outcomes(passed=3)


@pytest.mark.slow
def test_a_fake_is_its_lifelines_business(pytester: pytest.Pytester) -> None:
    """The report shows the failure that names the line of the scenario, and shows it once."""
    pytester.makepyfile(
        test_fake="""
        import anyio, pytest, subprocess

        def test_run(process_tree, agent_run):
            assert agent_run("- say: hello").outcome == "completed"

        @pytest.mark.parametrize("last", ["- linger: for ever", "- say: bye"])
        def test_fake(process_tree, fake_agent, virtual_clock, last):
            agent = fake_agent("- spawn: helper\\n" + last)
            async def forget():
                global child
                child = subprocess.Popen(agent.argv, stdout=subprocess.DEVNULL)
                await anyio.sleep(2)
            virtual_clock.run(forget)
            if "say" in last:
                child.wait()

        def teardown_module():
            child.wait()
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:xdist")
    result.assert_outcomes(passed=3, errors=2)
    assert "was left (still alive)" in result.stdout.str()
    assert "the test left" not in result.stdout.str()


def test_another_plugins_helper_is_its_own(pytester: pytest.Pytester) -> None:
    """A process that a plugin starts in its own hook around a test does not belong to the test."""
    pytester.makeconftest(
        """
        import pytest, subprocess

        started = []

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_call(item):
            started.append(subprocess.Popen(["sleep", "1000"]))
            return (yield)

        def pytest_unconfigure():
            for one in started:
                assert one.poll() is None
                one.kill()
                one.wait()
        """
    )
    pytester.makepyfile("def test_nothing(process_tree): assert process_tree.processes == ()")
    pytester.runpytest().assert_outcomes(passed=1)


def test_it_is_one_sentence_elsewhere(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite that runs on several systems skips there what cannot be judged."""
    pytester.makepyfile("def test_nothing(process_tree): pass")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        result = pytester.runpytest("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*process_tree needs Linux (pidfd, /proc, subreaper), and this is darwin"])


def test_a_strict_xfail_of_a_leak_says_how_to_expect_it(pytester: pytest.Pytester) -> None:
    """A leak fails the teardown, so pytest alone says no more than that the test passed."""
    pytester.makepyfile(
        """
        import subprocess

        import pytest


        @pytest.mark.xfail(strict=True, reason="leaves a server")
        def test_strict(process_tree):
            global child_strict
            child_strict = subprocess.Popen(["sleep", "1000"])


        @pytest.mark.xfail(strict=False, reason="leaves a server")
        def test_loose(process_tree):
            global child_loose
            child_loose = subprocess.Popen(["sleep", "1000"])


        @pytest.mark.xfail(strict=True, reason="fails")
        def test_other():
            pass
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=2, xpassed=1, xfailed=2)
    result.stdout.fnmatch_lines(
        [
            "[[]XPASS(strict)[]] leaves a server",
            "a process that is left fails the teardown, and not the test: write xfail(strict=False) to expect it",
            "_* test_other _*",
            "[[]XPASS(strict)[]] fails",
            "=*",
        ],
        consecutive=True,
    )
