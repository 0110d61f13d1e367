"""The PyPI package agent-client-protocol as a subject: one session, one prompt at a time. Judges nothing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pytest_agentproc.subjects import Client, Driven

acp: Any = import_module("acp")


class Acp(Client):  # noqa: D101  # the agent's requests to its client, and its reports, too
    continues = ("load", "resume")
    said = ""

    async def start(self) -> None:  # noqa: D102
        order = self.order
        process = acp.spawn_agent_process(self, *order.argv, env=dict(order.env), cwd=order.cwd)
        self.agent, _ = await self.enter_context(process)
        await self.agent.initialize(protocol_version=1)
        if order.continues is None:
            self.session = (await self.agent.new_session(cwd=order.cwd)).session_id
        else:
            self.session = order.continues.id
            opens = {"load": self.agent.load_session, "resume": self.agent.resume_session}[order.continues.how]
            await opens(cwd=order.cwd, session_id=self.session)

    async def prompt(self, text: str) -> Any:  # noqa: D102
        self.said = ""
        ended = await self.agent.prompt(session_id=self.session, prompt=[acp.text_block(text)])
        outcome = {"end_turn": "completed", "cancelled": "cancelled"}.get(ended.stop_reason, "failed")
        return {"outcome": outcome, "text": self.said, "stop_reason": ended.stop_reason}

    async def cancel(self) -> None:  # noqa: D102
        await self.agent.cancel(session_id=self.session)

    async def session_update(self, update: Any, **_: Any) -> None:  # noqa: D102
        self.said += update.content.text if update.session_update == "agent_message_chunk" else ""

    async def request_permission(self, options: Any, **_: Any) -> Any:  # noqa: D102
        kind = "allow" if await self.ask_permission() else "reject"
        return {"outcome": {"outcome": "selected", "optionId": next(o.option_id for o in options if kind in o.kind)}}

    def outcome_of_prompt_error(self, error: Exception) -> str:  # noqa: D102
        return "failed" if isinstance(error, acp.RequestError) else super().outcome_of_prompt_error(error)

    def outcome_of_start_error(self, error: Exception) -> str:  # noqa: D102
        return "handshake_failed" if isinstance(error, acp.RequestError) else super().outcome_of_start_error(error)


# Its own limits: end of stdin to TERM, and to KILL; it has none on silence, a turn, a cancel or a handshake.
SUBJECT = Driven(Acp, name="agent-client-protocol", limits={"close_grace": 2, "kill_grace": 2}, dialects=["acp"])
