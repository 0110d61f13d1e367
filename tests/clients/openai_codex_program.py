"""The PyPI package openai-codex in the hands of its tests: each usage is one function. Reports, and judges nothing."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from openai_codex import Codex, CodexConfig  # type: ignore[import-not-found]  # installed in a folder of its own

THREAD = "01a20072-e39f-7280-8216-1a538c0445ff"
"""The thread of every fake."""


def report(what: str, **more: Any) -> None:
    """Report something, with its instant."""
    sys.stdout.write(json.dumps({"what": what, "at": time.monotonic_ns(), **more}) + "\n")
    sys.stdout.flush()


def run_two_turns(codex: Codex) -> None:
    """Ask twice in one thread."""
    thread = codex.thread_start()
    report("thread", id=thread.id)
    for prompt in ("first", "second"):
        _run_prompt(thread, prompt)


def resume_thread(codex: Codex) -> None:
    """Ask in the thread of an earlier process."""
    _run_prompt(codex.thread_resume(THREAD), "hi")


def stream_notifications(codex: Codex) -> None:
    """Read each notification."""
    handle = codex.thread_start().turn("hi")
    for event in handle.stream():
        report("event", method=event.method, typed=type(event.payload).__name__)


def interrupt_turn(codex: Codex) -> None:
    """Interrupt the turn at its first message."""
    handle = codex.thread_start().turn("hi")
    for event in handle.stream():
        report("event", method=event.method)
        if event.method == "item/completed" and event.payload.item.root.type == "agentMessage":
            handle.interrupt()
            report("interrupted")


def _run_prompt(thread: Any, prompt: str) -> None:
    try:
        result = thread.run(prompt)
    except Exception as error:  # noqa: BLE001  # whatever the package raises is what it does
        report("threw", name=type(error).__name__, message=str(error))
    else:
        report("turn", text=result.final_response, status=result.status.value, items=len(result.items))


def main() -> None:
    """Do what the first argument says, with the agent that the second one names."""
    usage, agent = sys.argv[1:3]
    with Codex(CodexConfig(codex_bin=agent)) as codex:
        {"run": run_two_turns, "resume": resume_thread, "stream": stream_notifications, "interrupt": interrupt_turn}[
            usage
        ](codex)
    report("closed")


main()
