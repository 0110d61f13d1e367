"""The log's form: whole entries come back, a cut one does not."""

from __future__ import annotations

from pytest_agentproc.fake_agents import process_log


def test_entries_come_back_as_they_were_written() -> None:
    """In their order, with their instants."""
    written = [(1, ("H", 0, -1, "agent", 0)), (2, ("N", [("o", b"\xff"), ("x", 3)]))]
    data = b"".join(process_log.encode_log_entry(at, message) for at, message in written)
    assert list(process_log.decode_log_entries(data)) == written


def test_an_entry_that_was_cut_off_is_left_out() -> None:
    """Wherever a full disk cut it."""
    whole, last = (
        process_log.encode_log_entry(1, ("N", [])),
        process_log.encode_log_entry(2, ("N", [("m", (1, "say"))])),
    )
    for size in range(len(last)):
        assert list(process_log.decode_log_entries(whole + last[:size])) == [(1, ("N", []))]
