from pytest_agentproc.subjects import Function
from watchdog import supervise


async def watchdog(order):
    outcome, text = await supervise(order.argv, order.env)
    return {"outcome": outcome, "text": text}


def pytest_agentproc_subjects():
    return [Function(watchdog, limits={"inactivity_timeout": 120}, dialects=["raw"])]
