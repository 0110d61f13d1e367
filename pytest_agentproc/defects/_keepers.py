"""Keepers of artifacts that get them wrong, each in one way. They know no disk, as the right one does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_agentproc.supervisor import Artifacts
from pytest_agentproc.vocabulary import Outcome

if TYPE_CHECKING:
    from pytest_agentproc.supervisor import Result

__all__ = [
    "DecodingArtifacts",
    "FatalArtifacts",
    "ForgetfulArtifacts",
    "SilentArtifacts",
    "StartedArtifacts",
]


class FatalArtifacts(Artifacts):
    """Fails a run whose artifacts could not be written (C3)."""

    def amend(self, result: Result) -> Result:
        """Take the disk's error for the run's."""
        amended = super().amend(result)
        return replace(amended, outcome=Outcome.FAILED, exit_code=1) if self.unwritten else amended


class SilentArtifacts(Artifacts):
    """Tells nobody that an artifact could not be written (C3)."""

    def amend(self, result: Result) -> Result:
        """Warn of nothing."""
        return result


class ForgetfulArtifacts(Artifacts):
    """Writes what an agent reported only if it exited by itself (C3)."""

    def fields(self, result: Result) -> dict[str, Any]:
        """Know nothing of an agent that was forced to exit."""
        lost = replace(result, text=None, stop_reason=None, model=None, usage=None)
        return super().fields(lost if result.forced else result)


class StartedArtifacts(Artifacts):
    """Writes a result for an agent that was started, and for no other (C3)."""

    def tell(self, result: Result) -> None:
        """Skip what never ran."""
        if result.outcome is not Outcome.SPAWN_FAILED:
            super().tell(result)


class DecodingArtifacts(Artifacts):
    """Keeps text where bytes came (C3)."""

    def write(self, name: str, data: bytes) -> None:
        """Replace what is no UTF-8."""
        super().write(name, data.decode(errors="replace").encode())
