"""The files that a supervisor keeps of a run, and the fields of its `result.json`. Knows no writer of them."""

from __future__ import annotations

ARTIFACT_TEXTS = {
    "result.json": "how the run ended: one JSON object",
    "events.jsonl": "what stdout meant, a JSON object on each line",
    "stdout.log": "what came on stdout, byte for byte",
    "stderr.log": "what came on stderr, byte for byte",
    "transcript.log": "all messages, each on lines of its own",
}

INCOMPLETE_ARTIFACTS_WARNING = "artifacts_incomplete"
"""The warning that some artifact could not be written."""

RESULT_FIELD_TEXTS = {
    "run_id": "what the run is called",
    "argv": "the agent's command",
    "cwd": "the folder in which it ran",
    "started_at": "when it was started: the wall clock, in ISO 8601, UTC",
    "ended_at": "when the run was over: returned after started_at",
    "elapsed": "seconds from the spawn to the outcome, by the run's clock",
    "returned": "seconds from the spawn to the answer with an empty tree, by the run's clock",
    "outcome": "how the run ended",
    "exit_code": "the supervisor's exit code",
    "agent_status": "the agent's exit code, or minus the signal that ended it",
    "forced": "whether the supervisor's own signal ended the agent",
    "text": "the final message",
    "stop_reason": "the last message's, in the dialect's words",
    "requested_model": "the model that was asked for",
    "resolved_model": "the model that answered",
    "usage": "token counts, in the dialect's words",
    "error": "the message of a bad end",
    "warnings": "the warnings, all of them",
    "leaks": "pids of descendants that could not be ended",
    "containment": "which containment held the tree: group, subreaper or keeper",
    "unwritten": "artifacts that could not be written, with the reasons",
}
"""Every field of result.json, in the order of the file. An unknown value is null."""
