"""The runner of remote-factory for claude, without a terminal: one role, one task."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from pathlib import Path

request = import_module("factory.models").AgentRunRequest(
    role="builder", prompt="You are brief.", task=sys.argv[1], cwd=Path.cwd(), timeout=600
)
try:
    result = asyncio.run(import_module("factory.runners.claude").ClaudeRunner().headless(request))
except ValueError as error:  # its callers end the command with this error
    sys.exit(str(error))
sys.stdout.write(result.stdout)
sys.exit(result.return_code)
