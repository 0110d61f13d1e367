"""A program as the supervisor under test. Owns how it is started and what its end tells; keeps no time of its own."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.errors import UsageError
from pytest_agentproc.vocabulary import NANOSECONDS, OPTIONAL_NAMES, TIME_NAMES, Answer, Order, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Command"]

_WORD = re.compile(r"\{([a-z_]+)\}")
_WHOLE = "agent"


class Command:
    """A program that runs an agent: started once for a scenario, in real time, below a keeper.

    Whatever it leaves is found, a fake or not, and ended once that is noted. It answers by its exit code alone, and by
    its text if it is told to print that; what it does not say is undecided or not asked.

    Args:
        argv: its command. A word `{agent}` stands for the agent's whole command, `{prompt}` within a word for the
            prompt, and the name of a limit in braces, such as `{inactivity_timeout}`, for that limit in seconds.
        limits: limits that it keeps without being told, in seconds or as `Policy` has them.
        name: what the verdict calls it; None: the last part of the command's first word.
        prints_text: whether its stdout is the agent's final message.
        env: variables that it needs beside those of this process; the agent's own are added.

    A limit that can be switched off, and that it neither is told nor keeps, it does not have.

    Raises:
        UsageError: no command, no `{agent}` in it, or a word in braces that stands for nothing.
    """

    keeps_artifacts = False
    holds_sessions = False
    needs_keeper = True

    def __init__(
        self,
        argv: Sequence[str],
        *,
        limits: Mapping[str, Any] | None = None,
        name: str | None = None,
        prints_text: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> None:
        example = 'write Command(["my-supervisor", "--timeout", "{inactivity_timeout}", "--", "{agent}"]), for example'
        if isinstance(argv, str) or "{agent}" not in argv:
            raise UsageError(f"the command {argv!r} must be a list of words with {{agent}} among them", example)
        known = (_WHOLE, "prompt", *TIME_NAMES)
        told = [word for part in argv for word in _WORD.findall(part)]
        for word in told:
            if word not in known:
                raise UsageError(f"{{{word}}} in the command stands for nothing", f"known are {', '.join(known)}")
        self.argv = tuple(argv)
        self.name = name or Path(argv[0]).name
        self.prints_text = prints_text
        self._limits = dict(limits or {})
        self._told = frozenset(told) & frozenset(TIME_NAMES)
        self._env = dict(env or {})

    def policy(self, overrides: Mapping[str, Any], dialect: str) -> Policy:
        """Take the limits that it can be told; of the others it has what it keeps by itself."""
        default = Policy.for_dialect(dialect)
        limits: dict[str, Any] = {name: None for name in OPTIONAL_NAMES if name not in self._told}
        limits |= {name: getattr(default, name) for name in self._told} | self._limits
        return Policy.for_dialect(
            dialect, **(limits | {name: value for name, value in overrides.items() if name in self._told})
        )

    async def run(self, order: Order) -> Answer:
        """Start it below the order's keeper and wait for its end, as long as the caller lets it."""
        keeper = order.keeper
        env = {**os.environ, **order.env, **self._env, "PATH": f"{order.env['PATH']}:{os.environ.get('PATH', '')}"}
        with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as rest:
            pid = keeper.start(self._words(order), None, env, (rest.fileno(), told.fileno(), rest.fileno()))
            pidfd = os.pidfd_open(pid)
            try:
                await anyio.wait_readable(pidfd)
            finally:
                os.close(pidfd)
            status = keeper.status(pid)
            keeper.reap(pid)
            told.seek(0)
            text = told.read().decode(errors="replace").strip() if self.prints_text else None
        return Answer(exit_code=status if status >= 0 else 128 - status, text=text)

    def _words(self, order: Order) -> list[str]:
        words: list[str] = []
        limits = order.policy.nanoseconds()

        def value(found: re.Match[str]) -> str:
            if found[1] == "prompt":
                return order.prompt
            limit = limits[found[1]]
            return "" if limit is None else f"{limit / NANOSECONDS / order.scale:g}"

        for word in self.argv:
            words += order.argv if word == "{agent}" else [_WORD.sub(value, word)]
        return words
