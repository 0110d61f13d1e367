"""How the hub awaits a participant's word: awake where a core is free for that, else asleep. Decides no order.

To wake a sleeper on an idle core takes longer than what it does in a step. A lone participant looks out for its next
grant by itself. Among several the next in line is roused as soon as another has spoken: that one's core is awake still,
and by the time the host has read what there is, the next is up. Where others want the cores, everybody sleeps.
"""

from __future__ import annotations

import os
from resource import RUSAGE_THREAD, getrusage
from typing import TYPE_CHECKING

from fake_agents.vigil import Vigil

if TYPE_CHECKING:
    from pytest_agentproc.clock._jump import JumpRule
    from pytest_agentproc.clock._participant import Participant
    from pytest_agentproc.clock._roll import Roll

__all__ = ["EVERY", "GRANTS", "TAKEN", "Ear", "Rivals"]

_PARTING = 1024
"""Glances for the end of who has said goodbye: until the kernel has taken its memory back is longer than a step."""

GRANTS = 64
EVERY = 4
"""Of so many grants every fourth is looked at: to ask the kernel about each would make a step a tenth longer."""

TAKEN = 4
"""Of these, those until whose answer this thread's core was taken, from which on others want the cores.

Measured on two cores: one in six at most with nobody else there (one in 500 with a lone participant), two in five at
least beside another play (nine in ten).
"""


class Rivals:
    """Whether others want the cores, told by how often the kernel gave this thread's to somebody else."""

    def __init__(self) -> None:
        self.are_there = False
        self._grants = self._taken = 0
        self._count = 0

    def begin(self) -> None:
        """Count from here: somebody is granted."""
        self._grants += 1
        if self._grants % EVERY == 0:
            self._count = getrusage(RUSAGE_THREAD).ru_nivcsw

    def end(self) -> None:
        """Take in that the grant is answered."""
        if self._grants % EVERY == 0:
            self._taken += getrusage(RUSAGE_THREAD).ru_nivcsw != self._count
            if self._grants >= GRANTS:  # more where one was never answered
                self.are_there = self._taken >= TAKEN
                self._grants = self._taken = 0


_rivals = Rivals()
"""What plays before this one have met counts: most have fewer grants than that."""


class Ear:
    """Hear participants.

    Args:
        roll: takes their words.
        rule: knows who is next.
        rivals: whether others want the cores.
    """

    def __init__(self, roll: Roll, rule: JumpRule, rivals: Rivals = _rivals) -> None:
        self._roll = roll
        self._rivals = rivals
        self._rule = rule
        self._vigil = Vigil() if len(os.sched_getaffinity(0)) > 1 else None
        self._parting = Vigil(_PARTING)
        self._watch = self._vigil
        """The vigil of this grant: none where others want the cores."""

    def grant(self, participant: Participant, now: int, *, ready: bool) -> None:
        """Let a participant go on, as `Participant.grant` has it; a lone one looks out for its next grant."""
        self._rivals.begin()
        self._watch = watch = None if self._rivals.are_there else self._vigil
        participant.grant(now, ready=ready, awake=watch is not None and len(self._roll.living) == 1)

    def hear(self, participant: Participant) -> None:
        """Take one word of who has been granted.

        Raises:
            TimeoutError: half a second without a word.
        """
        watch = self._watch
        self._roll.hear(participant, self._parting if watch and participant.leaves else watch)

    def note_answer(self, deadline: tuple[int, int] | None) -> None:
        """Rouse who goes on next among several, as it looks now that somebody has spoken.

        Args:
            deadline: the earliest deadline of a run, as (instant, number).
        """
        if self._watch is not None and len(self._roll.living) > 1:
            process = self._rule.first_process(deadline)
            if process is not None:
                self._roll.participants[process[1]].rouse()
        self._rivals.end()
