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


def main(paths: list[str]) -> int:
    """Refresh the pages that are named, or print the tables; return the exit code: 2 if there is no place for them."""
    for name in paths:
        page = Path(name)
        try:
            text = page.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            sys.stderr.write(f"{name} cannot be read: {error}\nname a page of text\n")
            return 2
        if BEGIN not in text or END not in text.partition(BEGIN)[2]:
            sys.stderr.write(f"{name} has no place for the tables, and stays as it is\nwrite into it:\n{BEGIN}{END}")
            return 2
        page.write_text(refresh(text), "utf-8")
    if not paths:
        sys.stdout.write(reference())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
