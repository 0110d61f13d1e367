"""Which programs that are no fakes a test allows in virtual time, by its marker. Owns the reading of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    import pytest

__all__ = ["allowed_programs"]


def allowed_programs(node: pytest.Item) -> tuple[str, ...]:
    """Give the names in `@pytest.mark.virtual_time(allow=["cat"])`, of every such marker of the test.

    Raises:
        UsageError: `allow` is no list of names.
    """
    names: list[str] = []
    for marker in node.iter_markers("virtual_time"):
        given = marker.kwargs.get("allow", ())
        if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
            raise UsageError(f"virtual_time(allow={given!r}) is no list of names", "write allow=['cat'], for example")
        names += given
    return tuple(names)
