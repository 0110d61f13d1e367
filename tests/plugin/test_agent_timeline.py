"""Claims of a test about the order of events: exact words, exact times, and a timeline that shows each error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.plugin import AgentTimeline, Fakes, Runner, Sessions, VirtualClock


LINGERS = {"agent": "pi", "script": [{"answer": "done"}, {"linger": "for ever"}]}


def test_a_run_is_asked_for_times_and_order(agent_run: Runner, agent_timeline: AgentTimeline) -> None:
    """Both sides have words, and a death of a signal is the signal and then the exit."""
    agent_run(LINGERS)
    assert (agent_timeline.at("TERM"), agent_timeline.times("KILL")) == (0.25, ())
    agent_timeline.order("start", "stdout", "linger_grace", "completed", "TERM", "exit", "returned")
    agent_timeline.not_before("TERM", 0.25)
    agent_timeline.not_before("TERM", "linger_grace")
    agent_timeline.never("inactivity_timeout")
    assert "TERM ==> tree" in str(agent_timeline)


def test_a_conversation_is_asked_while_it_goes_on(agent_session: Sessions, agent_timeline: AgentTimeline) -> None:
    """The caller's own deeds are in it, and turns have names."""
    talk = agent_session("- wait_for: prompt 1\n- silence: 5s\n- answer: hi\n- wait_for: prompt 2\n- answer: bye")
    talk.prompt("hello")
    assert agent_timeline.times("completed") == (5.0,)
    talk.prompt("hello")
    agent_timeline.order("status ready", "prompt", "turn 1: completed", "status ready", "prompt", "turn 2: completed")
    agent_timeline.never("agent 2: start")


def test_fakes_of_one_test_share_one_timeline(
    fake_agent: Fakes, virtual_clock: VirtualClock, agent_timeline: AgentTimeline
) -> None:
    """A program that runs two agents is asked which came first."""
    fakes = [fake_agent("- silence: 2s\n- say: one"), fake_agent("- silence: 1s\n- say: two")]

    async def both() -> None:
        async with anyio.create_task_group() as group:
            for fake in fakes:
                group.start_soon(anyio.run_process, fake.argv)

    virtual_clock.run(both)
    assert (len(agent_timeline), agent_timeline.times("exit")) == (1, (1.0, 2.0))
    agent_timeline.order("agent: start", "agent B: stdout", "agent: stdout")


def test_several_runs_are_told_apart(agent_run: Runner, agent_timeline: AgentTimeline) -> None:
    """Each has a clock of its own, so that one instant of both means nothing."""
    with pytest.raises(UsageError, match="there is no run 0, the test had 0 so far"):
        agent_timeline.at("exit")
    agent_run("- say: hello")
    agent_run("- silence: 1s")
    with pytest.raises(UsageError, match="the test had 2 runs, each with a clock of its own\nchoose one: agent_timel"):
        agent_timeline.at("exit")
    assert [agent_timeline[number].at("exit") for number in range(2)] == [0.0, 1.0]


SILENT = {"script": [{"say": "hi"}, {"silence": "for ever"}]}
WRONG = """\
TERM did not come after exit: it came at 5 s

    time  supervisor                           agent and descendants
     0 s                                       starts
          closes stdin
          timer inactivity_timeout due at 5 s
                                               stdout, 3 B "hi\\n"  [line 6]
                                               "silence": "for ever"  [line 9]
          reads stdout, 3 B
                                               reads the end of stdin
          ~~~ 5 s pass ~~~
     5 s  timer inactivity_timeout FIRES
          TERM ==> tree
          timer kill_grace due at 7 s
          timer inactivity_timeout off
 1>       OUTCOME inactive
2!>                                            dies of TERM
          sees the end of stdout
          sees the end of stderr
          sees agent: dies of TERM
          timer kill_grace off
          RETURNS
"""


def test_a_wrong_order_is_marked_in_the_timeline(agent_run: Runner, agent_timeline: AgentTimeline) -> None:
    """The failure shows how far the order held, and where the rest was."""
    agent_run(SILENT, inactivity_timeout=5)
    with pytest.raises(AssertionError) as failure:
        agent_timeline.order("inactive", "exit", "TERM")
    assert f"{failure.value}\n" == WRONG


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda line: line.at("KILL"), "KILL never came\n"),
        (lambda line: line.order("TERM", "KILL"), "KILL never came\n"),
        (lambda line: line.never("TERM"), "TERM came at 5 s\n"),
        (lambda line: line.not_before("TERM", 5.5), "TERM came at 5 s, before 5.5 s\n"),
        (lambda line: line.not_before("stdout", "exit"), "stdout came at 0 s, before exit at 5 s\n"),
    ],
)
def test_each_question_can_fail(
    agent_run: Runner,
    agent_timeline: AgentTimeline,
    ask: Callable[[AgentTimeline], None],
    message: str,
) -> None:
    """The first line says what is wrong in a clause, and the timeline follows."""
    agent_run(SILENT, inactivity_timeout=5)
    with pytest.raises(AssertionError) as failure:
        ask(agent_timeline)
    assert str(failure.value).startswith(message)


def test_a_failure_shows_the_line_of_the_test_alone(pytester: pytest.Pytester) -> None:
    """A user reads the question and the timeline, and no code of the kit."""
    pytester.makepyfile(
        """
        def test_it(agent_run, agent_timeline):
            agent_run("- say: hello")
            agent_timeline.order("KILL", "exit")
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*_timeline*.py:*")


def test_a_word_that_there_is_not_is_refused(agent_run: Runner, agent_timeline: AgentTimeline) -> None:
    """One with a typing error would never come, and `never` would always hold."""
    agent_run("- say: hello")
    with pytest.raises(UsageError, match="a timeline has no word 'complete', did you mean completed"):
        agent_timeline.never("complete")
