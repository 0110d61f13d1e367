"""`@pytest.mark.virtual_time` on plain functions: how pytest comes below the coordinator, and what tests see there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

FAST = "--agentproc-virtual-sync"

WAITS = """
    import datetime, queue, select, subprocess, sys, threading, time
    import pytest

    @pytest.mark.virtual_time(start="2026-11-22T12:00:00Z")
    def test_all_waits_follow_one_clock():
        begun = time.monotonic()
        time.sleep(3600)
        assert datetime.datetime.now(datetime.UTC).isoformat() == "2026-11-22T13:00:00+00:00"
        lines = queue.Queue()
        threading.Timer(30, lines.put, ["late"]).start()
        with pytest.raises(queue.Empty):
            lines.get(timeout=29)
        assert lines.get(timeout=5) == "late"
        assert not threading.Event().wait(60)
        assert select.select([], [], [], 10) == ([], [], [])
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run([sys.executable, "-c", "import time; time.sleep(1000)"], capture_output=True, timeout=600)
        with subprocess.Popen(["true"]) as brief:
            assert brief.wait(float("inf")) == 0
        assert time.monotonic() - begun == 3600 + 30 + 60 + 10 + 600

    def test_outside_real_time_passes(tmp_path):
        (tmp_path / "file").touch()
        assert abs((tmp_path / "file").stat().st_mtime - time.time()) < 60
        before = time.monotonic()
        assert not threading.Event().wait(0.05)
        assert 0.05 <= time.monotonic() - before < 30
        command = [sys.executable, "-m", "pytest_agentproc", "time", "--", "sleep", "3600"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "3600 s of virtual time" in done.stderr
        assert time.monotonic() - before < 60
"""


def errors(result: pytest.RunResult) -> list[str]:
    """List the lines that pytest marks with an E, without their indent."""
    return [line[1:].strip() for line in result.outlines if line.startswith("E ")]


def again(count: str) -> str:
    """Give the line with which pytest says that it starts once more."""
    return (
        f"agentproc: {count} in virtual time, so pytest starts once more "
        "(with agentproc_virtual_sync = true in the ini file it does so before it collects)"
    )


def test_the_marker_alone_brings_pytest_below_the_coordinator(pytester: pytest.Pytester) -> None:
    """The session that collected the test ends as any other, and the durations that pytest prints are real."""
    pytester.makepyfile(WAITS)
    pytester.makeconftest("def pytest_sessionstart(): print('starts')\ndef pytest_sessionfinish(): print('\\nends')\n")
    result = pytester.runpytest_subprocess("-s", "--durations=0", "--durations-min=100", "--junitxml=all.xml")
    result.assert_outcomes(passed=2)
    assert result.ret == pytest.ExitCode.OK
    text = result.stdout.str()
    assert re.findall(r"^(starts|ends)|^agentproc: .*", text, re.MULTILINE) == ["starts", "", "ends", "starts", "ends"]
    assert again("1 sync test is") in result.outlines
    assert "s call" not in text
    times = re.findall(r' time="([\d.]+)"', (pytester.path / "all.xml").read_text())
    assert all(float(time) < 100 for time in times)


def test_an_option_does_that_before_anything_is_collected(pytester: pytest.Pytester) -> None:
    """One start, and no word of it."""
    pytester.makepyfile(WAITS)
    pytester.makeini("[pytest]\nagentproc_virtual_sync = true\n")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=2)
    assert result.stdout.str().count("test session starts") == 1
    assert result.stderr.str() == ""


def test_a_limit_and_an_agent_at_one_instant_have_one_order(pytester: pytest.Pytester) -> None:
    """An agent that answers a millisecond before the limit, or at its very instant, is in time: in every one of 30."""
    pytester.makepyfile(
        """
        import subprocess, time, pytest

        @pytest.mark.virtual_time
        @pytest.mark.parametrize("silence", [599_999, 600_000, 600_001] * 10)
        def test_silence(fake_agent, silence):
            agent = fake_agent(f"- silence: {silence}ms\\n- say: hi")
            begun = time.monotonic()
            try:
                answer = subprocess.run(agent.argv, capture_output=True, timeout=600).stdout
            except subprocess.TimeoutExpired:
                answer = None
            assert answer == (b"hi\\n" if silence <= 600_000 else None)
            [start] = agent.starts
            assert start.ended_at == min(silence, 600_000) / 1000
            assert bool(start.signals) == (silence > 600_000)
            assert time.monotonic() - begun == pytest.approx(start.ended_at, abs=1e-9)
        """
    )
    pytester.runpytest_subprocess(FAST).assert_outcomes(passed=30)


def test_a_child_of_node_follows_the_clock(pytester: pytest.Pytester) -> None:
    """Its timers, and the agent that it starts."""
    if shutil.which("node") is None:
        pytest.skip("there is no node on this machine")
    pytester.makepyfile(
        r"""
        import subprocess, time, pytest

        SUPERVISOR = '''
        const {spawn} = require("child_process");
        const child = spawn(process.argv[1], [], {stdio: ["ignore", "pipe", "inherit"]});
        const timer = setTimeout(() => child.kill("SIGKILL"), %d);
        child.stdout.on("data", chunk => { clearTimeout(timer); process.stdout.write(chunk); });
        child.on("exit", (code, signal) => process.stdout.write(`${signal} at ${Date.now()}`));
        '''

        @pytest.mark.virtual_time(start="1970-01-02")
        @pytest.mark.parametrize(
            ("limit", "said"), [(180_000, "SIGKILL at 86580000"), (180_002, "hi\nnull at 86580001")]
        )
        def test_node(fake_agent, limit, said):
            agent = fake_agent("- silence: 180001ms\n- say: hi")
            begun = time.monotonic()
            done = subprocess.run(["node", "-e", SUPERVISOR % limit, agent.path], capture_output=True, text=True)
            assert done.stdout == said
            assert agent.starts[0].ended_at == (180 if limit == 180_000 else 180.001)
        """
    )
    pytester.runpytest_subprocess(FAST).assert_outcomes(passed=2)


def test_each_worker_of_xdist_has_its_own_clock(pytester: pytest.Pytester) -> None:
    """Two tests at once, of which one takes a day; other plugins hold a connection to the controller."""
    pytester.makepyfile(
        """
        import subprocess, time, pytest

        @pytest.mark.virtual_time
        @pytest.mark.parametrize("hours", [1, 24])
        def test_hours(fake_agent, hours):
            agent = fake_agent(f"- silence: {hours}h\\n- say: hi")
            begun = time.monotonic()
            assert subprocess.run(agent.argv, capture_output=True, timeout=100_000).stdout == b"hi\\n"
            assert time.monotonic() - begun == hours * 3600
            assert agent.starts[0].ended_at == hours * 3600
        """
    )
    result = pytester.runpytest_subprocess("-n2", "-p", "rerunfailures", FAST)
    result.assert_outcomes(passed=2)


def test_a_worker_that_was_started_in_real_time_says_how_to_start_it(pytester: pytest.Pytester) -> None:
    """It cannot be started again: what it was given by its controller is used up."""
    pytester.makepyfile(REFUSED.format(arguments="", fixtures="", body="pass"))
    result = pytester.runpytest_subprocess("-n1")
    result.assert_outcomes(errors=1)
    assert errors(result)[-2:] == [
        "pytest_agentproc.errors.UsageError: this worker of pytest-xdist was started in real time",
        "write agentproc_virtual_sync = true into the ini file, or add --agentproc-virtual-sync",
    ]


def test_what_a_wider_fixture_starts_is_in_the_same_time(pytester: pytest.Pytester) -> None:
    """A server of the module is started in real time; while a test is in virtual time, it is, too."""
    pytester.makepyfile(
        """
        import subprocess, sys, time, urllib.request, pytest

        SERVER = '''
        import http.server, time
        class Slow(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                time.sleep(300)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"done")
            def log_message(self, *_): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
        print(server.server_port, flush=True)
        server.serve_forever()
        '''

        @pytest.fixture(scope="module")
        def url():
            import textwrap
            argv = [sys.executable, "-c", textwrap.dedent(SERVER)]
            with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
                yield f"http://127.0.0.1:{process.stdout.readline().strip()}/"
                process.kill()

        @pytest.mark.virtual_time
        @pytest.mark.parametrize("limit", [200, 400])
        def test_limit(url, limit):
            begun = time.monotonic()
            try:
                assert urllib.request.urlopen(url, timeout=limit).read() == b"done"
            except TimeoutError:
                assert limit == 200
            assert time.monotonic() - begun == min(limit, 300)
        """
    )
    pytester.runpytest_subprocess(FAST).assert_outcomes(passed=2)


def test_virtual_hours_are_no_part_of_the_life_of_a_fake(pytester: pytest.Pytester) -> None:
    """A fake of the module may live for a minute of real time; the hour of a test is over at once."""
    pytester.makepyfile(
        """
        import subprocess, time, pytest
        from pytest_agentproc.plugin import FakeAgents

        @pytest.fixture(scope="module")
        def agent():
            with FakeAgents() as agents:
                agents.on_path(agent="- say: up\\n- silence: for ever", brief="- say: x", keep_path=True)
                with subprocess.Popen(["agent"], stdout=subprocess.PIPE) as process:
                    assert process.stdout.readline() == b"up\\n"
                    yield process
                    process.kill()

        @pytest.mark.virtual_time
        def test_an_hour(agent):
            time.sleep(3600)
            assert agent.poll() is None

        def test_afterwards(agent):
            subprocess.run(["brief"], check=True)  # the broker looks at all lifetimes now
            assert agent.poll() is None
        """
    )
    pytester.runpytest_subprocess(FAST).assert_outcomes(passed=2)


DEADLOCK = """
    import os, queue, subprocess, threading, pytest

    def read(number):
        os.read(number, 1)

    @pytest.mark.virtual_time
    def test_everybody_waits(fake_agent):
        agent = fake_agent("- wait_for: eof")
        threading.Thread(target=read, args=[os.pipe()[0]], daemon=True, name="reader").start()
        with subprocess.Popen(agent.argv, stdin=subprocess.PIPE):
            queue.Queue().get()

    def test_afterwards():
        pass
"""


def test_a_deadlock_ends_the_test_and_names_who_waits(pytester: pytest.Pytester) -> None:
    """In real time such a test hangs; the block around the process still ends the agent."""
    pytester.makepyfile(test_it=DEADLOCK)
    result = pytester.runpytest_subprocess(FAST)
    result.assert_outcomes(failed=1, passed=1)
    lines = [re.sub(r"pid \d+", "pid N", line) for line in errors(result)]
    assert lines == [
        (
            "pytest_agentproc.errors.Deadlock: nobody can move: all threads and processes wait, "
            "and no wait has a time limit"
        ),
        "thread reader, at test_it.py:4",
        "agent (pid N)",
    ]


def test_pytest_within_a_test_gives_the_alarm_back(pytester: pytest.Pytester) -> None:
    """A deadlock after the inner pytest's end is still one of the outer test."""
    pytester.makepyfile(
        test_it="""
        import pathlib, subprocess, sys, pytest
        from pytest_agentproc.harness._broker import read_clock_page

        @pytest.mark.virtual_time
        def test_outer():
            pathlib.Path("test_inner.py").write_text(
                "import pytest\\n@pytest.mark.virtual_time\\ndef test_inner(): pass\\n"
            )
            is_virtual_and_heard = (True, True)
            assert read_clock_page() == is_virtual_and_heard
            inner = subprocess.run([sys.executable, "-m", "pytest", "test_inner.py"], capture_output=True, text=True)
            assert "1 passed" in inner.stdout
            assert read_clock_page() == is_virtual_and_heard
        """
    )
    pytester.runpytest_subprocess(FAST, "test_it.py").assert_outcomes(passed=1)


def test_a_program_out_of_reach_is_named(pytester: pytest.Pytester) -> None:
    """While a static program lives, real time passes: the report says so, at once and in the summary."""
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler on this machine")
    pytester.path.joinpath("still.c").write_text("#include <unistd.h>\nint main() { usleep(300000); return 0; }\n")
    if subprocess.run(["cc", "-static", "-o", "still", "still.c"], cwd=pytester.path, check=False).returncode:
        pytest.skip("this compiler makes no static program")
    pytester.makepyfile(
        """
        import subprocess, time, pytest

        @pytest.mark.virtual_time
        def test_it():
            begun = time.monotonic()
            subprocess.run(["./still"], timeout=60, check=True)
            assert 0 < time.monotonic() - begun < 30
        """
    )
    result = pytester.runpytest_subprocess(FAST)
    result.assert_outcomes(passed=1, warnings=1)
    words = (
        r"time passes as on the machine while still \(pid \d+\) lives: "
        "it is a static, musl or setuid program, which virtual time cannot reach"
    )
    result.stdout.re_match_lines([f".* PytestWarning: {words}"])
    result.stderr.re_match_lines([f"agentproc time: {words}"])


STEPS = """
    import threading, time, pytest

    def test_the_clock_is_real():
        assert time.monotonic() < {limit}

    @pytest.mark.virtual_time
    def test_it():
        woken = []
        threading.Timer(10, woken.append, [1]).start()
        begun = time.monotonic()
        {first}
        time.sleep(5)
        assert (woken, time.monotonic() - begun) == ([], 5)
        time.sleep(6)
        assert woken == [1]
"""


@pytest.mark.parametrize(
    ("first", "option", "commands"),
    [
        ("breakpoint()", (), "p 6 * 7\nnext\nnext\ncontinue\n"),
        ("pass", ("--trace", "-k", "test_it"), "p 6 * 7\nnext\ncontinue\n"),
        ("assert 0", ("--pdb",), "p 6 * 7\ncontinue\n"),
    ],
)
def test_time_stands_still_at_the_prompt_of_a_debugger(
    pytester: pytest.Pytester, first: str, option: tuple[str, ...], commands: str
) -> None:
    """A user reads there for minutes: no timer of the test runs out meanwhile, and the steps between move time."""
    pytester.makepyfile(STEPS.format(first=first, limit="1e12"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", FAST, *option]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        text = ""
        while "(Pdb) " not in text:
            text += process.stdout.read(1)
        text += process.communicate(commands, timeout=60)[0]
    assert "(Pdb) 42" in text
    assert ("1 failed, 1 passed" if first == "assert 0" else " passed") in text
    assert "Deadlock" not in text


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_the_limit_of_pytest_timeout_is_one_of_real_time(pytester: pytest.Pytester, method: str) -> None:
    """It began before virtual time did: a day that passes at once does not end it."""
    pytester.makepyfile(
        """
        import time, pytest

        @pytest.mark.virtual_time
        def test_a_day():
            time.sleep(86_400)
        """
    )
    result = pytester.runpytest_subprocess(FAST, "-p", "timeout", "--timeout=60", f"--timeout-method={method}")
    result.assert_outcomes(passed=1)


REFUSED = """
    import pytest

    @pytest.mark.virtual_time{arguments}
    def test_it({fixtures}):
        {body}
"""


@pytest.mark.parametrize(
    ("arguments", "fixtures", "body", "words"),
    [
        (
            '(backend="trio")',
            "",
            "pass",
            ["backend='trio' chooses an event loop, and test_it is a plain function", "take backend= away"],
        ),
        (
            "",
            "agent_run",
            'agent_run("- say: hi")',
            [
                "this test is in virtual time already, and agent_run, agent_session and run() begin their own",
                "call the code here as it is, or take @pytest.mark.virtual_time away: they work without it",
            ],
        ),
    ],
)
def test_what_makes_no_sense_there_is_a_usage_error(
    pytester: pytest.Pytester, arguments: str, fixtures: str, body: str, words: list[str]
) -> None:
    """With the remedy."""
    pytester.makepyfile(REFUSED.format(arguments=arguments, fixtures=fixtures, body=body))
    result = pytester.runpytest_subprocess(FAST)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert errors(result)[-2:] == [f"pytest_agentproc.errors.UsageError: {words[0]}", words[1]]


def test_pytest_within_a_program_is_not_started_again(pytester: pytest.Pytester) -> None:
    """Its place would be taken from the program."""
    pytester.makepyfile(REFUSED.format(arguments="", fixtures="", body="pass"))
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    assert errors(result)[-2:] == [
        (
            "pytest_agentproc.errors.UsageError: this pytest runs inside of another program, and virtual time needs "
            "one that can be started again"
        ),
        "run it as a command of its own: python -m pytest",
    ]


@pytest.mark.parametrize("option", [(), (FAST,)])
def test_without_a_compiler_the_test_is_refused(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, option: tuple[str, ...]
) -> None:
    """And no other test is."""
    pytester.makepyfile(REFUSED.format(arguments="", fixtures="", body="pass"), test_other="def test_other(): ...")
    (pytester.path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(pytester.path / "empty"))
    result = pytester.runpytest_subprocess(*option)
    result.assert_outcomes(errors=1, passed=1)
    assert errors(result)[-2:] == [
        "pytest_agentproc.errors.UsageError: virtual time for programs needs a C compiler, once, and there is no `cc`",
        "install one, such as by `apt install gcc libc6-dev`",
    ]
