"""asyncio prints nothing for the transport of a fake that a test left: the kit has named the fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

LEFT = """
    import asyncio
    import pytest

    kept = []

    @pytest.mark.virtual_time
    async def test_left(fake_agent):
        agent = fake_agent("- silence: for ever")
        kept.append(await asyncio.create_subprocess_exec(*agent.argv, stdin=-1, stdout=-1, stderr=-1))
        await asyncio.sleep(5)

    def test_afterwards():
        import gc
        kept.clear()
        gc.collect()
"""


def test_a_transport_of_a_fake_that_was_left_prints_no_traceback(pytester: pytest.Pytester) -> None:
    """The failure names the fake. asyncio's finalizer added 25 lines for each transport: "Event loop is closed"."""
    pytester.makepyfile(LEFT)
    result = pytester.runpytest_subprocess("-W", "ignore::ResourceWarning")
    result.assert_outcomes(passed=2, errors=1, warnings=0)
    assert "agent was left (still alive)" in result.stdout.str()
    assert "Event loop is closed" not in result.stdout.str() + result.stderr.str()
