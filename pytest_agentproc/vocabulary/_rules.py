"""The ids of the supervisor rules, append-only: an id keeps its meaning for ever. Knows no scenario."""

from __future__ import annotations

__all__ = ["RULES"]

RULES = {
    "A1": "any byte is activity; a run that is silent for inactivity_timeout ends as inactive",
    "A2": "max_runtime caps a run whatever its activity",
    "A3": "one watchdog holds all deadlines; at the same instant the gentler one wins",
    "A4": "exit beats the timer: at one instant output first, then exit, then deadlines",
    "A5": "a closed stdout or stderr is neither activity nor exit",
    "A6": "while the agent executes tools of its own the limit on silence is internal_tool_timeout",
    "A7": "a message that asks for a tool of the host's ends the run as tool_use",
    "A8": "bytes without progress for progress_timeout end a run as stalled",
    "A9": "the one-number form of a limit means silence, never duration",
    "B1": "a background turn never appears in a prompt's turn or completes it, however late it comes",
    "B2": "background commands are tracked to their end; one that never ends is named and blocks nothing",
    "B3": "background turns stay out of prompts' turns after an error result, too",
    "B4": "a hook is called back once, also if it fired first; a tool waits for its hook, at most hook_timeout",
    "C1": "a lingering agent gets linger_grace, terminate, linger_kill_grace, kill; the outcome stands",
    "C2": "a stop reason that asks for a tool is not completion",
    "C3": "text, model, stop reason and usage survive a forced exit; artifacts are whole or absent, and never fatal",
    "C4": "exit is the process's exit, not its pipes' EOF",
    "F1": "one line is one event whatever the chunking",
    "F2": "a line that does not parse is noise: kept, counted, never fatal",
    "F3": "a line over max_line_bytes is a protocol error",
    "F4": "stderr is always drained; its tail is kept",
    "F5": "stdin is written while output is read; EPIPE never raises",
    "F6": "memory is bounded whatever the agent prints; the last messages are kept, and the final one whole",
    "P1": "prompt_timeout cancels the turn, not the agent, which is ready for the next prompt at once",
    "P2": "progress moves the prompt's deadline, signs of life do not; it rests while the caller owes an answer",
    "P3": "an agent is forced to stop only if it acknowledges no cancel within cancel_grace, or on the caller's word",
    "P4": "viewers detach and attach again: they see the status and the whole transcript",
    "P5": "late events of a cancelled turn never reach the next one",
    "P6": "an agent that cannot be started ends as spawn_failed; a crash is not answered by sending the prompt again",
    "P7": "a question of the agent's is answered within permission_timeout, else denied; without a handler at once",
    "P8": "close: the end of stdin, close_grace, terminate, kill_grace, kill",
    "P9": "one prompt is in flight per session; the next is delivered after its outcome",
    "T1": "terminate and kill mean the whole tree",
    "T2": "no signal to a pid that may have been reused",
    "T3": "no zombie among the supervisor's own children",
    "T6": "descendants left by an agent that exits by itself are ended before the run returns",
}
