"""Cases of the determinism benchmark below the coordinator: supervisors that are no async Python. Knows no load."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.scenario import loads
from tests.benchmarks._cases import observe_play
from tests.process.preload.test_supervisors import DEAF, KINDS, LATE, LIMITS, build_supervisor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.vocabulary import Subject
    from tests.benchmarks._cases import ObservedPlay

__all__ = ["PreloadCase", "list_preload_cases"]


class PreloadCase:
    """One supervisor with one scenario; its first play is what all others must equal, to the microsecond.

    A float of Python is a nanosecond off where it is large, and it is larger in each later play.
    """

    def __init__(self, name: str, text: str, subject: Subject) -> None:
        self.id = name
        self.predicted: ObservedPlay | None = None
        self._scenario, self._subject = loads(text), subject

    def play(self, runner: ScenarioRunner, backend: str) -> ObservedPlay:
        """Play it with real processes."""
        seen = observe_play(runner.play(self._scenario, self._subject, backend=backend))
        seen = replace(seen, timeline=[(round(int(str(event[0])), -3), *event[1:]) for event in seen.timeline])
        self.predicted = self.predicted or seen
        return seen


def list_preload_cases(pattern: str) -> Sequence[PreloadCase]:
    """Give those whose id matches; what has to be compiled for them stays in a temporary folder."""
    texts = {"deaf": DEAF, "late": LATE}
    ids = [(f"{kind}-{name}", kind, text) for kind, (name, text) in product(KINDS, texts.items())]
    folder = Path(tempfile.mkdtemp(prefix="agentproc-"))
    return [
        PreloadCase(name, text, build_supervisor(kind, folder, LIMITS))
        for name, kind, text in ids
        if fnmatch(name, f"*{pattern}*")
    ]
