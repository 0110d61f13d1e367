"""What a subject starts beside its fakes, and leaves. Owns what the record says of it; fakes have their lifelines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_agentproc.harness._bystanders import plays
from pytest_agentproc.tree import Custody, command_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from pytest_agentproc.harness._fake import FakeAgent
    from pytest_agentproc.record import Record

__all__ = ["Others"]

_SETTLE = 200_000_000
"""Real nanoseconds that such a process may take to be gone once its supervisor has returned."""

_LONGEST = 160


class Others:
    """Know what is started while the block runs.

    Args:
        fakes: those of the play, which are judged elsewhere.
        adopts: whether orphans are taken in.
    """

    def __init__(self, fakes: Sequence[FakeAgent], *, adopts: bool = False) -> None:
        launchers = [fake.launcher for fake in fakes]

        def is_fake(_pid: int, command: str) -> bool:
            return any(plays(command, launcher) for launcher in launchers)

        self._custody = Custody(adopts=adopts, excuses=is_fake)

    def __enter__(self) -> Others:  # noqa: PYI034  # nobody derives from it
        self._custody.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._custody.close()

    def tell(self, record: Record, at: int) -> None:
        """Note every process that was left, and end it; what may be anybody's is noted beside it and left alone.

        Args:
            record: where it is noted, as a leak under the name of its command and the line that started it.
            at: the instant, in nanoseconds of the run's clock.
        """
        found = self._custody.settle(_SETTLE)
        if not found.mine:
            return
        own = command_line(os.getpid())
        for one in found.mine:
            name = " ".join(one.command(own).split())[:_LONGEST]
            if one.start is not None and one.start.places:
                name += f" started at {one.start.places[0]}"
            record.add(at, "m", {"process": name, "leaked": one.sighting.state, "line": 0, "pid": one.sighting.pid})
        for stranger in found.unknown:
            name = " ".join(stranger.command.split())[:_LONGEST]
            record.add(at, "m", {"process": name, "origin": "unknown", "pid": stranger.pid})
        self._custody.end(found.mine)
