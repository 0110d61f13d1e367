from dataclasses import replace

from pytest_agentproc.subjects import Function

from supervisor import Limits, run

WORDS = {"success": "completed", "error": "failed", "silent": "inactive", "timeout": "overran", "crashed": "incomplete",
         "no_input": "input_failed", "bad_output": "protocol_error", "not_started": "spawn_failed"}
MINE = Limits()
NAMES = {"inactivity_timeout": "silence", "internal_tool_timeout": "tool_silence", "max_runtime": "total",
         "linger_grace": "linger", "background_grace": "background_linger", "max_line_bytes": "max_line"}


def limits(request):
    """State our own numbers; the scenario gives the numbers that our caller can set."""
    mine = {theirs: request.limits.get(theirs, getattr(MINE, ours)) for theirs, ours in NAMES.items()}
    graces = dict.fromkeys(["kill_grace", "linger_kill_grace", "leftover_kill_grace"], MINE.grace)
    return {**mine, **graces, "progress_timeout": None, "max_transcript_bytes": None}


async def anyio_claude_print(order):
    mine = replace(MINE, **{ours: getattr(order.policy, theirs) for theirs, ours in NAMES.items()})
    prompt = order.prompt if order.prompt_by == "stdin" else None
    result = await run(order.argv, order.env, prompt, cwd=order.cwd, limits=mine)
    return {
        "outcome": WORDS[result.outcome],
        "text": result.text,
        "error": result.error,
        "usage": result.usage,
        "elapsed": result.duration,
        "agent_status": result.exit_code,
        "forced": result.terminated,
        "stderr_tail": result.stderr,
        "noise": result.noise,
        "warnings": result.warnings,
    }


def pytest_agentproc_subjects():
    return [Function(anyio_claude_print, limits=limits, dialects=["claude print"], cancellable=True)]
