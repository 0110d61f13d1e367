"""The meaning of a log's events in a draft: steps, actions of the caller, nothing of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DraftStep:
    """A step of a draft: its name and its value, as the language has them."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class EventMeaning:
    """The meaning of an event.

    Args:
        kind: `steps`, `prompt` or `cancel` (the caller's), `begin` (of a turn), `repeated` (other events say the same),
            `piece` (a later event says the same, but this one shows that the agent is at work), `other` (an event as it
            stands), `foreign` (no event of the dialect).
        steps: of `steps`: what the agent does.
        text: the words of a prompt, or of a piece of a message.
        is_sure: whether the steps need no proof, because what they say hangs on the conversation.
        ends: how it ends a turn: `completed`, `failed`, `cancelled`; "" if it does not.
        is_cut: whether it ends a turn that was cut off, so that after a cancel it acknowledges that.
        final: of a good end the final text, where the event itself has it.
    """

    kind: str
    steps: tuple[DraftStep, ...] = ()
    text: str = ""
    is_sure: bool = False
    ends: str = ""
    final: str | None = None
    is_cut: bool = False


REPEATED_EVENT_MEANING = EventMeaning("repeated")
"""Other events say the same."""
UNTRANSLATED_EVENT_MEANING = EventMeaning("other")
"""The event goes into the draft as it stands."""
PARTIAL_OUTPUT_MEANING = EventMeaning("piece")
"""A piece of something that no word of the language prints in pieces."""
TURN_BEGIN_MEANING = EventMeaning("begin")
"""A turn begins: the fake prints this before its first step."""


class LaterEvents:
    """The events after one of a log, which a reader asks for what they have; each kind of question reads the log once.

    Args:
        events: the whole log's.
    """

    def __init__(self, events: Sequence[Any]) -> None:
        self._events = events
        self._last: dict[Callable[[Any], Any], dict[Any, int]] = {}
        self.start = 0
        """The number of the first later event."""

    def has_event_with_trait(self, trait: Callable[[Any], Any], value: str | None = None) -> bool:
        """Say whether a later event has a trait, or a value of it, which can be compared by its hash."""
        if trait not in self._last:
            self._last[trait] = {trait(event): number for number, event in enumerate(self._events)}
        return self._last[trait].get(True if value is None else value, -1) >= self.start


EventReader = Callable[[Any, LaterEvents, str], EventMeaning]
"""A function that reads an event of a dialect, with the events after it and the mode."""


def get_nested(event: Any, *keys: str) -> Any:
    """Give a value deep in an event; None where it has none."""
    for key in keys:
        event = event.get(key) if isinstance(event, dict) else None
    return event


def read_permission_answer(event: Any) -> str:
    """Say what the caller answers a question of the agent: allow or deny; "" if this is no such answer."""
    behavior = get_nested(event, "response", "response", "behavior")
    outcome, decision = get_nested(event, "result", "outcome"), get_nested(event, "result", "decision")
    if decision is not None:
        return "deny" if decision in ("decline", "cancel") else "allow"
    if isinstance(outcome, dict):
        option = str(outcome.get("optionId", "")).lower()
        return "allow" if any(word in option for word in ("allow", "proceed", "approve", "yes")) else "deny"
    return behavior if behavior in ("allow", "deny") else ""


_CLIENT_MESSAGE_TYPES = ("control_response", "extension_ui_response", "prompt", "abort")
_CLAUDE_CLIENT_REQUESTS = ("initialize", "interrupt", "set_permission_mode", "set_model")
_AGENT_REQUEST_PREFIXES = ("item/", "mcpServer/", "session/request_permission", "fs/", "terminal/")


def is_json_rpc_answer(event: Any) -> bool:
    """Say whether this is an answer of JSON-RPC, of either side."""
    return get_nested(event, "method") is None and "id" in event and ("result" in event or "error" in event)


def is_clients_message(event: Any) -> bool:
    """Say whether a client wrote this to the agent: a request, or the answer to a question."""
    method = get_nested(event, "method")
    if isinstance(method, str):
        is_request = "id" in event and not method.startswith(_AGENT_REQUEST_PREFIXES)
        return is_request or method in ("initialized", "session/cancel")
    subtype = get_nested(event, "request", "subtype")
    return get_nested(event, "type") in _CLIENT_MESSAGE_TYPES or subtype in _CLAUDE_CLIENT_REQUESTS


COMPACTION_WORK_ID = "compaction"
_IS_COMPACTION_START_BY_WORD: dict[Any, bool] = {
    "compacting": True,
    "compact_boundary": False,
    **{f"{auto}compaction_{end}": end == "start" for auto in ("", "auto_") for end in ("start", "end")},
}
"""The words of claude and pi for the beginning and the end of a compaction."""


def read_compaction_change(event: Any) -> bool | None:
    """Say whether an agent begins to compact its context (True) or has done it (False); None: neither."""
    if get_nested(event, "params", "item", "type") == "contextCompaction":
        return bool(get_nested(event, "method") == "item/started")
    for key in ("status", "subtype", "type"):
        word = get_nested(event, key)
        if isinstance(word, str) and word in _IS_COMPACTION_START_BY_WORD:
            return _IS_COMPACTION_START_BY_WORD[word]
    return False if get_nested(event, "compact_result") is not None else None


def read_content_text(content: Any) -> str:
    """Give the text of a message's content: a text, or a list of blocks with some."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    return "".join(
        text
        for part in blocks
        if isinstance(text := get_nested(part, "text") or get_nested(part, "content", "text"), str)
    )


def get_nested_mappings(value: Any, *keys: str) -> list[Any]:
    """Give a list of mappings deep in an event; empty where it has none."""
    found = get_nested(value, *keys)
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []


_ACP_TOOL_KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")


def read_acp_event(event: Any, _later: LaterEvents, _mode: str) -> EventMeaning:
    """Read a message of either side: a method, or the answer to one."""
    method, params = get_nested(event, "method"), get_nested(event, "params")
    if method is None:
        return _read_acp_answer(event)
    if not isinstance(method, str):
        return EventMeaning("foreign")
    if method in _ACP_READER_BY_METHOD:
        return _ACP_READER_BY_METHOD[method](params)
    if method.startswith(("fs/", "terminal/")) and isinstance(params, dict):
        given = {key: value for key, value in params.items() if key != "sessionId"}
        return EventMeaning("steps", (DraftStep("request", {"method": method, "params": given}),), is_sure=True)
    return (
        REPEATED_EVENT_MEANING
        if method == "initialize" or method.startswith(("session/", "auth"))
        else UNTRANSLATED_EVENT_MEANING
    )


def _read_acp_prompt(params: Any) -> EventMeaning:
    return EventMeaning("prompt", text=read_content_text(get_nested(params, "prompt") or "") or "hi")


_ACP_OPTION_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")
_USUAL_ACP_OFFERS = ("allow_once", "reject_once")
"""The options that the fake offers by itself."""


def _read_acp_permission_request(params: Any) -> EventMeaning:
    call = get_nested(params, "toolCall", "title") or get_nested(params, "toolCall", "toolCallId")
    options = get_nested(params, "options")
    kinds = [get_nested(option, "kind") for option in options] if isinstance(options, list) else []
    is_known = all(kind in _ACP_OPTION_KINDS for kind in kinds) and len({*kinds}) == len(kinds)
    offers = {"offers": kinds} if kinds and is_known and kinds != [*_USUAL_ACP_OFFERS] else {}
    return EventMeaning("steps", (DraftStep("ask", {"permission": str(call or "tool"), **offers}),), is_sure=True)


def _read_acp_answer(event: Any) -> EventMeaning:
    """Read an answer: the script tells only the one to a prompt, all others come from the dialect or the caller."""
    stop, error = get_nested(event, "result", "stopReason"), get_nested(event, "error")
    if isinstance(stop, str):
        if stop == "cancelled":
            return EventMeaning("steps", (DraftStep("acknowledge", "cancel"),), is_sure=True, ends="cancelled")
        name = DraftStep("result", {}) if stop == "end_turn" else DraftStep("turn_said", {"text": "", "stop": stop})
        return EventMeaning("steps", (name,), is_sure=True, ends="failed" if stop == "refusal" else "completed")
    if isinstance(error, dict):
        fields = {"is_error": True, "text": str(error.get("message") or "error")}
        return EventMeaning("steps", (DraftStep("result", fields),), is_sure=True, ends="failed")
    return REPEATED_EVENT_MEANING if get_nested(event, "jsonrpc") or "result" in event else EventMeaning("foreign")


def _read_acp_update(update: Any) -> EventMeaning:
    kind, number = get_nested(update, "sessionUpdate"), get_nested(update, "toolCallId")
    text = get_nested(update, "content", "text")
    if kind == "agent_message_chunk" and isinstance(text, str):
        return EventMeaning("steps", (DraftStep("say", text),))
    if kind == "agent_thought_chunk" and isinstance(text, str):
        return EventMeaning("steps", (DraftStep("think", text),))
    if kind == "user_message_chunk":
        return REPEATED_EVENT_MEANING
    if kind == "tool_call" and isinstance(number, str):
        given, about = get_nested(update, "rawInput"), get_nested(update, "kind")
        fields = {"id": number, "name": str(update.get("title") or number), "input": given or {}}
        return EventMeaning(
            "steps", (DraftStep("tool", fields | ({"kind": about} if about in _ACP_TOOL_KINDS else {})),), is_sure=True
        )
    if kind == "tool_call_update" and isinstance(number, str) and update.get("status") in ("completed", "failed"):
        words = read_content_text(update.get("content") or "")
        failed = update["status"] == "failed"
        fields = {"id": number, **({"error": words} if failed else ({"output": words} if words else {}))}
        return EventMeaning("steps", (DraftStep("tool_done", fields),), is_sure=True)
    return UNTRANSLATED_EVENT_MEANING


_ACP_READER_BY_METHOD = {
    "session/prompt": _read_acp_prompt,
    "session/cancel": lambda _: EventMeaning("cancel"),
    "session/update": lambda params: _read_acp_update(get_nested(params, "update")),
    "session/request_permission": _read_acp_permission_request,
}


_CLAUDE_EVENT_TYPES = frozenset(
    (
        *("system", "assistant", "user", "result", "stream_event", "control_request", "control_response"),
        *("control_cancel_request", "rate_limit_event", "keep_alive", "tool_progress", "tool_use_summary"),
        *("auth_status", "summary"),
    )
)
_CLAUDE_INTERRUPTION_PREFIX = "[Request interrupted by user"
"""The beginning of the line that claude writes in the name of its user when a turn is cancelled."""
_CLAUDE_TURN_OUTPUT_TYPES = ("assistant", "stream_event", "result")


def is_claude_session_log(events: Sequence[Any]) -> bool:
    """Say whether a log is of a session: its stdin has questions or answers, or it has several results."""
    kinds = [get_nested(event, "type") for event in events]
    controls = any(str(kind).startswith("control_") for kind in kinds)
    return controls or kinds.count("result") > 1 or any(_read_claude_prompt(event) is not None for event in events)


def read_claude_event(event: Any, later: LaterEvents, mode: str) -> EventMeaning:
    """Read an event of `--output-format stream-json`, or a line that claude was sent."""
    kind = get_nested(event, "type")
    if kind not in _CLAUDE_EVENT_TYPES:
        return EventMeaning("foreign")
    if kind == "control_request" and mode != "session":
        return UNTRANSLATED_EVENT_MEANING
    return (
        _CLAUDE_READER_BY_EVENT_TYPE[kind](event, later)
        if kind in _CLAUDE_READER_BY_EVENT_TYPE
        else UNTRANSLATED_EVENT_MEANING
    )


def _read_claude_system_event(event: Any, later: LaterEvents) -> EventMeaning:
    """The first event is said with the first of these after it."""
    is_said = event.get("subtype") == "init" and later.has_event_with_trait(_is_claude_turn_output)
    return REPEATED_EVENT_MEANING if is_said else UNTRANSLATED_EVENT_MEANING


def _read_claude_prompt(event: Any) -> str | None:
    """Give the words of a prompt; None for any other line."""
    if get_nested(event, "type") != "user" or event.get("parent_tool_use_id"):
        return None
    content = get_nested(event, "message", "content")
    if isinstance(content, list) and any(get_nested(part, "type") != "text" for part in content):
        return None
    return read_content_text(content) or None if content else None


def _read_claude_message_piece(event: Any, later: LaterEvents) -> EventMeaning:
    """A piece says what its whole line says; where that is missing, it is a delta."""
    text = get_nested(event, "event", "delta", "text")
    if not isinstance(text, str) or event.get("parent_tool_use_id"):
        return (
            PARTIAL_OUTPUT_MEANING
            if get_nested(event, "event", "type") == "content_block_delta"
            else REPEATED_EVENT_MEANING
        )
    is_whole = later.has_event_with_trait(_is_claude_assistant_message)
    return EventMeaning("piece", text=text) if is_whole else EventMeaning("steps", (DraftStep("delta", text),))


def _read_claude_assistant_message(event: Any, later: LaterEvents) -> EventMeaning:
    parent = event.get("parent_tool_use_id")
    if get_nested(event, "message", "model") == "<synthetic>" and later.has_event_with_trait(_is_claude_error_result):
        return REPEATED_EVENT_MEANING  # the error result says it
    blocks = get_nested_mappings(event, "message", "content")
    steps: list[DraftStep] = []
    number = get_nested(event, "message", "id")
    goes_on = isinstance(number, str) and later.has_event_with_trait(_read_tool_message_id, number)
    uses = [part for part in blocks if part.get("type") == "tool_use"]
    for part in blocks:
        about = {"parent": parent} if parent else {}
        kind = part.get("type")
        if kind == "text" and isinstance(part.get("text"), str):
            steps.append(
                DraftStep("nested" if parent else "say", {"text": part["text"], **about} if parent else part["text"])
            )
        elif kind == "thinking" and isinstance(part.get("thinking"), str):
            steps.append(DraftStep("think", {"text": part["thinking"], **about} if parent else part["thinking"]))
        elif kind == "tool_use" and isinstance(part.get("id"), str) and isinstance(part.get("name"), str):
            more = {"more": True} if goes_on or part is not uses[-1] else {}
            fields = {"id": part["id"], "name": part["name"], "input": part.get("input") or {}, **about, **more}
            steps.append(DraftStep("tool", fields))
        else:
            return UNTRANSLATED_EVENT_MEANING
    return EventMeaning("steps", tuple(steps)) if steps else UNTRANSLATED_EVENT_MEANING


def _is_claude_turn_output(event: Any) -> bool:
    return get_nested(event, "type") in _CLAUDE_TURN_OUTPUT_TYPES


def _is_claude_assistant_message(event: Any) -> bool:
    return bool(get_nested(event, "type") == "assistant")


def _is_claude_error_result(event: Any) -> bool:
    return get_nested(event, "is_error") is True


def _read_tool_message_id(event: Any) -> str | None:
    """Give the id of a message of which this line asks for a tool."""
    number = get_nested(event, "message", "id")
    return number if isinstance(number, str) and _is_claude_assistant_message(event) and _has_tool_call(event) else None


def _has_tool_call(event: Any) -> bool:
    return any(part.get("type") == "tool_use" for part in get_nested_mappings(event, "message", "content"))


def _read_claude_user_message(event: Any, _later: LaterEvents) -> EventMeaning:
    prompt = _read_claude_prompt(event)
    if prompt is not None:
        return (
            REPEATED_EVENT_MEANING
            if prompt.startswith(_CLAUDE_INTERRUPTION_PREFIX)
            else EventMeaning("prompt", text=prompt)
        )
    steps = []
    for part in get_nested_mappings(event, "message", "content"):
        if part.get("type") != "tool_result" or not isinstance(part.get("tool_use_id"), str):
            return UNTRANSLATED_EVENT_MEANING
        text = read_content_text(part.get("content") or "")
        fields = {"error": text} if part.get("is_error") else ({"output": text} if text else {})
        steps.append(DraftStep("tool_done", {"id": part["tool_use_id"], **fields}))
    return EventMeaning("steps", tuple(steps)) if steps else UNTRANSLATED_EVENT_MEANING


def _read_claude_result(event: Any, _later: LaterEvents) -> EventMeaning:
    if get_nested(event, "origin", "kind") == "task-notification":
        return UNTRANSLATED_EVENT_MEANING
    subtype, text = event.get("subtype"), event.get("result")
    if subtype != "success":
        errors = event.get("errors")
        words = errors[0] if isinstance(errors, list) and errors and isinstance(errors[0], str) else text
        fields = {"subtype": str(subtype), "is_error": True, **({"text": words} if words else {})}
        is_cut = subtype == "error_during_execution"
        return EventMeaning("steps", (DraftStep("result", fields),), ends="failed", is_cut=is_cut)
    if event.get("is_error"):
        fields = {"is_error": True, **({"text": text} if text else {})}
        return EventMeaning("steps", (DraftStep("result", fields),), ends="failed")
    details = {"text": text} if isinstance(text, str) else {}
    return EventMeaning("steps", (DraftStep("result", details),), ends="completed", final=details.get("text"))


_CLAUDE_FIELDS_OF_EVERY_QUESTION = ("subtype", "tool_name", "display_name", "description", "tool_use_id")
"""The fields that the fake gives each question by itself."""


def _read_claude_control_request(event: Any, _later: LaterEvents) -> EventMeaning:
    request = event.get("request")
    if get_nested(request, "subtype") == "interrupt":
        return EventMeaning("cancel")
    name = get_nested(request, "tool_name")
    if get_nested(request, "subtype") == "can_use_tool" and isinstance(name, str) and name:
        extra = {key: value for key, value in request.items() if value and key not in _CLAUDE_FIELDS_OF_EVERY_QUESTION}
        fields = {"permission": name, **({"request_fields": extra} if extra else {})}
        return EventMeaning("steps", (DraftStep("ask", fields),), is_sure=True)
    return (
        REPEATED_EVENT_MEANING
        if get_nested(request, "subtype") in ("initialize", "set_permission_mode", "set_model")
        else UNTRANSLATED_EVENT_MEANING
    )


_CLAUDE_READER_BY_EVENT_TYPE: dict[str, Callable[[Any, LaterEvents], EventMeaning]] = {
    "system": _read_claude_system_event,
    "stream_event": _read_claude_message_piece,
    "assistant": _read_claude_assistant_message,
    "user": _read_claude_user_message,
    "result": _read_claude_result,
    "control_request": _read_claude_control_request,
    "control_response": lambda _event, _later: REPEATED_EVENT_MEANING,  # the dialect answers, or the caller did
}


def _is_after_codex_thread(event: Any) -> bool:
    return get_nested(event, "type") not in (None, "thread.started")


def _is_codex_turn_failure(event: Any) -> bool:
    return bool(get_nested(event, "type") == "turn.failed")


def _is_pi_assistant_message_end(event: Any) -> bool:
    return bool(get_nested(event, "type") == "message_end" and get_nested(event, "message", "role") == "assistant")


def _read_pi_started_tool_id(event: Any) -> str | None:
    """Give the id of the tool that begins with this event."""
    number = get_nested(event, "toolCallId")
    return number if isinstance(number, str) and get_nested(event, "type") == "tool_execution_start" else None


def read_codex_event(event: Any, later: LaterEvents, _mode: str) -> EventMeaning:
    """Read an event of `codex exec --json`."""
    kind, item = get_nested(event, "type"), get_nested(event, "item")
    if not isinstance(kind, str) or not kind.startswith(("thread.", "turn.", "item.", "error")):
        return EventMeaning("foreign")
    if kind in ("thread.started", "turn.started"):
        # Every step prints the start of a turn, too. So a thread that is all of the log stands as it is.
        is_begun = kind == "turn.started" or later.has_event_with_trait(_is_after_codex_thread)
        return TURN_BEGIN_MEANING if is_begun else UNTRANSLATED_EVENT_MEANING
    if kind == "turn.completed":
        return EventMeaning("steps", (DraftStep("result", {}),), ends="completed")
    if kind in ("turn.failed", "error"):
        words = get_nested(event, "error", "message") if kind == "turn.failed" else event.get("message")
        is_told_again = later.has_event_with_trait(_is_codex_turn_failure)
        if kind == "error" and not is_told_again:
            return UNTRANSLATED_EVENT_MEANING
        fields = {"is_error": True, **({"text": words} if isinstance(words, str) and words else {})}
        return EventMeaning("steps", (DraftStep("result", fields),), ends="failed")
    return _read_codex_item(kind, item) if isinstance(item, dict) else UNTRANSLATED_EVENT_MEANING


def _read_codex_item(kind: str, item: dict[str, Any]) -> EventMeaning:
    about, text, number = item.get("type"), item.get("text") or item.get("message"), item.get("id")
    names = {"agent_message": "say", "reasoning": "think", "error": "notice"}
    if about in names and kind == "item.completed" and isinstance(text, str):
        return EventMeaning("steps", (DraftStep(names[about], text),), final=text if about == "agent_message" else None)
    if about not in ("command_execution", "mcp_tool_call") or not isinstance(number, str):
        return UNTRANSLATED_EVENT_MEANING
    if kind == "item.started":
        if about == "mcp_tool_call":
            name, given = item.get("tool"), item.get("arguments")
        else:
            name, given = "command_execution", {"command": item.get("command", "")}
        if not isinstance(name, str) or not isinstance(given, dict):
            return UNTRANSLATED_EVENT_MEANING
        return EventMeaning("steps", (DraftStep("tool", {"id": number, "name": name, "input": given}),))
    if kind != "item.completed":
        return UNTRANSLATED_EVENT_MEANING
    output = item.get("aggregated_output") or read_content_text(get_nested(item, "result", "content") or "")
    failed = item.get("status") == "failed" or item.get("exit_code") not in (None, 0)
    fields = (
        {"error": get_nested(item, "error", "message") or output} if failed else ({"output": output} if output else {})
    )
    return EventMeaning("steps", (DraftStep("tool_done", {"id": number, **fields}),))


def read_gemini_event(event: Any, later: LaterEvents, _mode: str) -> EventMeaning:
    """Read an event of `gemini -o stream-json`, or the one object of `gemini -o json`."""
    if is_gemini_json_object(event):
        return _read_gemini_json_object(event)
    reader = _GEMINI_READER_BY_EVENT_TYPE.get(str(get_nested(event, "type")))
    return EventMeaning("foreign") if reader is None else reader(event, later)


def is_gemini_json_object(event: Any) -> bool:
    """Say whether this is the object that `gemini -o json` prints at its end."""
    is_answer = isinstance(get_nested(event, "response"), str) or isinstance(get_nested(event, "error"), dict)
    return is_answer and "type" not in event and ("stats" in event or "session_id" in event)


def _read_gemini_json_object(event: dict[str, Any]) -> EventMeaning:
    error = get_nested(event, "error", "message")
    if "error" in event:
        fields = {"is_error": True, **({"text": error} if isinstance(error, str) and error else {})}
        return EventMeaning("steps", (DraftStep("result", fields),), is_sure=True, ends="failed")
    return EventMeaning("steps", (DraftStep("answer", event["response"]),), is_sure=True, ends="completed")


def _read_gemini_message(event: Any, _later: LaterEvents) -> EventMeaning:
    if event.get("role") == "user":
        return REPEATED_EVENT_MEANING
    text = event.get("content")
    return EventMeaning("steps", (DraftStep("say", text),)) if isinstance(text, str) else UNTRANSLATED_EVENT_MEANING


def _read_gemini_tool_start(event: Any, _later: LaterEvents) -> EventMeaning:
    number, name = event.get("tool_id"), event.get("tool_name")
    if not isinstance(number, str) or not isinstance(name, str):
        return UNTRANSLATED_EVENT_MEANING
    return EventMeaning(
        "steps", (DraftStep("tool", {"id": number, "name": name, "input": event.get("parameters") or {}}),)
    )


def _read_gemini_tool_end(event: Any, _later: LaterEvents) -> EventMeaning:
    number, output, error = event.get("tool_id"), event.get("output"), get_nested(event, "error", "message")
    failed = event.get("status") == "error"
    fields = {"error": error or output or ""} if failed else ({"output": output} if output else {})
    return (
        EventMeaning("steps", (DraftStep("tool_done", {"id": number, **fields}),))
        if isinstance(number, str)
        else UNTRANSLATED_EVENT_MEANING
    )


def _read_gemini_result(event: Any, _later: LaterEvents) -> EventMeaning:
    words = get_nested(event, "error", "message")
    if event.get("status") != "success":
        fields = {"is_error": True, **({"text": words} if words else {})}
        return EventMeaning("steps", (DraftStep("result", fields),), ends="failed")
    return EventMeaning("steps", (DraftStep("result", {}),), ends="completed")


_GEMINI_READER_BY_EVENT_TYPE: dict[str, Callable[[Any, LaterEvents], EventMeaning]] = {
    "init": lambda _event, _later: TURN_BEGIN_MEANING,
    "message": _read_gemini_message,
    "tool_use": _read_gemini_tool_start,
    "tool_result": _read_gemini_tool_end,
    "result": _read_gemini_result,
    "error": lambda _event, _later: UNTRANSLATED_EVENT_MEANING,
}
_PI_EVENT_TYPES = frozenset(
    (
        *("session", "agent_start", "agent_end", "turn_start", "turn_end", "message_start"),
        *("message_update", "message_end", "tool_execution_start", "tool_execution_update"),
        *("tool_execution_end", "auto_retry_start", "auto_retry_end", "auto_compaction_start"),
        *("auto_compaction_end", "compaction_start", "compaction_end", "response", "prompt", "abort"),
        *("extension_ui_request", "extension_ui_response", "agent_settled", "extension_error"),
        *("queue_update",),
    )
)


def is_pi_rpc_log(events: Sequence[Any]) -> bool:
    """Say whether a log of pi's is of its mode rpc."""
    return any(get_nested(event, "type") in ("response", "prompt", "extension_ui_request") for event in events)


def read_pi_event(event: Any, later: LaterEvents, _mode: str) -> EventMeaning:
    """Read an event of `pi --mode json` or rpc, or a command that it was sent."""
    kind = get_nested(event, "type")
    if kind not in _PI_EVENT_TYPES:
        return EventMeaning("foreign")
    if kind in _PI_REPEATED_EVENT_TYPES:
        return REPEATED_EVENT_MEANING
    if kind in ("message_update", "tool_execution_update"):
        text = get_nested(event, "assistantMessageEvent", "delta")
        is_text = get_nested(event, "assistantMessageEvent", "type") == "text_delta" and isinstance(text, str)
        return (
            EventMeaning("piece", text=text)
            if is_text and later.has_event_with_trait(_is_pi_assistant_message_end)
            else PARTIAL_OUTPUT_MEANING
        )
    return (
        _PI_READER_BY_EVENT_TYPE[kind](event, later) if kind in _PI_READER_BY_EVENT_TYPE else UNTRANSLATED_EVENT_MEANING
    )


def _read_pi_message_start(event: Any, later: LaterEvents) -> EventMeaning:
    """The start of a message is said with its end."""
    role = get_nested(event, "message", "role")
    is_said = role != "assistant" or later.has_event_with_trait(_is_pi_assistant_message_end)
    return REPEATED_EVENT_MEANING if is_said else UNTRANSLATED_EVENT_MEANING


def _read_pi_message_end(event: Any, later: LaterEvents) -> EventMeaning:
    is_own = get_nested(event, "message", "role") == "assistant"
    return _read_pi_assistant_message(event["message"], later) if is_own else REPEATED_EVENT_MEANING


def _read_pi_tool_end(event: Any, _later: LaterEvents) -> EventMeaning:
    text = read_content_text(get_nested(event, "result", "content") or "")
    fields = {"error": text} if event.get("isError") else ({"output": text} if text else {})
    return EventMeaning("steps", (DraftStep("tool_done", {"id": str(event.get("toolCallId")), **fields}),))


def _read_pi_assistant_message(message: dict[str, Any], later: LaterEvents) -> EventMeaning:
    """The step of the tool's start also writes the message that asks for the tool."""
    stop, text = message.get("stopReason"), read_content_text(message.get("content") or "")
    steps = [
        DraftStep("think", part["thinking"])
        for part in get_nested_mappings(message, "content")
        if isinstance(part.get("thinking"), str)
    ]
    if stop == "aborted":
        return EventMeaning("other", ends="failed", is_cut=True)
    if stop == "error":
        if later.has_event_with_trait(_is_pi_assistant_message_end):
            return UNTRANSLATED_EVENT_MEANING  # it tries again
        fields = {"is_error": True, "text": str(message.get("errorMessage") or "error")}
        return EventMeaning("steps", (DraftStep("result", fields),), ends="failed")
    calls = [part for part in get_nested_mappings(message, "content") if part.get("type") == "toolCall"]
    if calls:
        if text:
            steps.append(DraftStep("delta", text))
        steps += [
            DraftStep("tool", {"id": call["id"], "name": str(call.get("name")), "input": call.get("arguments") or {}})
            for call in calls[:1]
            if isinstance(call.get("id"), str) and later.has_event_with_trait(_read_pi_started_tool_id, call["id"])
        ]
        return EventMeaning("steps", tuple(steps)) if steps else UNTRANSLATED_EVENT_MEANING
    steps.append(DraftStep("turn_said", {"text": text, "stop": str(stop or "stop")}))
    return EventMeaning("steps", tuple(steps), final=text if stop in ("stop", "length", None) else None)


def _read_pi_tool_start(event: Any, _later: LaterEvents) -> EventMeaning:
    number, name = event.get("toolCallId"), event.get("toolName")
    if not isinstance(number, str) or not isinstance(name, str):
        return UNTRANSLATED_EVENT_MEANING
    return EventMeaning("steps", (DraftStep("tool", {"id": number, "name": name, "input": event.get("args") or {}}),))


_MEANING_OF_PI_TURN_END = EventMeaning("steps", (DraftStep("result", {}),), ends="completed")
_PI_REPEATED_EVENT_TYPES = ("session", "response", "extension_ui_response", "turn_start", "turn_end")
_PI_READER_BY_EVENT_TYPE: dict[str, Callable[[Any, LaterEvents], EventMeaning]] = {
    "agent_start": lambda _event, _later: TURN_BEGIN_MEANING,
    "message_start": _read_pi_message_start,
    "message_end": _read_pi_message_end,
    "tool_execution_start": _read_pi_tool_start,
    "tool_execution_end": _read_pi_tool_end,
    "agent_end": lambda event, _later: (
        UNTRANSLATED_EVENT_MEANING if event.get("willRetry") else _MEANING_OF_PI_TURN_END
    ),
    "prompt": lambda event, _later: EventMeaning("prompt", text=str(event.get("message") or "hi")),
    "abort": lambda _event, _later: EventMeaning("cancel"),
}
