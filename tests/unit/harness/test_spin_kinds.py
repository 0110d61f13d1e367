"""How a process spins, by what the kernel counts of it: too soon to tell is no spin, on a slow machine, too."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_agentproc.harness._spins import TICKS_PER_SECOND, ProcessCounts, SpinKind, find_spin_kind

NOTHING = ProcessCounts(0, 0, 0, 0, 0, 0, is_running=True)


@pytest.mark.parametrize(
    ("seconds", "in_kernel", "counted", "kind"),
    [
        pytest.param(4, 1, {"reads": 20_000}, SpinKind.READS, id="reads at the end of a pipe"),
        pytest.param(4, 1, {"reads": 20_000, "bytes_written": 9}, SpinKind.READS, id="and logs it"),
        pytest.param(3, 1, {"reads": 20_000}, None, id="reads for a short time"),
        pytest.param(40, 4, {}, SpinKind.CALLS, id="asks a socket"),
        pytest.param(40, 3, {}, None, id="computes, and seldom calls"),
        pytest.param(39, 30, {}, None, id="asks a socket for a short time"),
        pytest.param(40, 10, {"faults": 2_001}, None, id="gets memory"),
        pytest.param(40, 10, {"bytes_written": 1}, None, id="writes a file"),
        pytest.param(70, 0, {}, None, id="computes 7 s long, on a machine that is slower by ten"),
        pytest.param(120, 0, {"faults": 9_000}, SpinKind.COMPUTES, id="looks at a flag"),
        pytest.param(120, 0, {"bytes_written": 1}, None, id="computes, and prints how far it is"),
    ],
)
def test_a_spin_has_a_kind_once_it_has_run_for_long_enough(
    seconds: int, in_kernel: int, counted: dict[str, Any], kind: SpinKind | None
) -> None:
    """The time is that of the process: another load on the machine adds nothing to it."""
    now: dict[str, Any] = {"ticks": seconds * TICKS_PER_SECOND, "kernel_ticks": in_kernel * TICKS_PER_SECOND}
    assert find_spin_kind(NOTHING, NOTHING._replace(**now, **counted)) is kind
