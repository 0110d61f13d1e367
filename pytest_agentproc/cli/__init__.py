"""The `agentproc` command: a thin door. Each command is a module of its own, loaded when it is asked for."""

from __future__ import annotations

from pytest_agentproc.cli._door import main

__all__ = ["main"]
