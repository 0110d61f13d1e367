"""Owns the command that writes the reference's tables. Refuses to check scenarios: that is `agentproc check`."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_agentproc.scenario import reference

BEGIN, END = "<!-- tables: python -m pytest_agentproc.scenario scenarios/README.md -->\n", "<!-- end of tables -->\n"


def refresh(text: str) -> str:
    """Put the current tables between the two marks of a page."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


def main(paths: list[str]) -> None:
    """Refresh the pages that are named, or print the tables."""
    for name in paths:
        page = Path(name)
        page.write_text(refresh(page.read_text("utf-8")), "utf-8")
    if not paths:
        sys.stdout.write(reference())


if __name__ == "__main__":
    main(sys.argv[1:])
