"""What a package says of a dialect that it adds to the kit's. Owns the form and its checks; knows no dialect."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Dialect"]

_MODULE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """A dialect of one-shot runs, in both its halves, which share no code and load when they are used.

    Args:
        name: what `agent:` calls it in a scenario.
        encoder: the module whose `Encoder(program)` runs in the fake, dotted as an import writes it; see
            `fake_agents.contracts.Encoder`. The fake gets the module and no package around it, so it may import the
            standard library, `fake_agents.lines`, `.objects` and `.program`, and `encoder_parts`.
        decoders: its modes, the default first, each with the supervisor's half as `package.module:Class`, which is
            made without arguments; see `supervisor.dialects.Decoder`.
        encoder_parts: modules that the encoder is built on, in the order in which they must be loaded.
        command: what the fake's executable is called.
        options: by mode, the arguments with which a real supervisor would start such an agent; none if absent.
        stop_reasons: what `stop:` of a `say` may be.

    Raises:
        UsageError: one of these is not what it must be.
    """

    name: str
    encoder: str
    decoders: Mapping[str, str]
    encoder_parts: Sequence[str] = ()
    command: str = "agent"
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stop_reasons: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._require("name", self.name, r"[a-z][a-z0-9_-]*", "a word of small letters, such as toy")
        for part in (self.encoder, *_listed(self, "encoder_parts")):
            self._require("encoder", part, _MODULE, "a module's dotted name, such as toy_agent.encoder")
        self._require("command", self.command, r"[^/\0]+", "the name of a file, such as toy")
        if not self.decoders or not hasattr(self.decoders, "items"):
            raise UsageError(
                f"dialect {self.name}: decoders is {self.decoders!r}", 'write {"text": "toy_agent.decoder:Decoder"}'
            )
        for mode, place in self.decoders.items():
            self._require("a mode", mode, r"[a-z][a-z0-9_-]*", "a word of small letters, such as text")
            remedy = "package.module:Class, such as toy_agent.decoder:Decoder"
            self._require(f"decoder of mode {mode}", place, rf"{_MODULE}:{_MODULE}", remedy)
        for mode in self.options:
            if mode not in self.decoders:
                raise UsageError(
                    f"dialect {self.name}: there are options for mode {mode!r}", f"modes are {', '.join(self.decoders)}"
                )
        _listed(self, "stop_reasons")

    def _require(self, what: str, given: Any, form: str, wanted: str) -> None:
        if not isinstance(given, str) or not re.fullmatch(form, given):
            raise UsageError(f"dialect {self.name}: {what} is {given!r}", f"it must be {wanted}")

    @property
    def encoder_modules(self) -> tuple[str, ...]:
        """The modules of the fake's half, in the order in which they are loaded; the last one has the encoder."""
        return (*self.encoder_parts, self.encoder)

    def decoder(self, mode: str = "") -> Any:
        """Make the decoder of a mode; "" is the first.

        Raises:
            UsageError: there is no such mode, or its decoder cannot be found or made.
        """
        if mode and mode not in self.decoders:
            raise UsageError(f"mode is {mode!r}, but {self.name} has {', '.join(self.decoders)}")
        place = self.decoders[mode or next(iter(self.decoders))]
        module, _, path = place.partition(":")
        try:
            made: Any = importlib.import_module(module)
            for attribute in path.split("."):
                made = getattr(made, attribute)
            made = made()
        except Exception as error:  # it is theirs, whatever it is
            raise UsageError(
                f"dialect {self.name}: its decoder {place} cannot be made, {type(error).__name__}: {error}",
                "it must be a class that takes no arguments",
            ) from error
        missing = [one for one in ("has_completion", "limit", "decode", "end") if not hasattr(made, one)]
        if missing:
            raise UsageError(
                f"dialect {self.name}: its decoder {place} has no {', '.join(missing)}",
                "pytest_agentproc.supervisor.dialects.Decoder says what it must have",
            )
        return made


def _listed(dialect: Dialect, name: str) -> Sequence[str]:
    given: Sequence[str] = getattr(dialect, name)
    if isinstance(given, str) or not all(isinstance(one, str) for one in given):
        raise UsageError(f"dialect {dialect.name}: {name} is {given!r}", "it must be a list of texts")
    return given
