"""What the real CLIs answer to those who only ask what is installed. Owns the answers; a fake gives them and exits 0.

A client asks before it starts an agent, or never; so a probe is no start of the agent: it plays no script, counts as
no invocation and stands in no record. The versions are those whose words the fakes speak.
"""

from __future__ import annotations

__all__ = ["START", "probes_of"]

START = "--agentproc-start"
"""The argument with which the kit asks whether a fake starts at all."""

_VERSIONS = {
    "claude": ("2.1.330 (Claude Code)", ("--version", "-v")),
    "pi": ("0.73.1", ("--version", "-v")),
    "codex": ("codex-cli 0.163.0", ("--version", "-V")),
    "gemini": ("0.61.0", ("--version", "-v")),
}
_LOGGED_IN = '{\n  "loggedIn": true,\n  "authMethod": "api_key",\n  "apiProvider": "firstParty"\n}'
_OTHERS = {"claude": {("auth", "status"): _LOGGED_IN}}


def probes_of(dialect: str) -> dict[tuple[str, ...], bytes]:
    """Give what a dialect's CLI prints, by all the arguments that ask for it."""
    version, flags = _VERSIONS.get(dialect, ("", ()))
    asked = {(flag,): version for flag in flags} | _OTHERS.get(dialect, {})
    return {(START,): b""} | {arguments: f"{told}\n".encode() for arguments, told in asked.items()}
