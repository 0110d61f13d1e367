"""The bug families of public reports, each with the rules that it breaks. Ids are append-only."""

from __future__ import annotations

BUG_FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "K01": ("lingers after the final result", ("C1",)),
    "K02": ("silent but alive, and killed for it", ("A1", "A6", "A9")),
    "K03": ("hung but noisy", ("A2", "A3", "A8", "P2")),
    "K04": ("a grandchild keeps stdout or stderr open", ("A5", "C4")),
    "K05": ("orphans: servers, launchers, daemons", ("T1", "T6")),
    "K06": ("TERM ignored, escalation broken, signal repeated", ("A4", "P3")),
    "K07": ("a cancel that is not honoured, late events", ("P1", "P5", "P9")),
    "K08": ("stdin deadlock, EPIPE", ("F5",)),
    "K09": ("a flood", ("F4", "F6")),
    "K10": ("framing: split, huge, merged, noisy lines", ("F1", "F2", "F3")),
    "K11": ("dead before or during the handshake", ("P6",)),
    "K12": ("exit code or result lost or contradicting", ("C2", "C3")),
    "K13": ("a background turn in the next one", ("B1", "B2", "B3")),
    "K14": ("waits for an answer that never comes", ("A7", "B4", "P4", "P7")),
    "K15": ("does not end with its stdin or its host", ("P8",)),
    "K16": ("zombies", ("T3",)),
    "K17": ("crash loops, restarts", ("P6",)),
    "K18": ("a signal for the wrong process", ("T2",)),
    "K19": ("ids and answers that fit no question", ("P5", "P9")),
}
"""Each family with the rules that it breaks: a scenario that covers one of these rules is of that family."""
