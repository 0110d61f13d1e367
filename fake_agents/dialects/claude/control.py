"""The control requests and responses of claude and its client, beside prompts. Knows no turn."""

from __future__ import annotations

from pytest_agentproc.fake_agents.dialects.claude.hooks import HOOK_DENIAL_FIELDS
from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.questions import ANSWER_ALLOW, ANSWER_DENY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pytest_agentproc.fake_agents.questions import ClientQuestion, ClientQuestions


MODELS_BY_ALIAS = {
    **dict.fromkeys(("default", "opus", "best"), "claude-opus-5-5"),
    **dict.fromkeys(("sonnet", "opusplan"), "claude-sonnet-5-5"),
    "haiku": "claude-haiku-5-5",
}
_MODEL_ABILITIES = {
    "supportsEffort": True,
    "supportedEffortLevels": ["low", "medium", "high", "xhigh", "max"],
    "supportsAdaptiveThinking": True,
    "supportsAutoMode": True,
    "supportsThinkingOff": False,
}
MODELS: list[dict[str, Any]] = [
    {
        "value": alias,
        "resolvedModel": model,
        "displayName": "Default (recommended)" if alias == "default" else alias.capitalize(),
        "description": f"The model {model}",
        **_MODEL_ABILITIES,
        **({"supportsFastMode": True} if "opus" in model else {}),
    }
    for alias, model in MODELS_BY_ALIAS.items()
    if alias not in ("best", "opusplan")
]
_APPLIED_SETTINGS = {
    "effort": "medium",
    "advisor": None,
    "ultracode": False,
    "ultracodeRequested": False,
    "ultracodeAvailable": True,
    "ultrathinkAvailable": False,
    "outsideFileToolReadsBlocked": False,
    "outsideFileToolWritesBlocked": False,
    "outsideBlocksCountLaunchFoldersOnly": False,
    "launchEnvLeftOwnFilesInPlace": True,
}
_NO_USAGE = {
    "total_cost_usd": 0,
    "total_api_duration_ms": 0,
    "total_duration_ms": 0,
    "total_lines_added": 0,
    "total_lines_removed": 0,
    "model_usage": {},
}
_NO_COST = """Estimated cost:        $0.0000
Total duration (API):  0s
Total duration (wall): 0s
Total code changes:    0 lines added, 0 lines removed
Usage:                 0 input, 0 output, 0 cache read, 0 cache write"""


def find_fixed_answer(kind: Any, model: str) -> dict[str, Any] | None:
    """Give the answer to a question about the CLI; None: it is another request."""
    settings = {"effective": {}, "sources": [], "served_settings_state": "ineligible"}
    limits = {"subscription_type": None, "rate_limits_available": False, "rate_limits": None, "behaviors": None}
    answers: dict[str, dict[str, Any]] = {
        "list_models": {"models": MODELS},
        "get_settings": {**settings, "applied": {"model": model, **_APPLIED_SETTINGS}},
        "get_usage": {"session": _NO_USAGE, **limits},
        "get_session_cost": {"text": _NO_COST},
        "get_binary_version": {
            "version": "2.1.332",
            "buildTime": "2026-11-24T19:09:44Z",
            "oldestDesktopSdk": "0.3.280",
        },
        "set_max_thinking_tokens": {},
    }
    return answers.get(str(kind))


_INITIALIZE_RESULT: dict[str, Any] = {
    "commands": [
        {"name": "compact", "description": "Summarize the conversation so far", "argumentHint": "", "builtin": True}
    ],
    "agents": [{"name": "general-purpose", "description": "An agent for tasks of several steps"}],
    "output_style": "default",
    "available_output_styles": ["default"],
    "user_output_styles_dir": "/home/u/x",
    "models": MODELS,
    "account": {"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY", "apiProvider": "firstParty"},
    "pid": 0,
    "claude_code_version": "2.1.332",
    "current_permission_mode": "default",
    "hooks_applied": True,
    "hook_on_failure_supported": True,
    "hooks_when_unanswered_kept": 0,
    "other_hook_ask_outranks_host": True,
    "feedback_mode": {"kind": "disabled"},
    "analytics_disabled": True,
    "sandbox_enabled": False,
    "remote_control_auto_enable": False,
    "remote_control_auto_connect_default": False,
    "remote_control_available": False,
    "remote_control_auto_on_by_default": False,
    "ide_rc_auto_enable_gate": False,
    "fast_mode_state": "off",
    "fast_mode_disabled_reason": "sdk_opt_in_required",
    "session_state": "idle",
    "capabilities": [],
}
_NO_PENDING_REQUESTS: dict[str, Any] = {"pending_permission_requests": [], "pending_user_dialog_requests": []}

_REQUESTS_WITHOUT_RESPONSE = ("set_max_thinking_tokens", "mcp_toggle", "mcp_reconnect")
_EMPTY_TOOL_RESPONSE = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
TOOL_DECISION_FIELDS: dict[tuple[str, str], dict[str, Any]] = {
    ("permission", ANSWER_ALLOW): {"permission_decision": {"decision": "accept", "source": "user_temporary"}},
    ("permission", ANSWER_DENY): {"permission_decision": {"decision": "reject", "source": "user_reject"}},
    ("hook", ANSWER_DENY): HOOK_DENIAL_FIELDS,
}
"""What the end of a tool says of the answer."""


def encode_success_response(
    request: dict[str, Any], response: dict[str, Any], more: dict[str, Any] | None = None
) -> bytes:
    """Give the good response to a request of the client's."""
    asked = request.get("request")
    is_silent = isinstance(asked, dict) and asked.get("subtype") in _REQUESTS_WITHOUT_RESPONSE
    given = {} if is_silent else {"response": response}
    fields = {"subtype": "success", "request_id": request.get("request_id"), **given, **(more or {})}
    return encode_json_line({"type": "control_response", "response": fields})


def encode_initialize_response(request: dict[str, Any], asked: dict[str, Any], mode: str) -> bytes:
    """Give the answer to `initialize`: the permission mode, and what there is to say of hooks if there are any."""
    fields = {key: value for key, value in _INITIALIZE_RESULT.items() if key != "hooks_applied" or asked.get("hooks")}
    return encode_success_response(request, {**fields, "current_permission_mode": mode}, _NO_PENDING_REQUESTS)


def encode_failure_response(request: dict[str, Any], error: dict[str, Any]) -> bytes:
    """Give the response to a request that fails."""
    fields = {"subtype": "error", "request_id": request.get("request_id"), **error}
    return encode_json_line({"type": "control_response", "response": fields})


def find_asked_tool(
    fields: dict[str, Any], running: dict[str, dict[str, Any]], questions: ClientQuestions
) -> dict[str, Any]:
    """Find the tool that a question is about, which runs: one not asked about before, else the last, else a new one.

    A permission is asked for a tool of its name; a hook hears about any tool.
    """
    kind, event = fields["kind"], fields["event"]
    able = [call for call in running.values() if kind == "hook" or call["name"] == fields["name"]]
    same = (
        question for question in questions.asked if (question.fields["kind"], question.fields["event"]) == (kind, event)
    )
    asked = {question.tool for question in same}
    fresh = [call for call in able if call["id"] not in asked]
    name = "Bash" if kind == "hook" else fields["name"]
    unseen: dict[str, Any] = {"id": f"toolu_asked_{len(questions.asked) + 1}", "name": name, "input": {}}
    return (fresh[:1] or able[-1:] or [unseen])[0]


def encode_question_request(question: ClientQuestion, call: dict[str, Any], about: dict[str, Any]) -> bytes:
    """Give the request: whether the tool may be used, or what a hook says to it.

    Args:
        question: the question.
        call: the tool that it is about.
        about: the other facts that a hook gets, the ids of the session and the prompt first.
    """
    if question.fields["kind"] == "hook":
        request = {"subtype": "hook_callback", "callback_id": question.fields["name"]}
        return _encode_control_request(
            question, {**request, "input": _build_hook_input(question, call, about), "tool_use_id": call["id"]}
        )
    fields = {"tool_name": call["name"], "display_name": call["name"], "input": call["input"]}
    about_it = {key: call["input"][key] for key in ("description",) if key in call["input"]}
    more = {"permission_suggestions": [], **question.fields.get("request_fields", {}), "tool_use_id": call["id"]}
    return _encode_control_request(question, {"subtype": "can_use_tool", **fields, **about_it, **more})


def _build_hook_input(question: ClientQuestion, call: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    event = question.fields["event"]
    fields = {name: about[name] for name in ("session_id", "transcript_path", "cwd")}
    fields |= {"prompt_id": about["prompt_id"], "permission_mode": about["mode"], "hook_event_name": event}
    if event == "Stop":
        details = {"stop_hook_active": False, "last_assistant_message": about["said"]}
        return {**fields, **details, "background_tasks": about["tasks"], "session_crons": []}
    fields |= {"tool_name": call["name"], "tool_input": call["input"]}
    if event == "PreToolUse":
        return {**fields, "tool_use_id": call["id"]}
    response = {**_EMPTY_TOOL_RESPONSE, "stdout": question.fields.get("output", ""), **about["response"]}
    return {**fields, "tool_response": response, "tool_use_id": call["id"], "duration_ms": 0}


def encode_question_withdrawal(question: ClientQuestion) -> bytes:
    """Give the line that takes a question back."""
    return encode_json_line({"type": "control_cancel_request", "request_id": question.key})


def read_question_answer(question: ClientQuestion, response: dict[str, Any]) -> str:
    """Read an answer. Every answer except "allow" denies the tool, an error too; a hook's no denies the tool."""
    answer = response.get("response")
    answer = answer if isinstance(answer, dict) and response.get("subtype") == "success" else {}
    if question.fields["kind"] == "permission":
        return ANSWER_ALLOW if answer.get("behavior") == "allow" else ANSWER_DENY
    own = answer.get("hookSpecificOutput")
    decision = own.get("permissionDecision") if isinstance(own, dict) else None
    is_denied = decision == "deny" or answer.get("decision") == "block" or answer.get("continue") is False
    return ANSWER_DENY if is_denied else ANSWER_ALLOW


def _encode_control_request(question: ClientQuestion, request: dict[str, Any]) -> bytes:
    return encode_json_line({"type": "control_request", "request_id": question.key, "request": request})
