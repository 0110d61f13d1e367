"""A package's description of a step that it adds to scripts. Owns the form and its checks; knows no step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


STEP_VALUE_TYPES = ("text", "time", "size", "number", "flag", "data")
"""The types of a step's value: `number` is a whole one from 0 on, `data` a mapping as JSON has it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScriptStep:
    """A step of the script, which stands for other steps, or which only encoders know.

    It stands for others if there is `expand`. They are checked and played as if the scenario had them in its place, on
    the step's own line, so nothing new can go wrong in the fake. Without `expand` a scenario may use it where the
    dialect's encoder has its name among its `events`, and that encoder gives the bytes: a step of a dialect's own.

    Args:
        name: its name in scripts.
        value: the type of its value, one of `STEP_VALUE_TYPES`; or a list of the words that it can be; or a mapping
            with the type of each key, all of which must be there.
        doc: its effect, in a clause.
        expand: takes the value, gives the steps as YAML would read them: `[{"say": "a"}, {"silence": "1s"}]`. A time or
            a size reaches it as text that can be a step's value. An encoder is given nanoseconds and bytes.

    Raises:
        UsageError: one of these is not what it must be.
    """

    name: str
    value: str | Sequence[str] | Mapping[str, str]
    doc: str
    expand: Callable[[Any], Sequence[Mapping[str, Any]]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", self.name):
            raise UsageError(f"step {self.name!r}: its name must be a word of small letters", "write blink, say")
        if not isinstance(self.doc, str) or not self.doc:
            raise UsageError(f"step {self.name}: doc is {self.doc!r}", "say what it does, in a clause")
        types = [self.value] if isinstance(self.value, str) else getattr(self.value, "values", list)()
        wrong = [kind for kind in types if kind not in STEP_VALUE_TYPES]
        words = [] if isinstance(self.value, str) else list(self.value)
        if wrong or not (types or words) or not all(isinstance(word, str) and word for word in words):
            raise UsageError(
                f"step {self.name}: value is {self.value!r}",
                f"it must be one of {', '.join(STEP_VALUE_TYPES)}, a list of words, "
                "or a mapping of keys to these types",
            )
        if self.expand is not None and not callable(self.expand):
            raise UsageError(f"step {self.name}: expand is {self.expand!r}", "it must be a function of the value")
