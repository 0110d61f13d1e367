"""The `agentproc` command. Each command has a file of its own, which loads when it is called."""

from __future__ import annotations

from pytest_agentproc.cli._commands import main

__all__ = ["main"]
