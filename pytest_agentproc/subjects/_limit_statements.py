"""The stated limits and dialects of a supervisor, and the mistakes in them. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pytest_agentproc.errors import UsageError, suggest_known_word
from pytest_agentproc.supervisor.dialects import DIALECT_AND_MODE_NAMES, RUN_DIALECT_NAMES, SESSION_DIALECT_NAMES
from pytest_agentproc.vocabulary import (
    ALL_LIMIT_NAMES,
    CAPABILITIES,
    LIMITS_IN_SECONDS,
    LIMITS_OFF_IF_UNSTATED,
    LIMITS_THAT_ARE_LISTS,
    SIGNALS_THAT_BEGIN_ENDING,
    TEXTS_OF_OTHER_NEEDS,
    Dialect,
    LimitsRequest,
    Outcome,
    Policy,
    find_remedy,
    mark_unstated_limits,
)

_OUTCOMES_ALWAYS_LISTED = ("completed", "failed")

_DIALECT_NAMES = tuple(dict.fromkeys((*RUN_DIALECT_NAMES, *SESSION_DIALECT_NAMES)))


def require_limits(limits: Any) -> dict[str, Any]:
    """Give limits as a mapping.

    Raises:
        UsageError: they are none, or there is no such limit or value.
    """
    if not isinstance(limits, Mapping):
        raise UsageError(f"limits is {limits!r}", "write limits={'inactivity_timeout': 60}, for example")
    make_policy(limits, "raw")
    return dict(limits)


def require_limits_function(function: Callable[..., Any]) -> Callable[[LimitsRequest], Any]:
    """Give a function of limits as it is, if it takes a `LimitsRequest` and nothing else.

    Raises:
        UsageError: it takes other arguments.
    """
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        name = getattr(function, "__name__", repr(function))
        raise UsageError(
            f"limits is the function {name}{inspect.signature(function)}, and it must take one argument, the request",
            "write `def limits(request):`; it has request.limits, request.dialect, request.mode, request.is_session",
        ) from None
    except ValueError:  # a builtin that does not say
        pass
    return function


def make_policy(limits: Mapping[str, Any], dialect: str) -> Policy:
    """Give the policy of a supervisor that states certain limits: of `LIMITS_OFF_IF_UNSTATED` it has no other.

    Of any other limit it has some value, which is unstated.

    Raises:
        UsageError: there is no such limit or value.
    """
    for name in limits:
        _require_known_name("limit", name, ALL_LIMIT_NAMES)
    off = dict.fromkeys(LIMITS_OFF_IF_UNSTATED)
    given = {name: () if name in LIMITS_THAT_ARE_LISTS and value is None else value for name, value in limits.items()}
    return mark_unstated_limits(Policy.for_dialect(dialect, **(off | given)), limits)


def has_time_limit(limits: Mapping[str, Any]) -> bool:
    """Say whether one of the limits is a time: none is as long by any clock."""
    return any(name in LIMITS_IN_SECONDS and value for name, value in limits.items())


def require_dialects(dialects: Iterable[str | Dialect] | str | None) -> tuple[str, ...] | None:
    """Give the names of dialects, and of their modes, as they are listed; None: all.

    Raises:
        UsageError: there is no such dialect or mode, or not one is listed.
    """
    if dialects is None:
        return None
    listed = tuple(_require_dialect(dialect) for dialect in ([dialects] if isinstance(dialects, str) else dialects))
    if not listed:
        raise UsageError("dialects is empty", f"leave it out for all, or name some of {', '.join(_DIALECT_NAMES)}")
    return listed


def _require_dialect(dialect: str | Dialect) -> str:
    if isinstance(dialect, Dialect):
        return dialect.name
    if dialect not in DIALECT_AND_MODE_NAMES:
        _require_known_name(
            "dialect",
            dialect,
            _DIALECT_NAMES,
            ". A mode may follow, as in `gemini stream`",
        )
    return dialect


def require_actions(actions: Iterable[str]) -> tuple[str, ...]:
    """Give what the caller of a session may do as it is listed.

    Raises:
        UsageError: there is no such deed.
    """
    listed = tuple([actions] if isinstance(actions, str) else actions)
    for action in listed:
        _require_known_name("deed", action, CAPABILITIES)
    return listed


def require_cannot_words(words: Iterable[str]) -> tuple[str, ...]:
    """Give what a supervisor cannot do as it is listed: `TEXTS_OF_OTHER_NEEDS`, and `CAPABILITIES` of its sessions.

    Raises:
        UsageError: there is no such word.
    """
    listed = tuple([words] if isinstance(words, str) else words)
    for word in listed:
        _require_known_name("ability", word, (*TEXTS_OF_OTHER_NEEDS, *CAPABILITIES), plural="abilities")
    return listed


def require_outcomes(words: Iterable[str] | str) -> tuple[str, ...]:
    """Give the outcomes that a supervisor can tell apart as they are listed; none: all.

    Raises:
        UsageError: there is no such outcome, or `completed` or `failed` is not among them.
    """
    listed = tuple([words] if isinstance(words, str) else words)
    for word in listed:
        _require_known_name("outcome", word, tuple(Outcome))
    if listed and not {*_OUTCOMES_ALWAYS_LISTED} <= {*listed}:
        raise UsageError(
            f"outcomes is {list(listed)!r}", "name completed and failed among them, or leave it out for all"
        )
    return listed


def require_first_signal(name: str) -> str:
    """Give the signal with which a supervisor begins to end an agent.

    Raises:
        UsageError: it is none of TERM, INT and HUP.
    """
    if name not in SIGNALS_THAT_BEGIN_ENDING:
        raise UsageError(f"first_signal is {name!r}", f"write one of {', '.join(SIGNALS_THAT_BEGIN_ENDING)}")
    return name


def _require_known_name(what: str, name: Any, known: tuple[str, ...], more: str = "", plural: str = "") -> None:
    if name in known:
        return
    if remedy := find_remedy(what, name):
        raise UsageError(f"there is no {what} {name!r}", remedy)
    if hint := suggest_known_word(name, known, "", ", "):
        raise UsageError(f"there is no {what} {name!r}{hint}")
    raise UsageError(f"there is no {what} {name!r}", f"{plural or what + 's'} are {', '.join(known)}{more}")
