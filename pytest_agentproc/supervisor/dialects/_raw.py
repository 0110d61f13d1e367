"""The raw dialect: every line is text, the exit is the completion. Knows no other dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.supervisor.dialects._meanings import Line

if TYPE_CHECKING:
    from pytest_agentproc.supervisor.dialects._meanings import Meaning


class RawDecoder:
    """Read plain output."""

    has_completion = False
    limit: int | None = None

    def decode(self, line: bytes) -> list[Meaning]:
        """Take a line for text; what is not UTF-8 shows as replacement characters."""
        return self.decode_all([line])

    def decode_all(self, lines: list[bytes]) -> list[Meaning]:
        """Take lines for text, as many as came together: LF is never a part of a character, so none is changed."""
        return [Line(b"\n".join(lines).decode(errors="replace"))] if lines else []

    def end(self, stderr: bytes) -> list[Meaning]:
        """Say nothing: every line is complete in itself."""
        return []
