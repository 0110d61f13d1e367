"""The supervisor core: the reference way to run an agent child process. Usable without pytest.

The agent is never killed while it works, never waited for once it is done, and never leaves a process behind.
`_machine` decides (with the deciders `_watchdog`, `_tools`, `_completion`, `_ladder`, `_framing`, `_feeder`,
`_ending`, `_abandonment`), `_driver` carries out, `_artifacts` writes down what came of it, `_run` is the door; `_tail`
holds what is kept of what may be endless, `_diagnosis` explains a bad ending. A session is `_conversation` (with
`_succession`, `_turns`, `_router`, `_questions`, `_hooks`, `_tasks`), `_session_driver`, and the doors
`_open`, `_session` and `_handles`, for which `_attendant` runs the caller's functions; `_life` is what both machines
share.
"""

from __future__ import annotations

from pytest_agentproc.supervisor._abandonment import Abandonment
from pytest_agentproc.supervisor._artifacts import Artifacts, Headline
from pytest_agentproc.supervisor._completion import Completion
from pytest_agentproc.supervisor._conversation import Conversation
from pytest_agentproc.supervisor._driver import Driver, Ports
from pytest_agentproc.supervisor._ending import Ending
from pytest_agentproc.supervisor._events import Command, Signal
from pytest_agentproc.supervisor._feeder import Feeder
from pytest_agentproc.supervisor._framing import Framing
from pytest_agentproc.supervisor._handles import Turn, Viewer
from pytest_agentproc.supervisor._hooks import Hooks
from pytest_agentproc.supervisor._intents import AnswerIt, DecideIt, SessionEvent
from pytest_agentproc.supervisor._ladder import Ladder
from pytest_agentproc.supervisor._machine import Deciders, Machine, Task
from pytest_agentproc.supervisor._open import open_session
from pytest_agentproc.supervisor._questions import Questions
from pytest_agentproc.supervisor._report import report, view
from pytest_agentproc.supervisor._restarts import Restarts
from pytest_agentproc.supervisor._result import Result
from pytest_agentproc.supervisor._router import Router
from pytest_agentproc.supervisor._run import run_once
from pytest_agentproc.supervisor._session import Session
from pytest_agentproc.supervisor._session_driver import SessionDriver
from pytest_agentproc.supervisor._session_task import SessionDeciders, SessionTask
from pytest_agentproc.supervisor._status import Standing, Status
from pytest_agentproc.supervisor._store import Folder, Store
from pytest_agentproc.supervisor._tasks import Tasks
from pytest_agentproc.supervisor._tools import Tools
from pytest_agentproc.supervisor._transcript import Transcript
from pytest_agentproc.supervisor._turn import TurnRecord, TurnResult
from pytest_agentproc.supervisor._turns import Turns
from pytest_agentproc.supervisor._watchdog import TurnWatchdog, Watchdog
from pytest_agentproc.supervisor.dialects import Hook, Question, Setting
from pytest_agentproc.vocabulary import Outcome, Policy

__all__ = [
    "Abandonment",
    "AnswerIt",
    "Artifacts",
    "Command",
    "Completion",
    "Conversation",
    "DecideIt",
    "Deciders",
    "Driver",
    "Ending",
    "Feeder",
    "Folder",
    "Framing",
    "Headline",
    "Hook",
    "Hooks",
    "Ladder",
    "Machine",
    "Outcome",
    "Policy",
    "Ports",
    "Question",
    "Questions",
    "Restarts",
    "Result",
    "Router",
    "Session",
    "SessionDeciders",
    "SessionDriver",
    "SessionEvent",
    "SessionTask",
    "Setting",
    "Signal",
    "Standing",
    "Status",
    "Store",
    "Task",
    "Tasks",
    "Tools",
    "Transcript",
    "Turn",
    "TurnRecord",
    "TurnResult",
    "TurnWatchdog",
    "Turns",
    "Viewer",
    "Watchdog",
    "open_session",
    "report",
    "run_once",
    "view",
]
