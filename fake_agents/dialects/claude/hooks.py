"""The hooks of `--settings`, each a shell command: which of them run, and what their answers mean. Knows no turn.

A hook gets its facts as JSON on stdin. With exit code 2, `decision: block` or `permissionDecision: deny` it blocks.
`--include-hook-events` has each hook reported; those of SessionStart are always reported.
"""

from __future__ import annotations

import posix

from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.requests import parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program

MAX_STOP_HOOK_BLOCKS = 9
"""After this number of blocks in a row by Stop hooks the turn ends all the same."""

HOOK_DENIAL_FIELDS = {
    "non_execution_kind": "permission-rule",
    "permission_decision": {"decision": "reject", "source": "hook", "reason_type": "hook"},
}
"""The fields of a tool's end after a hook has denied the tool."""

_DEFAULT_HOOK_SECONDS = 600.0
"""The real seconds of a hook without a `timeout`."""

_DENYING_HOOK_EVENTS = ("PreToolUse", "PermissionRequest")
"""The events whose hooks can deny a tool."""

_BLOCKING_EXIT_CODE = 2
_NO_VERDICT_LINE = {
    "type": "system",
    "subtype": "informational",
    "content": "A hook didn't answer in time, so it didn't check this action.",
    "level": "warning",
    "tag": "hook_no_verdict",
}
STOP_HOOK_NOTICE_LINE = {
    "type": "system",
    "subtype": "notification",
    "key": "stop-hook-error",
    "text": "stop hook problem · ctrl+o to see",
    "priority": "immediate",
}
_BLOCK_LIMIT_MESSAGE = (
    f"A hook blocked the turn from ending {MAX_STOP_HOOK_BLOCKS} consecutive times—overriding and ending turn. For "
    "Stop/SubagentStop hooks, check stop_hook_active in the input and return success while it's true. Set "
    "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP to raise this limit."
)
BLOCK_LIMIT_LINES: tuple[dict[str, Any], ...] = (
    {"type": "system", "subtype": "informational", "content": _BLOCK_LIMIT_MESSAGE, "level": "warning"},
    {
        "type": "system",
        "subtype": "notification",
        "key": "stop-hook-block-cap",
        "text": _BLOCK_LIMIT_MESSAGE,
        "priority": "high",
        "color": "warning",
    },
)
"""The lines about a turn that ends although its hook blocks it."""


class ShellHooks:
    """All hooks of an agent.

    Args:
        program: the program; its `hooks` are those of the settings.
        session: the session's id.
        uuid: makes the id of a run of a hook.
    """

    def __init__(self, program: Program, session: str, uuid: Callable[[], str]) -> None:
        settings = program.get("hooks", {})
        # A wrong entry that may be a guard has the real CLI apply nothing of the settings; it ignores any other one.
        self._settings = (
            settings if all(_has_valid_entries(settings.get(event)) for event in _DENYING_HOOK_EVENTS) else {}
        )
        self._session = session
        self.transcript_path = (program.get("session") or {}).get("path") or f"/home/u/{session}.jsonl"
        """The session file. Without a home, no file has this name."""
        self._uuid = uuid
        self._are_reported = "--include-hook-events" in program.get("argv", ())

    def run_event_hooks(
        self, event: str, subject: str, facts: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Run the hooks of an event, one after the other.

        Args:
            event: the event.
            subject: what the `matcher` of a hook must match: the tool, or the source of the session.
            facts: the facts of the event alone.

        Returns:
            The lines about them, and the reason of the last one that blocks; None: none does.
        """
        lines: list[dict[str, Any]] = []
        reason = None
        for command, seconds in self._find_hook_commands(event, subject):
            more, blocks = self._run_hook_command(event, subject, facts, command, seconds)
            lines += more
            reason = reason if blocks is None else blocks
        return lines, reason

    def _find_hook_commands(self, event: str, subject: str) -> list[tuple[str, float]]:
        found: list[tuple[str, float]] = []
        groups = self._settings.get(event)
        for group in groups if isinstance(groups, list) else ():
            if _is_hook_group(group) and _is_matching_subject(group.get("matcher", ""), subject):
                hooks = [hook for hook in group["hooks"] if _is_command_hook(hook)]
                found += [(hook["command"], hook.get("timeout", _DEFAULT_HOOK_SECONDS)) for hook in hooks]
        return found

    def _run_hook_command(
        self, event: str, subject: str, facts: dict[str, Any], command: str, seconds: float
    ) -> tuple[list[dict[str, Any]], str | None]:
        from pytest_agentproc.fake_agents.children import run_shell_command  # few agents pay for it

        folder = posix.getcwd()
        fields = {"session_id": self._session, "transcript_path": self.transcript_path, "cwd": folder}
        fields |= {"hook_event_name": event, **facts}
        completed = run_shell_command(
            command, encode_json_line(fields) + b"\n", {b"CLAUDE_PROJECT_DIR": folder.encode()}, seconds
        )
        name = f"{event}:{subject}" if subject else event
        head = {"hook_id": self._uuid(), "hook_name": name, "hook_event": event}
        code, stdout, stderr = completed or (1, "", "")
        outcome = "cancelled" if completed is None else "error" if code else "success"
        printed = {"output": stderr + stdout, "stdout": stdout, "stderr": stderr, "exit_code": code, "outcome": outcome}
        lines: list[dict[str, Any]] = []
        if self._are_reported or event == "SessionStart":
            start_event = {"type": "system", "subtype": "hook_started", **head}
            lines = [start_event, {**start_event, "subtype": "hook_response", **printed}]
        if completed is None and event == "PreToolUse":
            about = {"hook_event": event, "tool_use_id": facts["tool_use_id"], "timed_out": True}
            lines.append({**_NO_VERDICT_LINE, "hook_no_verdict": about})
        return lines, _find_block_reason(command, code, stdout, stderr)


def _has_valid_entries(groups: Any) -> bool:
    """Say whether the entries for an event have no wrong value."""
    if groups is None:
        return True
    return isinstance(groups, list) and all(
        _is_hook_group(group) and all(_is_command_hook(hook) or _is_non_command_hook(hook) for hook in group["hooks"])
        for group in groups
    )


def _is_non_command_hook(hook: Any) -> bool:
    """Say whether this is a hook that is no command: no fake runs it."""
    return isinstance(hook, dict) and isinstance(hook.get("type"), str) and hook["type"] != "command"


def _is_hook_group(group: Any) -> bool:
    """Say whether this is a group of hooks."""
    return (
        isinstance(group, dict) and isinstance(group.get("hooks"), list) and isinstance(group.get("matcher", ""), str)
    )


def _is_command_hook(hook: Any) -> bool:
    """Say whether this is a hook that runs a command; its limit, if it has one, is more than 0 seconds."""
    if not isinstance(hook, dict) or hook.get("type") != "command" or not isinstance(hook.get("command"), str):
        return False
    limit = hook.get("timeout", _DEFAULT_HOOK_SECONDS)
    return isinstance(limit, int | float) and not isinstance(limit, bool) and limit > 0


def _is_matching_subject(matcher: str, subject: str) -> bool:
    """Say whether a hook is for this subject. A matcher is a list of names, or a pattern for a part of the name."""
    if not subject or matcher in ("", "*"):
        return True
    import re  # slow to load, and needed by nobody else

    if re.fullmatch(r"[a-zA-Z0-9_|, -]+", matcher):
        return subject in [name.strip() for name in re.split(r"[|,]", matcher)]
    try:
        return re.search(matcher, subject) is not None
    except re.error:  # no pattern: the real CLI does not run the hook
        return False


def _find_block_reason(command: str, code: int, stdout: str, stderr: str) -> str | None:
    """Give the reason of a hook that blocks; None: it does not."""
    if code == _BLOCKING_EXIT_CODE:
        return f"[{command}]: {stderr}"
    answer = parse_json_object(stdout.encode()) if code == 0 and stdout.startswith("{") else None
    if answer is None:
        return None
    own = answer.get("hookSpecificOutput")
    if isinstance(own, dict) and own.get("permissionDecision") == "deny":
        return str(own.get("permissionDecisionReason", ""))
    return str(answer.get("reason", "")) if answer.get("decision") == "block" else None
