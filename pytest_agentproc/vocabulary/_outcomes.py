"""How a run or a turn ended, and the exit code that a supervisor answers with. Knows no process."""

from __future__ import annotations

import errno
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


LEVEL_TEXTS = {
    "must": "A supervisor that breaks it harms its user: it loses or mixes up an answer, reports a false outcome, "
    "hangs, kills work in progress, or leaves a process.",
    "should": "It is good practice, such as an instant, a grace, a signal, or the wording of a message. "
    "A careful program may do it in another way.",
    "info": "It is a choice of the reference supervisor, and informs only.",
}
"""How much a check counts, and what each level means."""
LEVELS = tuple(LEVEL_TEXTS)

ERRNO_BY_RESOURCE_SHORTAGE = {"no_memory": errno.ENOMEM, "no_descriptors": errno.EMFILE}
"""Why the machine starts no program at all for a while, with the system's number of the error."""
ERRNO_BY_SPAWN_ERROR = {
    "not_found": errno.ENOENT,
    "not_executable": errno.EACCES,
    "no_interpreter": errno.ENOENT,
    "wrong_format": errno.ENOEXEC,
    **ERRNO_BY_RESOURCE_SHORTAGE,
}
"""Every reason why an agent cannot be started, with that number. The file of the agent causes the first four."""


UNKNOWN_EXIT_WARNING = "exit_unknown"
"""The warning that nobody saw how the agent exited: another part of the program reaped it, or it has not ended yet."""


class Outcome(StrEnum):
    """The closed set of endings. None of them is ever raised. `OUTCOME_TEXTS` and `agentproc explain` describe each."""

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
        return next((name for name, outcome in OUTCOME_BY_LIMIT.items() if outcome is self), None)

    @property
    def exit_codes(self) -> tuple[int, ...]:
        """The supervisor's exit codes for this outcome; () if the code is the agent's own."""
        return _EXIT_CODES_BY_OUTCOME.get(self, ())


OUTCOME_TEXTS = {
    Outcome.COMPLETED: (
        "The agent gave a good result. It does not matter what its process did after the result.",
        "Use the result.",
    ),
    Outcome.FAILED: (
        "The agent gave an error result, or it exited with a code above 0 and without a result.",
        "Read `error`, and ask in another way.",
    ),
    Outcome.TOOL_USE: (
        "The agent asks for a tool that the caller executes.",
        "Execute the tool, and start a run with its answer.",
    ),
    Outcome.CANCELLED: (
        "The caller cancelled the turn. The agent lives on.",
        "Send the next prompt.",
    ),
    Outcome.STOPPED: (
        "The caller ended the agent or gave the run up.",
        "Start a new agent.",
    ),
    Outcome.INACTIVE: (
        "The agent printed no byte for `inactivity_timeout`, or for `internal_tool_timeout` while a tool ran.",
        "Read `stderr_tail`. Raise the limit if the agent was at work.",
    ),
    Outcome.STALLED: (
        "The agent printed bytes, but no event of its dialect for `progress_timeout`.",
        "Read `stderr_tail`. Raise the limit if the agent was at work.",
    ),
    Outcome.OVERRAN: (
        "The agent was still at work after `max_runtime`.",
        "Raise the limit, or ask for less.",
    ),
    Outcome.TIMED_OUT: (
        "A turn of a session made no progress for `prompt_timeout`. The agent lives on.",
        "Send the next prompt.",
    ),
    Outcome.INCOMPLETE: (
        "The agent ended without a result: it crashed, another process killed it, or nobody saw how it exited.",
        "Read `agent_status` and `stderr_tail`, and run the agent again.",
    ),
    Outcome.INPUT_FAILED: (
        "The agent closed its stdin before it had read the prompt, and lived on.",
        "Give the prompt in another way.",
    ),
    Outcome.SPAWN_FAILED: (
        "The agent could not be started: there is no such command (127), or it is not executable (126).",
        "Correct `argv`.",
    ),
    Outcome.HANDSHAKE_FAILED: (
        "The agent of a session did not answer the first handshake, or refused it.",
        "Read the version of the agent and `stderr_tail`.",
    ),
    Outcome.PROTOCOL_ERROR: (
        "The agent printed lines that its dialect does not know, or a line that is too long.",
        "Read the version of the agent. Raise `max_line_bytes` if the line was right.",
    ),
    Outcome.AGENT_LOST: (
        "The agent ended while the prompt was in the queue or in work.",
        "Send the prompt again if it may run twice.",
    ),
}
"""Of each outcome, what happened, and what the caller can do."""

OUTCOME_BY_LIMIT = {
    "inactivity_timeout": Outcome.INACTIVE,
    "internal_tool_timeout": Outcome.INACTIVE,
    "progress_timeout": Outcome.STALLED,
    "prompt_timeout": Outcome.TIMED_OUT,
    "max_runtime": Outcome.OVERRAN,
}
"""The outcome of a run or a turn whose limit runs out."""

_EXIT_CODES_BY_OUTCOME = {
    Outcome.COMPLETED: (0,),
    Outcome.TOOL_USE: (0,),
    Outcome.CANCELLED: (130,),
    Outcome.STOPPED: (130,),
    **dict.fromkeys(OUTCOME_BY_LIMIT.values(), (124,)),
    Outcome.INPUT_FAILED: (74,),
    Outcome.SPAWN_FAILED: (127, 126),
    Outcome.HANDSHAKE_FAILED: (69,),
    Outcome.PROTOCOL_ERROR: (76,),
}


def choose_reported_outcomes(outcome: str, known: Iterable[str]) -> tuple[str, ...]:
    """Give the outcomes that a supervisor reports for one, by those that it knows: it alone, or those most like it.

    Alike are outcomes of one exit code, such as all limits. If it knows none of them, it reports `failed`.
    """
    known = tuple(known)
    if outcome in known:
        return (outcome,)
    codes = Outcome(outcome).exit_codes
    return tuple(word for word in known if codes and Outcome(word).exit_codes == codes) or (Outcome.FAILED.value,)


def compute_exit_code(
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
