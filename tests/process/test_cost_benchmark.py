"""The cost benchmark: each part runs, and its figures are possible. No limit counts here: other load moves them."""

from __future__ import annotations

import json
import math
import shutil

import pytest

from tests.benchmarks.cost import PARTS, main


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_the_cost_benchmark_gives_possible_figures(part: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A part once measured by a virtual clock, and said for months that each step took one second."""
    if part == "below" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    main(["--small", "--json", "--rounds", "1", "--only", part])
    report = json.loads(capfd.readouterr().out)[part]
    milliseconds = report["cpu_ms"]
    assert [name for name, value in milliseconds.items() if not 0 < value < 20_000] == []
    assert [name for name, value in milliseconds.items() if "step" in name and value > 100] == []
    assert [name for name, ratio in report["ratios"].items() if not 0 < ratio["median"] < math.inf] == []
    assert report["ratios"]
