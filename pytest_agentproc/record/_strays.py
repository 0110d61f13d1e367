"""Owns the words for whom a signal was that was not meant for the run. Judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["stray_target"]

_TARGETS = {
    "everything": "every process there is",
    "own group": "the process group of pytest",
    "itself": "pytest itself",
    "process": "process {pid} ({who})",
    "reused": "process {pid} ({who})",
    "group": "process group {pid} ({who})",
    "freed": "{pid}, the pid that {who} had",
    "canary": "a canary {who}",
}


def stray_target(data: Mapping[str, Any]) -> str:
    """Say whom a signal was for; `to` of the marker is the kind, `who` the name, `pid` the number."""
    return _TARGETS[data["to"]].format(who=data["who"], pid=data.get("pid"))
