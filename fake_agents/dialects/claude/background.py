"""The wire format of `claude -p` whose script has background tasks: a conversation of one prompt, without a client.

It stays until its tasks have ended and their turns are over; the script says when. A script without tasks has none of
this.
"""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects.claude import session_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_agentproc.fake_agents.program import Program


class Encoder(session_mode.Encoder):
    """Encode the one prompt's turn, and the background turns after it; init comes with the first event, as ever."""

    error_is_exit = True

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.events = {"begin": self.encode_run_opening, **self.events}
        self._begin_turn([self._prompts.queue_prompt({}, 0)], None)
        self._prompts.waiting.clear()
