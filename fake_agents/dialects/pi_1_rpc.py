"""The wire format of `pi --mode rpc` 1.x, where it differs from that of 0.73: a prompt is said to start or to wait."""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects import pi_1, pi_rpc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Encoder(pi_1.Forms, pi_rpc.Encoder):
    """Encode a conversation: one run of the agent for each prompt."""

    abort_errors = ("Request was aborted", "This operation was aborted")

    def _encode_receipt(self, command: dict[str, Any], kind: str, disposition: str) -> bytes:
        return pi_rpc.encode_command_response(command, kind, more={"data": {"disposition": disposition}})
