"""Which decoder reads which dialect. The one list of dialects on the supervisor's side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor.dialects._pi import PiDecoder
from pytest_agentproc.supervisor.dialects._raw import RawDecoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.supervisor.dialects._base import Decoder

__all__ = ["DIALECTS", "decoder"]

_DECODERS: dict[str, Callable[[], Decoder]] = {"raw": RawDecoder, "pi": PiDecoder}
DIALECTS = tuple(_DECODERS)


def decoder(dialect: str) -> Decoder:
    """Make the decoder of a dialect.

    Raises:
        UsageError: the dialect is unknown.
    """
    if dialect not in _DECODERS:
        raise UsageError(f"dialect is {dialect!r}, but must be one of {', '.join(DIALECTS)}")
    return _DECODERS[dialect]()
