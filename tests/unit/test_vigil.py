"""Looking out for a word: when it is done, and when it is left."""

from __future__ import annotations

from fake_agents import wire
from fake_agents.vigil import GLANCES, LONGEST_REST, Vigil


class _Link:
    """Has a word ready after so many glances; None: never."""

    def __init__(self, after: int | None) -> None:
        self.after = after
        self.glances = 0

    def read(self, size: int) -> bytes:
        self.glances += 1
        if self.after is None or self.glances <= self.after:
            raise BlockingIOError
        return b"w" * size


def _rest(vigil: Vigil) -> int:
    """Count the words that are slept through before it looks out in vain once more."""
    words, link = 0, _Link(None)
    while not link.glances:
        assert vigil.keep(link.read, 2) is None
        words += 1
    return words - 1


def test_a_word_that_comes_in_a_moment_is_read_without_sleeping() -> None:
    """That is what it is for."""
    assert Vigil().keep(_Link(GLANCES - 1).read, 2) == b"ww"


def test_the_end_of_the_talk_is_a_word() -> None:
    """It is read as no bytes, and must not be taken for nothing."""
    assert Vigil().keep(_Link(0).read, 0) == b""


def test_a_wait_is_bounded() -> None:
    """Whoever does not speak at once is waited for asleep."""
    link = _Link(None)
    assert Vigil().keep(link.read, 2) is None
    assert link.glances == GLANCES


def test_who_looks_out_in_vain_rests_for_longer_each_time() -> None:
    """Where a core is short, or a step is long, looking out must cost next to nothing."""
    vigil = Vigil()
    assert [_rest(vigil) for _ in range(7)] == [0, 1, 4, 16, 64, LONGEST_REST, LONGEST_REST]


def test_who_looks_out_with_success_rests_for_less() -> None:
    """A core that was short for a while is used again later."""
    vigil = Vigil()
    for _ in range(3):
        _rest(vigil)
    while vigil.keep(_Link(0).read, 2) is None:
        pass
    for _ in range(2):
        assert vigil.keep(_Link(0).read, 2) == b"ww"
    assert [_rest(vigil) for _ in range(2)] == [0, 8]


def test_a_grant_says_whether_to_look_out() -> None:
    """The host alone knows whether another process needs the core."""
    for ready in (False, True):
        for awake in (False, True):
            assert wire.granted(wire.grant(5, ready=ready, awake=awake)) == (5, ready, awake)


def test_who_takes_longer_is_looked_out_for_longer() -> None:
    """The end of a process is no step of it."""
    link = _Link(1000)
    assert Vigil(3).keep(link.read, 2) is None
    assert link.glances == 3
