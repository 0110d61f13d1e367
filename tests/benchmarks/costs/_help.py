"""The start of the command. Owns two starts of one interpreter; knows no command."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from tests.benchmarks._figures import Samples, compute_ratios, summarize_values

__all__ = ["HelpPart"]

_TIMES = 10
_STARTS = {"bare": "pass", "help": "from pytest_agentproc.cli import main; main(['--help'])"}


class HelpPart:
    """help_ratio: `agentproc --help` over an interpreter with site that does nothing, one after the other."""

    name = "help"

    def __init__(self) -> None:
        self._taken = {name: Samples() for name in _STARTS}

    def sample(self) -> None:
        for name, code in _STARTS.items():
            self._taken[name].add([_measure_seconds(code) for _ in range(_TIMES)])

    def report(self) -> dict[str, Any]:
        return {"help_ratio": summarize_values(compute_ratios(self._taken["help"], self._taken["bare"]))}

    def close(self) -> None:
        """Nothing is kept."""


def _measure_seconds(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin
