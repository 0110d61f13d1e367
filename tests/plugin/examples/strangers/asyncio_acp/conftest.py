import asyncio

from supervisor import AcpError, Limits, Session
from pytest_agentproc.subjects import Client, Driven, Function
from pytest_agentproc.vocabulary import Caller, CallerRole, to_nanoseconds

# the limits of mine that a scenario may set, by the kit's names
NAMES = {"handshake_timeout": "handshake", "prompt_timeout": "idle", "cancel_grace": "cancel_grace",
         "permission_timeout": "permission", "close_grace": "close_grace", "kill_grace": "kill_grace",
         "max_line_bytes": "max_line"}


def limits(request):
    reported, dialect = request.limits, request.dialect
    kept = {kit: getattr(Limits, mine) for kit, mine in NAMES.items()}
    kept |= {name: value for name, value in reported.items() if name in kept and value is not None}
    return {**kept, "linger_kill_grace": kept["kill_grace"], "leftover_kill_grace": kept["kill_grace"], "inactivity_timeout": None, "internal_tool_timeout": None,
            "progress_timeout": None, "max_runtime": None, "max_transcript_bytes": None, "containment": "group",
            "restart_backoff": 0}


def mine(order):
    return Limits(**{m: getattr(order.policy, kit) / (1 if m == "max_line" else order.scale) for kit, m in NAMES.items()})


def told(turn):
    answer = {"outcome": turn.outcome, "text": turn.text, "transcript": "\n".join(turn.messages),
              "stop_reason": turn.stop_reason, "error": turn.error}
    return {**answer, "elapsed": turn.ended - turn.began} if turn.began is not None else answer


class Acp(Client):
    async def start(self):
        self.session = Session(self.order.argv, env=self.order.env, cwd=self.order.cwd, limits=mine(self.order),
                               on_permission=lambda params: self.ask_permission())
        await self.session.start()

    async def prompt(self, text):
        return told(await self.session.prompt(text))

    async def cancel(self):
        self.session.cancel()

    async def close(self):
        await self.session.close()

    def outcome_of_start_error(self, error):
        return error.outcome if isinstance(error, AcpError) else super().outcome_of_start_error(error)


class Watched(Session):
    """Mine, that tells when a prompt goes out."""

    async def _play(self, turn, agent, text):
        self.tell("prompting")
        try:
            await super()._play(turn, agent, text)
        finally:
            self.tell("ready")


class SessionProtocol:
    def __init__(self, order, play, name):
        self.order, self.play, self.name, self.tasks, self.questions, self.failed = order, play, name, [], {}, None
        self.session = Watched(order.argv, env=order.env, cwd=order.cwd, limits=mine(order),
                               on_permission=self.ask_permission if order.handler else None)
        self.session.tell = lambda status: play.hear("status", None, status, name)
        self.starting = asyncio.ensure_future(self.start())

    async def start(self):
        try:
            await self.session.start()
            self.session.tell("ready")
        except AcpError as error:
            self.failed = error
            self.session.tell("failed")

    async def ask_permission(self, _):
        number = self.play.caller.note_question(self.play.now(), self.name)
        self.play.wake.set()
        self.questions[number] = asyncio.get_running_loop().create_future()
        return await self.questions[number]

    async def prompt(self, text, number):
        try:
            await self.starting
            if self.failed:
                return {"outcome": self.failed.outcome, "error": str(self.failed)}
            return told(await self.session.prompt(text))
        except asyncio.CancelledError:
            return {"outcome": "cancelled"}
        finally:
            self.play.hear("outcome", number, "", self.name)

    async def do(self, action):
        if action.kind == "prompt":
            self.tasks.append(asyncio.ensure_future(self.prompt(action.value, len(self.tasks) + 1)))
        elif action.kind == "cancel":
            current = next((n for n, task in enumerate(self.tasks, 1) if not task.done()), None)
            if action.value in (None, current):
                self.session.cancel()
            else:
                self.tasks[action.value - 1].cancel()
        elif action.kind == "answer" and action.value in self.questions and not self.questions[action.value].done():
            self.questions[action.value].set_result(self.order.handler.allowed)
        elif action.kind == "close":
            await self.session.close()

    async def answer(self):
        agent = self.session.agent
        return {"turns": [task.result() for task in self.tasks], "error": str(self.failed or ""),
                **({"noise": agent.noise, "stderr_tail": bytes(agent.stderr)} if agent else {})}


class Play:
    def __init__(self, order):
        orders = {sub.name: sub for sub in order.sessions} if order.sessions else {"": order}
        self.wake, self.loop = asyncio.Event(), asyncio.get_running_loop()
        self.zero, self.scale = self.loop.time(), order.scale
        self.caller = Caller(order.drive, lambda action: None, {n: CallerRole(o.handler, o.hooks) for n, o in orders.items()})
        self.session_protocols = {name: SessionProtocol(sub, self, name) for name, sub in orders.items()}

    def now(self):
        return to_nanoseconds((self.loop.time() - self.zero) * self.scale)

    def hear(self, *what):
        self.caller.note_event(*what)
        self.wake.set()

    async def run(self):
        while not self.caller.is_done:
            self.wake.clear()
            actions = self.caller.act(self.now())
            for action in actions:
                await self.session_protocols[action.session].do(action)
            if not actions and not self.caller.is_done:
                at = self.caller.deadline
                try:
                    await asyncio.wait_for(self.wake.wait(), None if at is None else max(0, at - self.now()) / 1e9 / self.scale)
                except TimeoutError:
                    pass
        for talk in self.session_protocols.values():
            await asyncio.gather(*talk.tasks)
        answers = {name: await talk.answer() for name, talk in self.session_protocols.items()}
        return answers[""] if "" in answers else {"sessions": answers}


async def acp_function(order):
    return await Play(order).run()


def pytest_agentproc_subjects():
    return [Driven(Acp, dialects=["acp"], limits=limits),
            Function(acp_function, dialects=["acp"], limits=limits, runs=False,
                     sessions=["prompt", "queue", "cancel", "close", "permission", "several"])]
