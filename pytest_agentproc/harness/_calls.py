"""Assertions on how a fake was called: its arguments, stdin, environment and folder. Owns their texts; starts none."""

from __future__ import annotations

import os
import shlex
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_agentproc.record import Start

__all__ = ["Calls"]

_SHOWN = 5
"""So many calls a failure shows, the nearest first."""

_LONGEST = 200
"""So many characters of each value a failure shows."""


class Calls:
    """What is asked of the starts of one fake, in the words of `unittest.mock`.

    Each argument is compared by `==`, so `unittest.mock.ANY` fits any, and `...` stands for any number of arguments.
    Stdin, environment and folder are compared if they are given.
    """

    name: str
    """What the program is called."""

    @property
    def starts(self) -> tuple[Start, ...]:
        """Each start so far."""
        raise NotImplementedError

    def assert_called_once_with(
        self,
        *argv: Any,
        stdin: bytes | str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        """Require that it was started once, and so.

        Args:
            argv: its arguments, without the command.
            stdin: all that it has read.
            env: variables of its environment; None: it has no such variable. Others are not compared.
            cwd: the folder in which it was started.

        Raises:
            AssertionError: with the expected call, and the calls that came.
        """
        __tracebackhide__ = True
        wanted, starts = _Wanted(argv, stdin, env or {}, cwd), self.starts
        if len(starts) != 1 or wanted.misses(starts[0]):
            times = {0: "never called", 1: "called once, but with something else"}
            head = times.get(len(starts), f"called {len(starts)} times, not once")
            raise AssertionError(_explain(f"{self.name} was {head}", self.name, wanted, starts))

    def assert_any_call(
        self,
        *argv: Any,
        stdin: bytes | str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        """Require that it was started so at least once; see `assert_called_once_with`."""
        __tracebackhide__ = True
        wanted, starts = _Wanted(argv, stdin, env or {}, cwd), self.starts
        if all(map(wanted.misses, starts)):
            head = "called, but with something else" if starts else "never called"
            raise AssertionError(_explain(f"{self.name} was {head}", self.name, wanted, starts))

    def assert_not_called(self) -> None:
        """Require that it was never started."""
        __tracebackhide__ = True
        if starts := self.starts:
            lines = [_line("seen", [self.name, *start.argv]) for start in starts[:_SHOWN]]
            raise AssertionError("\n".join([f"{self.name} was called", *lines, *_rest(starts)]))


class _Wanted(NamedTuple):
    argv: Sequence[Any]
    stdin: bytes | str | None
    env: Mapping[str, str | None]
    cwd: str | os.PathLike[str] | None

    def parts(self, start: Start | None) -> list[tuple[str, Any, Any]]:
        """Give what is compared beside the arguments: its name, what is expected and what was seen."""
        parts: list[tuple[str, Any, Any]] = []
        if self.stdin is not None:
            read = b"" if start is None else start.stdin
            parts.append(
                ("stdin", self.stdin, read.decode("utf-8", "replace") if isinstance(self.stdin, str) else read)
            )
        env = {} if start is None else start.env
        parts += [(f"env {name}", value, env.get(name)) for name, value in self.env.items()]
        if self.cwd is not None:
            parts.append(("cwd", os.fspath(self.cwd), "" if start is None else start.cwd))
        return parts

    def misses(self, start: Start) -> list[str]:
        """Name what is different in a call."""
        differing = [name for name, expected, seen in self.parts(start) if expected != seen]
        return differing if _fit(self.argv, start.argv) else ["argv", *differing]

    def distance(self, start: Start) -> tuple[float, int]:
        """Say how far a call is from what is expected."""
        words = [word for word in self.argv if isinstance(word, str)]
        return 1 - SequenceMatcher(None, words, start.argv).ratio(), len(self.misses(start))


def _fit(argv: Sequence[Any], given: Sequence[str]) -> bool:
    """Say whether arguments are as expected, where `...` stands for any number of them."""
    if not argv:
        return not given
    if argv[0] is ...:
        return any(_fit(argv[1:], given[place:]) for place in range(len(given) + 1))
    return bool(given) and bool(argv[0] == given[0]) and _fit(argv[1:], given[1:])


def _explain(head: str, name: str, wanted: _Wanted, starts: Sequence[Start]) -> str:
    lines = [head, _line("expected", [name, *wanted.argv])]
    lines += [_part(part, expected) for part, expected, _ in wanted.parts(None)]
    for start in sorted(starts, key=wanted.distance)[:_SHOWN]:
        misses = wanted.misses(start)
        lines.append(_line("seen", [name, *start.argv]))
        lines += [_part(part, seen) for part, _, seen in wanted.parts(start) if part in misses]
        lines.append(f"            (different: {', '.join(misses)})" if misses else "            (as expected)")
        if "stdin" in misses and not start.stdin:
            lines.append("            (its script read nothing; `- wait_for: eof` as its first step reads all)")
    return "\n".join([*lines, *_rest(starts)])


def _line(label: str, words: Sequence[Any]) -> str:
    shown = ["..." if word is ... else shlex.quote(word) if isinstance(word, str) else repr(word) for word in words]
    return f"  {label:<8}  {_cut(' '.join(shown))}"


def _part(name: str, value: Any) -> str:
    return f"            {name}: {'not set' if value is None else _cut(repr(value))}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _rest(starts: Sequence[Start]) -> list[str]:
    return [f"  and {len(starts) - _SHOWN} more"] if len(starts) > _SHOWN else []
