"""The table of trees holds for a user without root, and where pytest itself is the first process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NOT_ROOT = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
"""No capability, and files as their owner: the rights of a user that runs tests at home."""

FIRST = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"]
"""A namespace of its own, where every orphan is a child of pytest."""


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize(("world", "check"), [(NOT_ROOT, "os.getuid() != 0"), (FIRST, "os.getpid() == 1")])
def test_every_cell_is_judged_as_promised_there(world: list[str], check: str) -> None:
    """A supervisor with fewer rights, or one that adopts orphans, sees the same leaks and accuses no others."""
    try:
        probe = subprocess.run([*world, sys.executable, "-c", f"import os; assert {check}"], check=False, timeout=60)
    except FileNotFoundError:
        pytest.skip("this machine has no unshare")
    if probe.returncode != 0:
        pytest.skip(f"this kernel does not permit {' '.join(world)}")
    tests = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(HERE / "test_matrix.py"),
        "-k",
        "exits and not command",  # what a supervisor has not ended itself is the harder half
    ]
    completed = subprocess.run(
        [*world, sys.executable, *tests],
        check=False,
        timeout=300,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert completed.returncode == 0, completed.stdout
    assert " passed" in completed.stdout
