"""How naive.py is called: it is no async code, so it is judged in real time, which goes `scale` times faster."""

from naive import supervise
from pytest_agentproc.subjects import Function


def naive(order):
    outcome, text = supervise(order.argv, order.env, 60 / order.scale)
    return {"outcome": outcome, "text": text}


def pytest_agentproc_subjects():
    return [Function(naive, limits={"inactivity_timeout": 60, "kill_grace": 60}, dialects=["raw"])]
