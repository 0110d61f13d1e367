"""Random scenarios that are rich in ties: few instants, many tracks, streams and processes. Owns the dice only.

A seed gives the same text for ever; nothing in it is drawn from the clock or the machine.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import yaml

from pytest_agentproc.scenario import Scenario, loads

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["draw_program"]

_TIMES = ("0s", "1s", "1s", "2s", "3s", "kill_grace", "inactivity_timeout", "inactivity_timeout - 1ns")
_SIZES = ("1 B", "3000 B", "4096 B", "5000 B", "64 KiB", "70000 B", "150 KiB")
_STREAMS = ("stdout", "stderr")
_HOWS = ("own_group", "new_session", "double_fork", "daemon", "launcher", "refork")
_FLAGS = ("closed_fds", "clear_env", "stopped", "stopped", "zombie", "subreaper", "subreaper")
_NOT_WITH = {
    **dict.fromkeys(("double_fork", "daemon", "launcher"), ("zombie",)),
    "refork": ("zombie", "stopped", "subreaper"),
}


class _StepDrawer:
    """Draws the steps of one scenario."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311  # a seed that gives the same text for ever is the point
        self.kinds = Random(-1 - seed)  # noqa: S311  # as above
        self.spawned = 0
        self.held: tuple[str, ...] = ("stdout", "stderr")
        self.dialect = self.random.choice(("raw", "raw", "pi"))

    def steps(self, depth: int, most: int = 5) -> list[Any]:
        """Draw a list of steps; deeper lists are shorter."""
        made: list[Any] = []
        for _ in range(self.random.randint(1, most)):
            draw = self.random.choice(self._list_draws(depth))
            made.append(draw(depth))
        return made

    def _list_draws(self, depth: int) -> list[Callable[[int], Any]]:
        plain = [
            self._draw_say,
            self._draw_say,
            self._draw_raw,
            self._draw_drip,
            self._draw_drip,
            self._draw_silence,
            self._draw_silence,
            self._draw_flood,
        ]
        rare = [self._close, self._draw_stdin, self._answer, self._draw_eof]
        deep = [self._draw_when, self._draw_meanwhile, self._spawn, self._spawn] if depth < 2 else []
        return [*plain, *rare, *deep]

    def _draw_time(self) -> str:
        return self.random.choice(_TIMES)

    def _draw_stream(self) -> str:
        return self.random.choice(_STREAMS)

    def _draw_say(self, depth: int) -> Any:
        return {"say": self.random.choice(("a", "bb", "ü", "long " * 1000))}

    def _answer(self, depth: int) -> Any:
        return {"answer": "done"}

    def _draw_raw(self, depth: int) -> Any:
        return {"raw": {"text": "0123456789", "repeat": self.random.choice((1, 300, 500)), "to": self._draw_stream()}}

    def _draw_drip(self, depth: int) -> Any:
        every = self.random.choice(("1s", "1s", "500ms", "2s"))
        return {"drip": {self._draw_stream(): ".", "every": every, "for": self.random.choice(("2s", "3s", "4s"))}}

    def _draw_flood(self, depth: int) -> Any:
        return {"flood": {self._draw_stream(): self.random.choice(_SIZES)}}

    def _draw_silence(self, depth: int) -> Any:
        return {"silence": self._draw_time()}

    def _close(self, depth: int) -> Any:
        return {"close": self._draw_stream()}

    def _draw_stdin(self, depth: int) -> Any:
        return {"stdin": self.random.choice(("stop", "read"))}

    def _draw_eof(self, depth: int) -> Any:
        return self.random.choice(({"wait_for": "eof"}, {"wait_for": "signal"}, {"silence": "2s"}))

    def _draw_when(self, depth: int) -> Any:
        steps = [] if self.random.random() < 0.3 else self.steps(depth + 1, 3)
        if steps and self.random.random() < 0.5:
            steps.append({"exit": self.random.choice((0, 3, 143))})
        return {"when": {"signal": "TERM"}, "do": steps}

    def _draw_meanwhile(self, depth: int) -> Any:
        return {"meanwhile": self.steps(depth + 1, 3)}

    def _spawn(self, depth: int) -> Any:
        self.spawned += 1
        made: dict[str, Any] = {"id": f"kid{self.spawned}", **self._draw_kind()}
        drawn = self.random.choice(([], ["stdout"], ["stdout", "stderr"]))
        above, self.held = self.held, tuple(stream for stream in drawn if stream in self.held)
        made["inherits"] = list(self.held)
        if self.random.random() < 0.4:
            made["ignores_signals"] = "true"
        if self.random.random() < 0.7:
            made["script"] = self.steps(depth + 1, 3)
        elif self.random.random() < 0.5:
            made["for"] = self._draw_time()
        if made["how"] == "refork":
            made.pop("script", None)
        self.held = above
        return {"spawn": made}

    def _draw_kind(self) -> dict[str, Any]:
        how = self.kinds.choice(("same_group", "same_group", *_HOWS))
        made: dict[str, Any] = {"how": how} | {flag: "true" for flag in _FLAGS if self.kinds.random() < 0.15}
        if how == "refork":
            made |= {"every": self.kinds.choice(("500ms", "1s", "2s")), "heads": self.kinds.choice((1, 2))}
        return {name: value for name, value in made.items() if name not in _NOT_WITH.get(how, ())}

    def draw_ending(self) -> Any:
        """Draw how the script ends."""
        return self.random.choice(
            ({"exit": 0}, {"exit": 3}, {"die": "KILL"}, {"silence": "for ever"}, {"silence": "inactivity_timeout"})
        )


def draw_program(seed: int) -> Scenario:
    """Make the scenario of a seed."""
    dice = _StepDrawer(seed)
    size = dice.random.choice(("1 B", "1 B", "70000 B", "150 KiB"))
    document = {
        "scenario": f"random program {seed}",
        "agent": {"dialect": dice.dialect, "prompt": "stdin"},
        "policy": {
            "inactivity_timeout": "3s",
            "kill_grace": "1s",
            "linger_grace": "1s",
            "linger_kill_grace": "1s",
            "leftover_kill_grace": "1s",
            "max_runtime": "40s",
        },
        "drive": [{"prompt": {"repeat": "y", "size": size}}],
        "script": [*dice.steps(0, 7), dice.draw_ending()],
        "expect": {"outcome": "completed"},
    }
    return loads(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), f"program-{seed}")
