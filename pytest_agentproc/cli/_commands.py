"""Owns which commands there are. Loads none: whoever asks for help waits for no module that he does not use."""

from __future__ import annotations

__all__ = ["COMMANDS"]

COMMANDS: dict[str, tuple[str, str]] = {
    "import": ("pytest_agentproc.cli._importing", "turn a log from a bug report into a draft of a scenario"),
    "schema": ("pytest_agentproc.cli._schema", "write the JSON Schema of the language, for editors"),
}
"""Of each command its module, and what it is for in one line."""
