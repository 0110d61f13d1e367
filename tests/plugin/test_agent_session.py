"""A conversation by hand: each word is waited for, times are exact, and what is left or stuck fails the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_agentproc.plugin import Sessions

TALK = """
- wait_for: prompt 1
- wait_for: cancel
- silence: 2s
- acknowledge: cancel
- wait_for: prompt 2
- silence: 1h
- answer: hello
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_test_talks_word_by_word(agent_session: Sessions, backend: str) -> None:
    """Between two words time stands still, so that each instant is the script's and the test's alone."""
    talk = agent_session(TALK, backend=backend)
    assert (talk.status, talk.now) == ("ready", 0)
    first = talk.begin("one")
    talk.wait(5)
    talk.cancel()
    assert (first.wait().outcome, talk.now) == ("cancelled", 7.0)
    turn = talk.prompt("two")
    assert (turn.outcome, turn.text, turn.elapsed, talk.now) == ("completed", "hello", 3600.0, 3607.0)
    assert [event.text for event in talk.events if event.kind == "status"] == ["ready", "prompting"] * 2 + ["ready"]
    run = talk.close()
    assert ([one.outcome for one in run.turns], run.returned) == (["cancelled", "completed"], 3607.0)
    assert "caller: cancel" in run.timeline


def test_a_conversation_is_the_same_twice(agent_session: Sessions) -> None:
    """At one instant the test acts after the agent, however fast the machine is."""
    digests = set()
    for _ in range(2):
        with agent_session("- wait_for: prompt 1\n- answer: hi\n- silence: 1s\n- say: more") as talk:
            talk.prompt("hello")
            talk.wait(1)
        digests.add(talk.close().record.digest())
    assert len(digests) == 1


@pytest.mark.slow
def test_questions_are_answered_by_a_word_or_a_function(agent_session: Sessions) -> None:
    """The test answers each question of the agent."""
    seen = []
    agent = {"dialect": "claude", "mode": "session"}
    ask = {"permission": "Bash", "allowed": [{"answer": "ran"}], "denied": [{"answer": "did not"}]}
    script = [{"wait_for": "prompt 1"}, {"tool": {"id": "t", "name": "Bash"}}, {"ask": ask}]

    async def asked(question: object) -> bool:
        seen.append(question)
        return True

    for permission, text in ((True, "ran"), (False, "did not"), (asked, "ran")):
        with agent_session({"agent": agent, "script": script}, permission=permission) as talk:
            assert talk.prompt("run it").text == text
    assert len(seen) == 1


def test_what_else_a_session_can_runs_in_its_loop(agent_session: Sessions) -> None:
    """The whole of the supervisor's session is there, and what a test's function raises is the test's."""
    talk = agent_session("- wait_for: prompt 1\n- answer: hi")

    async def ask(session: object) -> object:
        return session.session_id  # type: ignore[attr-defined]

    async def fail(_session: object) -> None:
        raise ValueError("mine")

    assert isinstance(talk.call(ask), str)
    with pytest.raises(ValueError, match="mine"):
        talk.call(fail)
    assert talk.prompt("hello").text == "hi"


FAILURES = '''
import pytest
from pytest_agentproc.errors import UsageError

def test_deadlock(agent_session):
    talk = agent_session("""
    - wait_for: prompt 1
    - silence: for ever
    """, prompt_timeout=None)
    talk.prompt("hello")

def test_leak(agent_session):
    talk = agent_session("""
    - spawn: child1
    - wait_for: prompt 1
    - answer: hi
    """)
    assert talk.prompt("hello").text == "hi"

def test_expectation(agent_session):
    with agent_session("""
    scenario: it says bye
    agent: {dialect: pi, mode: rpc}
    script: [{wait_for: prompt 1}, {answer: hi}]
    expect: {turns: [{text: bye}]}
    """) as talk:
        talk.prompt("hello")

def test_misuse(agent_session):
    talk = agent_session("- wait_for: prompt 1")
    with pytest.raises(UsageError, match="-1 seconds cannot pass"):
        talk.wait(-1)
    with pytest.raises(UsageError, match="there is no status 'redy'"):
        talk.wait_for("redy")
    talk.close()
    with pytest.raises(UsageError, match="the conversation is over"):
        talk.prompt("hello")
    with pytest.raises(UsageError, match="an agent of raw text cannot be talked to by agent_session"):
        agent_session({"agent": "raw", "script": []})
    with pytest.raises(UsageError, match="no limit prompt_timeot, did you mean prompt_timeout"):
        agent_session("- wait_for: prompt 1", prompt_timeot=1)

@pytest.mark.parametrize("run", [__import__("asyncio").run, __import__("trio").run])
def test_inside_a_loop(agent_session, run):
    async def main():
        with agent_session("- wait_for: prompt 1\\n- silence: 1h\\n- answer: hi") as talk:
            return talk.prompt("hello").text
    assert run(main) == "hi" if run.__module__.startswith("trio") else run(main()) == "hi"
'''


@pytest.mark.slow
def test_what_goes_wrong_fails_the_test_with_the_scenarios_text(pytester: pytest.Pytester) -> None:
    """Stuck, left behind, or not as expected: the text is that of a scenario, and no stack; the test's loop is free."""
    pytester.makepyfile(test_talk=FAILURES)
    result = pytester.runpytest("--agentproc-defect=direct-child-only")
    result.assert_outcomes(passed=4, failed=2, errors=1)
    result.stdout.fnmatch_lines(["*teardown of test_leak*", "test_talk.py:12: *", "*; child1 (pid *) waits for*"])
    result.stdout.fnmatch_lines(["  the agent's last step: test_talk.py:7: - silence: for ever"])
    result.stdout.fnmatch_lines(['    expected  "bye"', '    seen      "hi"'])
    assert "_session.py" not in result.stdout.str()
