"""The adapter: how the kit talks to supervisor.py. ADAPTER=driven|function|both chooses how sessions are shown."""
import dataclasses, math, os

import trio
from pytest_agentproc.subjects import Client, Driven, Function
from pytest_agentproc.vocabulary import Caller, CallerRole
from oneshot import run_once
from supervisor import Limits, Session, open_session

OWN = {field.name: field.default for field in dataclasses.fields(Limits)}
NOT_THE_KITS = {"retry_grace"}


def limits(request):
    reported, dialect = request.limits, request.dialect
    kept = {name: reported.get(name, value) for name, value in OWN.items() if name not in NOT_THE_KITS}
    return {**kept, "handshake_timeout": None, "restart_backoff": 0, "progress_timeout": None, "max_transcript_bytes": None}


def policy(order):
    fields = {name: getattr(order.policy, name) for name in OWN if name not in NOT_THE_KITS}
    scaled = {name: value and value / order.scale for name, value in fields.items() if name != "max_line_bytes"}
    return {**fields, **scaled, "retry_grace": Limits.retry_grace / order.scale}


def opened(order, confirm):
    told = policy(order)
    return open_session(order.argv, env=order.env, cwd=order.cwd, limits=Limits(**told), confirm=confirm)


def answer(turn):
    fields = {"outcome": turn.outcome, "text": turn.text, "error": turn.error, "stop_reason": turn.stop_reason,
            "model": turn.model, "usage": turn.usage}
    if turn.agent:
        fields |= {"noise": turn.agent.noise, "stderr_tail": turn.agent.stderr, "agent_status": turn.agent.status}
    return fields


class Watched(Session):
    """Reports when a prompt is delivered; the session itself does not report it."""

    tell = None

    @property
    def turn(self):
        return self.__dict__.get("turn")

    @turn.setter
    def turn(self, turn):
        self.__dict__["turn"] = turn
        self.tell("prompting")


class Pi(Client):
    async def start(self):
        self.session = await self.enter_context(opened(self.order, self.confirm))

    async def confirm(self, event):
        return await self.ask_permission()

    async def prompt(self, text):
        return answer(await self.session.prompt(text))

    async def cancel(self):
        self.session.cancel()

    async def close(self):
        pass  # the context that is held ends it


async def whole(order):
    """The whole drive, so that our queue is judged, too."""
    start, turns, scopes, replies = trio.current_time(), {}, {}, {}
    caller = Caller(order.drive, lambda caller_action: None, {"": CallerRole(order.handler, order.hooks)})
    kick = [trio.Event()]

    def now():
        return round((trio.current_time() - start) * 1e9)

    def tell(status):
        caller.note_event("status", None, status)
        kick[0].set()

    async def confirm(event):
        number = caller.note_question(now())
        kick[0].set()
        replies[number] = (done := trio.Event())
        await done.wait()
        return order.handler is not None and bool(order.handler.allowed)

    async def ask(number, text):
        with trio.CancelScope() as scope:
            scopes[number] = scope
            began = trio.current_time()
            turn = await session.prompt(text)
            turns[number] = {**answer(turn), "elapsed": turn.elapsed}
        if scope.cancelled_caught:
            turns[number] = {"outcome": "cancelled"}
        caller.note_event("outcome", number, turns[number]["outcome"])
        tell("ready")

    async with trio.open_nursery() as nursery:
        closing = False
        async with opened(order, confirm if order.handler else None) as session:
            session.__class__, session.tell = Watched, tell
            tell("ready")
            while not caller.is_done and not closing:
                for action in caller.act(now()):
                    if action.kind == "prompt":
                        number = len(scopes) + 1
                        scopes[number] = None
                        nursery.start_soon(ask, number, action.value)
                        await trio.lowlevel.checkpoint()  # so that prompts stand in line as they were given
                    elif action.kind == "cancel" and action.value in (None, session.turn and number_of(session, turns, scopes)):
                        session.cancel()
                    elif action.kind == "cancel":
                        scopes[action.value].cancel()
                    elif action.kind == "stop":
                        await session.end()
                    elif action.kind == "answer":
                        replies[action.value].set()
                    elif action.kind == "close":
                        closing = True
                if not closing and not caller.is_done:
                    with trio.move_on_at(math.inf if caller.deadline is None else start + caller.deadline / 1e9):
                        await kick[0].wait()
                    kick[0] = trio.Event()
    return {"turns": tuple(turns[number] for number in sorted(turns))}


def number_of(session, turns, scopes):
    """The number of the turn in flight: the first without an outcome."""
    return next((number for number in scopes if number not in turns), None)


LINGER = {"linger_grace": 2, "linger_kill_grace": 2}


def run_limits(request):
    told = request.limits
    return {**limits(request), **{name: told.get(name, value) for name, value in LINGER.items()}}


async def once(order):
    told = policy(order)
    turn = await run_once(order.argv, prompt=order.prompt.encode() if order.prompt_by == "stdin" else b"", env=order.env,
                          cwd=order.cwd, limits=Limits(**told), **{name: getattr(order.policy, name) / order.scale for name in LINGER})
    return {**answer(turn), "elapsed": turn.elapsed, "warnings": tuple(turn.warnings),
            **({} if turn.outcome == "spawn_failed" else {"forced": turn.forced})}


def pytest_agentproc_subjects():
    run = Function(once, name="trio_pi_run", limits=run_limits, dialects=["pi json"], cancellable=True)
    driven = Driven(Pi, name="trio_pi", limits=limits, dialects=["pi rpc"])
    function = Function(whole, name="trio_pi_whole", limits=limits, dialects=["pi rpc"], runs=False, cancellable=True,
                        sessions=["prompt", "queue", "cancel", "stop", "close", "permission"])
    return {"driven": [driven], "function": [function], "run": [run], "both": [driven, function], "all": [driven, function, run]}[os.environ.get("ADAPTER", "both")]
