"""The sync and threaded tests of the folder above in virtual time, by the marker alone; each with its twin."""

from __future__ import annotations

import re
import shutil
from textwrap import dedent

import pytest

from tests.plugin.first_contact import test_popen_threads, test_started_by_programs, test_sync_run, test_two_fakes

pytestmark = pytest.mark.slow

FAST = "--agentproc-virtual-sync"


def add_marker(text: str) -> str:
    """Give a test file with the marker on every test, and nothing else changed."""
    return f"{dedent(text)}\nimport pytest\npytestmark = pytest.mark.virtual_time\n"


def list_programs_between(code: int) -> dict[str, str]:
    """Give the tests in which a program between starts the agent, as far as the programs are there."""
    names = [name for name in test_started_by_programs.PROGRAMS if name != "node" or shutil.which(name)]
    known = test_started_by_programs
    return {f"test_{name}": add_marker(known.TEST.format(program=known.PROGRAMS[name], code=code)) for name in names}


DURATIONS = """
    import subprocess, time

    def limit():
        return {limit}

    def test_an_hour_is_exact(fake_agent, agent_timeline):
        agent = fake_agent("- wait_for: eof\\n- silence: 1h\\n- answer: hi\\n- exit: 3")
        begun = time.monotonic()
        done = subprocess.run(agent.argv, input=b"x", capture_output=True, timeout=limit())
        assert (done.stdout, time.monotonic() - begun) == (b"hi\\n", 3600)
        [start] = agent.starts
        assert (start.at, start.ended_at, start.status, start.signals) == (0, 3600, 3, ())
        assert (agent_timeline.at("stdin"), agent_timeline.at("exit")) == (0, 3600)
"""

LIMIT = '''
    import subprocess, pytest

    def test_the_limit_ends_it(fake_agent, agent_timeline):
        agent = fake_agent("""
        - say: hello
        - silence: for ever
        """)
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(agent.argv, capture_output=True, timeout={limit})
        assert agent.starts[0].signals == (("KILL", 600),)
        assert agent_timeline.at("KILL") == 600
'''

CASE = """
    import subprocess, time, unittest

    from pytest_agentproc.plugin import FakeAgents

    class TestAsk(unittest.TestCase):
        def setUp(self):
            self.agents = self.enterContext(FakeAgents())

        def test_an_hour_of_silence(self):
            self.agents.on_path(claude="- silence: 1h\\n- answer: hi")
            begun = time.monotonic()
            done = subprocess.run(["claude", "-p", "hi"], stdout=subprocess.PIPE, timeout=7200)
            self.assertEqual(done.stdout, b"hi\\n")
            self.assertEqual(time.monotonic() - begun, 3600)
            self.agents["claude"].assert_called_once_with("-p", "hi")

        def test_a_leak(self):
            self.agents.on_path(claude="- silence: 1h\\n- answer: hi\\n- silence: {linger}")
            self.process = subprocess.Popen(["claude", "-p", "hi"], stdout=subprocess.DEVNULL)
            time.sleep(3601)
            self.assertIsNot(self.process.poll(), 1)
"""


def test_each_sync_test_passes_in_virtual_time(pytester: pytest.Pytester) -> None:
    """`subprocess.run`, threads with a queue, programs between, fakes by name, `unittest`: one marker for all."""
    several = test_popen_threads.MANY
    pytester.makepyfile(
        test_run=add_marker(test_sync_run.TEST.format(extra="").partition("    def test_durations")[0]),
        test_threads=add_marker(test_popen_threads.TEST.format(close="self.process.stdin.close()")),
        test_many=add_marker(several),
        test_durations=add_marker(DURATIONS.format(limit=7200)),
        test_limit=add_marker(LIMIT.format(limit=600)),
        test_case=add_marker(CASE.format(linger="1ms")),
        supervisor=test_two_fakes.SYNC,
        test_fallback=add_marker(test_two_fakes.SYNC_TEST),
        **list_programs_between(5),
    )
    result = pytester.runpytest_subprocess(FAST)
    result.assert_outcomes(passed=9 + len(list_programs_between(5)))


def test_each_fault_is_seen_in_virtual_time(pytester: pytest.Pytester) -> None:
    """The twins: a wrong argument, a needless signal, a wrong exit code, a wrong limit, a call that never came."""
    pytester.makepyfile(
        test_a_run=add_marker(test_sync_run.TEST.format(extra=', "--verbose"').partition("    def test_by_name")[0]),
        test_b_threads=add_marker(test_popen_threads.TEST.format(close="self.process.terminate()")),
        test_c_durations=add_marker(DURATIONS.format(limit=3599)),
        test_d_limit=add_marker(LIMIT.format(limit=599)),
        supervisor=test_two_fakes.SYNC.replace('["claude", "-p"]', '["codex", "-p", prompt]'),
        test_e_fallback=add_marker(test_two_fakes.SYNC_TEST),
        test_f_shell=list_programs_between(6)["test_shell"],
        test_g_case=add_marker(CASE.format(linger="for ever").replace("def test_an_hour", "def an_hour")),
    )
    result = pytester.runpytest_subprocess("--tb=short", FAST)
    result.assert_outcomes(failed=7)
    lines = [line for line in result.outlines if re.match(r"E(?! +agentproc: ) .*(Error|Expired|!>|LEAKED)", line)]
    assert [re.sub("'/.*'", "...", line) for line in lines] == FAULTS


FAULTS = [
    "E   AssertionError: assert '--verbose' == '--print'",
    "E   AssertionError: TERM came at 0.002 s",
    "E   !>                      dies of TERM  [line 33]",
    "E   subprocess.TimeoutExpired: Command '[... timed out after 3599 seconds",
    "E   AssertionError: assert (('KILL', 599.0),) == (('KILL', 600),)",
    "E   AssertionError: claude was never called",
    r"E   AssertionError: assert (b'hi\n', 1) == (b'hi\n', 0)",
    "E   AssertionError: <test_a_leak>:4: claude was left (still alive): - silence: for ever",
    "E   3601 s              claude: LEAKED: still alive",
]
