"""A supervisor as it is written first: it takes its limit for one on the whole run, and kills the agent alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pytest_agentproc.subjects import Function

if TYPE_CHECKING:
    from pytest_agentproc.vocabulary import Order

__all__ = ["subject"]

PIPE = asyncio.subprocess.PIPE


async def supervise(order: Order) -> dict[str, Any]:
    """Give the agent a minute."""
    agent = await asyncio.create_subprocess_exec(*order.argv, env=order.env, stdout=PIPE, stderr=PIPE)
    try:
        out, _ = await asyncio.wait_for(agent.communicate(), 60)
    except TimeoutError:
        agent.kill()
        await agent.wait()
        return {"outcome": "inactive"}
    return {"outcome": "failed" if agent.returncode else "completed", "text": out.decode().strip()}


subject = Function(supervise, name="naive", limits={"inactivity_timeout": 60}, dialects=["raw"])
