"""The signals that scenarios and records name, with Linux's numbers. Knows no sender of them."""

from __future__ import annotations

import signal

SIGNAL_NUMBER_BY_NAME = {
    "HUP": 1,
    "INT": 2,
    "QUIT": 3,
    "ABRT": 6,
    "KILL": 9,
    "USR1": 10,
    "SEGV": 11,
    "USR2": 12,
    "PIPE": 13,
    "ALRM": 14,
    "TERM": 15,
}

SIGNALS_THAT_BEGIN_ENDING = ("TERM", "INT", "HUP")
"""The signals with which a supervisor may begin to end an agent: a program can catch them, and most die of them."""

_PREFIX_OF_UNNAMED_SIGNALS = "signal "


def format_signal_name(number: int) -> str:
    """Give a signal's name as scenarios write it: TERM, not SIGTERM; a realtime one has a number only."""
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return f"{_PREFIX_OF_UNNAMED_SIGNALS}{number}"


def parse_signal_name(name: str) -> int:
    """Give the number of a signal that `format_signal_name` named."""
    number = name.removeprefix(_PREFIX_OF_UNNAMED_SIGNALS)
    return int(signal.Signals[f"SIG{name}"] if number == name else number)
