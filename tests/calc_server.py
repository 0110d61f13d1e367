"""An MCP server on stdin and stdout, with one tool that adds. Its arguments say how it fails; started by tests."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

CALC_SERVER = Path(__file__)


def build_answer(request: dict[str, Any], fault: str) -> dict[str, Any]:
    """Give the answer to a request."""
    method = request["method"]
    if method == "initialize":
        about = {"serverInfo": {"name": "calc", "version": "1"}, "capabilities": {"tools": {}}}
        return {"result": {"protocolVersion": request["params"]["protocolVersion"], **about}}
    if method == "tools/list":
        return {"result": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}}
    if method != "tools/call":
        return {"error": {"code": -32601, "message": "Method not found"}}
    if fault == "error":
        return {"error": {"code": -32000, "message": "it broke"}}
    total = sum(request["params"]["arguments"].values())
    return {"result": {"content": [{"type": "text", "text": str(total)}]}}


def main(fault: str = "", *_: str) -> None:
    """Serve until stdin ends.

    `silent` answers nothing, `hangs` and `crashes` fail in a call, `swaps` answers the first call after the second one,
    `asks` adds the number of the client's roots in place of `a`, `deaf` does not end.
    """
    held = ""
    if fault == "deaf":
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        is_call = request.get("method") == "tools/call"
        if fault == "crashes" and is_call:
            return
        if fault == "asks" and is_call:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": "roots", "method": "roots/list"}) + "\n")
            sys.stdout.flush()
            request["params"]["arguments"]["a"] = len(json.loads(sys.stdin.readline())["result"]["roots"])
        if "id" in request and fault != "silent" and not (fault == "hangs" and is_call):
            text = json.dumps({"jsonrpc": "2.0", "id": request["id"], **build_answer(request, fault)}) + "\n"
            if fault == "swaps" and is_call and not held:
                held = text
                continue
            sys.stdout.write(text + held)
            sys.stdout.flush()
    if fault == "deaf":
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
