"""The words of claude about its tasks: how one starts, how it ends, whose turn follows. Knows no turn and no line."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    SystemLines = list[tuple[str, dict[str, Any]]]
    """Subtypes of `system` lines, each with what it tells."""


_PATCH_WORDS_BY_STATUS = {"stopped": "killed"}
"""Where the two lines about one end use two words."""

_OUTPUT_FILE_PATH = "/home/u/x"
_COMMAND_LAUNCH_TEXT = (
    "Command running in background with ID: {}. Output is being written to: {} You will be notified when it "
    "completes. To check interim output, use Read on that file path."
)
_SUBAGENT_LAUNCH_TEXT = "Async agent launched successfully. (This tool result is internal metadata \u2014 neve..."
"""As far as the recording has it."""

_TASK_TOKEN_USAGE = {"total_tokens": 15, "tool_uses": 0, "duration_ms": 0}
_EXIT_CODES_BY_STATUS = {"completed": 0, "failed": 1}


class SessionTasks:
    """The tasks of a session: the start of each task, and which run in the background."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        self._running: list[str] = []
        self._over: list[str] = []

    def start_task(self, fields: dict[str, Any], call: dict[str, Any]) -> SystemLines:
        """Give the lines for a task that a tool's call starts; in the foreground the long call itself is the task."""
        number, kind, is_behind = fields["id"], fields["kind"], not fields.get("foreground")
        text = call["input"].get("description", number)
        run = f"run-{number}"
        self._known[number] = {**fields, "run": run, "call": call, "description": text, "behind": is_behind}
        details = {"task_id": number, "run_id": run, "tool_use_id": call["id"], "description": text}
        asked, is_agent = call["input"], kind == "local_agent"
        details |= {"subagent_type": asked.get("subagent_type", "general-purpose")} if is_agent else {}
        details["is_backgrounded"] = is_behind
        details |= {"spawn_depth": 1} if is_agent else {}
        details["task_type"] = kind
        details |= {"prompt": asked.get("prompt", number)} if is_agent else {}
        start_event = ("task_started", details)
        if not is_behind:
            return [start_event]
        self._running.append(number)
        return [self._list_running_tasks(), start_event]

    def end_task(self, fields: dict[str, Any], now: int) -> SystemLines:
        """Give the lines for a task's end: the update, the notification, and which tasks are left."""
        number, status = fields["id"], fields["status"]
        if number in self._running:
            self._running.remove(number)
            self._over += [] if fields.get("in_same_turn") or status == "stopped" else [number]
        if number in self._known:
            self._known[number] = {**self._known[number], "ended": status}
        known, is_signalled = self._find_task(number), fields.get("signalled", False)
        about = {"task_id": number, "run_id": known["run"]}
        patch = {"status": _PATCH_WORDS_BY_STATUS.get(status, status), "end_time": now // 1_000_000}
        file = _OUTPUT_FILE_PATH if known["behind"] and not is_signalled else ""
        details = {"tool_use_id": known["call"]["id"], "status": status, "output_file": file}
        reported = {} if fields.get("report") is None else {"summary_is_report": True, "usage": _TASK_TOKEN_USAGE}
        notified = ("task_notification", {**about, **details, "summary": self._summarize_task_end(fields), **reported})
        updated = ("task_updated", {**about, "patch": patch})
        if not known["behind"]:
            return [notified]
        return [*([notified, updated] if is_signalled else [updated, notified]), self._list_running_tasks()]

    def count_subagents(self) -> dict[str, Any]:
        """Give the fields of a result about the sub-agents so far, if there are any."""
        agents = [task for task in self._known.values() if task["kind"] == "local_agent"]
        asked = [agent["call"]["input"].get("run_in_background") for agent in agents]
        types = [agent["call"]["input"].get("subagent_type", "general-purpose") for agent in agents]
        return {
            "spawned": len(agents),
            "requested": {
                "background": asked.count(True),
                "foreground": asked.count(False),
                "unset": asked.count(None),
            },
            "started_in_background": len([agent for agent in agents if agent["behind"]]),
            "max_depth": min(1, len(agents)),
            **{status: [agent.get("ended") for agent in agents].count(status) for status in ("completed", "failed")},
            "by_type": {name: types.count(name) for name in types},
        }

    def is_task_running(self, number: str) -> bool:
        """Say whether it runs in the background."""
        return number in self._running

    def list_running_tasks(self) -> list[str]:
        """Name those that run in the background."""
        return self._running[:]

    @property
    def has_owed_turns(self) -> bool:
        """Whether one is over whose turn has not begun."""
        return bool(self._over)

    @property
    def has_running_tasks(self) -> bool:
        """Whether one runs in the background."""
        return bool(self._running)

    def begin_task_turn(self, number: str) -> str:
        """Have a turn be about a task; give its run."""
        if number in self._over:
            self._over.remove(number)
        return str(self._find_task(number)["run"])

    def begin_other_task_turn(self, number: str) -> str:
        """Have an empty turn be about the first other task that is over and had none; give its run."""
        return self.begin_task_turn(next((task for task in self._over if task != number), number))

    def find_task_started_by(self, call: str) -> str:
        """Name the background task that a call of a tool started, if one did."""
        found = (number for number, task in self._known.items() if task["behind"] and task["call"]["id"] == call)
        return next(found, "")

    def describe_running_tasks(self) -> list[dict[str, Any]]:
        """Give a hook's fields about the running tasks."""
        return [
            {
                "id": number,
                "type": "shell" if known["kind"] == "local_bash" else "subagent",
                "status": "running",
                "description": known["description"],
                "command": known["call"]["input"].get("command", ""),
            }
            for number, known in self._known.items()
            if number in self._running
        ]

    def find_starting_tool_call(self, number: str) -> str:
        """Name the tool that started it."""
        return str(self._find_task(number)["call"]["id"])

    def describe_subagent_launch(self, number: str, model: str) -> dict[str, Any] | None:
        """Give the fields about a sub-agent's start beside the tool's output; None for a command."""
        known = self._find_task(number)
        if known["kind"] != "local_agent":
            return None
        asked = {"description": known["description"], "resolvedModel": model}
        asked["prompt"] = known["call"]["input"].get("prompt", number)
        head = {"isAsync": True, "status": "async_launched", "agentId": number}
        return {**head, **asked, "outputFile": _OUTPUT_FILE_PATH, "canReadOutputFile": True, "canContinueAgent": True}

    def describe_launch_output(self, number: str) -> str | list[dict[str, Any]]:
        """Give what the tool that started it is said to have given."""
        if self._find_task(number)["kind"] == "local_agent":
            return [{"type": "text", "text": _SUBAGENT_LAUNCH_TEXT}]
        return _COMMAND_LAUNCH_TEXT.format(number, _OUTPUT_FILE_PATH)

    def build_task_end_prompt(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Give the words to the model about a task's end within a turn, as if they were a prompt."""
        known = self._find_task(fields["id"])
        details = {"task-id": fields["id"], "tool-use-id": known["call"]["id"], "output-file": _OUTPUT_FILE_PATH}
        details |= {"status": fields["status"], "summary": self._summarize_task_end(fields)}
        lines = [f"<{name}>{value}</{name}>" for name, value in details.items()]
        content = "\n".join(["<task-notification>", *lines, "</task-notification>"])
        return {"message": {"role": "user", "content": content}, "origin": build_task_origin(known["run"])}

    def _find_task(self, number: str) -> dict[str, Any]:
        unseen = {"run": "", "kind": "local_bash", "description": number, "behind": True}
        return self._known.get(number, {**unseen, "call": {"id": f"toolu_{number}", "input": {}}})

    def _list_running_tasks(self) -> tuple[str, dict[str, Any]]:
        tasks = []
        for number in self._running:
            known = self._known[number]
            about = {"task_id": number, "run_id": known["run"], "task_type": known["kind"]}
            if known["kind"] == "local_agent":
                about["subagent_type"] = known["call"]["input"].get("subagent_type", "general-purpose")
            tasks.append({**about, "description": known["description"]})
        return "background_tasks_changed", {"tasks": tasks}

    def _summarize_task_end(self, fields: dict[str, Any]) -> str:
        known, status = self._find_task(fields["id"]), fields["status"]
        if fields.get("report") is not None:
            return str(fields["report"])
        if status == "stopped" or not known["behind"]:
            return str(known["description"])
        code = fields.get("exit_code", _EXIT_CODES_BY_STATUS[status])
        how = f"(exit code {code})" if status == "completed" else f"with exit code {code}"
        return f'Background command "{known["description"]}" {status} {how}'


def build_task_origin(run: str) -> dict[str, Any]:
    """Say which task has a turn begin, or a prompt written."""
    return {"kind": "task-notification", "producer": "session-task", "runId": run}
