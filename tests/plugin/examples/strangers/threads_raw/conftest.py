"""Show supervisor.supervise to pytest-agentproc."""

from pytest_agentproc.subjects import Function
from supervisor import supervise

OWN = {"inactivity_timeout": 90, "max_runtime": None, "linger_grace": 0.5, "kill_grace": 3, "max_transcript_bytes": 32 << 20}


def limits(request):
    reported, dialect = request.limits, request.dialect
    kept = {name: reported.get(name, value) for name, value in OWN.items()}
    # One number for every way from TERM to KILL; no notion of events, tools or lines: it keeps no limit on those.
    return {**kept, "linger_kill_grace": kept["kill_grace"], "leftover_kill_grace": kept["kill_grace"], "internal_tool_timeout": None, "progress_timeout": None}


def threads_raw(order):
    policy, scale = order.policy, order.scale

    def scaled(seconds):
        return None if seconds is None else seconds / scale

    result = supervise(
        order.argv, order.env, cwd=order.cwd, stdin=order.prompt.encode() if order.prompt_by == "stdin" else None,
        inactivity_timeout=scaled(policy.inactivity_timeout), max_runtime=scaled(policy.max_runtime),
        exit_grace=scaled(policy.linger_grace), kill_grace=scaled(policy.kill_grace),
        max_text=policy.max_transcript_bytes or 1 << 40)
    return {name: getattr(result, name) for name in ("outcome", "exit_code", "text", "stderr_tail", "elapsed",
                                                     "agent_status", "forced", "error", "warnings")}


def pytest_agentproc_subjects():
    return [Function(threads_raw, limits=limits, dialects=["raw"])]
