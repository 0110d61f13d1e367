"""Fakes by name on the PATH of this process: for the fixture `fake_agents`, and for code without fixtures."""

from __future__ import annotations

import atexit
import json
import os
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_agentproc.clock import SystemClock
from pytest_agentproc.errors import UsageError
from pytest_agentproc.harness import COMMANDS, FakeByArguments, Lab, Outside
from pytest_agentproc.plugin import _lifetime
from pytest_agentproc.plugin._fakes import end_fakes
from pytest_agentproc.plugin._scripts import place_of_caller, scenario_of

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.plugin._fakes import Fakes
    from pytest_agentproc.scenario import Scenario

__all__ = ["FakeAgents"]

_STDERR = 2
_DEFAULT = "- answer: done"
_UNKNOWN = {
    "agent": "raw",
    "script": [{"raw": {"text": "no script is for these arguments\n", "to": "stderr"}}, {"exit": 2}],
}
"""What a fake plays whose arguments fit none of its patterns."""

_DIALECTS = {command: dialect for dialect, command in COMMANDS.items() if dialect == command}
_KEYS = {"agent", "script", "scripts", "sessions"}
"""Keys of which every scenario has one."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


class FakeAgents:
    """Fake agent CLIs by name, on the PATH of this process, for the time of a block.

    The fixture `fake_agents` is such a block around one test. Without fixtures, or for a module or a session, open one
    by yourself: `with FakeAgents() as agents:` for each example of Hypothesis or in a fixture of any scope, and
    `self.enterContext(FakeAgents())` in `setUp` of a `unittest.TestCase`. At its end PATH is as it was before, and a
    fake that is still alive is ended and raised as an AssertionError.

    Args:
        fakes: the fakes of a test that ends them by itself; None: the block makes and ends its own.
    """

    def __init__(self, fakes: Fakes | None = None) -> None:
        self._fakes: Fakes | _OwnFakes | None = fakes
        self._agents: dict[str, FakeAgent | FakeByArguments] = {}
        self._path: str | None = None
        self._keeps_path = False

    def __enter__(self) -> FakeAgents:  # noqa: PYI034  # nobody derives from it
        self._path = os.environ.get("PATH")
        self._fakes = self._fakes or _OwnFakes()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        if self._path is None:
            os.environ.pop("PATH", None)
        else:
            os.environ["PATH"] = self._path
        if isinstance(self._fakes, _OwnFakes):
            self._fakes.finish(error)

    def __getitem__(self, name: str) -> FakeAgent | FakeByArguments:
        """Give a fake by its name: its `starts`, and `assert_called_once_with(...)` and the like."""
        if name not in self._agents:
            raise UsageError(f"there is no fake called {name}", f"fake_agents.on_path({name!r}) makes one")
        return self._agents[name]

    @property
    def virtual_clock(self) -> VirtualClock:
        """The clock that these fakes obey: `fake_agents.virtual_clock.run(...)`."""
        return self._open().virtual_clock

    def on_path(self, *names: str, keep_path: bool = False, **scripts: Any) -> FakeAgents:
        """Put fakes on the PATH of this process, and leave nothing else there.

        `on_path("claude")` is a claude that answers `done`. `on_path(claude="- answer: hi", codex="hang.yaml")` gives
        each its script, in any form that `fake_agent` takes. claude, codex, gemini and pi speak their own dialects. Any
        other name is a raw program, unless its scenario says more.

        A mapping of arguments to scripts has the reply depend on the call:
        `claude={"--resume *": "- answer: again", "": "- answer: new"}`. The first pattern counts whose words stand in
        the arguments, one after the other. `*` stands for any characters of a word, and "" for all other calls.

        Args:
            names: fakes with the default script.
            keep_path: keep the real PATH after the fakes. Names of agent CLIs that are not faked lead to a program that
                refuses, so no real one is started.
            scripts: what other fakes play, by name. A name that is there already is replaced.

        Raises:
            ScenarioError: every problem of a script.
            UsageError: a name cannot be that of a program.
        """
        fakes = self._open()
        for name, script in {**dict.fromkeys(names, _DEFAULT), **scripts}.items():
            if not _NAME.fullmatch(name):
                raise UsageError(f"{name!r} cannot be the name of a program", "write the name alone, such as claude")
            self._agents[name] = _made(fakes, name, script)
        self._keeps_path = self._keeps_path or keep_path
        folders = [os.path.dirname(agent.path) for agent in self._agents.values()]  # noqa: PTH120  # a str is wanted
        if self._keeps_path:
            folders += [fakes.refusals(), self._path or os.defpath]
        os.environ["PATH"] = os.pathsep.join(folders) or os.devnull
        return self

    def _open(self) -> Fakes | _OwnFakes:
        if self._fakes is None:
            raise UsageError("these fakes have no block to live in", "write: with FakeAgents() as agents: ...")
        return self._fakes


@cache
def _lab() -> Lab:
    """Give the lab of all blocks of this process: to begin one takes a while, and Hypothesis has many examples."""
    lab = Lab()
    atexit.register(lab.close)
    return lab


class _OwnFakes:
    """Fakes and a clock of their own, where no test lends any."""

    def __init__(self) -> None:
        self._lab = _lab()
        self.virtual_clock = self._lab.virtual_clock()
        self.refusals = self._lab.refusals
        self._real = SystemClock()
        self._real.start()
        self._made: list[tuple[FakeAgent, Scenario]] = []

    def read(self, script: Any, agent: str) -> Scenario:
        """Load a script."""
        return scenario_of(script, place_of_caller(), agent)

    def make(self, scenario: Scenario, **options: Any) -> FakeAgent:
        """Make a fake; see `Lab.fake` for the options."""
        outside = Outside(self._real, _lifetime.LIFETIME, _lifetime.notice_on(_STDERR, "", scenario))
        fake = self._lab.fake(scenario, clock=self.virtual_clock, tells=True, outside=outside, **options)
        self._made.append((fake, scenario))
        return fake

    def finish(self, error: BaseException | None) -> None:
        """End all of it.

        Args:
            error: what goes on its way already, which a leak does not hide.

        Raises:
            AssertionError: a fake is still alive.
        """
        __tracebackhide__ = True
        try:
            text = end_fakes(self._made, lambda _: None)
        finally:
            self.virtual_clock.close()
        if text and error is None:
            raise AssertionError(text)


def _made(fakes: Fakes | _OwnFakes, name: str, script: Any) -> FakeAgent | FakeByArguments:
    agent = json.dumps(_DIALECTS.get(name, "raw"))
    if not isinstance(script, Mapping) or _KEYS & script.keys():
        return fakes.make(fakes.read(script, agent), name=name, command=name)
    others: list[FakeAgent] = []
    instead: list[tuple[tuple[str, ...], str]] = []
    for pattern, part in script.items():
        if pattern:
            other = fakes.make(fakes.read(part, agent), name=f"{name} {pattern}", command=name)
            others.append(other)
            instead.append((tuple(pattern.replace("=", " ").split()), other.path))
    rest = fakes.read(script.get("", _UNKNOWN), agent)
    return FakeByArguments(fakes.make(rest, name=name, command=name, instead=instead), others)
