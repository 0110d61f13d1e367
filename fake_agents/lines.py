"""How lines are ended and begun: newline style and byte order mark. Knows no dialect."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_agentproc.fake_agents.program import Program

_ENDS = {"lf": b"\n", "crlf": b"\r\n", "none": b"\n"}


class Lines:
    """Join lines as the scenario's agent ends them; with `none` the last line so far always lacks its newline."""

    def __init__(self, program: Program) -> None:
        self._end = _ENDS[program.get("newline", "lf")]
        self._first = b"\xef\xbb\xbf" if program.get("bom") else b""
        self._open = program.get("newline") == "none"
        self._begun = False

    def join(self, lines: list[bytes]) -> bytes:
        """Give the bytes of these lines; of none, nothing."""
        if not lines:
            return b""
        data = self._end.join(lines)
        data = (self._end if self._begun else b"") + data if self._open else data + self._end
        if not self._begun:
            self._begun = True
            data = self._first + data
        return data
