import asyncio
from asyncio.subprocess import DEVNULL, PIPE


async def supervise(argv, env):
    """Give an agent a minute."""
    agent = await asyncio.create_subprocess_exec(*argv, env=env, stdin=DEVNULL, stdout=PIPE)
    try:
        text, _ = await asyncio.wait_for(agent.communicate(), 60)
    except TimeoutError:
        agent.kill()
        await agent.wait()
        return "inactive", ""
    return "failed" if agent.returncode else "completed", text.decode().strip()
