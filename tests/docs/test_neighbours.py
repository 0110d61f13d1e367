"""The page of the neighbours names what the table names: no plugin, release, option or exception is missing."""

from __future__ import annotations

from tests.neighbours.table import PAGE, expect_results, write_page_text


def test_the_page_is_what_the_table_says() -> None:
    """Mended by `python -m tests.neighbours.table`; `pytest tests/neighbours` proves that the numbers are true."""
    assert PAGE.read_text("utf-8") == write_page_text(expect_results())
