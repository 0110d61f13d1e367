"""Makes the page of the neighbours from the table and from what is measured: `python -m tests.neighbours.table`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.architecture.sources import ROOT
from tests.neighbours.environments import NEWEST, OLDEST
from tests.neighbours.measuring import TESTS, measure
from tests.neighbours.plugins import NEIGHBOURS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.neighbours.plugins import Neighbour

__all__ = ["PAGE", "expect_results", "write_page_text"]

PAGE = ROOT / "docs" / "reference" / "neighbours.md"
_HEAD = f"""# Beside other plugins

The kit is tested beside the most used plugins of pytest. Each plugin is at work, as its users have it. Then {TESTS}
tests run: in real time, async and plain functions in virtual time, a fake on PATH, scenarios, a program as supervisor,
a test that leaves a process, Ctrl-C, and others. The same tests run without the plugin. pytest must end with the same
exit code.

The numbers say how many of the {TESTS} tests have the same outcome. With the oldest pytest, a plugin has the newest
release that works there. This page is made by `python -m tests.neighbours.table`.

| plugin | release | options and ini | pytest {NEWEST} | pytest {OLDEST} |
|---|---|---|---|---|
"""
_EXCEPTIONS = """
## What you write

A test shows that each line is true: what you see, and that it helps to write this.

| plugin | what you see | why | what you write |
|---|---|---|---|
"""

_Results = dict[tuple[str, str], int]
"""How many tests have the same outcome, by plugin and release of pytest."""


def expect_results() -> _Results:
    """Give the results that `tests/neighbours` demands."""
    return {(neighbour.name, version): TESTS for neighbour in NEIGHBOURS for version in (NEWEST, OLDEST)}


def write_page_text(results: Mapping[tuple[str, str], int]) -> str:
    """Write the page.

    Args:
        results: how many tests have the same outcome, by plugin and release of pytest.
    """
    rows = [
        f"| {neighbour.name} | {_format_releases(neighbour)} | {_format_options(neighbour)} "
        f"| {results[neighbour.name, NEWEST]} | {results[neighbour.name, OLDEST]} |"
        for neighbour in NEIGHBOURS
    ]
    exceptions = [
        f"| {neighbour.name} | {difference.what} | {difference.why} | {difference.write} |"
        for neighbour in NEIGHBOURS
        for difference in neighbour.differences
    ]
    return "\n".join([_HEAD + "\n".join(rows), _EXCEPTIONS + "\n".join(exceptions), ""])


def _format_releases(neighbour: Neighbour) -> str:
    old = neighbour.old_release
    return f"{neighbour.release}; {old} with pytest {OLDEST}" if old else neighbour.release


def _format_options(neighbour: Neighbour) -> str:
    lines = " ".join(line.strip() for line in neighbour.ini.splitlines())
    return " ".join(f"`{text}`" for text in [" ".join(neighbour.options), lines] if text)


def _measure_all() -> Iterator[tuple[tuple[str, str], int]]:
    for version in (NEWEST, OLDEST):
        for neighbour in NEIGHBOURS:
            found = measure(version, neighbour)
            for line in found.wrong:
                sys.stderr.write(f"{neighbour.name}, pytest {version}: {line}\n")
            yield (neighbour.name, version), found.equal


def main() -> None:
    """Measure, and write the page."""
    PAGE.write_text(write_page_text(dict(_measure_all())), "utf-8")


if __name__ == "__main__":
    main()
