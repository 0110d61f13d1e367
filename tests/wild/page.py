"""The page of bugs from the wild, made of the table of cases and the stored results. Plays nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.wild.cases import CASES, NOT_PLAYED, OWN_SCENARIOS

if TYPE_CHECKING:
    from tests.wild.cases import Case

__all__ = ["PAGE", "RESULTS", "is_reproduced", "read_results", "write_page_text"]

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "bugs-from-the-wild.md"
_HEAD = """# Bugs from the wild

Each row is a real bug of a public program that starts an agent CLI. The program itself ran, at the last commit before
its fix and at the commit of the fix. Each ran one scenario with a fake agent in virtual time. A row counts as
reproduced if the check that the report is about fails before the fix, and holds after it.

| | rows |
|---|---|
| reproduced by a bundled scenario | {bundled} |
| reproduced by a scenario that was written from the report | {written} |
| not reproduced | {failed} |
| not played | {skipped} |

The rows come from {repositories} repositories. A row is a fact about two commits, and no judgement of a program.

## The bugs

| program | commits | what the fix says | scenario | before | after |
|---|---|---|---|---|---|
"""
_TAIL = """
A written scenario is a file in `tests/wild` or `tests/clients/programs`. The column "before" has the check that the
report is about. The column "after" names another check if that one fails: the commit did not fix it.

{notes}
## Not reproduced

These cases were played, and the check that the report is about did not fail before the fix, or failed after it, too.

{failed}
## Not played

{skipped}
## What this has changed in the kit

- Four bundled scenarios print a result of claude by hand. They left out the durations and the cost, which claude always
  prints. claude-agent-sdk-python at 24295417 failed them for that reason alone. They have these fields now.
- The fake pi listed no models, so pi-acp took it for a pi that is not logged in. It lists the model that it speaks
  with.

These gaps are left:

- No bundled scenario of one run suits a program that gives its prompt by `--input-format stream-json`. Such a program
  needs a front that speaks ACP, as `acp_front.py` and `acp_front.mjs` in `tests/wild/drivers` do.
- A program that cannot start its agent at all, because the prompt is too long for a command line, counts as an adapter
  error. It should be a failed check.
- No bundled scenario has a line of more than 64 KiB with blanks at the cuts. None has a claude that prints nothing for
  minutes in a session, for a program that states no limit. These are written scenarios here.

## Make this page again

```text
git clone --bare https://github.com/OWNER/NAME FOLDER/OWNER+NAME
python -m tests.wild --sources FOLDER
```

The command takes each commit from these repositories, installs what it needs from PyPI or npm, and plays. A repository
that is not in the folder keeps its stored result. The drivers in `tests/wild/drivers` call each program as its own
documentation says. No code of these programs is in this repository, and no test needs them.
"""


def read_results() -> dict[str, dict[str, dict[str, str]]]:
    """Give the stored results, by case."""
    return json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}


def is_reproduced(case: Case, result: dict[str, dict[str, str]]) -> bool:
    """Tell whether the check that the report is about failed before the fix, and held after it."""
    before = result["before"]
    is_red = before.get("check") == case.key and "verdict" not in before
    return is_red and result["after"].get("check") != case.key


def write_page_text() -> str:
    """Write the page."""
    results = read_results()
    good = [case for case in CASES if is_reproduced(case, results[case.name])]
    bad = [case for case in CASES if case not in good]
    written = [case for case in good if case.scenario in OWN_SCENARIOS]
    figures = {
        "bundled": len(good) - len(written),
        "written": len(written),
        "failed": len(bad),
        "skipped": len(NOT_PLAYED),
        "repositories": len({case.program.repository for case in CASES}),
    }
    notes = "".join(f"- {_name(case)}: {case.note}\n" for case in good if case.note)
    parts = {
        "notes": f"## Notes\n\n{notes}" if notes else "",
        "failed": _write_table(bad, results) + "".join(f"\n{_name(case)}: {case.note}\n" for case in bad),
        "skipped": "".join(f"- {repository} {commit}: {reason}\n" for repository, commit, reason in NOT_PLAYED),
    }
    rows = "".join(_write_row(case, results[case.name]) for case in good)
    return _HEAD.format(**figures) + rows + _TAIL.format(**parts)


def _write_table(cases: list[Case], results: dict[str, dict[str, dict[str, str]]]) -> str:
    head = "| program | commits | what the fix says | scenario | before | after |\n|---|---|---|---|---|---|\n"
    return head + "".join(_write_row(case, results[case.name]) for case in cases)


def _name(case: Case) -> str:
    return f"{case.program.repository} {case.after}"


def _write_row(case: Case, result: dict[str, dict[str, str]]) -> str:
    link = f"https://github.com/{case.program.repository}"
    commits = ", ".join(f"[{commit}]({link}/commit/{commit})" for commit in (case.before, case.after))
    kind = "written" if case.scenario in OWN_SCENARIOS else "bundled"
    before, after = (_write_verdict(result[when]) for when in ("before", "after"))
    program = f"[{case.program.repository}]({link})"
    return f"| {program} | {commits} | {case.says} | `{case.scenario}`, {kind} | {before} | {after} |\n"


def _write_verdict(played: dict[str, str]) -> str:
    seconds = f"{played['seconds']} s" if played["clock"] == "virtual" else "in real time"
    if "check" not in played:
        return f"passes, {seconds}"
    verdict = f"{played['verdict']}: " if "verdict" in played else ""
    return f"{verdict}`{played['check']}`: expected {played['expected']}, seen {played['seen']}; {seconds}"
