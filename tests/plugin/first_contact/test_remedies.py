"""Every remedy that a message of the clock, the fixtures or the plugin names exists, and does what it says."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from pytest_agentproc import plugin
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

FIXTURES = {
    "agent_run": plugin.Runner,
    "agent_scenario": plugin.AgentRun,
    "agent_session": plugin.Sessions,
    "agent_timeline": plugin.AgentTimeline,
    "fake_agent": plugin.Fakes,
    "fake_agents": plugin.FakeAgents,
    "process_tree": plugin.ProcessTree,
    "virtual_clock": plugin.VirtualClock,
}
USE = re.compile(rf"(?<![\w.])({'|'.join(FIXTURES)})(\.\w+|\(|\[)")
"""A fixture, and what is done with it: a method or an attribute, a call, an item."""


def iterate_strings() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of every string in the clock and the plugin that is no docstring."""
    for folder in ("clock", "plugin"):
        for file in sorted((ROOT / "pytest_agentproc" / folder).rglob("*.py")):
            tree = ast.parse(file.read_text("utf-8"))
            docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                place = f"{folder}/{file.name}:{getattr(node, 'lineno', 0)}"
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                    yield place, node.value
                elif isinstance(node, ast.JoinedStr):
                    parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
                    yield place, "".join(map(str, parts))


def can_be_used(fixture: str, use: str) -> bool:
    """Say whether a fixture can be used so."""
    name = {"(": "__call__", "[": "__getitem__"}.get(use, use.removeprefix("."))
    return any(name in vars(kind) for kind in FIXTURES[fixture].__mro__)  # every class itself can be called


def test_each_use_of_a_fixture_that_a_message_names_is_there() -> None:
    """A message that advises a call which the fixture does not have costs its reader an hour."""
    named = [(place, *found) for place, text in iterate_strings() for found in USE.findall(text)]
    assert len({found[1:] for found in named}) >= 6
    assert [found for found in named if not can_be_used(*found[1:])] == []


def test_the_fixture_was_no_function_that_takes_programs() -> None:
    """The twin: the advice of an older message is found to be none."""
    assert USE.findall("declare it: virtual_clock(allow=['cat']) holds time") == [("virtual_clock", "(")]
    assert not can_be_used("virtual_clock", "(")


def test_each_option_and_marker_that_a_message_names_is_there(pytester: pytest.Pytester) -> None:
    """They are given to pytest as they are printed."""
    whole = "\n".join(text for _, text in iterate_strings())
    options = sorted(set(re.findall(r"write (--agentproc-[\w-]+=\w+)", whole)))
    marks = sorted(set(re.findall(r"@pytest\.mark\.(?!asyncio)\w+\([^)]*\)", whole)))  # asyncio is a plugin of its own
    marks = [mark for mark in marks if not mark.endswith("(x)")]  # x stands for words that a user wrote
    assert options
    assert marks
    marked = "".join(f"{mark.replace('[x]', '[]')}\n" for mark in marks)
    pytester.makepyfile(f"import pytest\n{marked}def test_marked(agent_scenario): ...")
    pytester.runpytest("--strict-markers", "--collect-only", *options).assert_outcomes()


REMEDIES = '''
import subprocess

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.plugin import FakeAgents

TALK = "- wait_for: prompt 1\\n- answer: hi"


def remedy(function, *args, **options):
    """Give the second line of the error that this raises."""
    with pytest.raises(UsageError) as wrong:
        function(*args, **options)
    return str(wrong.value).splitlines()[1]


def test_scale(fake_agent):
    advice = remedy(fake_agent, "- say: hi", scale=0)
    assert advice == "scale=60 plays a minute in a second"
    fake_agent("- say: hi", scale=60)


def test_script(fake_agent):
    advice = remedy(fake_agent, 7)
    assert eval(advice.removeprefix("write ").removesuffix(", for example")).argv


def test_timeline(agent_run, agent_timeline):
    assert "agent_run" in remedy(agent_timeline.at, "start")
    agent_run("- say: hi")
    agent_run("- say: hi")
    advice = remedy(agent_timeline.at, "start")
    assert eval(advice.removeprefix("choose one: ")).at("start") == 0


def test_tree(process_tree):
    advice = remedy(process_tree.allow, 1.5)
    process = subprocess.Popen(["true"])
    for words in advice.removeprefix("write ").removesuffix(", for example").split(" or "):
        eval(words)
    process.wait()


def test_session(agent_session):
    talk = agent_session(TALK)
    advice = remedy(talk.wait, -1)
    eval("talk." + advice.partition(" ")[0])
    talk.prompt("hi")
    talk.close()
    advice = remedy(talk.prompt, "hi")
    assert eval(advice.removeprefix("open another one: ").replace("...", "TALK")).prompt("hi").text == "hi"


def test_path(fake_agents):
    advice = remedy(fake_agents.__getitem__, "codex")
    eval(advice.removesuffix(" makes one"))
    assert fake_agents["codex"].starts == ()


def test_block():
    advice = remedy(FakeAgents().on_path, "claude")
    exec(advice.removeprefix("write: ").removesuffix("...") + "agents.on_path('claude')")
'''


def test_each_remedy_of_a_mistake_works(pytester: pytest.Pytester) -> None:
    """They are taken from the messages, and executed."""
    pytester.makepyfile(REMEDIES)
    pytester.runpytest().assert_outcomes(passed=7)
