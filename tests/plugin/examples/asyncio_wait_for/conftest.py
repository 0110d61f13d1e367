from mine import supervise
from pytest_agentproc.subjects import Function


async def mine(order):
    outcome, text = await supervise(order.argv, order.env)
    return {"outcome": outcome, "text": text}


def pytest_agentproc_subjects():
    return [Function(mine, limits={"inactivity_timeout": 60}, dialects=["raw"])]
