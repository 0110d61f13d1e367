"""From a played scenario to its verdict, and the plain value that is kept of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.verdict._comparison import choose_overall_verdict, judge_all_expectations, list_unmet_checks
from pytest_agentproc.verdict._failure_text import are_plays_alike, find_first_difference
from pytest_agentproc.verdict._rows import CheckRow, Verdict
from pytest_agentproc.vocabulary import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario


REASON_IN_REAL_TIME = "not applicable in real time"
"""How the reason begins where virtual time alone could tell."""


@dataclasses.dataclass(frozen=True, slots=True)
class JudgedCheck:
    """One check as it was judged; see `CheckRow`."""

    key: str
    verdict: str
    expected: str
    seen: str
    level: str = LEVELS[0]
    unstated: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JudgedScenario:
    """One scenario with one subject under one clock on one backend.

    Args:
        scenario: its id. file: the hash of its file's text.
        level: that of the file: `must`, `should` or `info`; each row has its own.
        covers: the rules that it is about.
        subject: the supervisor's name.
        clock: `virtual` or `real`.
        backend: the event loop.
        verdict: the word of a `Verdict`.
        reason: why it is not applicable, known or undecided, if it is.
        digest: that of the record; empty if nothing was played.
        virtual_s: how long it took on the play's clock, in seconds.
        real_s: how long that took on the machine's.
        rows: the checks.
        rerun: the command that runs it again by hand, if it is red.
        out_of_reach: why it was played in real time although virtual time was to be used, if it was.
    """

    scenario: str
    file: str
    level: str
    covers: tuple[str, ...]
    subject: str
    clock: str
    backend: str
    verdict: str
    reason: str = ""
    digest: str = ""
    virtual_s: float = 0.0
    real_s: float = 0.0
    rows: tuple[JudgedCheck, ...] = ()
    rerun: str = ""
    out_of_reach: str = ""

    def to_json_line(self) -> str:
        """Write it as one line of JSON."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)

    @classmethod
    def from_json_fields(cls, fields: Mapping[str, Any]) -> JudgedScenario:
        """Make one of what JSON says of it: a line of a report, or a part of a file of results."""
        rows = tuple(JudgedCheck(**{**row, "unstated": tuple(row["unstated"])}) for row in fields["rows"])
        return cls(**{**fields, "covers": tuple(fields["covers"]), "rows": rows})

    def get_level_verdict(self, level: str) -> Verdict | None:
        """Give the verdict over the checks at one level; None: it has none there."""
        if not self.rows:
            return Verdict(self.verdict) if self.level == level else None
        found = {row.verdict for row in self.rows if row.level == level}
        order = [*(verdict for verdict in Verdict if verdict is not Verdict.NOT_APPLICABLE), Verdict.NOT_APPLICABLE]
        return next((verdict for verdict in order if verdict in found), None)

    @property
    def sort_key(self) -> tuple[str, str, str, str]:
        """By what they are put in order: the scenario, then the rest."""
        return self.scenario, self.subject, self.clock, self.backend


def hash_corpus(judged: Iterable[JudgedScenario]) -> str:
    """Name the scenarios that were judged: one hash over their files, in the order of their ids."""
    return _hash_lines(sorted({f"{result.scenario} {result.file}" for result in judged}))


def compute_results_digest(judged: Iterable[JudgedScenario]) -> str:
    """Name what happened and what was said of it: one digest over records and verdicts, ordered by scenario id."""
    ordered = sorted(judged, key=lambda result: result.sort_key)
    return _hash_lines(
        [
            f"{result.scenario} {result.clock} {result.backend} {result.digest} {result.verdict} "
            + " ".join(f"{row.level}:{row.key}={row.verdict}" for row in result.rows)
            for result in ordered
        ]
    )


def _hash_lines(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


_NANOSECONDS_PER_SECOND = 1_000_000_000
_MAX_FURTHER_PLAYS = 3
"""The plays of a program that may confirm a red one."""


class Judgement(NamedTuple):
    """The result of a scenario.

    Args:
        verdict: over all of it.
        rows: its checks.
        played: what was played; None: nothing was.
        reason: why it is not applicable or known, if it is.
    """

    verdict: Verdict
    rows: tuple[CheckRow, ...] = ()
    played: PlayResult | None = None
    reason: str = ""

    @property
    def is_red(self) -> bool:
        """Whether it fails its test."""
        return self.verdict not in (Verdict.PASSED, Verdict.NOT_APPLICABLE, Verdict.KNOWN)


def judge_play(
    played: PlayResult,
    read: Callable[[tuple[CheckRow, ...]], tuple[CheckRow, ...]] | None = None,
    *,
    is_reference: bool = True,
) -> Judgement:
    """Pass a verdict on what was played.

    Args:
        played: what was played.
        read: gives the rows as they are to be read in the light of what is known; None: as they are.
        is_reference: whether the supervisor is the kit's own. Its own choices (level `info`) bind no other one.
    """
    rows = judge_all_expectations(played)
    rows = rows if read is None else read(rows)
    verdict = choose_overall_verdict(rows, counts_info=is_reference)
    deciding = [row for row in rows if row.verdict is verdict]
    reason = ""
    if verdict is Verdict.NOT_APPLICABLE:
        reason = next((row for row in deciding if row.unstated), deciding[0]).seen
    elif verdict is Verdict.KNOWN:
        reason = "; ".join(f"{row.key}: {row.hint}" for row in deciding)
    return Judgement(verdict, rows, played, reason)


def confirm_red_judgement(first: Judgement, play_again: Callable[[], PlayResult]) -> Judgement:
    """Give a red judgement, if a second play of the same went the same way; else it says nothing of the subject.

    Only the events decide, not the words about them, nor the ids that a client makes by chance. A program runs beside
    its agent, and its threads beside each other. So two plays of it may differ by the order in an instant, or by a race
    of its own. There a red stands if one of its gravest checks fails again in one of three further plays.

    Args:
        first: the judgement.
        play_again: plays the scenario once more.
    """
    assert first.played is not None, "a red judgement is of a play"
    again = play_again()
    if are_plays_alike(first.played, again):
        return first
    hint = f"{_STATEMENT_ABOUT_REPLAYS}, so this red says nothing of the supervisor; {_REQUEST_TO_REPORT_DIFFERENCE}"
    if again.record.header.get("arm") == "preload":
        further = (play_again() for _ in range(_MAX_FURTHER_PLAYS - 1))
        if any(_fails_again(first.played, played) for played in chain([again], further)):
            return first
        hint = (
            f"in {_MAX_FURTHER_PLAYS} further plays nothing of that failed again, so this red says nothing of the "
            f"supervisor; {_REQUEST_TO_REPORT_DIFFERENCE}"
        )
    return _compare_plays("replay", first, again, hint)


def _fails_again(first: PlayResult, again: PlayResult) -> bool:
    """Say whether a play misses one of the gravest checks that an earlier play missed; it may miss others, too.

    A wait that never ends must come again: it alone makes many checks fail, and may be a fault of the kit.
    """
    if first.fault is not None and type(first.fault) is not type(again.fault):
        return False
    plays = [list_unmet_checks(judge_all_expectations(played)) for played in (first, again)]
    level = min((row.level for row in plays[0]), key=LEVELS.index, default="")
    once, then = ({(row.key, row.verdict) for row in rows if row.level == level} for rows in plays)
    return bool(once & then)


def compare_with_repeat(first: Judgement, again: PlayResult) -> Judgement:
    """Give a judgement, whatever it is, if a further play of the same went the same way; else it is a kit error."""
    return _compare_plays("repeat", first, again, f"{_STATEMENT_ABOUT_REPLAYS}; {_REQUEST_TO_REPORT_DIFFERENCE}")


def _compare_plays(key: str, first: Judgement, again: PlayResult, hint: str) -> Judgement:
    assert first.played is not None, "a second play has a first one"
    if first.played.record.digest() == again.record.digest():
        return first
    seen = find_first_difference(first.played, again) or "two records with one timeline and two digests"
    row = CheckRow(key, 0, "the same record", seen, Verdict.KIT_ERROR, hint, first.played.bound.scenario.level)
    return first._replace(verdict=Verdict.KIT_ERROR, rows=(row, *first.rows))


_STATEMENT_ABOUT_REPLAYS = "virtual time plays the same twice"
_REQUEST_TO_REPORT_DIFFERENCE = (
    "if its own choices are neither random nor depend on real time, threads or an order of sets, please report it"
)


def build_judged_scenario(
    judgement: Judgement,
    scenario: Scenario,
    *,
    subject: str,
    clock: str,
    backend: str,
    real: float,
    rerun: str = "",
) -> JudgedScenario:
    """Build the part of a judgement that goes over a wire and into a file.

    Args:
        judgement: what came of the scenario.
        scenario: which.
        subject: the supervisor's name.
        clock: `virtual` or `real`.
        backend: the event loop.
        real: how many seconds it took in real time.
        rerun: the command that runs it again by hand.
    """
    played = judgement.played
    events = played.record.events if played is not None else []
    header = played.record.header if played is not None else {}
    return JudgedScenario(
        scenario=scenario.id,
        file=hashlib.sha256(scenario.text.encode()).hexdigest(),
        level=scenario.level if played is None else played.bound.scenario.level,
        covers=scenario.covers,
        subject=subject,
        clock="real" if header.get("clock") == "real" else clock,
        backend=backend,
        verdict=str(judgement.verdict),
        reason=judgement.reason,
        digest=played.record.digest() if played is not None else "",
        virtual_s=(events[-1].at if events else 0) / _NANOSECONDS_PER_SECOND,
        real_s=round(real, 6),
        rows=tuple(
            JudgedCheck(row.key, str(row.verdict), row.wanted, row.seen, row.level, row.unstated)
            for row in judgement.rows
        ),
        rerun=rerun if judgement.is_red else "",
        out_of_reach=str(header.get("out_of_reach", "")),
    )
