"""Copies an encoder before steps are tried on it. Owns how deep a copy goes; refuses to know what an encoder prints.

An encoder keeps what it printed, and a deep copy for each line of a long log takes the square of its length. But an
encoder never changes a dict or a tuple that it keeps: it puts another in its place. So these are shared, and only
objects and the lists, dicts and sets that they own are copied.
"""

from __future__ import annotations

import copy
from types import MethodType
from typing import Any

__all__ = ["duplicate"]

_HOME = "fake_agents."


def duplicate(encoder: Any) -> Any:
    """Give an encoder in the same state: steps that are played on either of the two leave the other as it is."""
    if not type(encoder).__module__.startswith(_HOME):
        return copy.deepcopy(encoder)  # an encoder of a plugin may change whatever it keeps
    return _copy(encoder, {})


def _copy(value: Any, made: dict[int, Any]) -> Any:
    if isinstance(value, MethodType):
        return MethodType(value.__func__, _copy(value.__self__, made))
    if isinstance(value, dict):
        return {key: _copy(one, made) for key, one in value.items()} if _has_state(value.values()) else value.copy()
    if isinstance(value, list):
        return [_copy(one, made) for one in value] if _has_state(value) else value.copy()
    if isinstance(value, set):
        return value.copy()
    if not type(value).__module__.startswith(_HOME):
        return value
    if id(value) not in made:
        made[id(value)] = twin = object.__new__(type(value))
        for name in getattr(value, "__dict__", None) or value.__slots__:
            setattr(twin, name, _copy(getattr(value, name), made))
    return made[id(value)]


def _has_state(members: Any) -> bool:
    """Say whether the members can change; all members of a collection are of one kind, so the first decides."""
    first = next(iter(members), None)
    return isinstance(first, MethodType | list) or type(first).__module__.startswith(_HOME)
