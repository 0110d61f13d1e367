"""Progress, the longest line and the one-number form, with values: no process, no clock."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.scenario import loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.supervisor import LineSplitter, Outcome, Policy, Watchdog, run_once
from pytest_agentproc.supervisor.dialects import Line, Noise, Other
from pytest_agentproc.vocabulary import LimitsRequest

SECOND = 1_000_000_000


def build_splitter(limit: int | None) -> LineSplitter:
    """Make a framing with a limit."""
    made = LineSplitter()
    made.limit = limit
    return made


@pytest.mark.parametrize("data", [b"abcde\n", b"abcde", b"ab\nabcde\nx\n", b"a\nb\nabcde", b"\nabcde\r\n"])
def test_a_line_over_the_limit_is_seen_wherever_it_is_cut(data: bytes) -> None:
    """The lines before it count; of it, and of what follows, nothing is kept."""
    before = data.split(b"abcde")[0].split(b"\n")[:-1]
    for cut in range(len(data) + 1):
        cutting = build_splitter(4)
        lines = [line for start, end in pairwise((0, cut, len(data))) for line in cutting.feed(data[start:end])]
        assert (lines, cutting.is_overlong, cutting.flush(), cutting.feed(b"x\n")) == (before, True, [], [])


def test_a_line_as_long_as_the_limit_is_a_line() -> None:
    """The end of the line does not count, nor do the lines before."""
    cutting = build_splitter(4)
    assert [cutting.feed(data) for data in (b"ab", b"cd", b"\nabc", b"d\nab")] == [[], [], [b"abcd"], [b"abcd"]]
    assert (cutting.is_overlong, cutting.flush()) == (False, [b"ab"])


def test_without_a_limit_each_line_is_a_line() -> None:
    """A supervisor that says so takes a line of any size."""
    cutting = build_splitter(None)
    assert (cutting.feed(b"x" * 2**25), cutting.feed(b"\n"), cutting.is_overlong) == ([], [b"x" * 2**25], False)


def test_progress_is_an_event_and_activity_a_byte() -> None:
    """Bytes wind the one limit up, events both."""
    watchdog = Watchdog(Policy(progress_timeout=10, inactivity_timeout=30))
    watchdog.start(0)
    watchdog.note_activity(9 * SECOND, "stdout", 1)
    assert watchdog.deadlines == {"progress_timeout": 10 * SECOND, "inactivity_timeout": 39 * SECOND}
    watchdog.note_progress(9 * SECOND)
    assert watchdog.find_expired_limit(18 * SECOND) is None
    assert watchdog.find_expired_limit(19 * SECOND) == ("progress_timeout", Outcome.STALLED)
    assert watchdog.explain_expiry("progress_timeout", 19 * SECOND) == "no progress for 10 s, with 1 bytes of output"
    assert [watchdog.is_progress(meaning) for meaning in (Other("tool"), Line(""), Noise(b"x"))] == [True, True, False]


def test_a_limit_that_rests_is_not_wound_up() -> None:
    """After the outcome no event may arm a deadline again."""
    watchdog = Watchdog(Policy(progress_timeout=10))
    watchdog.start(0)
    watchdog.disarm()
    watchdog.note_progress(1)
    watchdog.note_activity(1, "stdout", 1)
    assert watchdog.deadlines == {}


def test_all_limits_at_one_instant_end_as_the_gentlest() -> None:
    """Progress, then inactivity, then the longest runtime (A3)."""
    watchdog = Watchdog(Policy(progress_timeout=5, inactivity_timeout=5, max_runtime=5))
    watchdog.start(0)
    assert watchdog.find_expired_limit(5 * SECOND) == ("progress_timeout", Outcome.STALLED)
    del watchdog.deadlines["progress_timeout"]
    assert watchdog.find_expired_limit(5 * SECOND) == ("inactivity_timeout", Outcome.INACTIVE)


def test_a_timeout_and_a_policy_are_one_too_many() -> None:
    """Two numbers for one limit would leave it to chance which of them counts."""
    with pytest.raises(UsageError) as caught:
        asyncio.run(run_once(["true"], timeout=30, policy=Policy()))
    assert str(caught.value) == (
        "timeout is 30, but there is a policy too\n"
        "write policy=Policy(inactivity_timeout=30, ...): a timeout means silence"
    )


def test_a_scenario_that_gives_one_number_gets_the_one_number_form() -> None:
    """So that a supervisor that means the duration by it can be caught."""
    assert reference_supervisor().policy(
        LimitsRequest({"inactivity_timeout": 30.0}, "raw")
    ) == Policy.make_from_silence_limit(30.0)
    assert reference_supervisor().policy(LimitsRequest({"inactivity_timeout": None}, "raw")) == Policy(
        inactivity_timeout=None
    )
    both = {"inactivity_timeout": 30.0, "kill_grace": 1.0}
    assert reference_supervisor().policy(LimitsRequest(both, "raw")) == Policy(inactivity_timeout=30.0, kill_grace=1.0)


def test_a_size_is_a_limit_that_no_time_can_name() -> None:
    """An expression over times with a number of bytes in it means nothing."""
    text = "scenario: a\nagent: raw\npolicy: {max_line_bytes: 1 KiB}\nscript:\n  - silence: 1s\n"
    assert loads(text).policy == {"max_line_bytes": 1024}
    with pytest.raises(Exception, match="unknown name") as caught:
        loads(text.replace("1s", "max_line_bytes"))
    assert str(caught.value).startswith('<text>:5:14: unknown name "max_line_bytes"')
