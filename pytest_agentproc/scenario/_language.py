"""Owns what scenarios may speak of: the table of steps, and the dialects that other packages add. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.scenario._added import AddedDialect
    from pytest_agentproc.scenario._script import Table

__all__ = ["SESSIONS", "Language"]

SESSIONS = (("claude", "session"), ("pi", "rpc"), ("acp", "session"))
"""Every dialect of the kit, and mode, that hears requests while it lives."""


@dataclass(frozen=True, slots=True)
class Language:
    """The language as the kit has it, or with what other packages add; never changed, only made anew.

    Args:
        steps: every step by its name.
        dialects: those of other packages, by name.
    """

    steps: Table
    dialects: Mapping[str, AddedDialect] = field(default_factory=dict)

    @property
    def sessions(self) -> tuple[tuple[str, str], ...]:
        """Every dialect and mode that hears requests while it lives."""
        added = [(name, mode) for name, one in self.dialects.items() for mode in one.dialect.talks]
        return (*SESSIONS, *added)

    def holds_session(self, dialect: str, mode: str) -> bool:
        """Say whether agents of a dialect, in a mode, live on from prompt to prompt."""
        return (dialect, mode) in SESSIONS or (dialect in self.dialects and (dialect, mode) in self.sessions)
