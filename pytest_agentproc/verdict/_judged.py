"""Owns what is kept of one judged play: a value of plain parts, which goes over a wire and into a file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import TYPE_CHECKING

from pytest_agentproc.verdict._rows import Verdict
from pytest_agentproc.vocabulary import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NOT_IN_REAL_TIME", "Judged", "JudgedRow", "corpus_hash", "digest_of"]

NOT_IN_REAL_TIME = "not applicable in real time"
"""How the reason begins where virtual time alone could tell."""


@dataclasses.dataclass(frozen=True, slots=True)
class JudgedRow:
    """One check as it was judged; see `Row`."""

    key: str
    verdict: str
    expected: str
    seen: str
    level: str = LEVELS[0]
    unstated: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One scenario with one subject under one clock on one backend.

    Args:
        scenario: its id.
        file: the hash of its file's text.
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
    rows: tuple[JudgedRow, ...] = ()
    rerun: str = ""

    def line(self) -> str:
        """Write it as one line of JSON."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False)

    @classmethod
    def of_line(cls, line: str) -> Judged:
        """Read what `line` wrote."""
        fields = json.loads(line)
        rows = tuple(JudgedRow(**{**row, "unstated": tuple(row["unstated"])}) for row in fields.pop("rows"))
        return cls(**{**fields, "covers": tuple(fields["covers"]), "rows": rows})

    def at(self, level: str) -> Verdict | None:
        """Give the verdict over the checks at one level; None: it has none there."""
        if not self.rows:
            return Verdict(self.verdict) if self.level == level else None
        found = {row.verdict for row in self.rows if row.level == level}
        order = [*(one for one in Verdict if one is not Verdict.NOT_APPLICABLE), Verdict.NOT_APPLICABLE]
        return next((verdict for verdict in order if verdict in found), None)

    @property
    def place(self) -> tuple[str, str, str, str]:
        """By what they are put in order: the scenario, then the rest."""
        return self.scenario, self.subject, self.clock, self.backend


def corpus_hash(judged: Iterable[Judged]) -> str:
    """Name the scenarios that were judged: one hash over their files, in the order of their ids."""
    return _hash(sorted({f"{one.scenario} {one.file}" for one in judged}))


def digest_of(judged: Iterable[Judged]) -> str:
    """Name what happened and what was said of it: one digest over records and verdicts, ordered by scenario id."""
    ordered = sorted(judged, key=lambda one: one.place)
    return _hash(
        [
            f"{one.scenario} {one.clock} {one.backend} {one.digest} {one.verdict} "
            + " ".join(f"{row.level}:{row.key}={row.verdict}" for row in one.rows)
            for one in ordered
        ]
    )


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
