"""Wrong judgements of a session's status and of its viewers' events, each wrong in one way. Pure."""

from __future__ import annotations

from pytest_agentproc.supervisor import Status, StatusRules, Transcript


class ZombieStanding(StatusRules):
    """Calls a session ready that has no agent, once it had one (P1)."""

    def judge(self, *, is_closing: bool, has_failed: bool, is_asking: bool, is_able: bool, had_agent: bool) -> Status:
        """Look at no process."""
        return super().judge(
            is_closing=is_closing,
            has_failed=has_failed,
            is_asking=is_asking,
            is_able=is_able or had_agent,
            had_agent=had_agent,
        )


class ForgetfulTranscript(Transcript):
    """Shows a viewer that attaches nothing of what was before (P4)."""

    def begin(self) -> int:
        """Begin at the end."""
        return self.total
