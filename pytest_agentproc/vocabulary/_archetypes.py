"""The fault archetypes of public bug reports, each with the rules that it breaks. Ids are append-only."""

from __future__ import annotations

__all__ = ["ARCHETYPES"]

ARCHETYPES: dict[str, tuple[str, tuple[str, ...]]] = {
    "F01": ("lingers after the final result", ("C1",)),
    "F02": ("silent but alive, and killed for it", ("A1", "A6", "A9")),
    "F03": ("hung but noisy", ("A2", "A3", "A8", "P2")),
    "F04": ("a grandchild keeps stdout or stderr open", ("A5", "C4")),
    "F05": ("orphans: servers, launchers, daemons", ("T1", "T6")),
    "F06": ("TERM ignored, ladder broken, signal repeated", ("A4", "P3")),
    "F07": ("a cancel that is not honoured, late events", ("P1", "P5", "P9")),
    "F08": ("stdin deadlock, EPIPE", ("F5",)),
    "F09": ("a flood", ("F4", "F6")),
    "F10": ("framing: split, huge, merged, noisy lines", ("F1", "F2", "F3")),
    "F11": ("dead before or during the handshake", ("P6",)),
    "F12": ("exit code or result lost or contradicting", ("C2", "C3")),
    "F13": ("a background turn in the next one", ("B1", "B2", "B3")),
    "F14": ("waits for an answer that nobody gives", ("A7", "B4", "P4", "P7")),
    "F15": ("does not end with its stdin or its host", ("P8",)),
    "F16": ("zombies", ("T3",)),
    "F18": ("a signal for the wrong process", ("T2",)),
}
"""What each is, and the rules that it breaks: a scenario that covers one of those is of that archetype."""
