"""Owns the reference: the reference supervisor, with the limits that another supervisor states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.subjects import ReferenceSupervisor

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import LimitsRequest, Policy, Subject


class Reference(ReferenceSupervisor):
    """The reference supervisor with the limits that another supervisor states.

    Args:
        subject: the other one.
    """

    def __init__(self, subject: Subject) -> None:
        super().__init__("reference")
        self._subject = subject

    def policy(self, request: LimitsRequest) -> Policy:
        """Ask the other one."""
        return self._subject.policy(request)
