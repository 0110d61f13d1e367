"""The workshop: launchers are used again, and each fake plays its own program. Needs no process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_agentproc.harness.fakes._launch import FakeBuilder
from pytest_agentproc.scenario import loads
from pytest_agentproc.vocabulary import Policy


def _build_program(said: str) -> dict[str, Any]:
    text = f"scenario: says it\nagent: pi\nscript: [{{answer: {said}}}]\nexpect: {{outcome: completed}}\n"
    scenario = loads(text, "says-it")
    return {"hub": b"somewhere", "program": scenario.bind(Policy.for_dialect("pi")).program}


@pytest.mark.slow
def test_a_launcher_that_is_used_again_holds_nothing_of_the_last_program() -> None:
    """A program is written over the last one, which may have been longer: the old end must not stay."""
    shop = FakeBuilder()
    try:
        first = shop.write_fake("pi", _build_program("x" * 5000))
        plan = Path(first).parent.with_suffix(".baked")
        number = plan.stat().st_ino
        shop.recycle_fake(first)
        assert shop.write_fake("pi", _build_program("said-y")) == first
        written = plan.read_bytes()
        assert b"said-y" in written
        assert b"xx" not in written
        assert plan.stat().st_ino == number
    finally:
        shop.close()
