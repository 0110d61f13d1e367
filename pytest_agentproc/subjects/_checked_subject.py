"""A foreign supervisor, asked with care. Owns what becomes of its exceptions and of wrong answers; judges none.

The frames of the kit, of the standard library and of the event loops are left out of a traceback. The frames that stay
are the supervisor's and its adapter's.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import inspect
import os
import re
import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pytest_agentproc.errors import AdapterError, ClockError, Declined, KitError, SubjectError, SupervisorCrash
from pytest_agentproc.files import shorten_path
from pytest_agentproc.foreign import (
    find_exit_of_pytest,
    find_globals_name,
    find_module_name,
    is_exit_of_pytest,
    unwrap_function,
)
from pytest_agentproc.subjects._limit_statements import make_policy
from pytest_agentproc.subjects._report_reading import describe_type, read_answer
from pytest_agentproc.vocabulary import Policy, read_abilities

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import FrameType

    from pytest_agentproc.vocabulary import LimitsRequest, RunReport, RunRequest, Subject


_FOLDER_OF_THE_KIT = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_STANDARD_LIBRARY_FOLDERS = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib"))
_INSTALLED_PACKAGE_PATTERN = re.compile(r".*/(?:site|dist)-packages/(\w+)")
_EVENT_LOOP_PACKAGES = ("anyio", "trio", "outcome", "uvloop")
_MAX_SHOWN_TRACEBACK_FRAMES = 4


class CheckedSubject:
    """The subject of another author: each of its failures is a `SubjectError` with its place."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.name = subject.name
        self.keeps_artifacts = subject.keeps_artifacts
        self.holds_sessions = subject.holds_sessions
        self.abilities = read_abilities(subject)
        self.require_files: Callable[[], None] = getattr(subject, "require_files", lambda: None)

    def policy(self, request: LimitsRequest) -> Policy:
        """Have it state its limits.

        Raises:
            AdapterError: it raised, or they are none.
            Declined: it cannot take such agents.
        """
        return ask_for_limits(lambda: _complete_limits(self.subject.policy(request), request.dialect))

    async def run(self, order: RunRequest) -> RunReport:
        """Have it supervise.

        Raises:
            AdapterError: its answer is none.
            SupervisorCrash: it raised.
            Declined: it cannot take the order.
        """
        return await call_supervisor(self.subject.run, order, find_adapter_module(type(self.subject)))


def _complete_limits(limits: Any, dialect: str) -> Any:
    return make_policy(limits, dialect) if isinstance(limits, Mapping) else limits


def ask_for_limits(policy: Callable[[], Any]) -> Policy:
    """Give the limits that a function states.

    Raises:
        AdapterError: it raised, or they are none.
        Declined: it was raised.
    """
    try:
        limits = policy()
    except (AdapterError, Declined):
        raise
    except Exception as error:
        if is_exit_of_pytest(error):
            raise
        raise AdapterError(f"asked for its limits, it {_describe_error(error)}") from error
    if not isinstance(limits, Policy):
        raise AdapterError(f"asked for its limits, it gave {describe_type(limits)}\ngive Policy.for_dialect(dialect)")
    return limits


async def call_supervisor(
    supervise: Callable[[RunRequest], Awaitable[Any]], order: RunRequest, adapter: str
) -> RunReport:
    """Call the function that supervises an order.

    Args:
        supervise: the function.
        order: its argument.
        adapter: the module in which the adapter is defined.

    Raises:
        AdapterError: the function returned no valid answer.
        SupervisorCrash: the function raised.
        Declined: it was raised, alone or in groups; so is the exception of `pytest.exit`.
    """
    try:
        given = await _require_awaitable(supervise(order))
    except (SubjectError, ClockError, Declined, KitError):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise _make_supervisor_crash(error, adapter) from error  # it was not cancelled
    except (Exception, SystemExit) as error:
        if (refusal := unwrap_adapter_error(error)) is not None:
            raise refusal from None
        raise _make_supervisor_crash(error, adapter) from error
    return read_answer(given, order.scale)


def unwrap_adapter_error(error: BaseException) -> BaseException | None:
    """Give its `pytest.exit`, or what an adapter says of itself: the exception, or the first of a group of such.

    None: it is another exception.
    """
    if (exit_of_session := find_exit_of_pytest(error)) is not None:
        return exit_of_session
    kinds = (Declined, AdapterError)
    while isinstance(error, BaseExceptionGroup) and error.split(kinds)[1] is None:
        error = error.exceptions[0]
    return error if isinstance(error, kinds) else None


def _require_awaitable(given: Any) -> Awaitable[Any]:
    if hasattr(given, "__await__"):
        return cast("Awaitable[Any]", given)
    raise AdapterError(f"its run gave {describe_type(given)} at once\nmake it `async def run(self, order)`")


def find_adapter_module(thing: Any) -> str:
    """Name the module in which an adapter is defined: that of a class, or of the function in partials and wrappers."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    thing = unwrap_function(thing)
    return find_module_name(thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing))


def _make_supervisor_crash(error: BaseException, adapter: str) -> SupervisorCrash:
    modules = {find_globals_name(frame.f_globals) for frame, _ in _list_adapter_frames(_unwrap_groups(error)[1])}
    is_in_adapter = modules <= {adapter} and not is_spawn_error(_unwrap_groups(error)[0])
    return SupervisorCrash(f"it {_describe_error(error)}", is_in_adapter=is_in_adapter)


def is_spawn_error(error: BaseException) -> bool:
    """Say whether the kernel refused to start a program: the command line is too long, or the file is no program."""
    return isinstance(error, OSError) and error.errno in (errno.E2BIG, errno.ENOEXEC)


def _describe_error(error: BaseException) -> str:
    """Describe what was raised, and where in their code: the last lines of the traceback, the innermost at the end."""
    inner, traces = _unwrap_groups(error)
    text = "".join(traceback.format_exception_only(inner)).strip()
    found = traceback.StackSummary.extract(iter(_list_adapter_frames(traces)))
    where = [f"  {shorten_path(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line}" for frame in found]
    return "\n".join([f"raised {text}", *where[-_MAX_SHOWN_TRACEBACK_FRAMES:]])


def _unwrap_groups(error: BaseException) -> tuple[BaseException, list[Any]]:
    """Give the exception inside groups of one, and the tracebacks on the way to it."""
    traces = [error.__traceback__]
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
        traces.append(error.__traceback__)
    return error, traces


def _list_adapter_frames(traces: list[Any]) -> list[tuple[FrameType, int]]:
    """List the frames of the adapter and of the supervisor, each with its line."""
    found = [pair for trace in traces for pair in traceback.walk_tb(trace)]
    return [(frame, line) for frame, line in found if not is_kit_or_library_file(frame.f_code.co_filename)]


def is_kit_file(file: str) -> bool:
    """Say whether a file of code is the kit's."""
    return file.startswith(_FOLDER_OF_THE_KIT)


def is_kit_or_library_file(file: str) -> bool:
    """Say whether a file of code is the kit's, an event loop's or the standard library's."""
    if is_kit_file(file):
        return True
    # Not by the folder of this environment: it may use the packages of another one.
    installed = _INSTALLED_PACKAGE_PATTERN.match(file)
    if installed is not None:
        return installed[1] in _EVENT_LOOP_PACKAGES
    return file.startswith((*_STANDARD_LIBRARY_FOLDERS, "<frozen"))
