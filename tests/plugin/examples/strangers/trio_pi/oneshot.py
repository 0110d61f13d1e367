"""Beyond the 250 lines: one run of `pi --mode json`, on the Agent and the Turn of the sessions."""
import dataclasses

import trio
from supervisor import Agent, Limits, Turn


class Run:
    def __init__(self, argv, env, cwd, limits):
        self.argv, self.env, self.cwd, self.limits, self.awake = argv, env, cwd, limits, trio.Event()
        self.turn, self.agent = Turn(self), Agent(self)
        self.turn.agent, self.turn.begun, self.turn.warnings = self.agent, True, []

    def event(self, kind, event):
        self.turn.handle(kind, event)

    async def feed(self, prompt):
        stdin = self.agent.proc.stdin
        try:
            await stdin.send_all(prompt)
        except trio.BrokenResourceError:
            pass
        await stdin.aclose()


async def run_once(argv, *, prompt=b"", env=None, cwd=None, limits=Limits(), linger_grace=2, linger_kill_grace=2):
    """agent_end is the end; the exit is, if that never comes. A lingering process is ended."""
    run = Run(argv, env, cwd, dataclasses.replace(limits, prompt_timeout=None))
    turn, agent = run.turn, run.agent
    async with trio.open_nursery() as nursery:
        try:
            await nursery.start(agent.serve)
        except OSError as error:
            turn.finish("spawn_failed", str(error))
            return turn
        nursery.start_soon(run.feed, prompt)
        while not turn.outcome:
            with trio.move_on_at(turn.due()[0]):
                await run.awake.wait()
            for _ in range(3):
                await trio.lowlevel.checkpoint()
            run.awake = trio.Event()
            due, why = turn.due()
            if agent.fault:
                turn.finish(*agent.fault)
            elif agent.exited.is_set():
                whole = agent.status == 0 and turn.stop_reason in ("stop", "length") and not turn.tools
                bad = "failed" if agent.status > 0 or turn.retry else "incomplete"
                turn.finish("completed" if whole else bad, turn.error or f"pi ended with {agent.status}")
            elif trio.current_time() >= due:
                turn.finish(why, "" if turn.retry else f"{why}: {agent.stderr[-300:].decode(errors='replace')}")
        if turn.outcome in ("completed", "failed"):
            with trio.move_on_after(linger_grace):
                await agent.exited.wait()
            agent.limits = dataclasses.replace(agent.limits, kill_grace=linger_kill_grace)
        turn.forced = not agent.exited.is_set()
        agent.scope.cancel()
        await agent.gone.wait()
        if turn.outcome == "completed" and agent.status and not turn.forced:
            turn.warnings.append(f"pi ended with {agent.status} behind a good answer")
        nursery.cancel_scope.cancel()
    return turn
