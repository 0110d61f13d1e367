"""Which decoder reads which dialect. The one list of dialects on the supervisor's side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor.dialects._claude import ClaudePrintDecoder
from pytest_agentproc.supervisor.dialects._codex import CodexDecoder
from pytest_agentproc.supervisor.dialects._gemini import GeminiJsonDecoder, GeminiStreamDecoder
from pytest_agentproc.supervisor.dialects._pi import PiDecoder
from pytest_agentproc.supervisor.dialects._raw import RawDecoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor.dialects._base import Decoder

__all__ = ["DIALECTS", "decoder"]

_DECODERS: dict[str, dict[str, Callable[[], Decoder]]] = {
    "raw": {"text": RawDecoder},
    "claude": {"print": ClaudePrintDecoder},
    "pi": {"json": PiDecoder},
    "codex": {"exec": CodexDecoder},
    "gemini": {"text": RawDecoder, "json": GeminiJsonDecoder, "stream": GeminiStreamDecoder},
}
DIALECTS = tuple(_DECODERS)


def decoder(dialect: str, mode: str = "") -> Decoder:
    """Make the decoder of a dialect.

    Args:
        dialect: the wire format.
        mode: its variant; "" is the dialect's first.

    Raises:
        UsageError: the dialect or the mode is unknown.
    """
    if dialect not in _DECODERS:
        raise UsageError(f"dialect is {dialect!r}, but must be one of {', '.join(DIALECTS)}")
    modes = _DECODERS[dialect]
    if mode and mode not in modes:
        raise UsageError(f"mode is {mode!r}, but {dialect} has {', '.join(modes)}")
    return modes[mode or next(iter(modes))]()
