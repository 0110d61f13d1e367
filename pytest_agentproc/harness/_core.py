"""The kit's own supervisor as it ships, as a value that a play in the model takes. Plays and judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor import Deciders, SessionDeciders

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import LimitsRequest, Policy

__all__ = ["REFERENCE"]


class _Core:
    """The core as it ships."""

    name = "core"
    deciders = Deciders()
    session_deciders = SessionDeciders()

    def policy(self, request: LimitsRequest) -> Policy:
        return self.deciders.policy(request.limits, request.dialect)


REFERENCE = _Core()
