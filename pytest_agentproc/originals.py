"""Functions of Python as they were before any test. The plugin loads this file first. Knows nothing else.

A test may put mocks in the place of `time.monotonic`, `subprocess.Popen` or `shutil.which`. freezegun replaces
clocks in every module that has imported them, and time-machine changes the functions themselves. The kit may be loaded
in such a test. None of these reaches the names here.
"""

from __future__ import annotations

import time
from functools import partial
from shutil import which
from subprocess import Popen
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Popen", "monotonic", "monotonic_ns", "which"]

monotonic: Callable[[], float] = partial(time.clock_gettime, time.CLOCK_MONOTONIC)
"""What `time.monotonic()` gives where no test holds it."""

monotonic_ns: Callable[[], int] = partial(time.clock_gettime_ns, time.CLOCK_MONOTONIC)
"""What `time.monotonic_ns()` gives where no test holds it."""
