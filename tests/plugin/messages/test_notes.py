"""Notes under an exception: what the kit knows of its cause stands directly below it."""

from __future__ import annotations

import re

import pytest

from pytest_agentproc.plugin import _failure_notes
from pytest_agentproc.vocabulary import DIALECTS


def list_notes(result: pytest.RunResult) -> list[str]:
    """List the kit's notes of a run, without pids and durations."""
    lines = (line[1:].strip() for line in result.outlines if re.match("E +agentproc: ", line))
    return [re.sub(r"\d+\.\d s", "N s", re.sub(r"pid \d+", "pid N", line)) for line in lines]


WAITS = """
    import subprocess
    import pytest
    from pytest_agentproc.plugin import FakeAgents

    SCRIPT = "- say: up\\n- wait_for: eof\\n- answer: done"

    def wait(argv, fake):
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            while not fake.starts:  # it is at rest then
                pass
            raise TimeoutError
        finally:
            process.kill()
            process.communicate()

    def test_fake_agent(fake_agent):
        agent = fake_agent(SCRIPT)
        wait(agent.argv, agent)

    @pytest.mark.parametrize("name", ["claude", "codex", "tool"])
    def test_on_path(fake_agents, name):
        fake_agents.on_path(**{name: SCRIPT})
        wait([name, "exec", "--yolo", "hi"] if name == "codex" else [name, "-p", "hi"], fake_agents[name])

    def test_by_arguments(fake_agents):
        fake_agents.on_path(tool={"-p": SCRIPT})
        wait(["tool", "-p"], fake_agents["tool"])

    def test_block():
        with FakeAgents() as agents:
            agents.on_path(tool=SCRIPT)
            wait(["tool"], agents["tool"])

    kept = []

    def test_alive(fake_agent):
        agent = fake_agent(SCRIPT)
        kept.append(subprocess.Popen(agent.argv, stdin=subprocess.PIPE))
        while not agent.starts:
            pass
        raise TimeoutError

    def test_afterwards():
        kept[0].communicate()
"""


@pytest.mark.slow
def test_a_fake_that_waited_in_vain_is_named_however_it_was_made(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output of pytest may be a file, or that of a worker, into which the fake cannot write by itself."""
    pytester.makepyfile(test_it=WAITS)
    monkeypatch.setattr(_failure_notes, "_LEAST_IDLE_SECONDS", 0)
    result = pytester.runpytest()
    result.assert_outcomes(failed=7, errors=1, passed=1)

    def expect(name: str, place: str, line: int, *, is_alive: bool = False) -> str:
        how = "has waited for N s" if is_alive else "waited for N s, until KILL ended it"
        return f"agentproc: {name} (pid N) {how}, at {place}:{line}: - wait_for: eof"

    assert list_notes(result) == [
        expect("agent", "<test_fake_agent>", 3),
        *(expect(name, f"<test_on_path[{name}]>", 3) for name in ("claude", "codex", "tool")),
        expect("tool -p", "<test_by_arguments>", 3),
        expect("tool", "<test_block>", 3),
        expect("agent", "<test_alive>", 3, is_alive=True),
    ]


PROGRAMS = """
    import asyncio, subprocess
    import pytest
    from pytest_agentproc.plugin import FakeAgents

    def test_emptied(fake_agents):
        fake_agents.on_path("claude", "codex", keep_path=False)
        subprocess.run(["git", "status"])

    def test_shell(fake_agents):
        fake_agents.on_path("claude", keep_path=False)
        subprocess.run("git status", shell=True, check=True)

    def test_own_env(fake_agent):
        agent = fake_agent("- answer: done")
        subprocess.run(["git", "status"], env=agent.env)

    async def run_git():
        await asyncio.create_subprocess_exec("git")

    def test_asyncio(fake_agents):
        fake_agents.on_path("claude", keep_path=False)
        asyncio.run(run_git())

    def test_block():
        with FakeAgents() as agents:
            agents.on_path("claude", keep_path=False)
            subprocess.run(["git"])

    def test_wrapped(fake_agents):
        fake_agents.on_path("claude", keep_path=False)
        try:
            subprocess.run(["git"])
        except OSError as error:
            raise ValueError("no git") from error

    def test_another_agent(fake_agents):
        fake_agents.on_path("claude")
        subprocess.run(["gemini"])

    def test_no_program(fake_agents):
        fake_agents.on_path("claude", keep_path=False)
        with pytest.raises(FileNotFoundError):
            subprocess.run(["claude"], cwd="nowhere")
        open("nothing")

    def test_not_installed(fake_agents):
        fake_agents.on_path(claude={"agent": {"dialect": "claude", "cannot_spawn": "not_found"}, "script": []})
        subprocess.run(["claude"])

    def test_not_on_the_machine(fake_agents):
        fake_agents.on_path("claude")
        subprocess.run(["no-such-program"])
"""


def test_a_program_that_only_the_fakes_hide_is_explained(pytester: pytest.Pytester) -> None:
    """A missing file, a missing folder and a program that is not installed are no matter of the fakes."""
    pytester.makepyfile(test_it=PROGRAMS)
    result = pytester.runpytest()
    result.assert_outcomes(failed=10)
    emptied = "agentproc: git was not found: its PATH leads to fakes alone (claude); take keep_path=False away"
    shell = emptied.replace("git was not found", "exit code 127 says that a program was not found")
    assert list_notes(result) == [
        emptied.replace("(claude)", "(claude, codex)"),
        shell,
        "agentproc: git was not found: its PATH leads to fakes alone (agent); add the real PATH to that of env",
        *[emptied] * 3,
        "agentproc: gemini is no fake of this test: fake_agents.on_path('gemini') makes one",
    ]


REFUSALS = """
    import subprocess
    import anyio, pytest

    SCRIPT = "- answer: done"
    UNTRUSTED = ["codex", "exec", "what I asked"]
    UNKNOWN = ["codex", "exec", "--skip-git-repo-check", "--no-such", "what I asked"]

    def test_real(fake_agents):
        fake_agents.on_path(codex=SCRIPT)
        subprocess.run(UNKNOWN, capture_output=True, check=True)

    @pytest.mark.virtual_time
    async def test_async(fake_agents):
        fake_agents.on_path(codex=SCRIPT)
        await anyio.run_process(UNTRUSTED)

    @pytest.mark.virtual_time
    def test_sync(fake_agents):
        fake_agents.on_path(codex=SCRIPT)
        assert subprocess.run(UNTRUSTED, capture_output=True).stdout == b"done"

    def test_by_arguments(fake_agents):
        fake_agents.on_path(claude={"-p": SCRIPT})
        subprocess.run(["claude", "-p", "--no-such"], capture_output=True, check=True)

    def test_many(fake_agents):
        fake_agents.on_path(codex=SCRIPT)
        for _ in range(7):
            subprocess.run(UNTRUSTED, capture_output=True)
        assert False

    @pytest.mark.virtual_time
    async def test_code_of_the_script(fake_agents):
        fake_agents.on_path(codex="- exit: 3")
        await anyio.run_process(["codex", "exec", "--skip-git-repo-check", "what I asked"])

    def test_code_of_the_script_in_real_time(fake_agents):
        fake_agents.on_path(tool="- raw: {text: no, to: stderr}\\n- exit: 3")
        subprocess.run(["tool"], check=True)

    def test_help(fake_agents):
        fake_agents.on_path(claude=SCRIPT)
        subprocess.run(["claude", "--help"], capture_output=True, check=True)
        assert False

    def test_passes(fake_agents):
        fake_agents.on_path(codex=SCRIPT)
        assert subprocess.run(UNTRUSTED, capture_output=True).returncode == 1
"""


@pytest.mark.slow
def test_a_start_that_a_fake_refused_is_explained(pytester: pytest.Pytester) -> None:
    """The code under test has captured the words of the fake, and an exception of subprocess shows the code alone."""
    pytester.makepyfile(test_it=REFUSALS)
    result = pytester.runpytest_subprocess("-p", "no:anyio", timeout=60)
    result.assert_outcomes(failed=8, passed=1)

    def expect(name: str, code: int, words: str) -> str:
        return f"agentproc: {name} (pid N) refused this start with code {code}, as its CLI does: {words}"

    untrusted = "Not inside a trusted directory and --skip-git-repo-check was not specified."
    unknown = (
        "error: unexpected argument '--no-such' found / tip: to pass '--no-such' as a value, use '-- --no-such' / "
        "Usage: codex exec [OPTIONS] [PROMPT] / codex exec [OPTIONS] <COMMAND> [ARGS] / For more informa..."
    )
    numbered = ["codex", *(f"codex {number}" for number in range(2, 6))]
    assert list_notes(result) == [
        expect("codex", 2, unknown),
        *[expect("codex", 1, untrusted)] * 2,
        expect("claude -p", 1, "error: unknown option '--no-such'"),
        *(expect(name, 1, untrusted) for name in numbered),
        "agentproc: and 2 more refused starts",
    ]


UNOBEYED = """
    import subprocess
    import anyio
    import pytest

    def run():
        command = ["codex", "exec", "--skip-git-repo-check", "--cd", ".", "--output-schema", "s.json", "hi"]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)

    @pytest.fixture(autouse=True)
    def schema(tmp_path, monkeypatch, fake_agents):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "s.json").write_text("{}")
        fake_agents.on_path(codex="- answer: done")

    def test_real(fake_agents):
        assert run().stdout == b"{}"

    @pytest.mark.virtual_time
    def test_virtual(fake_agents):
        assert run().stdout == b"{}"

    def test_in_an_event_loop(fake_agents, virtual_clock):
        command = ["codex", "exec", "--skip-git-repo-check", "--cd", ".", "--output-schema", "s.json", "hi"]
        done = virtual_clock.run(anyio.run_process, command)
        assert done.stdout == b"{}"

    def test_passes(fake_agents):
        assert run().stdout == b"done\\n"
"""


@pytest.mark.slow
def test_an_option_that_a_fake_does_not_obey_is_named(pytester: pytest.Pytester) -> None:
    """It may be the reason for a red that is none with the real CLI."""
    pytester.makepyfile(test_it=UNOBEYED)
    result = pytester.runpytest_subprocess("-p", "no:anyio", timeout=60)
    result.assert_outcomes(failed=3, passed=1)
    table = DIALECTS["codex"].command_line
    assert table is not None
    real = {each.option: each.real for each in table.unobeyed}
    assert (
        list_notes(result)
        == [
            f"agentproc: the fake codex does not obey {option}: the real CLI {real[option]}"
            for option in ("--output-schema", "--cd")
        ]
        * 3
    )


CLOCKS = """
    import subprocess
    import pytest

    def fail(agents):
        agents.on_path("claude")
        subprocess.run(["claude", "-p", "hi"])
        assert False

    def test_sync(fake_agents, virtual_clock):
        fail(fake_agents)

    @pytest.fixture
    def clock(virtual_clock):
        return virtual_clock

    @pytest.mark.virtual_time
    def test_marked(fake_agents, clock):
        fail(fake_agents)

    @pytest.mark.anyio
    async def test_async(fake_agents, virtual_clock):
        fail(fake_agents)

    def test_used(fake_agents, virtual_clock):
        async def pause():
            pass
        virtual_clock.run(pause)
        fail(fake_agents)

    def test_not_asked_for(fake_agents):
        fail(fake_agents)

    def test_nothing_was_started(fake_agents, virtual_clock):
        assert False
"""


def test_a_clock_that_never_ran_is_named(pytester: pytest.Pytester) -> None:
    """The fixture alone does not put a test in virtual time: fakes ran in real time, until a limit was over."""
    pytester.makepyfile(test_it=CLOCKS)
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef anyio_backend(): return 'asyncio'\n")
    result = pytester.runpytest()
    result.assert_outcomes(failed=6)
    here = (
        "agentproc: the test asks for virtual_clock, and nothing called virtual_clock.run(...): "
        "its fakes were in real time; "
    )
    marker = "write @pytest.mark.virtual_time above it"
    assert list_notes(result) == [
        *[f"{here}for virtual time {marker}, and take virtual_clock away"] * 2,
        f"{here}{marker}",
    ]
