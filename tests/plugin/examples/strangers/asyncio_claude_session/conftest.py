import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from pytest_agentproc.subjects import Client, Driven
from supervisor import LIMITS, ClaudeSession, HandshakeError


class Claude(Client):
    async def start(self):
        policy = self.order.policy
        limits = {name: getattr(policy, name) for name in LIMITS}
        self.session = ClaudeSession(self.order.argv, env=self.order.env, cwd=self.order.cwd, can_use_tool=self.ask, **limits)
        await self.session.start()

    async def ask(self, tool, arguments):
        return await self.ask_permission()

    async def prompt(self, text):
        result = await self.session.prompt(text)
        return {"outcome": result.outcome, "text": result.text, "error": result.error, "usage": result.usage,
                "stop_reason": result.stop_reason}

    async def cancel(self):
        await self.session.cancel()

    async def close(self):
        await self.session.close()

    def outcome_of_start_error(self, error):
        return "handshake_failed" if isinstance(error, HandshakeError) else super().outcome_of_start_error(error)


def limits(request):
    reported, dialect = request.limits, request.dialect
    off = {"inactivity_timeout": None, "internal_tool_timeout": None, "progress_timeout": None, "max_runtime": None,
           "max_transcript_bytes": None, "restart_backoff": None}
    return {**LIMITS, **{name: value for name, value in reported.items() if name in LIMITS}, **off}


def pytest_agentproc_subjects():
    return [Driven(Claude, name="claude_session", limits=limits, dialects=["claude session"])]
