"""Which decoder or conversation reads which dialect: its record says it, and the one that is used is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.errors import UsageError
from pytest_agentproc.supervisor.dialects._session_protocol import Setting
from pytest_agentproc.vocabulary import DIALECTS, Dialect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_agentproc.supervisor.dialects._meanings import Decoder
    from pytest_agentproc.supervisor.dialects._session_protocol import SessionProtocol


RUN_DIALECT_NAMES = tuple(name for name, record in DIALECTS.items() if record.decoders)
SESSION_DIALECT_NAMES = tuple(name for name, record in DIALECTS.items() if record.session_protocols)
DIALECT_AND_MODE_NAMES = tuple(f"{name} {mode}" for name, record in DIALECTS.items() for mode in record.modes)
"""Each mode of each, as `gemini stream`."""


def make_decoder(dialect: str | Dialect, mode: str = "") -> Decoder:
    """Make the decoder of a dialect.

    Args:
        dialect: the wire format: a name of the kit's, or of another package's.
        mode: its variant; "" is the dialect's first.

    Raises:
        UsageError: the dialect or the mode is unknown.
    """
    decoder: Decoder = _find_dialect(dialect, RUN_DIALECT_NAMES, "").make_decoder(mode)
    return decoder


def make_session_protocol(dialect: str | Dialect, mode: str = "", setting: Setting | None = None) -> SessionProtocol:
    """Make the conversation of a dialect with one agent process.

    Args:
        dialect: the wire format: a name of the kit's, or of another package's.
        mode: its variant; "" is the dialect's only one that holds sessions.
        setting: what it begins with.

    Raises:
        UsageError: the dialect or the mode is unknown, or holds no sessions.
    """
    protocol: SessionProtocol = _find_dialect(dialect, SESSION_DIALECT_NAMES, " for a session").make_session_protocol(
        mode, setting or Setting()
    )
    return protocol


def _find_dialect(dialect: str | Dialect, names: Iterable[str], what: str) -> Dialect:
    if isinstance(dialect, Dialect):
        return dialect
    if dialect not in names:
        raise UsageError(f"dialect is {dialect!r}, but must be one of {', '.join(names)}{what}")
    return DIALECTS[dialect]
