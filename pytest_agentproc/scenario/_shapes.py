"""Owns what a value of a table looks like where its type alone does not say it. Reads no node: the schema looks at it.

A type of value that is not made of others as they stand has an attribute `shape`: a type, or one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["AnyOf", "Form", "MapOf"]


@dataclass(frozen=True)
class Form:
    """A text of a form.

    Args:
        pattern: a regular expression for all of it, as Python and ECMAScript both have it.
        examples: what an editor offers.
    """

    pattern: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class MapOf:
    """A mapping of free names to one type; `single` if it has one name only."""

    value: Any
    names: Any = None
    single: bool = False


@dataclass(frozen=True)
class AnyOf:
    """One of several shapes."""

    shapes: tuple[Any, ...]

    @property
    def label(self) -> str:
        """Join them."""
        return " / ".join(shape.label for shape in self.shapes)
