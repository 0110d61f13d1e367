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

SIGNAL_TEXTS = {
    "HUP": "The terminal of the process was closed. A process can catch it, and dies of it otherwise.",
    "INT": "The user pressed Ctrl-C. A process can catch it, and dies of it otherwise.",
    "QUIT": "The user pressed Ctrl-\\. A process can catch it, and dies of it otherwise.",
    "ABRT": "The process ended itself because of a fault, as abort() does.",
    "KILL": "The process is ended at once. No process can catch or ignore it.",
    "USR1": "It has the meaning that the program gives it. A process that does not catch it dies of it.",
    "SEGV": "The process read or wrote memory that it does not have: it crashed.",
    "USR2": "It has the meaning that the program gives it. A process that does not catch it dies of it.",
    "PIPE": "The process wrote to a pipe that no process reads any more.",
    "ALRM": "A timer of the process ran out. A process that does not catch it dies of it.",
    "TERM": "The process is asked to end. It can catch the signal, ignore it, and end later.",
    "STOP": "The process is suspended until CONT. No process can catch or ignore it.",
    "CONT": "The suspended process goes on.",
    "WINCH": "The window of the terminal has another size. A process that does not catch it ignores it.",
}
"""Every signal that a scenario can name, and what it means to the process that gets it."""

SIGNALS_THAT_BEGIN_ENDING = ("TERM", "INT", "HUP")
"""The signals with which a supervisor may begin to end an agent: a program can catch them, and most die of them."""

_PREFIX_OF_UNNAMED_SIGNALS = "signal "


def format_signal_name(number: int) -> str:
    """Give a signal's name as scenarios write it: TERM, not SIGTERM; a realtime one has a number only."""
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return f"{_PREFIX_OF_UNNAMED_SIGNALS}{number}"


def split_exit_status(status: int | None) -> tuple[int | None, str, bool]:
    """Give the code, the signal, and whether nobody knows, of a code or minus a signal's number."""
    if status is None:
        return None, "", True
    return (status, "", False) if status >= 0 else (None, format_signal_name(-status), False)


def parse_signal_name(name: str) -> int:
    """Give the number of a signal that `format_signal_name` named."""
    number = name.removeprefix(_PREFIX_OF_UNNAMED_SIGNALS)
    return int(signal.Signals[f"SIG{name}"] if number == name else number)
