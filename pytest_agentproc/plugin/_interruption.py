"""Knows whether the session, or the test that runs, was interrupted. Then the kit ends processes and judges nothing.

After Ctrl-C and `pytest.exit` pytest runs no more teardown of the test. It tears all fixtures down in
`pytest_sessionfinish`, where a failure has no report: pytest shows its own stack, and loses the failures and the exit
code. If the interrupt comes in a teardown, pytest forgets the other teardowns of that test. So each teardown of the kit
is an ending that is held here, which the end of the session runs if nobody has run it.

    running -> stopped  pytest-timeout failed the test, or -x and --maxfail are satisfied; until the test is over
    running -> over     the session finishes, whatever the reason

In both states nothing is judged. A second Ctrl-C while the session is over does not lose the summary: the ending that
it breaks off is run again, and goes on.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.interrupts import end_blocks_beyond, list_open_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_WATCH_PLUGIN_NAME = "agentproc-interruption"
_TIMEOUT_MESSAGE_BEGIN, _TIMEOUT_PLUGIN_NAME = "Timeout ", "timeout"
_UNJUDGED_SECTION_TITLE = "left by the stopped test, and ended"
_WATCHES: list[_SessionWatch] = []
"""One for each pytest session of this process, the innermost last. A block of fakes has no other way to its session."""


def watch_session(config: pytest.Config) -> None:
    """Watch the session of this configuration until it is unconfigured."""
    watch = _SessionWatch(config)
    config.pluginmanager.register(watch, _WATCH_PLUGIN_NAME)
    _WATCHES.append(watch)
    config.add_cleanup(lambda: _WATCHES.remove(watch))


def was_broken_off(config: pytest.Config) -> bool:
    """Say whether tests of the session were left out: by Ctrl-C, `pytest.exit`, -x or --maxfail."""
    watch = config.pluginmanager.get_plugin(_WATCH_PLUGIN_NAME)
    return watch is not None and watch.was_broken_off


@contextmanager
def ended_at_teardown(end: Callable[[], object]) -> Iterator[None]:
    """Hold the ending of a fixture around its `yield`: it runs at the teardown, or at the latest with the session.

    Args:
        end: ends what the fixture began, and raises a judgement. It runs again if a Ctrl-C broke it off.
    """
    watch = _WATCHES[-1]
    watch.endings.append(end)
    yield
    watch.run_ending(end)


@contextmanager
def judge_unless_interrupted() -> Iterator[None]:
    """Let the block raise its judgement, but not if the session or the test was interrupted; for code in any place."""
    if not _WATCHES:
        yield
        return
    with _WATCHES[-1].judging():
        yield


class _SessionWatch:
    """One session: what has interrupted it, and the endings that it still owes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session: pytest.Session | None = None
        self._is_over = False
        self._is_test_stopped = False
        self._is_broken_off = False
        self._last_report: pytest.TestReport | None = None
        self._judgements: list[BaseException] = []
        self._blocks_before = list_open_blocks()
        self.endings: list[Callable[[], object]] = []

    @property
    def _is_stopping(self) -> bool:
        return self._session is not None and bool(self._session.shouldfail or self._session.shouldstop)

    @property
    def was_broken_off(self) -> bool:
        """Whether tests were left out."""
        return self._is_broken_off or self._is_stopping

    def run_ending(self, end: Callable[[], object]) -> None:
        """Run an ending. If a Ctrl-C comes meanwhile, the ending stays, for the end of the session."""
        with self.judging():
            try:
                end()
            except KeyboardInterrupt:
                if not self._is_over:
                    raise
                end()
            except BaseException:
                self.endings.remove(end)
                raise
        if end in self.endings:
            self.endings.remove(end)

    @contextmanager
    def judging(self) -> Iterator[None]:
        """Keep back a judgement if there was an interruption; a test that was stopped shows its text."""
        try:
            yield
        except (Exception, pytest.fail.Exception) as judgement:
            if not (self._is_over or self._is_stopping or self._is_test_stopped):
                self._judgements.append(judgement)
                raise
            self._show_unjudged(str(judgement))

    def _show_unjudged(self, text: str) -> None:
        if self._last_report is not None and not self._is_over:
            self._last_report.sections.append((_UNJUDGED_SECTION_TITLE, text))

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Know the session: -x and --maxfail are marks on it."""
        self._session = session

    def pytest_runtest_logstart(self) -> None:
        """Begin a test, which nothing has stopped."""
        self._is_test_stopped, self._last_report = False, None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Learn that a time-out stopped the test."""
        report = yield
        if report.failed and report.when != "teardown":
            self._last_report = report
            self._is_test_stopped = call.excinfo is not None and self._is_timeout(call.excinfo.value)
        return report

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Take the kit's judgements out of a group with an interruption: pytest would not see the interruption."""
        # With a judgement beside it, `pytest.exit` in another teardown arrives in a group, which is one more failure.
        try:
            return (yield)
        except BaseExceptionGroup as group:
            if not any(map(self._is_interruption, _walk_group(group))):
                raise
            rest = _leave_out(group, self._judgements)
        finally:
            self._judgements = []
        assert rest is not None, "the interruption is no judgement"
        raise rest

    @pytest.hookimpl(wrapper=True)
    def pytest_keyboard_interrupt(self) -> Generator[None, object, object]:
        """Learn of a Ctrl-C or of `pytest.exit`, whose exit code says nothing."""
        from pytest_agentproc.plugin.reports._tracebacks import pause_garbage_collection

        self._is_broken_off = True
        with pause_garbage_collection():  # pytest reads sources here, too
            return (yield)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Judge nothing from now on; run the endings that pytest has forgotten."""
        self._is_over = True
        try:
            return (yield)
        finally:
            for end in self.endings[::-1]:
                self.run_ending(end)
            end_blocks_beyond(self._blocks_before)

    def _is_interruption(self, error: BaseException) -> bool:
        return isinstance(error, KeyboardInterrupt | pytest.exit.Exception) or self._is_timeout(error)

    def _is_timeout(self, error: BaseException) -> bool:
        """Say whether an exception is that of pytest-timeout, which has no class of its own."""
        return (
            isinstance(error, pytest.fail.Exception)
            and str(error).startswith(_TIMEOUT_MESSAGE_BEGIN)
            and self._config.pluginmanager.has_plugin(_TIMEOUT_PLUGIN_NAME)
        )


def _walk_group(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _walk_group(part)
    else:
        yield error


def _leave_out(error: BaseException, unwanted: list[BaseException]) -> BaseException | None:
    """Give what is left of an exception; a group of one becomes that one, as pytest itself raises it."""
    if any(error is other for other in unwanted):
        return None
    if not isinstance(error, BaseExceptionGroup):
        return error
    kept = [part for inner in error.exceptions if (part := _leave_out(inner, unwanted)) is not None]
    if kept == [*error.exceptions]:
        return error
    return (kept[0] if len(kept) == 1 else error.derive(kept)) if kept else None
