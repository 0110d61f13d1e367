"""How lines are ended and begun: newline style and byte order mark. Knows no dialect."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_agentproc.fake_agents.program import Program

_NEWLINE_BYTES = {"lf": b"\n", "crlf": b"\r\n", "none": b"\n"}


class Lines:
    """Join lines as the scenario's agent ends them; with `none` the last line so far lacks its newline."""

    def __init__(self, program: Program) -> None:
        self._end = _NEWLINE_BYTES[program.get("newline", "lf")]
        self._first = b"\xef\xbb\xbf" if program.get("bom") else b""
        self._is_late = program.get("newline") == "none"
        self._owed = b""
        self._kept: list[bytes] | None = program.get("kept_lines")
        """The lines that the session file is still to hear of; None: there is no such file."""

    def join(self, lines: list[bytes]) -> bytes:
        """Give the bytes of these lines; of none, nothing."""
        if not lines:
            return b""
        if self._kept is not None:
            self._kept += lines
        data = self._first + self._owed + self._end.join(lines)
        self._first = b""
        if not self._is_late:
            return data + self._end
        self._owed = self._end
        return data

    def join_reply(self, lines: list[bytes]) -> bytes:
        """Give the same for a reply: the client waits for its newline."""
        data = self.join(lines)
        if lines:
            data, self._owed = data + self._owed, b""
        return data
