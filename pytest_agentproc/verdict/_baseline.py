"""Owns a subject's known failures: what a list of them makes of rows, and its text after a session. Pure.

A check that is listed and fails is known; a listed check that passes is a failure, so that the list cannot rot. In an
entry without a subject every supervisor but the reference supervisor is meant.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING

from pytest_agentproc.corpus import split_agent
from pytest_agentproc.errors import suggest_known_word
from pytest_agentproc.scenario import read_list_entries
from pytest_agentproc.verdict._rows import CheckRow, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_agentproc.verdict._judgement import JudgedScenario


_VERDICTS_WITHOUT_JUDGEMENT = (Verdict.NOT_APPLICABLE, Verdict.KIT_ERROR)
_REASON_OF_NEW_ENTRIES = "not looked at yet"
_RED_VERDICTS = (Verdict.ADAPTER_ERROR, Verdict.CRASHED, Verdict.FAILED, Verdict.UNDECIDED)
_CHECKS_THAT_APPEAR_UNSTATED = ("outcome", "answer", "unrelated_processes", "leaks")
"""Checks that a scenario has only if they fail, unless its file states them."""


@dataclasses.dataclass(frozen=True, slots=True)
class KnownFailure:
    """One known failure.

    Args:
        scenario: the scenario's id.
        check: the expect key.
        reason: why it is known.
        subject: whose it is; empty: every supervisor's but the reference supervisor's.
        line: where it stands.
    """

    scenario: str
    check: str
    reason: str
    subject: str = ""
    line: int = 0

    def is_about(self, scenario: str, subject: str, *, is_reference: bool) -> bool:
        """Say whether it is about a scenario with a subject."""
        return self.scenario == scenario and (self.subject == subject or (not self.subject and not is_reference))


class Baseline:
    """A list of known failures.

    Args:
        text: the YAML.
        name: the file as messages call it.

    Raises:
        ScenarioError: every mistake of the text, with its place.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._text = text
        found = read_list_entries(text, name, ("scenario", "check", "reason"), ("subject",))
        self.known = tuple(KnownFailure(**entry.values, line=entry.line) for entry in found)

    def list_unknown_scenarios(self, scenarios: Iterable[str]) -> list[str]:
        """Tell, each with its place, which entries name a scenario that there is not."""
        names = tuple(dict.fromkeys(scenarios))
        messages = []
        for entry in self.known:
            if entry.scenario not in names and split_agent(entry.scenario)[0] not in names:
                hint = suggest_known_word(entry.scenario, names, "remove the entry")
                messages.append(f"{self.name}:{entry.line}: there is no scenario {entry.scenario}: {hint}")
        return messages

    def apply_to_rows(
        self, rows: Sequence[CheckRow], scenario: str, subject: str, *, is_reference: bool
    ) -> tuple[CheckRow, ...]:
        """Give rows as they are to be read in the light of the list."""
        mine = {
            entry.check: entry for entry in self.known if entry.is_about(scenario, subject, is_reference=is_reference)
        }
        read = [self._excuse_row(row, mine[row.key]) if row.key in mine else row for row in rows]
        keys = {row.key for row in rows}
        return (*read, *(self._build_absent_row(entry, keys) for entry in mine.values() if entry.check not in keys))

    def _excuse_row(self, row: CheckRow, entry: KnownFailure) -> CheckRow:
        if row.verdict in (*_RED_VERDICTS, Verdict.NOT_EXERCISED):
            return dataclasses.replace(row, verdict=Verdict.KNOWN, hint=entry.reason)
        if row.verdict is Verdict.PASSED:
            return dataclasses.replace(row, verdict=Verdict.FAILED, hint=self._describe_stale_entry(entry))
        return row

    def _build_absent_row(self, entry: KnownFailure, keys: Iterable[str]) -> CheckRow:
        if entry.check in _CHECKS_THAT_APPEAR_UNSTATED:
            return CheckRow(
                entry.check, 0, "a known failure", "none", Verdict.FAILED, self._describe_stale_entry(entry)
            )
        hint = suggest_known_word(entry.check, sorted(keys), f"it has {', '.join(sorted(keys))}")
        hint = f"listed in {self.name}:{entry.line}, but the scenario has no such check: {hint}"
        return CheckRow(entry.check, 0, "a known failure", "no such check", Verdict.FAILED, hint)

    def _describe_stale_entry(self, entry: KnownFailure) -> str:
        return f"listed in {self.name}:{entry.line}, but it passes: remove the entry"

    def format_updated_baseline(
        self, judged: Sequence[JudgedScenario], scenarios: Iterable[str], references: Iterable[str]
    ) -> str:
        """Give the text that lists what failed; entries that stay keep their lines, and the comments before them.

        Args:
            judged: what was judged with all failures accepted; what was not judged stays listed.
            scenarios: the ids of all that there are; entries of others go.
            references: the names of subjects that are the kit's own.
        """
        own = tuple(references)
        names = set(scenarios)
        failed = {
            (result.scenario, result.subject, row.key): result
            for result in judged
            for row in result.rows
            if row.verdict == Verdict.KNOWN
        }
        kept = [entry for entry in self.known if self._is_entry_kept(entry, judged, names, failed, own)]
        covered = {
            key
            for key in failed
            for entry in kept
            if entry.check == key[2] and entry.is_about(*key[:2], is_reference=key[1] in own)
        }
        subjects = {result.subject for result in judged}
        named = len(subjects) > 1 or bool(subjects & {*own})
        new = [
            _format_entry(KnownFailure(scenario, check, _REASON_OF_NEW_ENTRIES, subject if named else ""))
            for scenario, subject, check in sorted(failed)
            if (scenario, subject, check) not in covered
        ]
        return self._cut_to_entries(kept) + "".join(new)

    def _is_entry_kept(
        self,
        entry: KnownFailure,
        judged: Sequence[JudgedScenario],
        names: set[str],
        failed: Iterable[tuple[str, str, str]],
        own: tuple[str, ...],
    ) -> bool:
        if entry.scenario not in names:
            return False
        mine = [
            result
            for result in judged
            if result.verdict not in _VERDICTS_WITHOUT_JUDGEMENT
            and entry.is_about(result.scenario, result.subject, is_reference=result.subject in own)
        ]
        return not mine or any((result.scenario, result.subject, entry.check) in failed for result in mine)

    def _cut_to_entries(self, kept: Sequence[KnownFailure]) -> str:
        """Give the text with the lines of some entries only; anew if entries do not begin lines of their own."""
        lines = self._text.splitlines()
        starts = [entry.line for entry in self.known]
        if any(not lines[start - 1].startswith("-") for start in starts) or len({*starts}) < len(starts):
            return "".join(_format_entry(entry) for entry in kept)
        if not starts:
            return "".join(f"{line}\n" for line in lines if not line.strip() or line.lstrip().startswith("#"))
        begins = [_find_comment_start(lines, start) for start in starts]
        begins[0] = starts[0]
        parts = [lines[: begins[0] - 1]]
        for entry, begin, end in zip(self.known, begins, [*begins[1:], len(lines) + 1], strict=True):
            parts += [lines[begin - 1 : end - 1]] if entry in kept else []
        return "".join(f"{line}\n" for part in parts for line in part)


def _find_comment_start(lines: Sequence[str], start: int) -> int:
    """Give the line at which the comments before an entry begin."""
    while start > 1 and (not lines[start - 2].strip() or lines[start - 2].startswith("#")):
        start -= 1
    return start


def _format_entry(entry: KnownFailure) -> str:
    pairs = [("scenario", entry.scenario), ("check", entry.check), ("subject", entry.subject), ("reason", entry.reason)]
    return "- " + "  ".join(f"{key}: {_quote_unless_plain(value)}\n" for key, value in pairs if value)


def _quote_unless_plain(value: str) -> str:
    is_plain = re.fullmatch(r"[A-Za-z_][\w.-]*( [\w.,;()-]+)*", value)
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def accept_failures(rows: Sequence[CheckRow]) -> tuple[CheckRow, ...]:
    """Give rows with every failure that counts known, as a session has them that writes its list."""
    counted = [row for row in rows if row.level != "info"]
    reds = _RED_VERDICTS if any(row.verdict in _RED_VERDICTS for row in counted) else (Verdict.NOT_EXERCISED,)
    return tuple(
        dataclasses.replace(row, verdict=Verdict.KNOWN, hint="written to the list")
        if row.verdict in reds and row in counted
        else row
        for row in rows
    )
