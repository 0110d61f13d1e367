"""The `agentproc` command: a thin door. Each command is a module of its own, loaded when it is asked for.

A command is a line in `_commands` and a module with `add_arguments(parser)`, which adds its arguments, and
`run_command(options)`, which does the work and returns the exit code. The kit's own errors are reported in one
sentence.
"""

from __future__ import annotations

from pytest_agentproc.cli._door import main

__all__ = ["main"]
