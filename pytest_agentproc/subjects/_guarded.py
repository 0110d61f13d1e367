"""A foreign supervisor, asked with care. Owns what becomes of its exceptions and of wrong answers; judges none."""

from __future__ import annotations

import asyncio
import os
import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pytest_agentproc.errors import AdapterError, ClockError, Declined, KitError
from pytest_agentproc.subjects._answers import answer_of
from pytest_agentproc.subjects._stated import policy_of
from pytest_agentproc.vocabulary import Policy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_agentproc.vocabulary import Answer, LimitsRequest, Order, Subject

__all__ = ["Guarded", "ask", "stated", "unwrap_decline"]

_KIT = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_FOREIGN = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_FRAMES = 4


class Guarded:
    """A subject of somebody else's: whatever goes wrong in it is an `AdapterError` that says where.

    Args:
        subject: what is asked.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.name = subject.name
        self.keeps_artifacts = subject.keeps_artifacts
        self.holds_sessions = subject.holds_sessions
        self.needs_keeper = getattr(subject, "needs_keeper", False)
        self.takes_runs = getattr(subject, "takes_runs", True)
        self.dialects = getattr(subject, "dialects", None)
        self.deeds = getattr(subject, "deeds", None)
        self.cannot = getattr(subject, "cannot", ())
        self.outcomes = getattr(subject, "outcomes", ())
        self.first_signal = getattr(subject, "first_signal", "TERM")
        self.cancellable = getattr(subject, "cancellable", None)
        self.real_time_only = getattr(subject, "real_time_only", "")

    def policy(self, request: LimitsRequest) -> Policy:
        """Have it state its limits.

        Raises:
            AdapterError: it raised, or they are none.
            Declined: it cannot take such agents.
        """
        return stated(lambda: _whole(self.subject.policy(request), request.dialect))

    async def run(self, order: Order) -> Answer:
        """Have it supervise.

        Raises:
            AdapterError: it raised, or its answer is none.
            Declined: it cannot take the order.
        """
        return await ask(self.subject.run, order)


def _whole(limits: Any, dialect: str) -> Any:
    return policy_of(limits, dialect) if isinstance(limits, Mapping) else limits


def stated(policy: Callable[[], Any]) -> Policy:
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
        raise AdapterError(f"asked for its limits, it {_told(error)}") from error
    if not isinstance(limits, Policy):
        raise AdapterError(f"asked for its limits, it gave a {type(limits).__name__}\ngive Policy.for_dialect(dialect)")
    return limits


async def ask(supervise: Callable[[Order], Awaitable[Any]], order: Order) -> Answer:
    """Have an order supervised.

    Raises:
        AdapterError: the function raised, or what it returned is no answer.
        Declined: it was raised, alone or in groups.
    """
    try:
        given = await _awaitable(supervise(order))
    except (AdapterError, ClockError, Declined, KitError):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise AdapterError(f"it {_told(error)}") from error  # nobody cancelled it
    except (Exception, SystemExit) as error:
        if (declined := unwrap_decline(error)) is not None:
            raise declined from None
        raise AdapterError(f"it {_told(error)}") from error
    return answer_of(given, order.scale)


def unwrap_decline(error: BaseException) -> Declined | None:
    """Give the decline in an exception: itself, or from a group that holds nothing else; None: it is another."""
    while isinstance(error, BaseExceptionGroup) and error.split(Declined)[1] is None:
        error = error.exceptions[0]
    return error if isinstance(error, Declined) else None


def _awaitable(given: Any) -> Awaitable[Any]:
    if hasattr(given, "__await__"):
        return cast("Awaitable[Any]", given)
    raise AdapterError(f"its run gave a {type(given).__name__} at once\nmake it `async def run(self, order)`")


def _told(error: BaseException) -> str:
    """Tell what was raised, and where in their code: the last lines of the traceback, the innermost at the end."""
    frames = list(traceback.extract_tb(error.__traceback__))
    inner = error
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:
        inner = inner.exceptions[0]
        frames += traceback.extract_tb(inner.__traceback__)
    frames = [frame for frame in frames if not frame.filename.startswith(_KIT)]
    own = [frame for frame in frames if not frame.filename.startswith((*_FOREIGN, "<frozen"))]
    said = "".join(traceback.format_exception_only(inner)).strip()
    where = [f"  {_place(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line}" for frame in own or frames]
    return "\n".join([f"raised {said}", *where[-_FRAMES:]])


def _place(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
