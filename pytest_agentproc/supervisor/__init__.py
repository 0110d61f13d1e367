"""The reference supervisor: how to run an agent child process. Usable without pytest.

The agent is never killed while it works, never waited for once it is done, and never leaves a process behind.

    _run, _session              the doors: one run, a session
    _driver, _session_driver    carry commands out, one look a wake
    _machine, _conversation     the machines of a run and of a session: events in, commands out; pure
    _events                     the values between a machine and its driver
    _watchdog, _tools, _ending  deciders of both: limits, tools and tasks, how a run ends
    _streams                    bytes to lines, the kept tail, what is written to the agent
    _turns, _router, _questions, _agent_lifecycle   deciders of a session alone; `_agent_process` is one agent process
    _result, _artifact_files    what comes of it, and what is kept on disk
    dialects/                   a CLI's bytes to meanings, a session's intents to bytes
"""

from __future__ import annotations

from pytest_agentproc.supervisor._agent_lifecycle import (
    RestartCounter,
    SessionDeciders,
    SessionSettings,
    SessionStatus,
    StatusRules,
)
from pytest_agentproc.supervisor._artifact_files import Artifacts, FileStore, FolderStore, RunHeader
from pytest_agentproc.supervisor._conversation import Conversation
from pytest_agentproc.supervisor._driver import Abandonment, AgentProcess, Driver
from pytest_agentproc.supervisor._ending import Completion, Escalation, EscalationStep, OutcomeRules
from pytest_agentproc.supervisor._events import (
    AnswerQuestion,
    DecideTool,
    MachineCommand,
    SendSignal,
    SessionEvent,
    SpawnAgent,
    TurnResult,
)
from pytest_agentproc.supervisor._machine import Deciders, RunMachine, RunSettings
from pytest_agentproc.supervisor._questions import HookTracker, OpenQuestions
from pytest_agentproc.supervisor._result import Result, report_session, summarize_view
from pytest_agentproc.supervisor._router import Transcript, TurnRouter
from pytest_agentproc.supervisor._run import run_once
from pytest_agentproc.supervisor._session import Session, Turn, Viewer, open_session
from pytest_agentproc.supervisor._session_driver import SessionDriver
from pytest_agentproc.supervisor._streams import LineSplitter, Outbox, StdinFeeder
from pytest_agentproc.supervisor._tools import BackgroundTaskTracker, ToolTracker
from pytest_agentproc.supervisor._turns import OpenTurns, TurnRecord
from pytest_agentproc.supervisor._watchdog import TurnWatchdog, Watchdog
from pytest_agentproc.supervisor.dialects import Hook, Question, Setting
from pytest_agentproc.vocabulary import ContinuedSession, Outcome, Policy

__all__ = [
    "Abandonment",
    "AgentProcess",
    "AnswerQuestion",
    "Artifacts",
    "BackgroundTaskTracker",
    "Completion",
    "ContinuedSession",
    "Conversation",
    "DecideTool",
    "Deciders",
    "Driver",
    "Escalation",
    "EscalationStep",
    "FileStore",
    "FolderStore",
    "Hook",
    "HookTracker",
    "LineSplitter",
    "MachineCommand",
    "OpenQuestions",
    "OpenTurns",
    "Outbox",
    "Outcome",
    "OutcomeRules",
    "Policy",
    "Question",
    "RestartCounter",
    "Result",
    "RunHeader",
    "RunMachine",
    "RunSettings",
    "SendSignal",
    "Session",
    "SessionDeciders",
    "SessionDriver",
    "SessionEvent",
    "SessionSettings",
    "SessionStatus",
    "Setting",
    "SpawnAgent",
    "StatusRules",
    "StdinFeeder",
    "ToolTracker",
    "Transcript",
    "Turn",
    "TurnRecord",
    "TurnResult",
    "TurnRouter",
    "TurnWatchdog",
    "Viewer",
    "Watchdog",
    "open_session",
    "report_session",
    "run_once",
    "summarize_view",
]
