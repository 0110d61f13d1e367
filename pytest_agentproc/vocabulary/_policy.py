"""The limits that a supervisor keeps: names, units, defaults. Knows no supervisor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError
from pytest_agentproc.vocabulary._dialects import DIALECTS

if TYPE_CHECKING:
    from fractions import Fraction

    from pytest_agentproc.vocabulary._dialect import Dialect


NANOSECONDS_PER_SECOND = 1_000_000_000
_MAX_ROUNDING_ERROR_SECONDS = 0.25e-9
"""Up to here a number of seconds means the nanosecond below it."""
_INFINITE_SECONDS = float("inf")


def to_nanoseconds(seconds: float) -> int:
    """Turn seconds into whole nanoseconds, the unit in which all clocks of the kit count.

    A time between two nanoseconds, by more than a rounding error, becomes the later one, as for a timer of that length.
    """
    before = math.floor(seconds * NANOSECONDS_PER_SECOND)
    return before if seconds - before / NANOSECONDS_PER_SECOND <= _MAX_ROUNDING_ERROR_SECONDS else before + 1


def add_limit(instant: int, limit: int | None) -> int | None:
    """Give the instant at which a limit is over, in nanoseconds; None: it is off, and never over."""
    return None if limit is None else instant + limit


class _UnchosenDefault(float):
    """A default that was never chosen."""


DEFAULT_INACTIVITY_TIMEOUT_SECONDS = _UnchosenDefault(120.0)
CONTAINMENT_NAMES = ("group", "subreaper", "keeper")
"""How a supervisor holds the tree of its agent, from the weakest to the strongest; each can do what those before can.

`group`: what descends from the agent, or is in its session. `subreaper`: the supervising process adopts what the tree
lets go of, too. `keeper`: a process of its own between the two does, and ends all of it if the supervisor dies.
"""


def _limit(default: Any, text: str) -> Any:
    """Declare a limit of `Policy`, with its text for users: Python can drop docstrings, so it is data."""
    return field(default=default, metadata={"text": text})


class _PolicyCache:
    """Room for what `Policy.nanoseconds` has counted once, and for what `Policy.adapt_to_session` has given."""

    __slots__ = ("_counted", "_in_session", "_parts")

    _counted: dict[str, int | None]
    _parts: bool
    _in_session: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(_PolicyCache):
    """The promises of a supervisor. Durations are seconds, sizes bytes; None switches a limit off.

    A grace or timeout that is off is a wait without end. 0 is the opposite: no time at all. The defaults are those of
    most dialects; `for_dialect` knows the others.

    Args: `agentproc explain NAME` prints the text of a limit; `LIMIT_TEXTS` has them all.

    Raises:
        UsageError: a duration is negative or not a number, a size is no whole number above 0, host_tools is no list of
            names, or there is no such containment.
    """

    inactivity_timeout: float | None = _limit(
        DEFAULT_INACTIVITY_TIMEOUT_SECONDS,
        "silence (no byte on stdout or stderr) after which a run ends as `inactive` (A1); in a session, where it "
        "cancels the turn, it is off unless it is given.",
    )
    internal_tool_timeout: float | None = _limit(
        600.0,
        "the same while the agent executes tools of its own, or says that it compacts its context (A6). It makes "
        "the limit longer, never shorter: the longer of the two holds, and no limit where one of them is off.",
    )
    progress_timeout: float | None = _limit(
        None,
        "time without an event of the dialect after which a run ends as `stalled`, whatever bytes it prints (A8).",
    )
    max_runtime: float | None = _limit(
        None,
        "the longest a run may take, whatever its activity; it then ends as `overran` (A2).",
    )
    linger_grace: float | None = _limit(
        0.25,
        "how long a one-shot agent may live on after its completion (C1).",
    )
    background_grace: float | None = _limit(
        0.0,
        "how much longer it may live on if it has announced background commands and not their end: it is waiting "
        "for them, and would without limit (C1).",
    )
    linger_kill_grace: float | None = _limit(
        0.25,
        "from TERM to KILL for an agent that lives on after its completion (C1).",
    )
    leftover_kill_grace: float | None = _limit(
        0.25,
        "from TERM to KILL for descendants that are left by an agent that exits by itself (T6).",
    )
    kill_grace: float | None = _limit(
        2.0,
        "from TERM to KILL otherwise (T1).",
    )
    prompt_timeout: float | None = _limit(
        3600.0,
        "time without progress of a session's turn after which the turn is cancelled, not the agent; it ends as "
        "`timed_out` (P1, P2).",
    )
    cancel_grace: float | None = _limit(
        300.0,
        "how long a cancel may stay unacknowledged before the agent is forced to stop (P3).",
    )
    permission_timeout: float | None = _limit(
        300.0,
        "how long the caller's handler may take to answer the agent's question; then: denied (P7).",
    )
    hook_timeout: float | None = _limit(
        60.0,
        "how long a session's agent waits at a hook that may forbid a tool, first for a callback to be registered "
        "and then for its word; then: denied (B4).",
    )
    handshake_timeout: float | None = _limit(
        30.0,
        "from the start of a session's agent to the end of its handshake (P6); None: it may have none.",
    )
    restart_backoff: float | None = _limit(
        1.0,
        "from a crash to the next start; it doubles with each of the last 10 minutes, up to 60 s (P6); None: a "
        "session whose agent has ended gets no other, and refuses its prompts. A session whose first agent never "
        "did its handshake gets no other either, whatever the limit.",
    )
    close_grace: float | None = _limit(
        2.0,
        "from the end of a session's stdin to TERM (P8).",
    )
    max_line_bytes: int | None = _limit(
        16 * 1024**2,
        "the longest line on stdout, without its end; a longer one is a `protocol_error` (F3). A supervisor under "
        "test that does not state it is tested with 2 MiB.",
    )
    max_transcript_bytes: int | None = _limit(
        16 * 1024**2,
        "how many bytes of all messages are kept: the last ones. A message that came in one line is kept whole, "
        "and of a message in pieces its end is kept (F6).",
    )
    host_tools: tuple[str, ...] = _limit(
        (),
        "names of the tools that the host executes, all others are the agent's own; `*`, `?` and `[...]` stand "
        "for what they do in file names. A message that asks for one ends the run as `tool_use` (A7).",
    )
    containment: str = _limit(
        "group",
        'how the tree is held: "group", "subreaper" or "keeper" (T1); see `CONTAINMENT_NAMES`. "group" does not find a '
        "child in a session of its own once the agent has ended.",
    )

    def __post_init__(self) -> None:
        for name in LIMITS_IN_BYTES:
            size = getattr(self, name)
            if size is None:
                continue
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise UsageError(
                    f"policy {name} is {size!r}, but must be bytes (a whole number, 1 or more) or None",
                    f"write {name}=16 * 1024**2, for example",
                )
        for name in LIMITS_IN_SECONDS:
            value = getattr(self, name)
            if value is None or (type(value) is float and 0 <= value < _INFINITE_SECONDS):
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _INFINITE_SECONDS:
                raise UsageError(
                    f"policy {name} is {value!r}, but must be seconds (0 or more) or None",
                    f"write {name}=2.0, for example",
                )
        names = self.host_tools
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name for name in names):
            raise UsageError(
                f"policy host_tools is {names!r}, but must be a list of names",
                'write host_tools=["Read", "mcp__custom-tools__*"], for example',
            )
        object.__setattr__(self, "host_tools", tuple(names))
        if self.containment not in CONTAINMENT_NAMES:
            raise UsageError(
                f"policy containment is {self.containment!r}, but must be one of {', '.join(CONTAINMENT_NAMES)}",
                'write containment="keeper", for example',
            )

    @property
    def unstated(self) -> frozenset[str]:
        """Name the limits of unknown value: none, except for a supervisor under test that leaves some out."""
        return frozenset()

    def has_containment(self, containment: str) -> bool:
        """Say whether the tree is held as strongly as this containment holds it, or more so."""
        return CONTAINMENT_NAMES.index(self.containment) >= CONTAINMENT_NAMES.index(containment)

    def items(self) -> list[tuple[str, Any]]:
        """List every name with its value, in the order of declaration."""
        return [(name, getattr(self, name)) for name in ALL_LIMIT_NAMES]

    def nanoseconds(self) -> dict[str, int | None]:
        """Give every duration in whole nanoseconds; the caller may change what it is given."""
        try:
            return self._counted.copy()
        except AttributeError:  # every decider asks, and the first one counts
            times = {name: getattr(self, name) for name in LIMITS_IN_SECONDS}
            counted = {name: None if value is None else to_nanoseconds(value) for name, value in times.items()}
            object.__setattr__(self, "_counted", counted)
            return counted.copy()

    def to_whole_limits(self) -> dict[str, int | None]:
        """Give every limit as a whole number: durations in nanoseconds, sizes in bytes."""
        return {**self.nanoseconds(), **{name: getattr(self, name) for name in LIMITS_IN_BYTES}}

    def to_exact_limits(self) -> dict[str, int | Fraction | None]:
        """Give every limit in nanoseconds or bytes as it is: a third of a second is no whole number of nanoseconds."""
        limits: dict[str, int | Fraction | None] = dict(self.to_whole_limits())
        if self.has_fractional_nanoseconds:
            limits |= {
                name: self._to_exact_limit(name, limit)
                for name, limit in self.nanoseconds().items()
                if limit is not None
            }
        return limits

    def _to_exact_limit(self, name: str, limit: int) -> int | Fraction:
        given = getattr(self, name)
        if abs(given - limit / NANOSECONDS_PER_SECOND) <= _MAX_ROUNDING_ERROR_SECONDS:
            return limit
        from fractions import Fraction  # who has such a limit pays for it

        return Fraction(given) * NANOSECONDS_PER_SECOND

    @property
    def has_fractional_nanoseconds(self) -> bool:
        """Whether one of its durations is no whole number of nanoseconds: such sums may be rounded twice."""
        try:
            return self._parts
        except AttributeError:  # as above
            counted = self.nanoseconds().items()
            found = any(limit is not None and self._to_exact_limit(name, limit) != limit for name, limit in counted)
            object.__setattr__(self, "_parts", found)
            return found

    @classmethod
    def for_dialect(cls, dialect: str | Dialect, **limits: Any) -> Policy:
        """Give the default limits for agents of a dialect, except for the limits that are given.

        Args:
            dialect: the wire format, by its name if it is the kit's; one without defaults of its own has those of most.
            limits: as the class takes them.
        """
        known = DIALECTS.get(dialect) if isinstance(dialect, str) else dialect
        silence = None if known is None else known.silence
        given = limits if silence is None else {"inactivity_timeout": _UnchosenDefault(silence), **limits}
        try:
            return _make_cached_policy(**given)
        except TypeError:  # a list is no key
            return cls(**given)

    def adapt_to_session(self) -> Policy:
        """Give the limits as a session keeps them: silence is no fault there unless the caller says so."""
        if not isinstance(self.inactivity_timeout, _UnchosenDefault):
            return self
        if not hasattr(self, "_in_session"):
            object.__setattr__(self, "_in_session", replace(self, inactivity_timeout=None))
        return self._in_session

    @classmethod
    def make_from_silence_limit(cls, seconds: float) -> Policy:
        """Give the limits that one number stands for: it limits silence, never the whole duration (A9)."""
        return cls(inactivity_timeout=seconds)


_make_cached_policy = lru_cache(maxsize=256, typed=True)(Policy)
"""The same limits as the last time: every play of a scenario asks for them."""


LIMITS_OFF_IF_UNSTATED = frozenset(
    {
        "inactivity_timeout",
        "internal_tool_timeout",
        "progress_timeout",
        "max_runtime",
        "max_transcript_bytes",
        "prompt_timeout",
        "handshake_timeout",
    }
)
"""A supervisor that does not name one of these does not have it; of any other it has some value."""
TIMEOUTS_THAT_ARE_NEVER_0 = ("cancel_grace", "permission_timeout", "hook_timeout")
"""A supervisor that gives no time at all here does without the thing itself: it never asks, or always kills."""
_LIMITS_OF_RUNS_ONLY = ("linger_grace", "background_grace", "linger_kill_grace")
_LIMITS_OF_SESSIONS_ONLY = (
    *("prompt_timeout", "cancel_grace", "permission_timeout", "hook_timeout", "handshake_timeout"),
    *("restart_backoff", "close_grace"),
)
LIMITS_IN_BYTES = ("max_line_bytes", "max_transcript_bytes")
LIMITS_THAT_ARE_LISTS = ("host_tools",)
LIMITS_THAT_ARE_WORDS = ("containment",)
LIMIT_TEXTS = {limit.name: str(limit.metadata["text"]) for limit in fields(Policy)}
"""What each limit means, in a clause."""
ALL_LIMIT_NAMES = tuple(LIMIT_TEXTS)
LIMITS_IN_SECONDS = tuple(
    name for name in ALL_LIMIT_NAMES if name not in (*LIMITS_IN_BYTES, *LIMITS_THAT_ARE_LISTS, *LIMITS_THAT_ARE_WORDS)
)


def list_time_names(*, is_session: bool) -> list[str]:
    """Give the names of the times that count for an agent of a session, or of a run. The others mean nothing there."""
    idle = _LIMITS_OF_RUNS_ONLY if is_session else _LIMITS_OF_SESSIONS_ONLY
    return [name for name in LIMITS_IN_SECONDS if name not in idle]
