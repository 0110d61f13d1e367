"""The reference supervisor as a subject. Owns the translation; knows no fake."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_agentproc.subjects._reference_sessions import SessionGroup
from pytest_agentproc.supervisor import Deciders, FolderStore, SessionDeciders, run_once

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.vocabulary import LimitsRequest, Policy, RunReport, RunRequest


class ReferenceSupervisor:
    """The reference supervisor, as it ships or with judgements replaced.

    Args:
        name: what the verdict calls it.
        deciders: the judgements of a run.
        session_deciders: those of a session.
    """

    keeps_artifacts = True
    holds_sessions = True
    cancellable = True

    def __init__(
        self, name: str = "reference", deciders: Deciders | None = None, session_deciders: SessionDeciders | None = None
    ) -> None:
        self.name = name
        self.deciders = deciders or Deciders()
        self.session_deciders = session_deciders or SessionDeciders()

    def policy(self, request: LimitsRequest) -> Policy:
        """Keep the limits of the dialect, but for those of the request; see `Deciders`."""
        return self.deciders.build_policy(request.limits, request.dialect)

    async def run(self, order: RunRequest) -> RunReport:
        """Run the agent once, or hold a session with it, or one with each of several."""
        if order.drive or order.sessions:
            return await SessionGroup(order, self.session_deciders).run()
        folder = _FullDiskFolder if order.disk == "full" else FolderStore
        result = await run_once(
            order.argv,
            dialect=order.contributed or order.dialect,
            mode=order.mode,
            prompt=order.prompt if order.prompt_by == "stdin" else "",
            policy=order.policy,
            cwd=order.cwd,
            env=order.env,
            artifacts=None if order.artifacts is None else folder(order.artifacts),
            model=order.model,
            clock=order.clock,
            deciders=self.deciders,
            trace=order.trace,
        )
        return result.to_report()


def reference_supervisor() -> ReferenceSupervisor:
    """Give the reference supervisor as it ships."""
    return ReferenceSupervisor()


class _FullDiskFolder(FolderStore):
    """A directory in which files can be made, and nothing can be written to them.

    The reference supervisor writes under names that no test can know before, so no writable directory can be full for
    it. Files are made and renamed for real, and written bytes meet the kernel's own "no space left" at /dev/full.
    """

    def create_file(self, path: Path) -> int:
        """Make the file, and give a descriptor that takes no byte."""
        os.close(super().create_file(path))
        return os.open("/dev/full", os.O_WRONLY)
