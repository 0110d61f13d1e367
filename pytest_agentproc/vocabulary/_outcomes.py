"""How a run or a turn ended, and the exit code that a supervisor answers with. Knows no process."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LEVELS", "LIMIT_OUTCOMES", "Outcome", "exit_code", "outcomes_for"]

LEVELS = ("must", "should", "info")
"""How much a check counts.

`must`: a supervisor that breaks it loses or mixes up an answer, reports a false outcome, hangs, kills work in progress,
or leaves a process. `should`: good practice that a careful program may do otherwise. `info`: a choice of the reference
supervisor.
"""


class Outcome(StrEnum):
    """The closed set of endings. None of them is ever raised.

    | outcome | who caused it | what the caller can do |
    |---|---|---|
    | completed | the agent: a good result, whatever its process did next | use the result |
    | failed | the agent: an error result, or an exit code above 0 | read `error`; ask otherwise |
    | tool_use | the agent: it asks for a tool that the caller executes | execute it, run again with the answer |
    | cancelled | the caller took the turn back; the agent lives | prompt again |
    | stopped | the caller ended the agent, or gave the run up | start a new one |
    | inactive | the agent: silent for `inactivity_timeout` (`internal_tool_timeout`) | see `stderr_tail`; raise it |
    | stalled | the agent: bytes, but no event for `progress_timeout` | read `stderr_tail`; raise the limit |
    | overran | the agent: at work for `max_runtime` | raise the limit, or ask for less |
    | timed_out | the agent: no progress in a turn for `prompt_timeout`; it lives | prompt again |
    | incomplete | the agent crashed, or somebody else killed it | read `agent_status`, `stderr_tail`; run again |
    | input_failed | the agent closed its input and lives on without the prompt | give the prompt another way |
    | spawn_failed | the caller: no such command (127), or not executable (126) | mend `argv` |
    | handshake_failed | the agent did not begin to talk | read its version, `stderr_tail` |
    | protocol_error | lines of no meaning in the dialect, or too long | see its version; raise `max_line_bytes` |
    | agent_lost | the agent ended while the prompt was queued or in flight | prompt again, if it may run twice |
    """

    COMPLETED = "completed"
    FAILED = "failed"
    TOOL_USE = "tool_use"
    CANCELLED = "cancelled"
    STOPPED = "stopped"
    INACTIVE = "inactive"
    STALLED = "stalled"
    OVERRAN = "overran"
    TIMED_OUT = "timed_out"
    INCOMPLETE = "incomplete"
    INPUT_FAILED = "input_failed"
    SPAWN_FAILED = "spawn_failed"
    HANDSHAKE_FAILED = "handshake_failed"
    PROTOCOL_ERROR = "protocol_error"
    AGENT_LOST = "agent_lost"

    @property
    def limit(self) -> str | None:
        """The limit that ran out; None: the run or the turn was not cut off by one."""
        return next((name for name, outcome in LIMIT_OUTCOMES.items() if outcome is self), None)

    @property
    def exit_codes(self) -> tuple[int, ...]:
        """The supervisor's exit codes for this outcome; () if the code is the agent's own."""
        return _EXIT_CODES.get(self, ())


LIMIT_OUTCOMES = {
    "inactivity_timeout": Outcome.INACTIVE,
    "internal_tool_timeout": Outcome.INACTIVE,
    "progress_timeout": Outcome.STALLED,
    "prompt_timeout": Outcome.TIMED_OUT,
    "max_runtime": Outcome.OVERRAN,
}
"""The outcome of a run or a turn whose limit runs out."""

_EXIT_CODES = {
    Outcome.COMPLETED: (0,),
    Outcome.TOOL_USE: (0,),
    Outcome.CANCELLED: (130,),
    Outcome.STOPPED: (130,),
    **dict.fromkeys(LIMIT_OUTCOMES.values(), (124,)),
    Outcome.INPUT_FAILED: (74,),
    Outcome.SPAWN_FAILED: (127, 126),
    Outcome.HANDSHAKE_FAILED: (69,),
    Outcome.PROTOCOL_ERROR: (76,),
}


def outcomes_for(outcome: str, known: Iterable[str]) -> tuple[str, ...]:
    """Give the outcomes that a supervisor reports for one, by those that it knows: it alone, or those most like it.

    Alike are outcomes of one exit code, such as all limits. If it knows none of them, it reports `failed`.
    """
    known = tuple(known)
    if outcome in known:
        return (outcome,)
    codes = Outcome(outcome).exit_codes
    return tuple(one for one in known if codes and Outcome(one).exit_codes == codes) or (Outcome.FAILED.value,)


def exit_code(
    outcome: Outcome, agent_status: int | None = None, *, forced: bool = False, executable: bool = True
) -> int:
    """Say the supervisor's exit code for an outcome.

    Args:
        outcome: how the run ended.
        agent_status: the agent's own exit code, or minus the number of the signal that ended it; None while unknown.
        forced: whether the supervisor's own signal ended the agent.
        executable: for `spawn_failed`: False if the file was found but could not be executed.
    """
    if codes := outcome.exit_codes:
        return codes[0] if executable else codes[-1]
    if agent_status is None:
        return 1
    if outcome is Outcome.FAILED:
        return agent_status if agent_status > 0 and not forced else 1
    return 128 - agent_status if agent_status < 0 else agent_status or 1
