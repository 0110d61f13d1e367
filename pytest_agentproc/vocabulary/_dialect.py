"""A package's description of a dialect that it adds to the kit's. Owns the form and its checks; knows no dialect."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Dialect"]

_OF_DECODERS = ("has_completion", "limit", "decode", "end")
_OF_TALKS = (
    *("is_marked", "begins_at_once", "answers_cancel"),
    *("greet", "prompt", "cancel", "answer", "answer_hook", "decode"),
)
_MODULE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """A dialect in both its halves, which share no code and load when they are used.

    Args:
        name: what `agent:` calls it in a scenario.
        encoder: the module whose `Encoder(program)` runs in the fake, dotted as an import writes it; see
            `fake_agents.contracts.Encoder`, and `Host` there for sessions. The fake gets the module and no package
            around it, so it may import the standard library, `encoder_parts`, and of `fake_agents` lines, objects,
            program, questions and requests.
        decoders: its modes of one-shot runs, the default first, each with the supervisor's half as
            `package.module:Class`, which is made without arguments; see `supervisor.dialects.Decoder`.
        talks: its modes that hold sessions, in the same way; the class takes a `supervisor.dialects.Setting`, see
            `supervisor.dialects.Talk`. The default of a dialect that has no others is the first one.
        encoder_parts: modules that the encoder is built on, in the order in which they must be loaded.
        command: the name of the fake's executable.
        options: by mode, the arguments with which a real supervisor would start such an agent; none if absent.
        stop_reasons: the values that `stop:` of a `say` may have.

    Raises:
        UsageError: one of these is not what it must be.
    """

    name: str
    encoder: str
    decoders: Mapping[str, str] = field(default_factory=dict)
    talks: Mapping[str, str] = field(default_factory=dict)
    encoder_parts: Sequence[str] = ()
    command: str = "agent"
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stop_reasons: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._require("name", self.name, r"[a-z][a-z0-9_-]*", "a word of small letters, such as toy")
        for part in (self.encoder, *_listed(self, "encoder_parts")):
            self._require("encoder", part, _MODULE, "a module's dotted name, such as toy_agent.encoder")
        self._require("command", self.command, r"[^/\0]+", "the name of a file, such as toy")
        for name in ("decoders", "talks", "options"):
            if not hasattr(getattr(self, name), "items"):
                raise UsageError(
                    f"dialect {self.name}: {name} is {getattr(self, name)!r}", "it must be a mapping of modes"
                )
        for mode, place in (*self.decoders.items(), *self.talks.items()):
            self._require("a mode", mode, r"[a-z][a-z0-9_-]*", "a word of small letters, such as text")
            remedy = "package.module:Class, such as toy_agent.decoder:Decoder"
            self._require(f"the supervisor's half of mode {mode}", place, rf"{_MODULE}:{_MODULE}", remedy)
        if not self.modes or len(self.modes) < len(self.decoders) + len(self.talks):
            raise UsageError(
                f"dialect {self.name}: its modes are {', '.join((*self.decoders, *self.talks)) or 'none'}",
                "it must have one at least, and each either in decoders or in talks",
            )
        for mode in self.options:
            if mode not in self.modes:
                raise UsageError(
                    f"dialect {self.name}: there are options for mode {mode!r}", f"modes are {', '.join(self.modes)}"
                )
        _listed(self, "stop_reasons")

    def _require(self, what: str, given: Any, form: str, wanted: str) -> None:
        if not isinstance(given, str) or not re.fullmatch(form, given):
            raise UsageError(f"dialect {self.name}: {what} is {given!r}", f"it must be {wanted}")

    @property
    def modes(self) -> tuple[str, ...]:
        """Every mode, the default first."""
        return tuple(dict.fromkeys((*self.decoders, *self.talks)))

    @property
    def encoder_modules(self) -> tuple[str, ...]:
        """The modules of the fake's half, in the order in which they are loaded; the last one has the encoder."""
        return (*self.encoder_parts, self.encoder)

    def decoder(self, mode: str = "") -> Any:
        """Make the decoder of a mode; "" is the first.

        Raises:
            UsageError: there is no such mode, or its decoder cannot be found or made.
        """
        place = self._place(self.decoders, mode, "")
        return self._made(place, lambda half: half(), _OF_DECODERS, "Decoder")

    def talk(self, mode: str = "", setting: Any = None) -> Any:
        """Make the conversation of a mode with one agent process; "" is the first that holds sessions.

        Args:
            mode: the mode.
            setting: what it begins with, as `supervisor.dialects.Setting` says it.

        Raises:
            UsageError: there is no such mode that holds sessions, or its half cannot be found or made.
        """
        place = self._place(self.talks, mode, " for a session")
        return self._made(place, lambda half: half(setting), _OF_TALKS, "Talk")

    def _place(self, modes: Mapping[str, str], mode: str, what: str) -> str:
        if mode not in modes and (mode or not modes):
            raise UsageError(f"mode is {mode!r}, but {self.name} has {', '.join(modes) or 'none'}{what}")
        return modes[mode or next(iter(modes))]

    def _made(self, place: str, make: Callable[[Any], Any], members: Sequence[str], form: str) -> Any:
        module, _, path = place.partition(":")
        try:
            half: Any = importlib.import_module(module)
            for attribute in path.split("."):
                half = getattr(half, attribute)
            made = make(half)
        except Exception as error:  # it is theirs, whatever it is
            raise UsageError(
                f"dialect {self.name}: its {form.lower()} {place} cannot be made, {type(error).__name__}: {error}",
                f"it must be a class as pytest_agentproc.supervisor.dialects.{form} describes it",
            ) from error
        missing = [one for one in members if not hasattr(made, one)]
        if missing:
            raise UsageError(
                f"dialect {self.name}: its {form.lower()} {place} has no {', '.join(missing)}",
                f"pytest_agentproc.supervisor.dialects.{form} says what it must have",
            )
        return made


def _listed(dialect: Dialect, name: str) -> Sequence[str]:
    given: Sequence[str] = getattr(dialect, name)
    if isinstance(given, str) or not all(isinstance(one, str) for one in given):
        raise UsageError(f"dialect {dialect.name}: {name} is {given!r}", "it must be a list of texts")
    return given
