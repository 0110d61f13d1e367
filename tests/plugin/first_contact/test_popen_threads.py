"""`Popen` with a reader thread and a queue: the way of supervisors without an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

TEST = '''
    import queue, subprocess, threading

    class Supervisor:
        def __init__(self, argv):
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.lines = queue.Queue()
            self.reader = threading.Thread(target=self.read)
            self.reader.start()

        def read(self):
            for line in self.process.stdout:
                self.lines.put(line)

        def ask(self, prompt):
            print(prompt, file=self.process.stdin, flush=True)
            return self.lines.get(timeout=30)

        def close(self):
            {close}
            self.process.wait()
            self.reader.join()
            self.process.stdin.close()
            self.process.stdout.close()

    def test_talk(fake_agent, agent_timeline):
        agent = fake_agent("""
        - wait_for: {{stdin: one}}
        - silence: 1ms
        - say: first
        - wait_for: {{stdin: two}}
        - silence: 1ms
        - say: second
        - wait_for: eof
        """)
        supervisor = Supervisor(agent.argv)
        assert supervisor.ask("one") == "first\\n"
        assert agent.starts[0].stdin == b"one\\n"
        assert len(agent_timeline.times("stdout")) == 1
        assert supervisor.ask("two") == "second\\n"
        assert agent.starts[0].status is None
        supervisor.close()
        agent_timeline.order("stdin", "stdout", "stdin", "stdout", "exit")
        agent_timeline.never("TERM")
        assert agent.starts[0].status == 0
'''


MANY = """
    import subprocess
    from concurrent.futures import ThreadPoolExecutor

    def test_many(fake_agent):
        agent = fake_agent("- say: hi")
        with ThreadPoolExecutor(4) as pool:
            for number in range(4):
                pool.submit(subprocess.run, [*agent.argv, str(number)], stdout=subprocess.DEVNULL, check=True)
        assert sorted(start.argv[-1] for start in agent.starts) == ["0", "1", "2", "3"]
        assert {start.status for start in agent.starts} == {0}
"""


def test_a_supervisor_with_threads_talks_to_a_fake(pytester: pytest.Pytester) -> None:
    """The input and output of the fake are known as soon as its answer is there."""
    pytester.makepyfile(TEST.format(close="self.process.stdin.close()"))
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_signal_that_nobody_should_have_sent_is_seen(pytester: pytest.Pytester) -> None:
    """The twin: the code under test sends a TERM where the agent would have ended by itself."""
    pytester.makepyfile(TEST.format(close="self.process.terminate()"))
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([r"E +AssertionError: TERM came at [0-9.]+ s", r"E +!> .* dies of TERM"])


def test_each_start_of_several_threads_is_counted(pytester: pytest.Pytester) -> None:
    """Threads may start agents at one moment."""
    pytester.makepyfile(MANY)
    pytester.runpytest().assert_outcomes(passed=1)
