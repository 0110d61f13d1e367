"""PyPI's agent-client-protocol, client side: the reports of a turn, the agent's requests, and the failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from pytest_agentproc.errors import Deadlock
from tests.clients.endings import COOPERATES, IGNORES_ALL, IGNORES_EOF, read_stdin_bytes
from tests.clients.findings import mark_finding
from tests.event_lines import list_lines

if TYPE_CHECKING:
    from tests.clients.acp_py import AcpPy

SECOND = 1_000_000_000


@mark_finding(
    "agent-client-protocol",
    "streams, thinks, plans and uses a tool for half an hour",
    "gives every update at its instant",
)
def test_a_rich_turn_is_given_whole(acp_client: AcpPy) -> None:
    """No limit is on a turn."""
    acp_client.play_script("""
        - wait_for: prompt 1
        - think: hm
        - plan: [{content: look, status: in_progress}, mend]
        - tool: {id: t, name: make, kind: execute, locations: [/w/Makefile]}
        - silence: 30m
        - tool_done: {id: t, output: built}
        - delta: Hel
        - answer: lo
    """)
    assert acp_client.ask() == [
        "0 s: thinks hm",
        "0 s: plan: look in_progress, mend pending",
        "0 s: execute make: in_progress",
        "1800 s: execute make: completed",
        "1800 s: says Hel",
        "1800 s: says lo",
        "1800 s: end_turn",
    ]


@pytest.mark.parametrize(
    ("choice", "words"),
    [("allow-once", ["0 s: says removed"]), ("reject-once", ["0 s: says kept"]), (None, ["0 s: says kept"])],
)
@mark_finding(
    "agent-client-protocol", "asks for a permission", "asks its caller, and sends the option or that it was cancelled"
)
def test_a_permission_is_the_callers(acp_client: AcpPy, choice: str | None, words: list[str]) -> None:
    """A question that was cancelled allows nothing."""
    acp_client.host.choice = choice
    acp_client.play_script("""
        - wait_for: prompt 1
        - ask:
            permission: rm
            allowed: [{say: removed}]
            denied: [{say: kept}]
        - answer: on
    """)
    assert acp_client.ask() == [*words, "0 s: says on", "0 s: end_turn"]


@mark_finding("agent-client-protocol", "reads a file, changes it and runs a command", "has its caller do all of it")
def test_files_and_terminals_are_the_callers(acp_client: AcpPy) -> None:
    """Each call is answered before the agent makes the next."""
    acp_client.play_script("""
        - wait_for: prompt 1
        - request: {method: fs/read_text_file, params: {path: /w/notes.txt, line: 1}}
        - request: {method: fs/write_text_file, params: {path: /w/new.txt, content: three}}
        - request: {method: terminal/create, params: {command: make, args: [all]}}
        - request: {method: terminal/wait_for_exit, params: {terminalId: t1}}
        - request: {method: terminal/output, params: {terminalId: t1}}
        - request: {method: terminal/kill, params: {terminalId: t1}}
        - request: {method: terminal/release, params: {terminalId: t1}, answered: [{answer: done}]}
    """)
    assert acp_client.ask() == ["0 s: runs make", "0 s: releases it", "0 s: says done", "0 s: end_turn"]
    assert acp_client.host.files["/w/new.txt"] == "three"
    assert b'"content":"one\\ntwo\\n"' in read_stdin_bytes(acp_client.record)
    assert [event.data["answer"] for event in list_lines(acp_client.record) if "answered" in event.data] == [
        "answered"
    ] * 7


@mark_finding("agent-client-protocol", "asks for what its caller lacks or cannot do", "answers with an error at once")
def test_what_the_caller_cannot_do_is_refused(acp_client: AcpPy) -> None:
    """A file that is not there, and a method that is unknown."""
    acp_client.play_script("""
        - wait_for: prompt 1
        - request: {method: fs/read_text_file, params: {path: /nowhere}, refused: [{say: no file}]}
        - request: {method: fs/delete, params: {path: /w/notes.txt}, refused: [{answer: no such method}]}
    """)
    assert acp_client.ask() == ["0 s: says no file", "0 s: says no such method", "0 s: end_turn"]
    assert b'"code":-32601' in read_stdin_bytes(acp_client.record)


@mark_finding("agent-client-protocol", "loads a session with a past", "gives its history before session/load returns")
def test_a_loaded_session_has_its_history(acp_client: AcpPy) -> None:
    """The questions and the answers."""
    acp_client.play_script(
        "- handshake: {history: [{prompt: hi}, {think: hm}, {answer: hello}]}\n- wait_for: prompt 1\n- answer: again"
    )

    async def caller(connection: Any) -> None:
        await connection.initialize(protocol_version=1)
        await connection.load_session(cwd="/w", session_id="old")
        acp_client.take("loaded")
        await acp_client.prompt(connection, "old")

    words = ["was asked hi", "thinks hm", "says hello", "loaded", "says again", "end_turn"]
    assert acp_client.connect(caller) == [f"0 s: {word}" for word in words]


@mark_finding(
    "agent-client-protocol",
    "acknowledges a cancel after two seconds",
    "gives the stop reason cancelled then; the session lives on",
)
def test_a_cancelled_turn_ends_when_the_agent_says_so(acp_client: AcpPy) -> None:
    """The tool that ran has failed."""
    acp_client.play_script("""
        - wait_for: prompt 1
        - tool: {id: t, name: make}
        - wait_for: cancel
        - silence: 2s
        - acknowledge: cancel
        - wait_for: prompt 2
        - answer: two
    """)

    async def caller(connection: Any, session: str) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(acp_client.prompt, connection, session)
            await anyio.sleep(1)
            await connection.cancel(session_id=session)
        await acp_client.prompt(connection, session, "again")

    assert acp_client.talk(caller) == [
        "0 s: other make: in_progress",
        "3 s: other make: failed",
        "3 s: cancelled",
        "3 s: says two",
        "3 s: end_turn",
    ]


@mark_finding("agent-client-protocol", "never acknowledges a cancel", "waits for the turn's end for ever")
def test_a_cancel_that_is_not_acknowledged_is_waited_for(acp_client: AcpPy) -> None:
    """No timer runs."""
    acp_client.play_script("- wait_for: prompt 1\n- silence: for ever")

    async def caller(connection: Any, session: str) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(acp_client.prompt, connection, session)
            await anyio.sleep(1)
            await connection.cancel(session_id=session)

    with pytest.raises(Deadlock, match=r"no timer of it runs; agent .* waits for data on stdin"):
        acp_client.talk(caller)
    assert acp_client.clock.now_ns == SECOND


@mark_finding("agent-client-protocol", "never answers initialize", "waits for ever")
def test_a_handshake_is_waited_for_for_ever(acp_client: AcpPy) -> None:
    """There is no limit on any request."""
    acp_client.play_script("- handshake: never")
    with pytest.raises(Deadlock, match="no timer of it runs"):
        acp_client.ask()


@mark_finding(
    "agent-client-protocol", "speaks version 2 of the protocol", "returns the number: to refuse it is the caller's"
)
def test_a_version_is_the_callers_to_refuse(acp_client: AcpPy) -> None:
    """The turn continues as if nothing had happened."""
    acp_client.play_script("- handshake: {version: 2}\n- wait_for: prompt 1\n- answer: done")
    assert acp_client.ask()[-1] == "0 s: end_turn"


@mark_finding("agent-client-protocol", "answers a prompt with an error", "raises RequestError with its code and words")
def test_an_error_result_is_raised(acp_client: AcpPy) -> None:
    """The earlier messages were given."""
    acp_client.play_script("- wait_for: prompt 1\n- say: half\n- result: {text: no credit, is_error: true}")
    with pytest.raises(acp_client.acp.RequestError, match=r"^no credit$") as raised:
        acp_client.ask()
    assert (raised.value.code, acp_client.given) == (-32603, ["0 s: says half"])


@pytest.mark.parametrize("end", ["die: KILL", "exit: 0"])
@mark_finding(
    "agent-client-protocol", "dies or exits in a turn", "raises ConnectionError, which tells neither code nor signal"
)
def test_a_death_in_a_turn_is_an_error(acp_client: AcpPy, end: str) -> None:
    """At the instant of the death."""
    acp_client.play_script(f"- wait_for: prompt 1\n- say: half\n- silence: 3s\n- {end}")
    with pytest.raises(ConnectionError, match=r"^Connection closed$"):
        acp_client.ask()
    assert (acp_client.given, acp_client.clock.now_ns) == (["0 s: says half"], 3 * SECOND)


@mark_finding("agent-client-protocol", "tells an update that the protocol does not know", "drops it")
def test_an_unknown_update_is_dropped(acp_client: AcpPy) -> None:
    """The turn continues."""
    acp_client.play_script("- wait_for: prompt 1\n- event: {sessionUpdate: dance, steps: 3}\n- answer: done")
    assert acp_client.ask() == ["0 s: says done", "0 s: end_turn"]


@mark_finding(
    "agent-client-protocol", "prints lines that are no JSON, and one of 3 MiB", "skips the first, and takes the other"
)
def test_noise_is_skipped_and_a_long_line_taken(acp_client: AcpPy) -> None:
    """No limit is on the length of a line."""
    acp_client.play_script(r"""
        - wait_for: prompt 1
        - raw: "npm warn old\n{not json}\n"
        - raw: {text: " ", size: 3 MiB}
        - answer: done
    """)
    assert acp_client.ask() == ["0 s: says done", "0 s: end_turn"]


@mark_finding(
    "agent-client-protocol", "writes 400 KiB to stderr", "never reads it: the agent blocks, and the turn waits for ever"
)
def test_an_stderr_that_nobody_reads_blocks_the_agent(acp_client: AcpPy) -> None:
    """192 KiB still pass: asyncio's read-ahead and the pipe hold that much."""
    script = "- wait_for: prompt 1\n- flood: {{stderr: {} KiB}}\n- answer: done"
    assert acp_client.play_script(script.format(192)).ask()[-1] == "0 s: end_turn"
    with pytest.raises(Deadlock, match=r"room in stderr \(descriptor 2\), last at line \d+ \(flood\)"):
        acp_client.play_script(script.format(400)).ask()


@mark_finding("agent-client-protocol", "exits at the end of its stdin", "returns from close at once")
def test_close_ends_an_agent_that_cooperates(acp_client: AcpPy) -> None:
    """No signal."""
    assert acp_client.close_after(COOPERATES) == [(0, "EOF"), (0, "exits 0"), (0, "returns")]


@mark_finding("agent-client-protocol", "ignores the end of its stdin", "sends TERM after exactly 2 s")
def test_close_terminates_after_two_seconds(acp_client: AcpPy) -> None:
    """To the nanosecond."""
    assert acp_client.close_after(IGNORES_EOF) == [(0, "EOF"), (2 * SECOND, "dies of TERM"), (2 * SECOND, "returns")]


@mark_finding("agent-client-protocol", "ignores TERM, too", "sends KILL exactly 2 s later, 4 s in all")
def test_close_kills_after_four_seconds(acp_client: AcpPy) -> None:
    """To the nanosecond."""
    assert acp_client.close_after(IGNORES_ALL) == [
        (0, "EOF"),
        (2 * SECOND, "TERM"),
        (4 * SECOND, "dies of KILL"),
        (4 * SECOND, "returns"),
    ]
