"""The claude of kai, which lives as long as the chat."""

from __future__ import annotations

import logging
import sys
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
serve = import_module("acp_front").serve
logging.disable()
kai = import_module("claude" if Path("claude.py").exists() else "kai.claude").PersistentClaude(workspace=Path.cwd())


async def _ask(prompt: str) -> tuple[bool, str]:
    last = [event async for event in kai.send(prompt)][-1].response
    return last.success, last.text


serve(_ask, kai.shutdown)
