"""The abilities that a supervisor under test may lack: words that its adapter states. Knows no subject."""

from __future__ import annotations

ABILITIES = {
    "argv": "start a one-shot agent with the command line of the order: it makes the command line itself",
    "env": "start an agent with the environment and in the folder of the order: it has its own",
    "stdin": "write the prompt of a one-shot agent to its stdin: the prompt is always an argument",
    "pause": "wait between two prompts of a session: it is given all prompts at once, as a batch client is",
    "deny": "deny the agent anything, or let it wait for an answer: the caller allows everything at once",
}
"""The needs that a scenario may have beside `CAPABILITIES`, each with the meaning of its lack."""
