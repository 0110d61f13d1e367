"""The PyPI package codex-app-server-client in the hands of its tests. Reports, and judges nothing."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from codex_app_server_client import (  # type: ignore[import-not-found]  # installed in a folder of its own
    EventAction,
    SyncCodexAppServer,
)


def report(what: str, **more: Any) -> None:
    """Report something, with its instant."""
    sys.stdout.write(json.dumps({"what": what, "at": time.monotonic_ns(), **more}) + "\n")
    sys.stdout.flush()


def _interrupt_at_first_message(method: str, event: Any) -> Any:
    is_message = method == "item/completed" and event.item["type"] == "agentMessage"
    return EventAction.INTERRUPT if is_message else None


def main() -> None:
    """Ask twice in one thread, or interrupt a turn at its first message."""
    usage, agent = sys.argv[1:3]
    with SyncCodexAppServer(codex_bin=agent) as codex:
        thread = codex.start_thread()
        for prompt in ("first", "second") if usage == "run" else ("first",):
            result = thread.run(
                prompt, timeout_s=10, on_event=_interrupt_at_first_message if usage == "interrupt" else None
            )
            report("turn", text=result.final_response, status=result.status, items=len(result.items))


main()
