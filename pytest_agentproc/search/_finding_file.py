"""Owns the file of a find: its text closed, what must be true told, how to play it again. Writes to no disk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_agentproc.search._result_expectations import format_expect_lines

if TYPE_CHECKING:
    from pytest_agentproc.search._finding import FailingSetting


_FILE_KEYS_OF_EXPECTATIONS = ("expect", "should", "info", "catches")


def remove_file_keys(text: str, names: tuple[str, ...]) -> str:
    """Leave out keys of the file itself, with all that is under them."""
    kept: list[str] = []
    leaving = False
    for line in text.splitlines():
        head = re.match(r"([a-z_]+):", line)
        if head is not None:
            leaving = head[1] in names
        if not leaving:
            kept.append(line)
    return "\n".join(kept).rstrip("\n") + "\n"


def replace_expectations(text: str, keys: dict[str, Any]) -> str:
    """Give a closed file's text with other expectations."""
    return remove_file_keys(text, _FILE_KEYS_OF_EXPECTATIONS) + "\n".join(format_expect_lines(keys)) + "\n"


def format_failure_scenario(
    find: FailingSetting, *, subject: str, seed: int, run: int, replay: str, is_defect: bool, explored: bool = False
) -> str:
    """Give the text of an ordinary scenario file that plays a find.

    Args:
        find: the find.
        subject: the supervisor's name.
        seed: the seed of the search.
        run: the number of the setting that failed first.
        replay: the command that plays the file against that supervisor.
        is_defect: whether that is a defect of the kit's own. The file then catches it.
        explored: whether the file has no open values, and pieces of it were moved.
    """
    command = "agentproc search --explore" if explored else "agentproc search"
    head = [
        f"# found by {command} --seed {seed} in setting {run}, then made small; supervisor: {subject}",
        f"# {' '.join(find.reason.split())}",
        f"# {replay}",
    ]
    text = remove_file_keys(find.scenario.text, ("catches",)) if is_defect else find.scenario.text
    body = [line for line in text.splitlines() if not line.startswith("#")]
    keys = {
        "leaks",
        *(expectation.key for expectation in find.scenario.expected),
    }  # where time cannot go on, the key may be none of them
    tail = [f"catches: {{{subject}: {find.key}}}"] if is_defect and find.key in keys else []
    return "\n".join([*head, *body, *tail]) + "\n"
