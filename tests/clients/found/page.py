"""The page of found faults, made of the stored results and of what was read in each package. Runs no package."""

from __future__ import annotations

import json
from pathlib import Path

from tests.clients.found.packages import NEWEST_ON, NOT_JUDGED, PACKAGES

__all__ = ["PAGE", "RESULTS", "read_results", "write_page_text"]

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parents[3] / "docs" / "found.md"
_HEAD = """# What it has found

Faults of public packages that start an agent CLI. Each package is unmodified, in the newest version that its registry
gave on {day}, and is called as its own documentation says. Each fault is one bundled scenario at level `must`.

Tried: {tried} packages. With a fault: {faulty}. Not judged: {skipped}. A package has one row, even if it fails more
scenarios. A row is a fact about one version, and no judgement of a package.

How it was checked: the scenario ran in virtual time with a fake agent. Then the cause was read in the code of the
package, and the last column names the place. Whether the maintainers know was not looked up.

Make the page again with `python -m tests.clients.found`. It installs the packages and needs their registries. The few
lines that call each package are in `tests/clients/found/adapters.py` and `adapters.mjs`. To see a failure whole, judge
your own use of a package as in [judge a program](howto/judge/judge-a-program.md).

## The faults

"""
_TAIL = """
## Tried and not judged

{rows}

```{{include}} ../tests/clients/COMPARISON.md
:heading-offset: 1
:relative-docs: docs/
```
"""


def read_results() -> dict[str, dict[str, str]]:
    """Give the stored rows, by package."""
    return {row["package"]: row for row in json.loads(RESULTS.read_text("utf-8"))}


def write_page_text() -> str:
    """Write the page: a row for each package that failed its scenario."""
    rows, passed = [], []
    found = read_results()
    for package in PACKAGES:
        row = found[package.name]
        name = f"{package.name} {row['version']} ({package.registry})"
        if "check" not in row:
            passed.append(f"- {name}: `{row['scenario']}` passes now")
            continue
        seen = f"`{row['check']}`: expected {row['expected']}, seen {row['seen']}"
        rows.append(f"| {name} | `{row['scenario']}` | {seen} | {package.suffers} | {package.checked} |")
    head = "| package | scenario | verdict: failed | what its user suffers | in its code |\n|---|---|---|---|---|\n"
    skipped = [f"- {name}: {reason}" for name, reason in NOT_JUDGED.items()] + passed
    tried = len(PACKAGES) + len(NOT_JUDGED)
    text = _HEAD.format(day=NEWEST_ON, tried=tried, faulty=len(rows), skipped=len(NOT_JUDGED))
    return text + head + "\n".join(rows) + "\n" + _TAIL.format(rows="\n".join(skipped))
