"""Each kind of interruption, in each kind of time: exit code and output are those of the same file without the kit."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.plugin.interruptions.sessions import Ended, run_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.slow]

_POINTS_BY_MODE = {
    "real": ("body", "setup", "teardown", "report hook", "teardown hook"),
    "async": ("body", "teardown", "report hook"),
    "sync": ("body", "teardown", "report hook"),
    "module": ("body",),
    "tree": ("body",),
    "collected": ("collection",),
}
_STOPS = [
    (kind, point, mode)
    for mode, points in _POINTS_BY_MODE.items()
    for point in points
    for kind in ("interrupt", "exit")
    if kind == "interrupt" or point == points[0] or mode == "real"
]
"""`pytest.exit` takes the way of an interrupt through pytest: each mode has it at one point, real time at each."""


@pytest.fixture(scope="session")
def run_plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ended]:
    """Run a file without the kit, once for all tests that compare with it."""

    @cache
    def run(mode: str, kind: str, points: str, *options: str) -> Ended:
        folder = tmp_path_factory.mktemp("plain")
        return run_session(folder, "real" if mode == "sync" else mode, kind, points, *options, has_kit=False)

    return run


def _assert_same(kit: Ended, plain: Ended) -> None:
    assert (kit.code, kit.lines) == (plain.code, plain.lines)
    assert (kit.left, kit.files) == ([], [])


@pytest.mark.parametrize(("kind", "point", "mode"), _STOPS)
def test_an_interrupted_session_ends_as_without_the_kit(
    tmp_path: Path, run_plain: Callable[..., Ended], kind: str, point: str, mode: str
) -> None:
    """The failure and the summary of an earlier test stand, and no process is left."""
    _assert_same(run_session(tmp_path, mode, kind, point), run_plain(mode, kind, point))


@pytest.mark.parametrize("mode", ["real", "async", "sync"])
def test_a_second_interrupt_while_the_kit_ends_its_fakes_loses_nothing(
    tmp_path: Path, run_plain: Callable[..., Ended], mode: str
) -> None:
    """Impatient users press Ctrl-C twice; without the kit there is nothing that the second one could break off."""
    ended = run_session(tmp_path, mode, "interrupt", "body,teardown of the kit")
    _assert_same(ended, run_plain(mode, "interrupt", "body"))


@pytest.mark.parametrize(("mode", "point"), [("sync", "teardown of the kit"), ("tree", "teardown")])
def test_an_interrupt_in_a_teardown_ends_the_rest_with_the_session(tmp_path: Path, mode: str, point: str) -> None:
    """The other teardowns of the test are forgotten by pytest: here those of the virtual clock and the process tree."""
    ended = run_session(tmp_path, mode, "interrupt", point)
    assert ended.code == pytest.ExitCode.INTERRUPTED
    assert ended.lines[-1] == "1 failed, 1 passed in N s"
    assert (ended.left, ended.files) == ([], [])


@pytest.mark.parametrize(
    ("mode", "kind", "options"),
    [
        *((mode, "fail", ("--maxfail=2",)) for mode in ("real", "async", "sync", "tree")),
        *((mode, "busy", ("--timeout=3", "--timeout-method=signal")) for mode in ("real", "async", "sync")),
    ],
)
def test_a_stopped_test_fails_once_and_shows_what_it_left(
    tmp_path: Path, run_plain: Callable[..., Ended], mode: str, kind: str, options: tuple[str, ...]
) -> None:
    """Its processes are ended; that they lived is no second failure."""
    kit = run_session(tmp_path, mode, kind, "body", *options)
    plain = run_plain(mode, kind, "body", *options)
    assert (kit.code, kit.lines[-1]) == (plain.code, plain.lines[-1])
    assert "left by the stopped test, and ended" in kit.lines
    assert (kit.left, kit.files) == ([], [])


def test_a_timeout_in_a_teardown_is_shown_alone(tmp_path: Path, run_plain: Callable[..., Ended]) -> None:
    """A judgement beside it would make a group of both, in which nobody reads the time-out."""
    stop = ("real", "busy", "teardown", "--timeout=3", "--timeout-method=signal")
    assert run_session(tmp_path, *stop).lines[-2:] == run_plain(*stop).lines[-2:]


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("real", "waiting"), ("async", "waiting"), ("sync", "waiting"), ("real", "busy"), ("sync", "busy")],
)
def test_a_timeout_by_a_thread_leaves_nothing(tmp_path: Path, mode: str, kind: str) -> None:
    """The process of pytest ends at once, without any teardown, also if the test computes for ever."""
    ended = run_session(tmp_path, mode, kind, "body", "--timeout=3", "--timeout-method=thread")
    assert (ended.code, ended.left, ended.files) == (1, [], [])
    assert "Timeout" in ended.lines[-1]


@pytest.mark.parametrize("mode", ["real", "async", "sync"])
@pytest.mark.parametrize("kind", ["worker exits", "worker is killed"])
def test_a_worker_that_dies_takes_its_fakes_along(
    tmp_path: Path, run_plain: Callable[..., Ended], mode: str, kind: str
) -> None:
    """The lifeline ends them; xdist starts another worker and goes on."""
    virtual = ["--agentproc-virtual-sync"] if mode == "sync" else []
    kit = run_session(tmp_path, mode, kind, "body", "-n1", *virtual)
    _assert_same(kit, run_plain(mode, kind, "body", "-n1"))
