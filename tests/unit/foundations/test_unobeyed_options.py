"""Each option that a fake takes and does not obey has its name and its words in the table of its dialect."""

from __future__ import annotations

import pytest

from pytest_agentproc.vocabulary import DIALECTS, explain_unobeyed_options

DIALECTS_WITH_OPTIONS = [name for name, record in DIALECTS.items() if record.command_line is not None]


@pytest.mark.parametrize("name", DIALECTS_WITH_OPTIONS)
def test_an_unobeyed_option_is_one_that_the_cli_takes(name: str) -> None:
    """It stands by the name under which the fake finds it."""
    table = DIALECTS[name].command_line
    assert table is not None
    known = {long for options in table.to_plain_table()["options"].values() for long, *_ in options.values()}
    assert [each.option for each in table.unobeyed if each.option not in known] == []
    assert all(explain_unobeyed_options(name, [each.option]) for each in table.unobeyed)


def test_nothing_is_known_of_other_options_and_dialects() -> None:
    """A dialect of another package has no table here."""
    assert explain_unobeyed_options("codex", ["--json"]) == []
    assert explain_unobeyed_options("toy", ["--cd"]) == []
