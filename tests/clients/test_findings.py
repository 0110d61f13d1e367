"""The page of findings equals the statements of the tests. Runs no client."""

from __future__ import annotations

from tests.clients.findings import PAGE, write_page_text


def test_the_page_is_what_the_tests_say() -> None:
    """Write it again with `python -m tests.clients.findings`."""
    assert PAGE.read_text("utf-8") == write_page_text()
