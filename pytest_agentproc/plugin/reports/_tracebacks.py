"""Owns what a failed test shows: no frames of the kit, the event loops and the standard library.

A traceback without a frame of the kit is none of its business. One that ends in the kit for another reason than a
mistake of the caller stays whole: that is a bug of the kit. `--full-trace` shows all.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager, nullcontext, suppress
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import AgentprocError, KitError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence


def make_report(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Cut the tracebacks of a failure before they are read, and say how a leak is expected."""
    if call.when != "teardown" and call.excinfo is not None and _FAKES_MODULE in sys.modules:
        from pytest_agentproc.plugin._failure_notes import add_failure_notes

        add_failure_notes(call.excinfo.value, [*_walk_causes(call.excinfo.value)][1:], item)
    if call.excinfo is not None and not item.config.option.fulltrace:
        with suppress(Exception):  # mocks may still stand in the place of what is called here: the stack stays whole
            _cut_tracebacks([*_walk_causes(call.excinfo.value)])
        call.excinfo = pytest.ExceptionInfo.from_exception(call.excinfo.value)
    is_skipped = call.excinfo is None or isinstance(call.excinfo.value, pytest.skip.Exception)
    with nullcontext() if is_skipped else pause_garbage_collection():
        report = yield
    finds_leaks = not _LEAK_FINDING_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))
    if finds_leaks and isinstance(report.longrepr, str) and report.longrepr.startswith(_STRICT_XPASS_PREFIX):
        report.longrepr += f"\n{_EXPECTED_LEAK_REMEDY}"
    return report


_FAKES_MODULE = "pytest_agentproc.plugin._fakes"
"""Loaded once a test, or a block inside of one, has made a fake."""

_PYTHON_HAS_PARSER_FIX = sys.version_info >= (3, 12, 2) or (3, 11, 8) <= sys.version_info < (3, 12)


@contextmanager  # no whole block: the end of the session ends those, and the summary is printed after it
def pause_garbage_collection() -> Iterator[None]:
    """Finalize garbage now, and keep the collector from it while pytest reads sources for a report.

    A supervisor leaves objects to the garbage collector, such as transports, whose finalizers print tracebacks. In an
    older CPython such a finalizer breaks a parser that it interrupts (python/cpython issue 106905): pytest then ended
    with "AST constructor recursion depth mismatch", and the rest of the session was lost.
    """
    was_on = gc.isenabled() and not _PYTHON_HAS_PARSER_FIX
    if was_on:
        gc.collect()
        gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_STRICT_XPASS_PREFIX = "[XPASS(strict)]"
"""The beginning of pytest's words for a test that was to fail."""
_LEAK_FINDING_FIXTURES = {"process_tree", "fake_agent"}
_EXPECTED_LEAK_REMEDY = (
    "a process that is left fails the teardown, and not the test: write xfail(strict=False) to expect it"
)


def _walk_causes(error: BaseException) -> Iterator[BaseException]:
    """Give an exception, those that it came from, and those in a group."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        exception = waiting.pop()
        if exception is not None and id(exception) not in seen:
            seen.add(id(exception))
            waiting += [exception.__cause__, exception.__context__]
            waiting += exception.exceptions if isinstance(exception, BaseExceptionGroup) else []
            yield exception


def _cut_tracebacks(errors: Sequence[BaseException]) -> None:
    """Leave the machinery out of tracebacks, if one of them has passed through the kit."""
    from pytest_agentproc.subjects import is_kit_file, is_kit_or_library_file

    traces = {id(error): [*_walk_traceback(error.__traceback__)] for error in errors}
    if not any(is_kit_file(_get_frame_file(trace)) for links in traces.values() for trace in links):
        return
    for error in errors:
        links = traces[id(error)]
        is_callers = isinstance(error, AgentprocError) and not isinstance(error, KitError)
        if links and is_kit_file(_get_frame_file(links[-1])) and not is_callers:
            continue
        shown: TracebackType | None = None
        for trace in reversed(links):
            if not is_kit_or_library_file(_get_frame_file(trace)):
                shown = TracebackType(shown, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
        error.__traceback__ = shown or error.__traceback__


def _get_frame_file(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _walk_traceback(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next
