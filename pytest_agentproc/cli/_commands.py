"""Owns the list of commands. Loads none, so the help does not wait for modules that it does not use."""

from __future__ import annotations

MODULE_AND_PURPOSE_BY_COMMAND: dict[str, tuple[str, str]] = {
    "check": ("pytest_agentproc.cli._check_command", "list every mistake in scenario files"),
    "conform": ("pytest_agentproc.cli._conform_command", "judge supervisors over the bundled scenarios"),
    "explain": (
        "pytest_agentproc.cli._explain_command",
        "explain a rule, an outcome, a verdict, a step, a key or a defect",
    ),
    "fake": ("pytest_agentproc.cli._fake_command", "write an executable fake agent for tests in any language"),
    "import": ("pytest_agentproc.cli._import_command", "turn a log from a bug report into a draft of a scenario"),
    "list": (
        "pytest_agentproc.cli._list_command",
        "list the bundled scenarios by behaviour, rule, bug family and dialect",
    ),
    "new": ("pytest_agentproc.cli._new_command", "start a scenario file that an editor helps to write"),
    "record": ("pytest_agentproc.cli._record_command", "run a program and make a scenario of what it does"),
    "run": ("pytest_agentproc.cli._run_command", "play one scenario and watch: the timeline, then the verdict"),
    "schema": ("pytest_agentproc.cli._schema_command", "write the JSON Schema of the language, for editors"),
    "search": ("pytest_agentproc.cli._search_command", "look for the timing under which a supervisor breaks a promise"),
    "time": ("pytest_agentproc.cli._time_command", "run any command in virtual time"),
}
"""The module of each command, and its purpose in one line."""

LINUX_ONLY_COMMANDS: frozenset[str] = frozenset({"conform", "fake", "record", "run", "search", "time"})
"""Commands that start processes, which needs Linux; all others run on any platform."""
