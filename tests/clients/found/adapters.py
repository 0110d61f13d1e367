"""The documented use of each Python package, a few lines each; `adapters.py NAME PROMPT` prints the answer.

An error of the package, and an answer that the package calls an error, ends the program with exit code 1. It is started
with `PYTHONPATH` as the folder of that package alone, and imports nothing of this project.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


class _SaidAnError(Exception):
    """The package says that there is no good answer."""


def _give(text: Any, *, is_good: Any = True) -> str:
    if not is_good:
        raise _SaidAnError(text)
    return str(text)


def _agentabi(prompt: str) -> str:
    session = import_module("agentabi").Session(agent="claude_code")
    result = asyncio.run(session.run(prompt=prompt))
    return _give(result["result_text"], is_good=result["status"] == "success")


def _albeorla_claude_cli_bridge(prompt: str) -> str:
    response = asyncio.run(import_module("claude_cli_bridge").ClaudeBridge().query(key="chat-1", message=prompt))
    return _give(response.text, is_good=not response.is_error)


def _asys(prompt: str) -> str:
    return _give(import_module("asys").Agent().run(prompt))


def _claude_code_botman(prompt: str) -> str:
    return _give(import_module("claude_code_botman").ClaudeCode()(prompt))


def _claude_code_headless(prompt: str) -> str:
    return _give(import_module("claude_code_headless").call_claude(prompt))


def _claude_code_python(prompt: str) -> str:
    turn = asyncio.run(import_module("claude_code").ClaudeCode().start_session().run(prompt))
    return _give(turn.final_response)


def _claude_code_python_wrapper(prompt: str) -> str:
    response = import_module("claude_cli").ClaudeCLI(command="claude").query(prompt)
    return _give(response.output, is_good=response.return_code == 0)


def _claude_code_queue(prompt: str) -> str:
    models = import_module("claude_code_queue.models")
    interface = import_module("claude_code_queue.claude_interface").ClaudeCodeInterface()
    result = interface.execute_prompt(models.QueuedPrompt(content=prompt))
    return _give(result.output, is_good=result.success)


def _claude_code_sdk(prompt: str) -> str:
    sdk = import_module("claude_code_sdk")

    async def run() -> Any:
        return [message async for message in sdk.query(prompt=prompt)][-1]

    result = asyncio.run(run())
    return _give(result.result, is_good=not result.is_error)


def _claude_rotator(prompt: str) -> str:
    return _give(import_module("claude_rotator").ClaudeRunner(accounts=[None]).run(prompt=prompt).output)


def _claude_sdk_lite(prompt: str) -> str:
    result = list(import_module("claude_sdk_lite").query(prompt=prompt))[-1]
    return _give(result.result, is_good=not result.is_error)


def _claude_subprocess_sdk(prompt: str) -> str:
    response = import_module("claude_sdk").Claude().ask(prompt)
    return _give(response.result, is_good=not response.is_error)


def _claude_wrapper(prompt: str) -> str:
    return _give(asyncio.run(import_module("claude_wrapper").ClaudeClient().chat(prompt)))


def _claudecodestreaming(prompt: str) -> str:
    return _give(asyncio.run(import_module("claudecodestreaming").collect_text(follow_up=prompt)))


def _codesys(prompt: str) -> str:
    return _give(import_module("codesys").Agent(working_dir=str(Path.cwd())).run(prompt))


def _codex_local_sdk_python(prompt: str) -> str:
    sdk = import_module("codex_local_sdk")
    return _give(sdk.CodexLocalClient().run(sdk.CodexExecRequest(prompt=prompt), timeout_seconds=120).final_message)


def _codex_sdk_py(prompt: str) -> str:
    thread = import_module("codex_sdk").Codex().start_thread()
    return _give(asyncio.run(thread.run(prompt)).final_response)


def _codex_sdk_python(prompt: str) -> str:
    thread = import_module("codex_sdk").Codex().start_thread()
    return _give(asyncio.run(thread.run(prompt)).final_response)


def _codex_sdk_unofficial(prompt: str) -> str:
    return _give(import_module("codex_sdk").Codex().start_thread().run(prompt).final_response)


def _codexapi(prompt: str) -> str:
    return _give(import_module("codexapi").agent(prompt))


def _coding_agent_wrapper(prompt: str) -> str:
    return _give(import_module("caw").Agent().completion(prompt).result)


def _gemini_cli_agent(prompt: str) -> str:
    result = import_module("gemini_agent.core").GeminiAgent().run(prompt)
    return _give((result.response or {}).get("response", ""), is_good=result.success)


def _gemini_cli_sdk_py(prompt: str) -> str:
    return _give(import_module("gemini_cli_sdk").GeminiCLI().prompt_json(prompt).response)


def _harness_cli(prompt: str) -> str:
    harness = import_module("harness")
    result = harness.run(harness.RunSpec(harness="claude-code", prompt=prompt, workdir=str(Path.cwd())))
    return _give(json.loads(result.stdout or "{}").get("result", ""), is_good=result.ok)


def _jaymd96_psclaude(prompt: str) -> str:
    client = import_module("psclaude").PsClaude()
    response = client.send(prompt)
    client.cleanup()
    return _give(response.text, is_good=response.exit_code == 0)


def _langchain_claude_code_cli(prompt: str) -> str:
    return _give(import_module("langchain_claude_code").ChatClaudeCode().invoke(prompt).content)


def _llm_claude_cli(prompt: str) -> str:
    return _give(import_module("llm").get_model("claude-cli").prompt(prompt).text())


if __name__ == "__main__":
    name, given = sys.argv[1:]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            answer = globals()[f"_{name.replace('-', '_')}"](given)
    except Exception as error:  # noqa: BLE001  # whatever it is, the package gave no answer
        sys.exit(f"{type(error).__name__}: {error}")
    sys.stdout.write(answer)
