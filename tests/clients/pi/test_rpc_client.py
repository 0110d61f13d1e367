"""The RPC client of pi against fakes of it, in real time. It runs JavaScript only: a shim stands before the fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.findings import mark_finding
from tests.clients.running import IGNORES_EOF, IGNORES_TERM, TICK

if TYPE_CHECKING:
    from tests.clients.running import Client, Programs

pytestmark = pytest.mark.slow


@pytest.fixture
def client(programs: Programs) -> Client:
    """Give the client, and a pi that is talked to."""
    return programs.node("pi_rpc_client.mjs", "pi-coding-agent", "{dialect: pi, mode: rpc}")


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient", "uses a tool and answers", "gives every event, and ends it by TERM"
)
def test_a_prompt_is_answered(client: Client) -> None:
    """The stop is a TERM even where the end of stdin would do."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: bash, input: {command: ls}}
        - tool_done: {id: a, output: x}
        - answer: done
    """
    run = client("prompt", script)
    assert [(row["text"], row["stop"]) for row in run.told if row.get("text")] == [("done", "stop")]
    lines = [row["what"] for row in run.told]
    assert lines.index("tool_execution_start") < lines.index("tool_execution_end") < lines.index("agent_end")
    assert run.ends == [{"code": 143}]


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient", "is told to abort a tool", "is free for the next prompt then"
)
def test_an_abort_leaves_the_agent_for_the_next_prompt(client: Client) -> None:
    """The answer to the abort comes after the end of the run."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: bash}
        - wait_for: cancel
        - acknowledge: cancel
        - wait_for: prompt 2
        - answer: two
    """
    run = client("aborts", script)
    assert run.list_values("message", "stop") == ["toolUse", "aborted", "stop"]
    lines = [row["what"] for row in run.told]
    assert lines.index("agent_end") < lines.index("aborted")
    assert run.list_values("message", "text") == ["two"]


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient",
    "is told to follow up",
    "sees both answers in one run, which ends once",
)
def test_a_follow_up_is_part_of_the_run(client: Client) -> None:
    """Two prompts have one end."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: bash}
        - wait_for: prompt 2
        - tool_done: {id: a, output: x}
        - answer: one
        - answer: two
    """
    run = client("follows", script)
    assert run.list_values("message", "text") == ["one", "two"]
    assert len(run.list_values("agent_end", "at")) == 1


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient",
    "refuses a prompt, as it is busy",
    "throws the agent's words, and goes on with the run",
)
def test_a_refused_prompt_is_thrown(client: Client) -> None:
    """Release 0.73.1 took the refusal for an acceptance."""
    script = """
        - wait_for: prompt 1
        - tool: {id: a, name: bash}
        - wait_for: prompt 2
        - tool_done: {id: a, output: x}
        - answer: one
        - answer: to the follow-up
    """
    run = client("twice", script)
    refusals = [line for line in run.stdout.splitlines() if '"success":false' in line]
    assert len(refusals) == 1
    assert "Agent is already processing" in refusals[0]
    assert run.list_values("accepted", "at") == []
    assert run["refused"]["message"].startswith("Agent is already processing")
    assert run.list_values("message", "text") == ["one", "to the follow-up"]


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient", "prints lines that are no JSON", "drops them without a word"
)
def test_garbage_is_dropped(client: Client) -> None:
    """Halves of objects, too."""
    run = client("prompt", '- wait_for: prompt 1\n- say: well\n- raw: "oops\\n{half\\n"\n- answer: done')
    assert run.list_values("message", "text") == ["well", "done"]
    assert run.errors == ""


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient",
    "ends a run with an error",
    "returns as after a good one: the error is in an event",
)
def test_an_error_is_an_event(client: Client) -> None:
    """A caller that does not look at the last message reads it as a success."""
    run = client("prompt", "- wait_for: prompt 1\n- result: {text: no credit, is_error: true}")
    assert run.list_values("message", "stop") == ["error"]
    assert run["returned"]["at"] > run["agent_end"]["at"]


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient",
    "dies while it works",
    "waits on as if nothing had happened, and its stop() takes 1 s for the dead",
)
def test_a_death_at_work_is_not_noticed(client: Client) -> None:
    """Nothing but its own limit ends the wait, and the exit that stop() waits for is over."""
    run = client("loses", "- wait_for: prompt 1\n- say: well\n- exit: 3")
    assert run["died"]["code"] == 3
    assert run["waits"]["open"] is True
    assert run["stopped"]["at"] - run["stops"]["at"] >= 1 - TICK


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient",
    "exits 0.3 s after its start",
    "has called it started by then, and throws at the prompt to the dead agent",
)
def test_a_prompt_to_a_dead_agent_is_thrown(client: Client) -> None:
    """It looks once, 0.1 s after the start. Release 0.73.1 waited for the response of the dead."""
    run = client("asksTheDead", "- silence: 0.3s\n- raw: {text: no key, to: stderr}\n- exit: 1")
    assert run["started"]["at"] < run["died"]["at"]
    assert "no key" in run["refused"]["message"]


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient",
    "does not read its commands",
    "waits for the response, and can be stopped meanwhile",
)
def test_a_prompt_to_a_deaf_agent_waits(client: Client) -> None:
    """The stop is a signal, and no command."""
    run = client("asksTheDeaf", "- stdin: stop\n- silence: for ever")
    assert run["waits"]["open"] is True
    assert run.ends == [{"code": 143}]


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient",
    "serves a program that exits without stop()",
    "does nothing: the end of its stdin ends the agent",
)
def test_a_program_that_exits_is_followed_by_its_agent(client: Client) -> None:
    """It has no handler at the exit, and needs none here."""
    run = client("forgets", "- wait_for: prompt 1\n- answer: done")
    assert run.find_instant("i", eof=True) > run["agent_end"]["at"]
    assert run.ends == [{"code": 0}]


@mark_finding(
    "@earendil-works/pi-coding-agent, RpcClient",
    "ignores TERM, behind a launcher",
    "kills the launcher after 1 s and returns, and the agent lives on",
)
def test_a_stop_kills_the_launcher_alone(client: Client) -> None:
    """It ends only the process that it started."""
    script = f"""
        {IGNORES_EOF}
        {IGNORES_TERM}
        - wait_for: prompt 1
        - answer: done
        - silence: for ever
    """
    run = client("leave", script, leaves=("agent",))
    assert [name for name, _ in run.signals] == ["TERM"]
    assert run["stopped"]["at"] - run["stops"]["at"] >= 1 - TICK
