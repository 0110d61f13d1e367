"""The fixtures in users' own tests: one line each, exact results, and failures that point into the test's file."""

from __future__ import annotations

import pytest


def test_a_fake_obeys_the_virtual_clock(pytester: pytest.Pytester) -> None:
    """An hour of silence in a real process costs milliseconds, and the clock knows the instant."""
    pytester.makepyfile(
        '''
        import asyncio, anyio, pytest

        @pytest.mark.parametrize("backend", ["asyncio", "trio"])
        def test_patience(fake_agent, virtual_clock, backend):
            agent = fake_agent("""
            - silence: 1h
            - say: hello
            """)
            result = virtual_clock.run(anyio.run_process, agent.argv, backend=backend)
            assert (result.stdout, virtual_clock.now, virtual_clock.now_ns) == (b"hello\\n", 3600.0, 3600 * 10**9)
        '''
    )
    pytester.runpytest().assert_outcomes(passed=2)


@pytest.mark.parametrize("arguments", ["fake_agent, virtual_clock", "virtual_clock, fake_agent"])
def test_a_fake_that_outlives_its_test_fails_it_at_its_line(pytester: pytest.Pytester, arguments: str) -> None:
    """The message names the step in the test's own file; any process that is left is ended."""
    pytester.makepyfile(
        test_leak=f'''
        import anyio, subprocess

        def test_leak({arguments}):
            agent = fake_agent("""
            - say: hello
            - linger: for ever
            """)
            async def forget():
                global child
                child = subprocess.Popen(agent.argv, stdout=subprocess.DEVNULL)
                await anyio.sleep(1)
            virtual_clock.run(forget)

        def teardown_module():
            child.wait()
        '''
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "test_leak.py:6: agent was left (still alive): - linger: for ever",
            "  the tree at the end:",
            "    agent (pid *): still alive  agent",
            "",
            "time *",
            "*  [[]line 5[]]",
            "*line 6[]]",
        ]
    )


def test_scripts_come_as_files_texts_and_mappings(pytester: pytest.Pytester) -> None:
    """The shortest form of each is the one that fits the test."""
    (pytester.path / "hello.yaml").write_text("scenario: hello\nagent: raw\nscript:\n- say: hello\n")
    pytester.makepyfile(
        '''
        import anyio, pathlib, pytest

        @pytest.mark.parametrize("script", [
            "hello.yaml",
            pathlib.Path("hello.yaml"),
            "- say: hello",
            """
            # said at once
            - say: hello
            """,
            "scenario: hello\\nagent: raw\\nscript: [{say: hello}]\\n",
            {"script": [{"say": "hello"}]},
        ])
        def test_hello(fake_agent, virtual_clock, script):
            assert virtual_clock.run(anyio.run_process, fake_agent(script).argv).stdout == b"hello\\n"
        '''
    )
    pytester.runpytest().assert_outcomes(passed=6)


def test_a_mistake_in_a_script_is_located_in_the_tests_own_file(pytester: pytest.Pytester) -> None:
    """An editor jumps to it."""
    pytester.makepyfile(
        test_typo='''
        def test_typo(fake_agent):
            fake_agent("""
            - say: hello
            - sya: hello
            """)
        '''
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E * test_typo.py:4:3: *sya*"])


def test_a_script_may_be_a_list(pytester: pytest.Pytester) -> None:
    """Python code builds its steps as lists, for fakes by name as well, and a mistake names its step."""
    pytester.makepyfile(
        """
        import subprocess

        import pytest
        from pytest_agentproc.errors import ScenarioError

        def ask(argv):
            return subprocess.run(argv, capture_output=True, text=True).stdout

        @pytest.mark.parametrize("steps", [[{"say": "one"}, {"answer": "two"}], ("say: one", "answer: two")])
        def test_one(fake_agent, steps):
            assert ask(fake_agent(steps).argv) == "one\\ntwo\\n"

        def test_on_path(fake_agents):
            fake_agents.on_path(codex=[{"answer": "hi"}], claude={"--resume *": [{"answer": "again"}]})
            assert ask(["codex", "exec", "x"]) == "hi\\n"
            assert ask(["claude", "-p", "--resume", "x", "go on"]) == "again\\n"

        def test_mistake(fake_agent):
            with pytest.raises(ScenarioError, match='<test_mistake>:.*unknown step "sya": did you mean "say"?'):
                fake_agent([{"say": "one"}, {"sya": "two"}])

        def test_empty(fake_agent):
            assert ask(fake_agent([]).argv) == ""
        """
    )
    pytester.runpytest().assert_outcomes(passed=5)


def test_a_script_of_another_kind_is_refused(pytester: pytest.Pytester) -> None:
    """The message says what is taken."""
    pytester.makepyfile(
        """
        import pytest
        from pytest_agentproc.errors import UsageError

        def test_kind(fake_agent):
            with pytest.raises(UsageError, match="a scenario is text, a path, a list of steps or a mapping, not int"):
                fake_agent(7)
            with pytest.raises(UsageError, match="the script is no scenario: .*bytes"):
                fake_agent({"script": [{"say": b"bytes"}]})
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_supervised_run_gives_its_result_in_seconds(pytester: pytest.Pytester) -> None:
    """Outcome, times, signals: exact, and in the units of the policy."""
    pytester.makepyfile(
        """
        def test_silence(agent_run):
            run = agent_run("- say: hello\\n- silence: for ever", inactivity_timeout=5)
            assert (run.outcome, run.exit_code, run.text, run.elapsed) == ("inactive", 124, "hello", 5.0)
            assert (run.returned, run.signals, run.warnings) == (5.0, (("TERM", 5.0),), ())
            assert run.record.events[0].at == 0
            assert "TERM ==> tree" in run.timeline

        def test_trio(agent_run):
            assert agent_run("- say: hello", backend="trio").outcome == "completed"
        """
    )
    pytester.runpytest().assert_outcomes(passed=2)


def test_a_supervised_session_gives_its_turns(pytester: pytest.Pytester) -> None:
    """Each prompt has its own outcome and text; with several sessions, no limit would belong to a clear session."""
    pytester.makepyfile(
        """
        import pytest

        AGENT = {"dialect": "pi", "mode": "rpc"}
        SCRIPT = [{"wait_for": "prompt 1"}, {"wait_for": "cancel"}, {"acknowledge": "cancel"},
                  {"wait_for": "prompt 2"}, {"silence": "1s"}, {"answer": "hi"}]

        def test_turns(agent_run):
            drive = [{"prompt": "one"}, {"wait_for": "turn 1"}, {"prompt": "two"}]
            run = agent_run({"agent": AGENT, "drive": drive, "script": SCRIPT}, prompt_timeout=2)
            assert [(turn.outcome, turn.text, turn.elapsed) for turn in run.turns] == [
                ("timed_out", None, 2.0), ("completed", "hi", 1.0)]
            assert (run.outcome, run.background) == (None, ())
            assert run.statuses[0] == "starting" and run.statuses[-1] == "closed"

        def test_several(agent_run):
            sessions = {"a": {"agent": AGENT, "script": []}, "b": {"agent": AGENT, "script": []}}
            scenario = {"sessions": sessions, "drive": [{"wait": "1s", "session": "a"}]}
            agent_run(scenario)
            with pytest.raises(Exception, match="the limits of several sessions are their own"):
                agent_run(scenario, prompt_timeout=2)
        """
    )
    pytester.runpytest("--junitxml=out.xml").assert_outcomes(passed=2)


def test_a_run_fails_by_itself_for_what_its_scenario_expects(pytester: pytest.Pytester) -> None:
    """An `expect` that no check reads would be a false green."""
    pytester.makepyfile(
        test_run='''
        def test_exit(agent_run):
            agent_run("""
            scenario: it exits with 0
            agent: raw
            script: [{exit: 3}]
            expect: {exit_code: 0}
            """)
        '''
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["test_run.py:6: it exits with 0", "", "  exit_code: failed  test_run.py:6"])
    assert "_run.py" not in result.stdout.str().replace("test_run.py", "")


def test_a_leak_fails_a_run_by_itself(pytester: pytest.Pytester) -> None:
    """The user need not remember to look at the tree."""
    pytester.makepyfile(
        test_run='''
        def test_leak(agent_run):
            agent_run("""
            - spawn: child1
            - say: hello
            """)
        '''
    )
    result = pytester.runpytest("--agentproc-defect=direct-child-only")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["  leaks: failed  test_run.py:3", "    expected  none", "    seen      child1 (still alive)"]
    )
    result.stdout.fnmatch_lines(
        [
            "  the tree at the end:",
            "    agent (pid *): gone, code 0, at 0 s  agent hi",
            "      child1 (pid *): still alive        test_run.py:3: - spawn: child1",
        ]
    )


def test_an_unknown_limit_is_refused_with_the_nearest_name(pytester: pytest.Pytester) -> None:
    """A limit that is silently ignored makes a test that proves nothing."""
    pytester.makepyfile(
        """
        import pytest
        from pytest_agentproc.errors import UsageError

        def test_limit(agent_run):
            with pytest.raises(UsageError, match="there is no limit inactivity, did you mean inactivity_timeout"):
                agent_run("- say: hello", inactivity=5)
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_deadlock_in_a_test_names_who_waits(pytester: pytest.Pytester) -> None:
    """A test that could wait for ever fails at once instead."""
    pytester.makepyfile(
        """
        import anyio, pytest
        from pytest_agentproc.errors import Deadlock

        def test_deadlock(fake_agent, virtual_clock):
            agent = fake_agent("- silence: for ever")
            with pytest.raises(Deadlock, match="agent .* last at line 5"):
                virtual_clock.run(anyio.run_process, agent.argv)
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_fake_holds_a_conversation(pytester: pytest.Pytester) -> None:
    """A supervisor of the user's own prompts it, and closes its stdin."""
    pytester.makepyfile(
        """
        import anyio

        def test_talk(fake_agent, virtual_clock):
            agent = fake_agent({
                "agent": {"dialect": "pi", "mode": "rpc"},
                "script": [{"wait_for": "prompt 1"}, {"silence": "1h"}, {"answer": "hello"}],
            })
            async def talk():
                prompt = b\'{"id": 1, "type": "prompt", "message": "hi"}\\n\'
                return await anyio.run_process(agent.argv, input=prompt)
            result = virtual_clock.run(talk)
            assert b"hello" in result.stdout and virtual_clock.now == 3600.0
        """
    )
    pytester.runpytest().assert_outcomes(passed=1)
