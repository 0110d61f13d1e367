"""The fakes of one test, also by name on PATH: made, limited in real time, and ended. Starts none itself.

The fake looks after its own end, and says by itself that it waits. So the test's process needs no thread of its own,
which would be in the way of code that forks.
"""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_agentproc import machine
from pytest_agentproc.clock import SystemClock
from pytest_agentproc.errors import ScenarioError, UsageError
from pytest_agentproc.harness import (
    COMMAND_BY_DIALECT,
    MultiScriptFake,
    RealTimeLifetime,
    ScenarioRunner,
    list_fake_paths,
)
from pytest_agentproc.originals import monotonic_ns
from pytest_agentproc.plugin._contributions import get_runner
from pytest_agentproc.plugin._failure_notes import add_failure_notes
from pytest_agentproc.plugin._interruption import judge_unless_interrupted
from pytest_agentproc.plugin._scripts import find_caller_place, find_test_place, load_given_scenario
from pytest_agentproc.plugin.reports._timelines import add_run_to_timeline
from pytest_agentproc.verdict import explain_leaks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from types import TracebackType

    from pytest_agentproc.clock import VirtualClock
    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.record import Record
    from pytest_agentproc.scenario import Scenario


FAKE_LIFETIME_SECONDS = 60.0
"""Real seconds after which a fake that a test started in real time is ended."""

WAIT_NOTICE_DELAY_SECONDS = 2.0
"""Real seconds without any event after which such a fake says that it waits."""

_UNLIMITED_WAIT_REMEDY = (
    "give the code that waits for it a limit (timeout=10), or put the test in virtual time: @pytest.mark.virtual_time"
)
_REAL_STDOUT_STASH_KEY: pytest.StashKey[int] = pytest.StashKey()


def make_wait_notice(request: pytest.FixtureRequest, scenario: Scenario) -> tuple[str, str, float] | None:
    """Give the file, the text and the delay of the notice that a fake waits; None: this process prints nothing."""
    config = request.config
    if not config.pluginmanager.has_plugin("terminalreporter"):  # a worker of xdist
        return None
    if _REAL_STDOUT_STASH_KEY not in config.stash:
        try:
            config.stash[_REAL_STDOUT_STASH_KEY] = _duplicate_stdout(config)
        except OSError:  # it is closed
            return None
        config.add_cleanup(lambda: os.close(config.stash[_REAL_STDOUT_STASH_KEY]))
    return format_wait_notice(config.stash[_REAL_STDOUT_STASH_KEY], f"{request.node.nodeid}: ", scenario)


def format_wait_notice(descriptor: int, place: str, scenario: Scenario) -> tuple[str, str, float]:
    """Give the notice for a descriptor of this process, with the place of the test before the text."""
    begin = f"{place}a fake agent waits at {scenario.path}:".replace("%", "%%")
    words = f"{begin}%d in real time, and nothing comes; it is ended after {FAKE_LIFETIME_SECONDS:g} s"
    return (
        f"/proc/{os.getpid()}/fd/{descriptor}",
        f"\nagentproc: {words}\n{_UNLIMITED_WAIT_REMEDY}\n",
        WAIT_NOTICE_DELAY_SECONDS,
    )


def _duplicate_stdout(config: pytest.Config) -> int:
    """Give a descriptor of the real output: while a test runs, descriptor 1 is a file of pytest."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        return os.dup(1)


def explain_expired_lifetimes(fake: FakeAgent, scenario: Scenario) -> list[str]:
    """Explain each start that its lifetime has ended, with the step; none if no lifetime did."""
    if fake.outside is None:
        return []
    life = "24 h of virtual time" if machine.is_virtual() else f"{FAKE_LIFETIME_SECONDS:g} s of real time"
    lines, after = scenario.text.splitlines(), f"was ended after {life}"
    return [
        f"{scenario.path}:{line}: {name} {after}: {''.join(lines[line - 1 : line]).strip()}\n{_UNLIMITED_WAIT_REMEDY}"
        for name, line in fake.outside.expired
    ]


class Fakes:
    """The fakes that one test asked for.

    Args:
        request: the test's.
        clock: the clock that they obey.
    """

    def __init__(self, request: pytest.FixtureRequest, clock: VirtualClock) -> None:
        self._request = request
        self.virtual_clock = clock
        self._made: list[tuple[FakeAgent, Scenario]] = []
        self._clocks: dict[float, SystemClock] = {}

    def __call__(self, script: Any, *, scale: float = 1) -> FakeAgent:
        """Make one fake.

        A start within a virtual run is in virtual time. Every other start is in real time, and lives for 60 s at most.

        Args:
            script: what it plays.
            scale: in real time every duration is divided by it.

        Raises:
            ScenarioError: every problem of the script, with its line.
            NotApplicable: the script needs a limit that is off by default, or virtual time cannot play it.
            UsageError: no time can be scaled so.
        """
        if not scale > 0:
            raise UsageError(f"scale is {scale}, but must be more than 0", "scale=60 plays a minute in a second")
        return self.make_fake(self.load_script(script), scale=scale)

    def on_path(self, *_names: Any, **_scripts: Any) -> NoReturn:
        """Refuse what the fixture of the similar name does.

        Raises:
            UsageError: always.
        """
        raise UsageError("fake_agent makes one fake, without a name on PATH", "write fake_agents.on_path(...)")

    def load_script(self, script: Any, agent: str = "raw", argument: tuple[str, ...] = ("script",)) -> Scenario:
        """Load a script of the test; see `load_given_scenario`."""
        return load_given_scenario(script, find_test_place(self._request), agent, argument)

    def make_fake(self, scenario: Scenario, *, scale: float = 1, **options: Any) -> FakeAgent:
        """Make the fake of a scenario; see `ScenarioRunner.make_fake` for the other options."""
        began = machine.read_virtual_start()
        scale = scale if began is None else 1
        is_new = began is None and scale not in self._clocks
        real = self._clocks.setdefault(scale, SystemClock(scale, began or 0))
        outside = RealTimeLifetime(real, FAKE_LIFETIME_SECONDS, make_wait_notice(self._request, scenario))
        runner = get_runner(self._request.config)
        fake = runner.make_fake(scenario, clock=self.virtual_clock, tells=True, outside=outside, **options)
        if is_new:
            real.start()
        self._made.append((fake, scenario))
        add_run_to_timeline(self._request.node, fake, scenario)
        return fake

    def hide_agents(self, path: str, more: Collection[str]) -> str:
        """See `ScenarioRunner.hide_agents`."""
        return get_runner(self._request.config).hide_agents(path, more)

    def finish(self) -> None:
        """Give each record to the hook `pytest_agentproc_record`, and fail the test for each fake that is still alive.

        Raises:
            KitError: a fake itself failed, which says nothing of the code under test.
            pytest.fail.Exception: a fake is still alive, or its script is wrong.
        """
        node = self._request.node
        see = node.ihook.pytest_agentproc_record
        try:
            text = end_and_explain_survivors(self._made, lambda record: see(nodeid=node.nodeid, record=record))
        except ScenarioError as error:
            text = str(error)
        if text:
            pytest.fail(text, pytrace=False)


def end_and_explain_survivors(fakes: Sequence[tuple[FakeAgent, Scenario]], see: Callable[[Record], object]) -> str:
    """End fakes, and explain which of them were still alive; empty: none was.

    Raises:
        KitError: a fake itself failed, which says nothing of the code under test.
        ScenarioError: its script has no end, or cannot answer the arguments of a start.
    """
    texts = []
    for fake, scenario in fakes:
        fake.finish()
        texts += explain_expired_lifetimes(fake, scenario)
        for record in fake.records or (fake.record,):
            see(record)
            texts.append(explain_leaks(scenario, record))
    for fake, scenario in fakes:
        if (fault := fake.first_fault) is not None:
            raise fault.make_error(scenario)
    return "\n\n".join(filter(None, texts))


_STDERR_DESCRIPTOR = 2
_DEFAULT_SCRIPT = "- answer: done"
_DIALECT_BY_COMMAND = {command: dialect for dialect, command in COMMAND_BY_DIALECT.items() if dialect == command}
_KEYS_OF_WHOLE_SCENARIO = {"agent", "script", "scripts", "sessions"}
"""Keys of which every scenario has one."""

_COMMAND_NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


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
        self._given = fakes
        self._fakes: Fakes | _OwnClockFakes | None = None
        self._agents: dict[str, FakeAgent | MultiScriptFake] = {}
        self._path: str | None = None
        self._keeps_path = True

    def __enter__(self) -> FakeAgents:  # noqa: PYI034  # nobody derives from it
        if self._fakes is not None:
            raise UsageError("these fakes live in a block already", "write FakeAgents() again for a block inside it")
        self._path, self._agents, self._keeps_path = os.environ.get("PATH"), {}, True
        self._fakes = self._given or _OwnClockFakes()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        if error is not None:
            add_failure_notes(error)
        if self._path is None:
            os.environ.pop("PATH", None)
        else:
            os.environ["PATH"] = self._path
        fakes, self._fakes = self._fakes, None
        if isinstance(fakes, _OwnClockFakes):
            fakes.finish(error)

    def __call__(self, *_script: Any, **_options: Any) -> NoReturn:
        """Refuse what the fixture of the similar name does.

        Raises:
            UsageError: always.
        """
        raise UsageError("fake_agents puts fakes on PATH, by their names", "write fake_agent(...) for a fake by itself")

    def __getitem__(self, name: str) -> FakeAgent | MultiScriptFake:
        """Give a fake by its name: its `starts`, and `assert_called_once_with(...)` and the like."""
        if name not in self._agents:
            raise UsageError(f"there is no fake called {name}", f"fake_agents.on_path({name!r}) makes one")
        return self._agents[name]

    @property
    def virtual_clock(self) -> VirtualClock:
        """The clock that these fakes obey: `fake_agents.virtual_clock.run(...)`."""
        return self._require_entered_block().virtual_clock

    def on_path(self, *names: str, keep_path: bool = True, **scripts: Any) -> FakeAgents:
        """Put fakes first on the PATH of this process, and hide all other agent CLIs that it leads to.

        So your code finds git and sh, and never starts a real agent by accident. Known agent CLIs are hidden: claude,
        codex, gemini and others, and each name that has a fake. A real agent with another name is not hidden.

        `on_path("claude")` is a claude that answers `done`. `on_path(claude="- answer: hi", codex="hang.yaml")` gives
        each its script, in any form that `fake_agent` takes. claude, codex, gemini and pi speak their own dialects. Any
        other name is a raw program, unless its scenario says more.

        A mapping of arguments to scripts has the reply depend on the call:
        `claude={"--resume *": "- answer: again", "": "- answer: new"}`. The first pattern counts whose words stand in
        the arguments, one after the other. `*` stands for any characters of a word, and "" for all other calls.

        Args:
            names: fakes with the default script.
            keep_path: False: nothing but the fakes is on PATH, until the block ends.
            scripts: what other fakes play, by name. A name that is there already is replaced.

        Raises:
            ScenarioError: every problem of a script.
            UsageError: a name cannot be that of a program.
        """
        fakes = self._require_entered_block()
        for name, script in {**dict.fromkeys(names, _DEFAULT_SCRIPT), **scripts}.items():
            if not _COMMAND_NAME_PATTERN.fullmatch(name):
                raise UsageError(f"{name!r} cannot be the name of a program", "write the name alone, such as claude")
            self._agents[name] = _make_named_fake(fakes, name, script)
        self._keeps_path = self._keeps_path and keep_path
        folders = [os.path.dirname(agent.path) for agent in self._agents.values()]  # noqa: PTH120  # a str is wanted
        if self._keeps_path:
            # A test may have changed PATH since the block began. Fakes of a block around this one stay.
            name_by_folder = dict(os.path.split(path) for path in list_fake_paths())
            words = os.environ.get("PATH", os.defpath).split(os.pathsep)
            words = [word for word in words if name_by_folder.get(word) not in self._agents]
            folders += [word if word in name_by_folder else fakes.hide_agents(word, self._agents) for word in words]
        os.environ["PATH"] = os.pathsep.join(folders) or os.devnull
        return self

    def _require_entered_block(self) -> Fakes | _OwnClockFakes:
        if self._fakes is None:
            raise UsageError("these fakes have no block to live in", "write: with FakeAgents() as agents: ...")
        return self._fakes


@cache
def _get_shared_runner() -> ScenarioRunner:
    """Give the runner of all blocks of this process: to begin one takes a while, and Hypothesis has many examples."""
    runner = ScenarioRunner()
    atexit.register(runner.close)
    return runner


class _OwnClockFakes:
    """Fakes with a clock of their own, for a block outside of any test."""

    def __init__(self) -> None:
        self._runner = _get_shared_runner()
        self.virtual_clock = self._runner.virtual_clock()
        self.hide_agents = self._runner.hide_agents
        began = machine.read_virtual_start()
        self._real = SystemClock(1, monotonic_ns() if began is None else began)
        self._made: list[tuple[FakeAgent, Scenario]] = []

    def load_script(self, script: Any, agent: str, argument: tuple[str, ...]) -> Scenario:
        """Load a script; see `load_given_scenario`."""
        return load_given_scenario(script, find_caller_place(), agent, argument)

    def make_fake(self, scenario: Scenario, **options: Any) -> FakeAgent:
        """Make a fake; see `ScenarioRunner.make_fake` for the options."""
        outside = RealTimeLifetime(
            self._real, FAKE_LIFETIME_SECONDS, format_wait_notice(_STDERR_DESCRIPTOR, "", scenario)
        )
        fake = self._runner.make_fake(scenario, clock=self.virtual_clock, tells=True, outside=outside, **options)
        self._made.append((fake, scenario))
        return fake

    def finish(self, error: BaseException | None) -> None:
        """End all fakes and the clock.

        Args:
            error: an exception that is raised already; a leak does not hide it.

        Raises:
            AssertionError: a fake is still alive.
        """
        __tracebackhide__ = True
        with judge_unless_interrupted():
            try:
                text = end_and_explain_survivors(self._made, lambda _: None)
            finally:
                self.virtual_clock.close()
            if text and error is None:
                raise AssertionError(text)


def _make_named_fake(fakes: Fakes | _OwnClockFakes, name: str, script: Any) -> FakeAgent | MultiScriptFake:
    agent = _DIALECT_BY_COMMAND.get(name, "raw")
    if not isinstance(script, Mapping) or _KEYS_OF_WHOLE_SCENARIO & script.keys():
        return fakes.make_fake(fakes.load_script(script, agent, (name,)), name=name, command=name)
    others: list[FakeAgent] = []
    instead: list[tuple[tuple[str, ...], str]] = []
    for pattern, part in script.items():
        if not isinstance(pattern, str):
            raise UsageError(f"{name} has a script for {pattern!r}", 'arguments are text, such as "--resume *"')
        if pattern:
            scenario = fakes.load_script(part, agent, (name, pattern))
            if scenario.cannot_spawn is not None:
                raise UsageError(
                    f"{name} cannot be {scenario.cannot_spawn} for the arguments {pattern!r} alone",
                    f"give {name} one script with cannot_spawn, for all of its calls",
                )
            other = fakes.make_fake(scenario, name=f"{name} {pattern}", command=name, is_for_arguments=True)
            others.append(other)
            instead.append((tuple(pattern.replace("=", " ").split()), other.path))
    rest = fakes.load_script(script.get("", _make_refusing_script(script)), agent, (name, ""))
    return MultiScriptFake(fakes.make_fake(rest, name=name, command=name, instead=instead), others)


def _make_refusing_script(patterns: Iterable[str]) -> dict[str, Any]:
    """Make the script of a call whose arguments fit no pattern: it prints so, and exits 2."""
    words = (
        f'no script is for these arguments; there are scripts for: {", ".join(patterns)}\n"" is for all other calls\n'
    )
    return {"agent": "raw", "script": [{"raw": {"text": words, "to": "stderr"}}, {"exit": 2}]}
