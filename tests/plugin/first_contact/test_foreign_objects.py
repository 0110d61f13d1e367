"""Objects of other people's code, of any kind, where the kit looks at them: the test runs, or the error is clear."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from pytest_agentproc.clock._waiters import list_waiting_places

TESTS = {
    "mocks of clocks and of Popen, from before the kit is loaded": """
        import asyncio, subprocess
        from unittest import mock

        import pytest

        @pytest.fixture(autouse=True)
        def mocked():
            names = ["time.monotonic", "time.monotonic_ns", "subprocess.Popen"]
            mocks = [mock.patch(name, side_effect=AssertionError(name)) for name in names]
            for each in mocks:
                each.start()
            yield
            for each in mocks:
                each.stop()

        @pytest.fixture
        def late(mocked, request):
            return request.getfixturevalue

        SCRIPT = [{"spawn": {"for": "1h"}}, {"say": "hi"}]

        def test_a_run(late):
            assert late("agent_run")({"agent": "raw", "script": SCRIPT}).text == "hi"

        def test_a_session(late):
            with late("agent_session")([{"wait_for": "prompt 1"}, {"answer": "hi"}]) as session:
                assert session.prompt("hello").text == "hi"

        def test_a_fake(late):
            assert late("fake_agent")("- answer: done").starts == ()
    """,
    "a mock of subprocess.Popen": """
        import asyncio, subprocess
        from unittest import mock

        def test_it(virtual_clock, fake_agent, process_tree):
            with mock.patch("subprocess.Popen"):
                virtual_clock.run(asyncio.sleep, 3600)
            assert virtual_clock.now == 3600

        def test_mocked_first(process_tree_after_mock):
            pass

        import pytest

        @pytest.fixture
        def mocked():
            with mock.patch("subprocess.Popen"):
                yield

        @pytest.fixture
        def process_tree_after_mock(mocked, request):
            return request.getfixturevalue("process_tree")
    """,
    "mocks of files and of a search on PATH, from before the kit is loaded": """
        import asyncio, subprocess
        from unittest import mock

        import pytest

        @pytest.fixture(autouse=True)
        def mocked():
            names = ["builtins.open", "pathlib.Path.read_text", "pathlib.Path.write_text", "pathlib.Path.mkdir"]
            mocks = [mock.patch(name) for name in [*names, "pathlib.Path.is_dir", "pathlib.Path.exists"]]
            mocks.append(mock.patch("shutil.which", return_value="/usr/bin/claude"))
            for each in mocks:
                each.start()
            yield
            for each in mocks:
                each.stop()

        @pytest.fixture
        def late(mocked, request):
            return request.getfixturevalue

        def test_a_fake(late):
            assert subprocess.check_output(late("fake_agent")("- answer: done").argv) == b"done\\n"

        @pytest.mark.virtual_time
        async def test_a_fake_on_path(fake_agents):
            fake_agents.on_path(claude="- silence: 1h\\n- answer: done")
            process = await asyncio.create_subprocess_exec("claude", "-p", "hi", stdin=-3, stdout=-1)
            assert (await process.communicate())[0] == b"done\\n"

        def test_a_run(late):
            assert late("agent_run")({"agent": "raw", "script": [{"say": "hi"}]}).text == "hi"
    """,
    "words that are there once": """
        import subprocess

        def test_it(process_tree):
            assert subprocess.run(map(str, ["sh", "-c", "exit 7"])).returncode == 7
    """,
    "a process without a hash": """
        import asyncio, subprocess

        class Process(subprocess.Popen):
            def __eq__(self, other):
                raise RuntimeError("no comparison")

        async def start(argv):
            process = Process(argv)
            while process.poll() is None:
                await asyncio.sleep(1)
            return process.returncode

        def test_it(fake_agent, virtual_clock):
            assert virtual_clock.run(start, fake_agent("- exit: 7").argv) == 7
    """,
    "a fixture function without a module": """
        import types, pytest

        def give():
            return 7

        other = types.FunctionType(give.__code__, {})
        seven = pytest.fixture(name="seven")(other)

        @pytest.mark.virtual_time
        def test_it(seven, fake_agent):
            assert seven == 7
    """,
    "code without a name": """
        import subprocess

        def test_it(fake_agent):
            space = {"make": fake_agent, "__name__": ["a", "list"]}
            exec("agent = make('- answer: done')", space)
            assert subprocess.run(space["agent"].argv, capture_output=True).stdout == b"done\\n"

        def test_without_fixtures():
            from pytest_agentproc.plugin import FakeAgents
            with FakeAgents() as agents:
                space = {"agents": agents}
                exec("agents.on_path(mine='- answer: done')", space)
                assert subprocess.run(["mine"], capture_output=True).stdout == b"done\\n"
    """,
}


_LOADED_LATE = [name for name in TESTS if name.endswith("from before the kit is loaded")]
_SESSIONS = [
    [_LOADED_LATE[0], *(name for name in TESTS if name not in _LOADED_LATE)],
    *([name] for name in _LOADED_LATE[1:]),
]


@pytest.mark.slow
@pytest.mark.parametrize("names", _SESSIONS, ids=_LOADED_LATE)
def test_the_tests_run_as_without_the_kit(pytester: pytest.Pytester, names: list[str]) -> None:
    """Nothing that a test, or its environment, does to these objects is a failure of the kit.

    Each text is a file of one session; the first one mocks before anything of the kit is loaded.
    """
    texts = [f"# {name}\n{dedent(TESTS[name])}" for name in names]
    pytester.makepyfile(**{f"test_{place}": text for place, text in enumerate(texts)})
    result = pytester.runpytest_subprocess("-p", "no:anyio", timeout=120)
    result.assert_outcomes(passed="".join(texts).count("def test_"))


FAILS = """
    import os, subprocess
    from unittest import mock

    import pytest

    @pytest.fixture(autouse=True)
    def fakes(fake_agents):
        fake_agents.on_path("claude", keep_path=False)

    @pytest.fixture
    def mocked():
        with mock.patch("pathlib.Path.with_suffix", side_effect=RuntimeError("a mock")):
            yield

    def test_mocked(mocked):
        assert False

    @pytest.mark.parametrize("env", [{b"PATH": os.fsencode}, {"PATH": os.fsencode}, {"PATH": lambda path: path}])
    def test_not_found(env):
        subprocess.run(["git"], env={name: change(os.environ["PATH"]) for name, change in env.items()})

    def test_no_notes():
        error = ValueError()
        error.__notes__ = "mine"
        raise error

    def test_afterwards():
        pass
"""


@pytest.mark.slow
def test_a_failure_among_foreign_objects_is_one_failure(pytester: pytest.Pytester) -> None:
    """The kit looks for the cause while mocks still stand: what it meets there does not end the session."""
    pytester.makepyfile(FAILS)
    result = pytester.runpytest_subprocess("-p", "no:anyio", timeout=120)
    result.assert_outcomes(failed=5, passed=1)
    result.stdout.fnmatch_lines(["E *agentproc: the cause could not be looked for, which raised RuntimeError: a mock"])
    assert len([line for line in result.outlines if "git was not found: its PATH leads to fakes alone" in line]) == 3


def test_a_proxy_that_a_task_awaits_has_no_frames() -> None:
    """It has every attribute, each of them another proxy, without an end."""

    class Proxy:
        def __getattr__(self, name: str) -> Proxy:
            return Proxy()

    class Awaited(Proxy):
        def __await__(self) -> Any:
            return self

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> None:
            return None

        def close(self) -> None:
            pass

    async def wait() -> None:
        await Awaited()

    waiting = wait()
    waiting.send(None)
    [place] = list_waiting_places([waiting, Proxy()], has_threads=False)
    assert place.partition(":")[0].endswith("test_foreign_objects.py")
    waiting.close()


LEAVES_A_PROCESS = """
    import subprocess, sys, time

    def test_it(process_tree):
        {line}
        subprocess.Popen(["sleep", "1000"])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "time.monotonic = time.monotonic_ns = lambda: 0",
        "sys.modules['multiprocessing.process'] = None",
    ],
    ids=["clock", "process"],
)
def test_a_left_process_is_found_beside_mocks(pytester: pytest.Pytester, line: str) -> None:
    """Nobody takes them away before the kit looks for processes: it goes by its own clock, and asks what is there."""
    pytester.makepyfile(LEAVES_A_PROCESS.format(line=line))
    result = pytester.runpytest_subprocess("-p", "no:anyio", timeout=120)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the test left 1 process behind; it has been ended:*"])


PROXY = """
class Proxy:
    def __getattribute__(self, name):
        raise RuntimeError("no request: " + name)
    def __repr__(self):
        raise RuntimeError("no request: repr")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ("subjects", "*pytest_agentproc_subjects: a Proxy is no subject, a look at it raised Runtime*"),
        ("defects", "*pytest_agentproc_defects of *conftest.py*it gave a Proxy whose repr raised RuntimeError*"),
        ("dialects", "*pytest_agentproc_dialects of *conftest.py*it gave a Proxy whose repr raised RuntimeError*"),
    ],
)
def test_a_hook_that_gives_a_proxy_is_told_so(pytester: pytest.Pytester, hook: str, message: str) -> None:
    """One sentence, and no traceback."""
    pytester.makeconftest(f"{PROXY}\ndef pytest_agentproc_{hook}():\n    return [Proxy()]\n")
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest_subprocess("--agentproc-defect=none-such" if hook == "defects" else "-q", timeout=60)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])
    result.stderr.no_fnmatch_line("*Traceback*")
