"""Awaits a word that comes in a moment: awake for a while where that has paid lately, else asleep. Both sides use it.

Waking a sleeper on another core costs several times what a step of a fake does. Looking out costs a core meanwhile, and
is in vain where that core is needed for the one who is to speak: whoever looked out in vain sleeps through the next
words, through more of them each time, and through fewer again each time that it paid.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["GLANCES", "LONGEST_REST", "Vigil"]

GLANCES = 512
"""Some 600 microseconds: what a fake does first, and a host with it, takes half of them on cold caches."""

LONGEST_REST = 256
"""So many words at most are slept through in a row."""


class Vigil:
    """When to look out.

    Args:
        glances: how often at most, for one word.
    """

    def __init__(self, glances: int = GLANCES) -> None:
        self._glances = glances
        self._rest = 0
        self._pause = 1

    def keep(self, glance: Callable[..., Any], *args: Any) -> Any:
        """Look out for a while.

        Args:
            glance: reads a word without waiting; raises BlockingIOError if there is none.
            args: what it is called with.

        Returns:
            What it read; None: nothing came, or this is no time to look out.
        """
        if self._rest:
            self._rest -= 1
            return None
        for _ in range(self._glances):
            try:
                word = glance(*args)
            except BlockingIOError:
                continue
            self._pause = max(self._pause // 2, 1)
            return word
        self._rest, self._pause = self._pause, min(4 * self._pause, LONGEST_REST)
        return None
