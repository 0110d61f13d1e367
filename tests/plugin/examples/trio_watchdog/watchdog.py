"""An agent that says nothing for two minutes is killed, whatever it has started."""

import subprocess

import trio


async def supervise(argv, env):
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    agent = await trio.lowlevel.open_process(argv, env=env, start_new_session=True, **streams)
    text = b""
    async with agent.stdout:
        while True:
            with trio.move_on_after(120) as silence:
                data = await agent.stdout.receive_some()
            if silence.cancelled_caught:
                agent.kill()
                await agent.wait()
                return "inactive", ""
            if not data:
                break
            text += data
    status = await agent.wait()
    return "failed" if status else "completed", text.decode().strip()
