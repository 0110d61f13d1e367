"""The report of a fake about its starts, and a PATH that leads to fakes only."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pytest_agentproc.plugin import Fakes, VirtualClock


TWICE = {"agent": "raw", "scripts": [[{"silence": "1s"}, {"exit": 3}], [{"silence": "for ever"}]]}


def test_each_start_tells_what_it_was_given_and_how_it_ended(
    fake_agent: Fakes, virtual_clock: VirtualClock, tmp_path: Path
) -> None:
    """A test of a supervisor's command line, environment and signals needs no script of its own for it."""
    agent = fake_agent(TWICE)

    async def use() -> None:
        command = [agent.name, "--flag", "x"]  # found by the PATH
        await anyio.run_process(command, env={**agent.env, "MINE": "1"}, input=b"hello", cwd=tmp_path, check=False)
        process = await anyio.open_process([agent.path], env={"LANG": "C.UTF-8"}, stdin=subprocess.DEVNULL)
        await anyio.sleep(2)
        process.terminate()
        await process.wait()

    virtual_clock.run(use)
    first, second = agent.starts
    assert (first.name, first.at, first.argv, first.cwd) == ("agent", 0.0, ("--flag", "x"), str(tmp_path))
    assert (first.env["MINE"], first.env["PATH"], first.stdin) == ("1", agent.folder, b"hello")
    assert (first.signals, first.ended_at, first.status) == ((), 1.0, 3)
    assert (second.name, second.at, second.argv, dict(second.env)) == ("agent 2", 1.0, (), {"LANG": "C.UTF-8"})
    assert (second.signals, second.ended_at, second.status) == ((("TERM", 3.0),), 3.0, -15)


def test_a_path_of_a_fake_leads_to_no_other_program(fake_agent: Fakes) -> None:
    """A supervisor that looks for another CLI finds none, as on a machine that has only this one."""
    agent = fake_agent({"agent": {"dialect": "pi", "mode": "json"}, "script": [{"answer": "hi"}]})
    assert os.listdir(agent.folder) == ["pi"]  # noqa: PTH208  # names are what is asked for
    assert agent.env["PATH"] == agent.folder


def test_a_bundled_scenario_is_a_fake_by_its_id(fake_agent: Fakes, virtual_clock: VirtualClock) -> None:
    """A user's supervisor runs the bundled scenarios with one line."""
    agent = fake_agent("byte-a-minute")
    virtual_clock.run(anyio.run_process, agent.argv)
    assert (virtual_clock.now, agent.starts[0].status) == (300.0, 0)


def test_a_raw_program_is_given_no_prompt_that_the_test_does_not_give(pytester: pytest.Pytester) -> None:
    """A first test asserts the command line, and must find there what the test's own code wrote."""
    pytester.makepyfile(
        """
        import subprocess

        def test_bare(fake_agent):
            agent = fake_agent("- answer: done")
            assert agent.argv == [agent.path]
            subprocess.run([*agent.argv, "--print"], check=True, capture_output=True)
            agent.assert_called_once_with("--print")

        def test_bundled(fake_agent):
            assert len(fake_agent("silent-past-the-limit").argv) == 1

        def test_stated(fake_agent):
            agent = fake_agent({"drive": [{"prompt": "build it"}], "script": [{"answer": "done"}]})
            assert agent.argv == [agent.path, "build it"]

        def test_agents_that_need_a_prompt_have_one(fake_agent):
            for agent in ("claude", "codex", "gemini", {"dialect": "pi", "mode": "json"}):
                fake = fake_agent({"agent": agent, "script": [{"answer": "done"}]})
                subprocess.run(fake.argv, check=True, capture_output=True, stdin=subprocess.DEVNULL)
                assert fake.argv[-1] == "hi"
        """
    )
    pytester.runpytest().assert_outcomes(passed=4)
