"""The PyPI package openai-codex in the hands of its tests: each usage is one function. Reports, and judges nothing."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from openai_codex import Codex, CodexConfig  # type: ignore[import-not-found]  # installed in a folder of its own

THREAD = "01a20072-e39f-7280-8216-1a538c0445ff"
"""The thread of every fake."""


def tell(what: str, **more: Any) -> None:
    """Report something, with its instant."""
    sys.stdout.write(json.dumps({"what": what, "at": time.monotonic_ns(), **more}) + "\n")
    sys.stdout.flush()


def run(codex: Codex) -> None:
    """Ask twice in one thread."""
    thread = codex.thread_start()
    tell("thread", id=thread.id)
    for prompt in ("first", "second"):
        _ask(thread, prompt)


def resume(codex: Codex) -> None:
    """Ask in the thread of an earlier process."""
    _ask(codex.thread_resume(THREAD), "hi")


def stream(codex: Codex) -> None:
    """Read each notification."""
    handle = codex.thread_start().turn("hi")
    for event in handle.stream():
        tell("event", method=event.method, typed=type(event.payload).__name__)


def interrupt(codex: Codex) -> None:
    """Interrupt the turn at its first message."""
    handle = codex.thread_start().turn("hi")
    for event in handle.stream():
        tell("event", method=event.method)
        if event.method == "item/completed" and event.payload.item.root.type == "agentMessage":
            handle.interrupt()
            tell("interrupted")


def _ask(thread: Any, prompt: str) -> None:
    try:
        result = thread.run(prompt)
    except Exception as error:  # noqa: BLE001  # whatever the package raises is what it does
        tell("threw", name=type(error).__name__, message=str(error))
    else:
        tell("turn", text=result.final_response, status=result.status.value, items=len(result.items))


def main() -> None:
    """Do what the first argument says, with the agent that the second one names."""
    usage, agent = sys.argv[1:3]
    with Codex(CodexConfig(codex_bin=agent)) as codex:
        {"run": run, "resume": resume, "stream": stream, "interrupt": interrupt}[usage](codex)
    tell("closed")


main()
