"""Scripts that run `pi` as they find it on their PATH, in real time: the ways of a shell and of Node.

The scripts are ours; one does as the wrapper of pi-subagents did after its fix (docs/explanation/five-reports.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.findings import mark_finding
from tests.clients.running import IGNORES_TERM, TICK

if TYPE_CHECKING:
    from tests.clients.running import Client, Programs

pytestmark = pytest.mark.slow

AT_TERM = "- {when: {signal: TERM}, do: [exit: 143]}"
DIES_OF_TERM = "- {when: {signal: TERM}, do: [die: TERM]}"
"""As older versions of pi, and its launcher, do."""


@pytest.fixture
def shell(programs: Programs) -> Client:
    """Give a shell script."""
    return programs.shell("pi_on_path.sh", "pi")


@pytest.fixture
def script(programs: Programs) -> Client:
    """Give a Node script."""
    return programs.node("pi_on_path.mjs", None, "pi")


@mark_finding("a shell script that runs pi, $(pi)", "answers and exits", "has the answer and the exit code")
def test_a_shell_captures_the_answer(shell: Client) -> None:
    """It needs only a folder on the PATH."""
    run = shell("captures", "- tool: {id: a, name: bash}\n- tool_done: {id: a, output: x}\n- answer: done")
    assert (run["ran"]["code"], run["ran"]["ends"]) == (0, 1)
    assert run.argv == [["--mode", "json", "-p", "hi"]]


@mark_finding(
    "a shell script that runs pi, $(pi)", "fails to reach its model", "has exit code 0: the error is in an event"
)
def test_a_shell_takes_an_error_for_a_success(shell: Client) -> None:
    """It exits 0 in this mode, whatever its last message says."""
    run = shell("captures", "- result: {text: no credit, is_error: true}")
    assert (run["ran"]["code"], run["ran"]["ends"]) == (0, 1)
    assert '"stopReason":"error"' in run.stdout


@mark_finding("a shell script that runs pi, $(pi)", "is killed while it works", "has exit code 137, and half an answer")
def test_a_shell_gets_the_code_of_a_kill(shell: Client) -> None:
    """The code is 128 and the signal."""
    run = shell("captures", "- say: well\n- die: KILL")
    assert (run["ran"]["code"], run["ran"]["ends"]) == (137, 0)


@mark_finding(
    "a shell script that runs pi, $(pi)", "lingers after its answer", "waits for its end, and sends it no signal"
)
def test_a_shell_waits_for_an_agent_that_lingers(shell: Client) -> None:
    """The answer is there, and the script has not got it."""
    run = shell("captures", "- answer: done\n- silence: 1s")
    assert (run["ran"]["code"], run["ran"]["ends"]) == (0, 1)
    assert run.signals == []
    assert run.ends == [{"code": 0}]


@mark_finding("a shell script that runs pi, $(pi)", "exits, and a child of it holds stdout", "waits for that child")
def test_a_shell_waits_for_a_grandchild_that_holds_stdout(shell: Client) -> None:
    """The child process ends before the script: the shell waited for it."""
    run = shell("captures", "- spawn: {id: helper, inherits: [stdout], for: 1s}\n- answer: done\n- exit: 0")
    assert (run["ran"]["code"], run["ran"]["ends"]) == (0, 1)
    assert run.find_instant("x", process="agent") < run.find_instant("x", process="helper")


@mark_finding(
    "a shell script that runs pi, $(timeout 2 pi)", "lingers after its answer", "has exit code 124, and the answer"
)
def test_a_limit_makes_a_failure_of_a_lingering_success(shell: Client) -> None:
    """A limit on the whole run does not know that the work is done."""
    run = shell("limits", "- answer: done\n- silence: for ever")
    assert (run["ran"]["code"], run["ran"]["ends"]) == (124, 1)
    assert run.ends == [{"code": 143}]


@mark_finding(
    "a shell script that runs pi, $(timeout 2 pi)",
    "is at work for longer, and prints all the time",
    "has exit code 124, and the work is lost",
)
def test_a_limit_ends_an_agent_at_work(shell: Client) -> None:
    """It measures how long a run takes, and not how long it is silent."""
    run = shell("limits", "- drip: {say: step, every: 100ms, for: 10s}\n- answer: done")
    assert (run["ran"]["code"], run["ran"]["ends"]) == (124, 0)
    assert '"step"' in run.stdout
    assert run.ends == [{"code": 143}]


@mark_finding("a shell script that runs pi, $(pi | cat)", "exits 3", "has exit code 0: that of the last command")
def test_a_pipe_hides_the_exit_code(shell: Client) -> None:
    """A failure becomes a success."""
    run = shell("pipes", "- say: well\n- exit: 3")
    assert (run["ran"]["code"], run["ran"]["ends"]) == (0, 0)
    assert run.ends == [{"code": 3}]


@pytest.mark.parametrize("end", [{"signal": "TERM"}, {"code": 143}])
@mark_finding(
    "a shell script that runs pi, kill and wait",
    "lingers after its answer, and dies of TERM or exits 143",
    "has exit code 143 for both",
)
def test_a_shell_cannot_distinguish_a_signal_from_a_code(shell: Client, end: dict[str, int | str]) -> None:
    """A caller that ends the agent must not judge by the code."""
    steps = [AT_TERM if "code" in end else DIES_OF_TERM]
    run = shell("stops", "\n".join([*steps, "- answer: done", "- silence: for ever"]))
    assert (run["ran"]["code"], run["ran"]["ends"]) == (143, 1)
    assert run.ends == [end]


@mark_finding("a Node script that runs pi, on 'close'", "answers and exits", "has the messages and the exit code")
def test_a_script_reads_the_answer(script: Client) -> None:
    """The streams have ended by then."""
    run = script("reads", "- tool: {id: a, name: bash}\n- tool_done: {id: a, output: x}\n- answer: done")
    assert run.list_values("message", "stop") == ["toolUse", "stop"]
    assert (run["ended"]["code"], run["ended"]["signal"]) == (0, None)


@mark_finding("a Node script that runs pi, on 'close'", "exits, and a child of it holds stdout", "waits for that child")
def test_a_script_waits_for_the_end_of_stdout(script: Client) -> None:
    """It waits for the streams, and the exit is long past."""
    run = script("reads", "- spawn: {id: helper, inherits: [stdout], for: 1s}\n- answer: done\n- exit: 0")
    assert run["ended"]["code"] == 0
    assert run["ended"]["at"] >= 1
    assert run.find_instant("x", process="agent") < run["ended"]["at"]


@mark_finding(
    "a Node script that runs pi, on 'exit'", "exits, and a child of it lives on", "goes on at once, and leaves it"
)
def test_a_script_leaves_a_grandchild(script: Client) -> None:
    """No process knows of it any more."""
    run = script("exits", "- spawn: {id: helper, inherits: [stdout]}\n- answer: done\n- exit: 0", leaves=("helper",))
    assert run["ended"]["code"] == 0


@mark_finding(
    "a Node script that runs pi, as the wrapper of pi-subagents",
    "lingers after its answer, and dies of TERM",
    "reports success, 250 ms after the answer at the earliest",
)
def test_the_wrapper_takes_a_death_by_term_for_a_success(script: Client) -> None:
    """A death by a signal has no code in Node, and no code is taken for 0."""
    run = script("wraps", f"{DIES_OF_TERM}\n- answer: done\n- silence: for ever")
    assert run["verdict"]["success"] is True
    assert (run["ended"]["code"], run["ended"]["signal"]) == (None, "SIGTERM")
    assert run["ended"]["at"] - run["message"]["at"] >= 0.25 - TICK


@mark_finding(
    "a Node script that runs pi, as the wrapper of pi-subagents",
    "lingers after its answer, and exits 143 at TERM",
    "reports a failure, with the whole answer in its hands",
)
def test_the_wrapper_takes_an_exit_at_term_for_a_failure(script: Client) -> None:
    """The other client's safety is missing here: a handler in the agent, and its success is a success no more."""
    run = script("wraps", f"{AT_TERM}\n- answer: done\n- silence: for ever")
    assert run.list_values("message", "text") == ["done"]
    assert run["ended"]["code"] == 143
    assert run["verdict"]["success"] is False


@mark_finding(
    "a Node script that runs pi, as the wrapper of pi-subagents",
    "lingers after its answer, and ignores TERM",
    "kills it, and reports success",
)
def test_the_wrapper_kills_an_agent_that_ignores_term(script: Client) -> None:
    """Both graces pass."""
    run = script("wraps", f"{IGNORES_TERM}\n- answer: done\n- silence: for ever")
    assert run["verdict"]["success"] is True
    assert run["ended"]["signal"] == "SIGKILL"
    assert run["ended"]["at"] - run["message"]["at"] >= 1.25 - 2 * TICK


@mark_finding(
    "a Node script that runs pi, as the wrapper of pi-subagents",
    "works with a tool for longer than 250 ms",
    "ends it at work, and reports success",
)
def test_the_wrapper_ends_an_agent_at_work(script: Client) -> None:
    """It reads any stop reason as the end, that of a tool too."""
    work = "- tool: {id: a, name: bash}\n- silence: 10s\n- tool_done: {id: a, output: x}\n- answer: done"
    run = script("wraps", f"{DIES_OF_TERM}\n{work}")
    assert run.list_values("message", "stop") == ["toolUse"]
    assert run["verdict"]["success"] is True
    assert run.ends == [{"signal": "TERM"}]


@mark_finding(
    "a Node script that runs pi, as the wrapper of pi-subagents",
    "lingers after its answer with a child of its own",
    "ends the agent alone, and the child lives on",
)
def test_the_wrapper_leaves_a_grandchild(script: Client) -> None:
    """The signal is for one process."""
    run = script("wraps", f"{DIES_OF_TERM}\n- spawn: helper\n- answer: done\n- silence: for ever", leaves=("helper",))
    assert run["verdict"]["success"] is True
    assert run.ends == [{"signal": "TERM"}]
