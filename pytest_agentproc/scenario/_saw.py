"""Owns what a scenario expects the agent to have been given. Refuses to know who gave it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_agentproc.scenario._kinds import Text
from pytest_agentproc.scenario._nodes import Mapping, Node, Scalar
from pytest_agentproc.scenario._shapes import MapOf

if TYPE_CHECKING:
    from pytest_agentproc.scenario._check import Check

__all__ = ["Variables"]


class Variables:
    """Names of environment variables with their values; `unset` for one that must not be there."""

    label = "{NAME: TEXT / unset}"
    shape = MapOf(Text())

    def read(self, node: Node, what: str, check: Check) -> dict[str, str | None]:
        """Read the pairs."""
        if not isinstance(node, Mapping):
            check.wrong(node, what, f"a mapping such as {self.label}")
            return {}
        found: dict[str, Any] = {}
        for name, value in node.pairs:
            if not name.text or "=" in name.text or "\0" in name.text:
                check.at(name, f'{what} has no variable "{name.text}": a name is text without "="')
            is_unset = isinstance(value, Scalar) and value.plain and value.text == "unset"
            found[name.text] = None if is_unset else Text().read(value, f"{what}.{name.text}", check)
        return found
