"""The signals that scenarios and records name, with Linux's numbers. Knows no sender of them."""

from __future__ import annotations

__all__ = ["FIRST_SIGNALS", "SIGNALS"]

SIGNALS = {
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

FIRST_SIGNALS = ("TERM", "INT", "HUP")
"""The signals with which a supervisor may begin to end an agent: a program can catch them, and most die of them."""
