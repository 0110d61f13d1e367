"""Which decoder reads which dialect. The one list of dialects on the supervisor's side."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor.dialects._acp import AcpTalk
from pytest_agentproc.supervisor.dialects._claude import ClaudePrintDecoder
from pytest_agentproc.supervisor.dialects._claude_talk import ClaudeTalk
from pytest_agentproc.supervisor.dialects._codex import CodexDecoder
from pytest_agentproc.supervisor.dialects._gemini import GeminiJsonDecoder, GeminiStreamDecoder
from pytest_agentproc.supervisor.dialects._pi import PiDecoder
from pytest_agentproc.supervisor.dialects._pi_talk import PiTalk
from pytest_agentproc.supervisor.dialects._raw import RawDecoder
from pytest_agentproc.supervisor.dialects._talk import Setting
from pytest_agentproc.vocabulary import Dialect

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor.dialects._base import Decoder
    from pytest_agentproc.supervisor.dialects._talk import Talk

__all__ = ["DIALECTS", "SESSIONS", "VARIANTS", "decoder", "talk"]

_Maker = TypeVar("_Maker")

_DECODERS: dict[str, dict[str, Callable[[], Decoder]]] = {
    "raw": {"text": RawDecoder},
    "claude": {"print": ClaudePrintDecoder},
    "pi": {"json": PiDecoder},
    "codex": {"exec": CodexDecoder},
    "gemini": {"text": RawDecoder, "json": GeminiJsonDecoder, "stream": GeminiStreamDecoder},
}
_TALKS: dict[str, dict[str, Callable[[Setting], Talk]]] = {
    "pi": {"rpc": PiTalk},
    "acp": {"session": AcpTalk},
    "claude": {"session": ClaudeTalk},
}
DIALECTS = tuple(_DECODERS)
SESSIONS = tuple(_TALKS)
VARIANTS = tuple(f"{name} {mode}" for table in (_DECODERS, _TALKS) for name, modes in table.items() for mode in modes)
"""Each mode of each, as `gemini stream`."""


def decoder(dialect: str | Dialect, mode: str = "") -> Decoder:
    """Make the decoder of a dialect.

    Args:
        dialect: the wire format: a name of the kit's, or of another package's.
        mode: its variant; "" is the dialect's first.

    Raises:
        UsageError: the dialect or the mode is unknown.
    """
    if isinstance(dialect, Dialect):
        made: Decoder = dialect.decoder(mode)
        return made
    return _choose(_DECODERS, dialect, mode, "")()


def talk(dialect: str | Dialect, mode: str = "", setting: Setting | None = None) -> Talk:
    """Make the conversation of a dialect with one agent process.

    Args:
        dialect: the wire format: a name of the kit's, or of another package's.
        mode: its variant; "" is the dialect's only one that holds sessions.
        setting: what it begins with.

    Raises:
        UsageError: the dialect or the mode is unknown, or holds no sessions.
    """
    if isinstance(dialect, Dialect):
        made: Talk = dialect.talk(mode, setting or Setting())
        return made
    return _choose(_TALKS, dialect, mode, " for a session")(setting or Setting())


def _choose(table: dict[str, dict[str, _Maker]], dialect: str, mode: str, what: str) -> _Maker:
    if dialect not in table:
        raise UsageError(f"dialect is {dialect!r}, but must be one of {', '.join(table)}{what}")
    modes = table[dialect]
    if mode and mode not in modes:
        has = ", ".join(name for name in modes if name) or "none"
        raise UsageError(f"mode is {mode!r}, but {dialect} has {has}{what}")
    return modes[mode or next(iter(modes))]
