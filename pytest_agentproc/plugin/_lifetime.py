"""Owns how long a fake of a test may live in real time, and the words that say so. Starts nothing and ends nothing.

The fake looks after its own end, and says by itself that it waits. So the test's process needs no thread of its own,
which would be in the way of code that forks.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.plugin._options import lab_of

if TYPE_CHECKING:
    from pytest_agentproc.harness import FakeAgent
    from pytest_agentproc.scenario import Scenario

__all__ = ["LIFETIME", "expired", "hear_debugger", "notice", "notice_on"]

LIFETIME = 60.0
"""Real seconds after which a fake that a test started in real time is ended."""

PATIENCE = 2.0
"""Real seconds without any event after which such a fake says that it waits."""

_REMEDY = "give the code that waits for it a limit (timeout=10), or run that code in virtual time (virtual_clock.run)"
_OUTPUT: pytest.StashKey[int] = pytest.StashKey()
_DEBUGGER = "agentproc-debugger"


class _Debugger:
    """Hears that somebody debugs, and then has fakes live on."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_enter_pdb(self) -> None:
        """Stop the lifetimes."""
        lab_of(self._config).stop_lifetimes()


def hear_debugger(config: pytest.Config) -> None:
    """Have fakes live on as soon as somebody debugs in this session."""
    if not config.pluginmanager.has_plugin(_DEBUGGER):
        config.pluginmanager.register(_Debugger(config), _DEBUGGER)


def notice(request: pytest.FixtureRequest, scenario: Scenario) -> tuple[str, str, float] | None:
    """Give where a fake says that it waits, in which words, and when; None: this process prints nothing itself."""
    config = request.config
    if not config.pluginmanager.has_plugin("terminalreporter"):  # a worker of xdist
        return None
    if _OUTPUT not in config.stash:
        try:
            config.stash[_OUTPUT] = _output_of(config)
        except OSError:  # it is closed
            return None
        config.add_cleanup(lambda: os.close(config.stash[_OUTPUT]))
    return notice_on(config.stash[_OUTPUT], f"{request.node.nodeid}: ", scenario)


def notice_on(descriptor: int, place: str, scenario: Scenario) -> tuple[str, str, float]:
    """Give the same for a descriptor of this process, with the place of the test before the words."""
    begin = f"{place}a fake agent waits at {scenario.path}:".replace("%", "%%")
    words = f"{begin}%d in real time, and nothing comes; it is ended after {LIFETIME:g} s"
    return f"/proc/{os.getpid()}/fd/{descriptor}", f"\nagentproc: {words}\n{_REMEDY}\n", PATIENCE


def _output_of(config: pytest.Config) -> int:
    """Give a descriptor of the real output: while a test runs, descriptor 1 is a file of pytest's."""
    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        return os.dup(1)


def expired(fake: FakeAgent, scenario: Scenario) -> list[str]:
    """Say of each start that its lifetime ended it, and at which step; none if no lifetime did."""
    if fake.outside is None:
        return []
    lines, after = scenario.text.splitlines(), f"was ended after {LIFETIME:g} s of real time"
    return [
        f"{scenario.path}:{line}: {name} {after}: {lines[line - 1].strip()}\n{_REMEDY}"
        for name, line in fake.outside.expired
    ]
