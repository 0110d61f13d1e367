"""Supervisors under test, behind one protocol (`vocabulary.Subject`)."""

from __future__ import annotations

from pytest_agentproc.errors import Declined
from pytest_agentproc.subjects._acp_program import AcpProgram
from pytest_agentproc.subjects._as_subject import taken
from pytest_agentproc.subjects._checked import CheckedSubject, is_machinery, is_of_kit
from pytest_agentproc.subjects._client import Client
from pytest_agentproc.subjects._command import Command
from pytest_agentproc.subjects._driven import Driven
from pytest_agentproc.subjects._function import Function
from pytest_agentproc.subjects._live import Held, Live
from pytest_agentproc.subjects._named import bundled, named, raised
from pytest_agentproc.subjects._reference import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.subjects._trivial import TRIVIAL, KillAtOnce, Null, SpawnAndForget, SubprocessRun
from pytest_agentproc.subjects._written import command_of_file, command_of_line

__all__ = [
    "TRIVIAL",
    "AcpProgram",
    "CheckedSubject",
    "Client",
    "Command",
    "Declined",
    "Driven",
    "Function",
    "Held",
    "KillAtOnce",
    "Live",
    "Null",
    "ReferenceSupervisor",
    "SpawnAndForget",
    "SubprocessRun",
    "bundled",
    "command_of_file",
    "command_of_line",
    "is_machinery",
    "is_of_kit",
    "named",
    "raised",
    "reference_supervisor",
    "taken",
]
