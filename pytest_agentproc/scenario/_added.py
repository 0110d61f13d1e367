"""Owns a dialect of another package as a check sees it: what it tells, and why it cannot be used, if it cannot.

It is looked at when the first scenario names it: a session that plays none loads nothing of it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_agentproc.vocabulary import Dialect

__all__ = ["AddedDialect"]

_OF_THE_KIT = tuple(f"fake_agents.{name}" for name in ("lines", "objects", "program", "questions", "requests"))
"""What an encoder of another package may import beside the standard library and its own parts."""
_OF_ENCODERS = ("say", "answer", "result")
_OF_HOSTS = ("hear", "late", "end", "refuse", "has", "take", "acknowledge")


class _Setting:
    """What a conversation begins with that is only looked at."""

    cwd = "/"
    key = ""
    hooks = ()


class AddedDialect:
    """A dialect and who adds it.

    Args:
        dialect: the dialect.
        origin: who adds it, as messages say it.
    """

    def __init__(self, dialect: Dialect, origin: str) -> None:
        self.dialect = dialect
        self.origin = origin

    @property
    def fault(self) -> str:
        """Why it cannot be used, as one sentence; "" if it can."""
        return self._looked_at[0]

    @property
    def events(self) -> Mapping[str, tuple[str, ...]]:
        """By mode, the steps that its encoder can tell beside text; none if it cannot be used."""
        return self._looked_at[1]

    @cached_property
    def _looked_at(self) -> tuple[str, Mapping[str, tuple[str, ...]]]:
        about = f"the dialect {self.dialect.name}, which {self.origin} adds, cannot be used"
        try:
            for module in self.dialect.encoder_modules:
                self._require_its_own(module)
            events = {mode: self._events(mode) for mode in self.dialect.modes}
            for mode in self.dialect.decoders:
                self.dialect.decoder(mode)
            for mode in self.dialect.talks:
                self.dialect.talk(mode, _Setting())
        except UsageError as error:
            return f"{about}: {error.message.removeprefix(f'dialect {self.dialect.name}: ')}: {error.remedy}", {}
        return "", events

    def _events(self, mode: str) -> tuple[str, ...]:
        """Make the encoder once, to see what it can tell."""
        place = self.dialect.encoder
        program = {"dialect": self.dialect.name, "mode": mode, "name": "agent", "code": 0, "argv": ()}
        try:
            made: Any = importlib.import_module(place).Encoder({**program, "newline": "lf", "bom": False, "prompt": ""})
        except Exception as error:  # it is theirs, whatever it is
            raise UsageError(
                f"its encoder {place} raised {type(error).__name__}: {error}", "it needs a class Encoder of a program"
            ) from error
        is_host = mode in self.dialect.talks
        wanted = (*_OF_ENCODERS, *(_OF_HOSTS if is_host else ()))
        lacks = [name for name in wanted if not callable(getattr(made, name, None))]
        lacks += [name for name in ("code", "questions") if is_host and not hasattr(made, name)]
        if not isinstance(getattr(made, "error_is_exit", None), bool):
            lacks.append("error_is_exit (true or false)")
        if getattr(made, "error_stream", None) not in ("stdout", "stderr"):
            lacks.append("error_stream (stdout or stderr)")
        told = getattr(made, "events", None)
        if not isinstance(told, dict) or not all(callable(tell) for tell in told.values()):
            lacks.append("events (functions by the names of steps)")
        if lacks or not isinstance(told, dict):
            raise UsageError(
                f"its encoder {place} lacks {', '.join(lacks)} in mode {mode}",
                f"fake_agents.contracts.{'Host' if is_host else 'Encoder'} says what it must have",
            )
        return (*told, "ask") if is_host and callable(getattr(made, "ask", None)) else tuple(told)

    def _require_its_own(self, module: str) -> None:
        """Refuse an import that no fake could follow."""
        try:
            spec = importlib.util.find_spec(module)
        except ImportError as error:
            raise UsageError(f"there is no module {module} ({error})", "name it as an import would") from error
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            raise UsageError(f"there is no Python file of a module {module}", "name it as an import would")
        allowed = (*_OF_THE_KIT, *self.dialect.encoder_modules)
        tree = ast.parse(Path(spec.origin).read_text("utf-8"))
        for name, line in _imports(tree.body):
            if name not in allowed and name.partition(".")[0] not in sys.stdlib_module_names:
                raise UsageError(
                    f"{spec.origin}:{line} imports {name}, which a fake does not have",
                    f"it has the standard library, {', '.join(_OF_THE_KIT)} and encoder_parts",
                )


def _imports(body: list[ast.stmt]) -> Iterator[tuple[str, int]]:
    """Give every module that is imported, with its line; what is for type checkers only is none."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import):
                yield from ((alias.name, inner.lineno) for alias in inner.names)
            elif isinstance(inner, ast.ImportFrom):
                base = "." * inner.level + (inner.module or "")
                is_package = base == "fake_agents" or inner.module is None
                yield from ((f"{base}.{alias.name}" if is_package else base, inner.lineno) for alias in inner.names)
