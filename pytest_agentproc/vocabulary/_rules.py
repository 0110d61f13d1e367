"""The rules of supervisors, append-only: a name keeps its meaning for ever. Knows no scenario.

`agentproc explain RULE` and the reference page of a rule print what stands here. Its scenarios and defects are derived.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RULES", "Rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule for supervisors.

    Args:
        name: its letter and number.
        demands: the rule itself, in one clause without a full stop.
        why: what goes wrong without it, in one to three sentences.
        report: the address of a public bug report about it; empty: none is known.
        reference: how the reference supervisor keeps it.
        open: what the rule does not decide, or what its scenarios do not try; empty: nothing.
    """

    name: str
    demands: str
    why: str = ""
    report: str = ""
    reference: str = ""
    open: str = ""


_RULES = (
    Rule(
        name="A1",
        demands="any byte is activity; a run that is silent for inactivity_timeout ends as inactive",
    ),
    Rule(
        name="A2",
        demands="max_runtime caps a run whatever its activity",
    ),
    Rule(
        name="A3",
        demands="one watchdog holds all deadlines; at the same instant the gentler one wins",
    ),
    Rule(
        name="A4",
        demands="exit beats the timer: at one instant output first, then exit, then deadlines",
    ),
    Rule(
        name="A5",
        demands="a closed stdout or stderr is neither activity nor exit",
    ),
    Rule(
        name="A6",
        demands="while the agent executes tools of its own, or compacts, the limit on silence is internal_tool_timeout",
    ),
    Rule(
        name="A7",
        demands="a message that asks for a tool of the host's ends the run as tool_use",
    ),
    Rule(
        name="A8",
        demands="bytes without progress for progress_timeout end a run as stalled",
    ),
    Rule(
        name="A9",
        demands="the one-number form of a limit means silence, never duration",
    ),
    Rule(
        name="B1",
        demands="a background turn never appears in a prompt's turn or completes it, however late it comes",
    ),
    Rule(
        name="B2",
        demands="background commands are tracked to their end; a stopped or endless one is named and blocks nothing",
    ),
    Rule(
        name="B3",
        demands="background turns stay out of prompts' turns after an error result, too",
    ),
    Rule(
        name="B4",
        demands="a hook is called back once, also if it fired first; a tool waits for its hook, at most hook_timeout",
    ),
    Rule(
        name="C1",
        demands="a lingering agent gets linger_grace, terminate, linger_kill_grace, kill; the outcome stands",
    ),
    Rule(
        name="C2",
        demands="a stop reason that asks for a tool is not completion",
    ),
    Rule(
        name="C3",
        demands=(
            "text, model, stop reason and usage survive a forced exit; artifacts are whole or absent, and never fatal"
        ),
    ),
    Rule(
        name="C4",
        demands="exit is the process's exit, not its pipes' EOF",
    ),
    Rule(
        name="F1",
        demands="one line is one event whatever the chunking",
    ),
    Rule(
        name="F2",
        demands="a line that does not parse is noise: kept, counted, never fatal",
    ),
    Rule(
        name="F3",
        demands="a line over max_line_bytes is a protocol error",
    ),
    Rule(
        name="F4",
        demands="stderr is always drained; its tail is kept",
    ),
    Rule(
        name="F5",
        demands="stdin is written while output is read; EPIPE never raises",
    ),
    Rule(
        name="F6",
        demands="memory is bounded whatever the agent prints; the last messages are kept, and the final one whole",
    ),
    Rule(
        name="P1",
        demands="prompt_timeout cancels the turn, not the agent, which is ready for the next prompt at once",
    ),
    Rule(
        name="P2",
        demands="progress moves the prompt's deadline, signs of life do not; it rests while the caller owes an answer",
    ),
    Rule(
        name="P3",
        demands=(
            "an agent is forced to stop only if it acknowledges no cancel within cancel_grace, or on the caller's word"
        ),
    ),
    Rule(
        name="P4",
        demands="viewers detach and attach again: they see the status and the whole transcript",
    ),
    Rule(
        name="P5",
        demands="late events of a cancelled turn never reach the next one",
    ),
    Rule(
        name="P6",
        demands=(
            "an agent that cannot be started ends as spawn_failed; a crash is not answered by sending the prompt again"
        ),
    ),
    Rule(
        name="P7",
        demands=(
            "a question of the agent's is answered within permission_timeout, else denied; without a handler at once"
        ),
    ),
    Rule(
        name="P8",
        demands="close: the end of stdin, close_grace, terminate, kill_grace, kill",
    ),
    Rule(
        name="P9",
        demands="one prompt is in flight per session; the next is delivered after its outcome",
    ),
    Rule(
        name="T1",
        demands="terminate and kill mean the whole tree",
    ),
    Rule(
        name="T2",
        demands="no signal to a pid that may have been reused",
    ),
    Rule(
        name="T3",
        demands="no zombie among the supervisor's own children",
    ),
    Rule(
        name="T4",
        demands="a supervisor that is cancelled leaves no process, wherever it was",
    ),
    Rule(
        name="T6",
        demands="descendants left by an agent that exits by itself are ended before the run returns",
    ),
)

RULES = {rule.name: rule for rule in _RULES}
"""Every rule by its name."""
