"""The Python package codex-app-server-client against fakes of `codex app-server`, in real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.findings import mark_finding

if TYPE_CHECKING:
    from tests.clients.running import Client, Programs

pytestmark = pytest.mark.slow


@pytest.fixture
def client(programs: Programs) -> Client:
    """Give the package, and a codex app-server."""
    return programs.python("app_server_client_program.py", "{dialect: codex, mode: app-server}")


@mark_finding("codex-app-server-client", "answers two prompts", "returns both answers, from one process")
def test_two_turns_are_answered_by_one_process(client: Client) -> None:
    """It reads every message of the fake into its own types."""
    run = client("run", "- wait_for: prompt 1\n- answer: one\n- wait_for: prompt 2\n- say: well\n- answer: two")
    assert run.list_values("turn", "text") == ["one", "two"]
    assert run.list_values("turn", "items") == [2, 3]
    assert len(run.ends) == 1


@mark_finding("codex-app-server-client", "is interrupted", "returns the turn as interrupted")
def test_an_interrupt_ends_the_turn(client: Client) -> None:
    """The answer to the interrupt comes with the end of the turn."""
    run = client("interrupt", "- wait_for: prompt 1\n- say: well\n- wait_for: cancel\n- acknowledge: cancel")
    assert (run["turn"]["text"], run["turn"]["status"]) == ("well", "interrupted")
