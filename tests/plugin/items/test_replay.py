"""A red of a supervisor under test is run once more: a result that cannot be repeated is no verdict."""

from __future__ import annotations

import pytest

from tests.plugin.scenarios import GREEN, RED

MINE = """\
import uuid

import anyio

PLAYS = []

async def steady(order):
    PLAYS.append(order)
    await anyio.run_process(order.argv, env=order.env, check=False, start_new_session=True)
    return "failed"

async def fickle(order):
    await anyio.sleep(len(PLAYS))
    return await steady(order)

async def chancy(order):
    PLAYS.append(order)
    said = b"as it is said each time, and then " + uuid.uuid4().hex.encode()
    await anyio.run_process(order.argv, input=said, env=order.env, check=False, start_new_session=True)
    return "failed"

async def hangs(order):
    PLAYS.append(order)
    said = uuid.uuid4().hex.encode() + b" is the id of what is never answered"
    await anyio.run_process(order.argv, input=said, env=order.env, check=False, start_new_session=True)
    await anyio.sleep_forever()

async def tidy(order):
    PLAYS.append(order)
    agent = await anyio.open_process(order.argv, env=order.env, start_new_session=True)
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            agent.kill()
            await agent.wait()

async def cured(order):
    said = "completed" if PLAYS else "failed"
    await steady(order)
    return said
"""
COUNT = "def pytest_unconfigure():\n    import mine\n    print('PLAYED', len(mine.PLAYS))\n"


@pytest.fixture(autouse=True)
def _scenario(pytester: pytest.Pytester) -> None:
    """Have a red scenario."""
    (pytester.path / "two.scenario.yaml").write_text(RED)
    (pytester.path / "mine.py").write_text(MINE)
    pytester.makeconftest(COUNT)


@pytest.mark.parametrize("name", ["steady", "cured", "chancy", "hangs"])
def test_a_red_that_comes_again_stands(pytester: pytest.Pytester, name: str) -> None:
    """The events decide, not the words about them, nor an id that a client makes by chance."""
    result = pytester.runpytest("-s", f"--agentproc-subject=mine:{name}")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  outcome: failed  two.scenario.yaml:9", "failed, record *", "PLAYED 2"])


def test_what_is_done_as_a_deadlock_is_given_up_decides_nothing(pytester: pytest.Pytester) -> None:
    """Cancelled, it ends its agent, which takes real time: that is seen in one play and not in the other."""
    result = pytester.runpytest("-s", "--agentproc-subject=mine:tidy")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["* is not conformant: must: 1 failed, *", "  0 passed, *", "PLAYED 2"])
    assert "DEADLOCK" in [line for line in result.outlines if "dies of" in line or "DEADLOCK" in line][-1]


def test_a_red_that_is_another_one_the_second_time_is_a_kit_error(pytester: pytest.Pytester) -> None:
    """It says where the two differ, and which of their parts may be the cause."""
    result = pytester.runpytest("-s", "--agentproc-subject=mine:fickle")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "  replay: kit error",
            "    expected  the same record",
            "    seen      once  0 s *starts",
            "              then  ~~~ 1 s pass ~~~",
            "*(virtual time plays the same twice, so this red says nothing of the supervisor; *",
            "kit error, record *",
            "agentproc: fickle has no verdict because of 1 kit error: must: 0 failed, *",
            "  1 kit error, 0 passed, *",
            "PLAYED 2",
        ]
    )


KILLED_ONCE = """\
import anyio
import psutil

from pytest_agentproc.subjects import ReferenceSupervisor

run, plays = ReferenceSupervisor.run, []

async def run_and_kill(subject, order):
    plays.append(order)
    async with anyio.create_task_group() as group:
        group.start_soon(kill_first_agent)
        return await run(subject, order)

async def kill_first_agent():
    await anyio.sleep(1)
    for process in psutil.Process().children() if len(plays) == 1 else ():
        if process.cmdline()[1].startswith("-ISc"):
            process.kill()

ReferenceSupervisor.run = run_and_kill

def pytest_unconfigure():
    ReferenceSupervisor.run = run  # this session runs within the process of other tests
"""


def test_a_red_of_the_kits_own_supervisor_is_played_again_too(pytester: pytest.Pytester) -> None:
    """A machine without memory kills an agent: that was a failure of whoever supervised it."""
    pytester.makeconftest(KILLED_ONCE)
    (pytester.path / "two.scenario.yaml").write_text(GREEN.replace("- say", "- silence: 2s\n  - say"))
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["  replay: kit error", "kit error, record *"])


HANGS_ONCE = """\
if ! test -e been; then touch been; sleep 1000000; fi
"$@"
"""
TIRES = """\
echo >>plays
test $(wc -l <plays) -lt 3 || sleep 1
"$@"
"""
WRAPPER = """\
command = "sh program.sh {agent}"
says = {outcome = {exit_code = {0 = "completed", other = "failed"}}}
"""


def test_a_program_that_hangs_in_one_play_of_two_is_a_kit_error(pytester: pytest.Pytester) -> None:
    """Its virtual time is exact, too: an endless wait that does not come again is never its own fault."""
    (pytester.path / "program.sh").write_text(HANGS_ONCE)
    (pytester.path / "wrapper.toml").write_text(WRAPPER)
    result = pytester.runpytest("--agentproc-subject=wrapper.toml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "  replay: kit error",
            "*(in 3 further plays nothing of that failed again, so this red says nothing of the supervisor; *",
            "agentproc: wrapper has no verdict because of 1 kit error: must: 0 failed, *",
            "  1 kit error, 0 passed, *",
        ]
    )


LOOKS_AGAIN = """\
"$@"
if test -e been; then sleep 0.1; else touch been; fi
exit 3
"""

LEAVES_ONE = """\
"$@"
if test -e been; then sleep 1000000 >/dev/null 2>&1 & else touch been; fi
exit 3
"""

LEFT_ONE = """\
"$@"
if ! test -e been; then touch been; sleep 1000000 >/dev/null 2>&1 & fi
exit 3
"""

WINS_TWICE = """\
echo >>plays
"$@"
case $(wc -l <plays) in 2|3) exit 0;; *) exit 3;; esac
"""


@pytest.mark.parametrize(
    "program",
    [LOOKS_AGAIN, LEAVES_ONE, LEFT_ONE, WINS_TWICE],
    ids=[
        "a look later",
        "more checks fail the second time",
        "fewer checks fail the second time",
        "fails in two of four",
    ],
)
def test_a_red_of_a_program_stands_if_what_failed_fails_again(pytester: pytest.Pytester, program: str) -> None:
    """It looks at a process before its death in one play, after it in the other; or a race leaves a process, or not."""
    (pytester.path / "program.sh").write_text(program)
    (pytester.path / "wrapper.toml").write_text(WRAPPER)
    result = pytester.runpytest("--agentproc-subject=wrapper.toml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["  outcome: failed  two.scenario.yaml:9", "* is not conformant: must: 1 failed, *", "  0 passed, *"]
    )
    assert "replay" not in result.stdout.str()


def test_a_program_is_repeated_until_a_play_goes_another_way(pytester: pytest.Pytester) -> None:
    """The red comes twice; the third play starts its agent a second later."""
    (pytester.path / "program.sh").write_text(TIRES)
    (pytester.path / "wrapper.toml").write_text(WRAPPER)
    result = pytester.runpytest("--agentproc-repeat=4", "--agentproc-subject=wrapper.toml")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  repeat: kit error", "    expected  the same record", "  1 kit error, 0 passed, *"])


def test_real_time_never_repeats_itself(pytester: pytest.Pytester) -> None:
    """There a red stands at once."""
    result = pytester.runpytest("-s", "--agentproc-subject=mine:steady", "--agentproc-clock=real")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["PLAYED 1"])
