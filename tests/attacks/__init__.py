"""Attacks on the kit: random faults, spoiled files, hostile agents and secrets. Each is bounded and repeatable.

They are no part of the default collection. The short run has a fixed seed, and is a stage of `.ci/run`:

    pytest tests/attacks

A long run by hand has another seed, and each count multiplied:

    ATTACK_SEED=7 ATTACK_TIMES=50 nice pytest tests/attacks -k "spoiled or faults"

Each attack looks for the same faults: a traceback, an exit code that no help names, more than 10 s or 500 MiB for one
input, a process, a file or a descriptor that is left. A failure prints the seed, the number and the input, or the
command; the same seed makes the same inputs again.

    test_kills.py        SIGKILL in virtual time, at any instant, of any process
    test_two_faults.py   one process of the kit stopped, and another one killed, for each pair
    test_page.py         any number in the page that virtual time shares with the programs below it
    test_faults.py       signals, closed streams, full disks and odd environments, over every command
    test_files.py        spoiled files of every kind that a user hands in
    test_agents.py       agents that flood, stop within a line, close their streams, fork and leave the tree
    test_secrets.py      secrets in every escape, through `record`
    test_descriptors.py  supervision while only a few descriptors are free
    test_interrupts.py   Ctrl-C at each call of each block that changes the interpreter
    test_soak.py         random scenarios, supervisors and faults in one process; `soak.py` does so for hours
"""

from __future__ import annotations

import os

__all__ = ["MAX_MEGABYTES", "MAX_SECONDS", "SEED", "TIMES"]

SEED = int(os.environ.get("ATTACK_SEED", "31"))
TIMES = int(os.environ.get("ATTACK_TIMES", "1"))
MAX_SECONDS = 10
MAX_MEGABYTES = 500
