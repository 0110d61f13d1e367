"""The forms of a subject: an object, a class, a factory or a plain function. Owns the choice; imports and asks none."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError
from pytest_agentproc.foreign import is_exit_of_pytest
from pytest_agentproc.subjects._checked_subject import CheckedSubject
from pytest_agentproc.subjects._function import Function
from pytest_agentproc.subjects._reference import ReferenceSupervisor
from pytest_agentproc.subjects._report_reading import describe_type

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import Subject


_MEMBERS_OF_SUBJECTS = ("name", "keeps_artifacts", "holds_sessions", "policy", "run")
_HOW_TO_GIVE_A_SUBJECT = "give an `async def supervise(order)`, or what pytest_agentproc.vocabulary.Subject describes"


def as_subject(thing: Any) -> Subject:
    """Convert an object, a class or a function to a subject.

    Args:
        thing: a subject; a class or a factory of one, without arguments; or a function of an order, which becomes
            `Function(it)`.

    Raises:
        UsageError: it is none of these; the text says what it lacks, or what it raised.
    """
    try:
        return _convert_to_subject(thing)
    except UsageError:
        raise
    except Exception as error:  # it is theirs, whatever it is: a proxy, for example, raises at any look
        if is_exit_of_pytest(error):
            raise
        raise UsageError(
            f"{describe_type(thing)} is no subject, a look at it raised {type(error).__name__}: {error}",
            _HOW_TO_GIVE_A_SUBJECT,
        ) from error


def _convert_to_subject(thing: Any) -> Subject:
    if inspect.isclass(thing) or (
        _is_function_or_partial(thing) and not _can_take_arguments(thing, 1) and _can_take_arguments(thing, 0)
    ):
        thing = _call_subject_factory(thing)
    if _is_function_or_partial(thing):
        if not _can_take_arguments(thing, 1):
            raise UsageError("it does not take one argument, the order", _HOW_TO_GIVE_A_SUBJECT)
        return Function(thing)
    missing = [name for name in _MEMBERS_OF_SUBJECTS if not hasattr(thing, name)]
    if callable(thing) and {"policy", "run"} <= set(missing):
        return Function(thing)
    if missing:
        raise UsageError(f"{describe_type(thing)} is no subject, it lacks {', '.join(missing)}", _HOW_TO_GIVE_A_SUBJECT)
    if not isinstance(thing.name, str) or not thing.name or "," in thing.name:
        raise UsageError(f"its name is {thing.name!r}", "give it a text without a comma")
    for name in ("policy", "run"):
        if not callable(getattr(thing, name)):
            raise UsageError(f"its {name} is {getattr(thing, name)!r}, and no method", _HOW_TO_GIVE_A_SUBJECT)
    if not _can_take_arguments(thing.policy, 1):
        raise UsageError("its policy does not take one argument, the request for limits", _HOW_TO_GIVE_A_SUBJECT)
    return thing if isinstance(thing, ReferenceSupervisor | Function | CheckedSubject) else CheckedSubject(thing)


def _is_function_or_partial(thing: Any) -> bool:
    return inspect.isroutine(thing) or isinstance(thing, functools.partial)


def _can_take_arguments(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*(None,) * count)
    except TypeError:
        return False
    except ValueError:  # a builtin that does not say
        return count == 1
    return True


def _call_subject_factory(factory: Any) -> Any:
    name = getattr(factory, "__name__", repr(factory))
    if not _can_take_arguments(factory, 0):
        raise UsageError(f"{name} needs arguments", f"give what {name}(...) makes, or a factory without arguments")
    try:
        subject = factory()
    except UsageError:
        raise
    except Exception as error:
        if is_exit_of_pytest(error):
            raise
        raise UsageError(f"{name}() raised {type(error).__name__}: {error}", "") from error
    if inspect.isawaitable(subject):
        getattr(subject, "close", lambda: None)()
        raise UsageError(f"{name} takes no order", _HOW_TO_GIVE_A_SUBJECT)
    return subject
