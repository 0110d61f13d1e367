"""Supervisors under test, behind one protocol (`vocabulary.Subject`)."""

from __future__ import annotations

from pytest_agentproc.errors import Declined
from pytest_agentproc.subjects._acp_program import AcpProgram
from pytest_agentproc.subjects._as_subject import as_subject
from pytest_agentproc.subjects._checked_subject import CheckedSubject, is_kit_file, is_kit_or_library_file
from pytest_agentproc.subjects._client import Client
from pytest_agentproc.subjects._command import Command
from pytest_agentproc.subjects._driven_sessions import Driven
from pytest_agentproc.subjects._function import Function
from pytest_agentproc.subjects._live_session import HeldSession, LiveSupervisor
from pytest_agentproc.subjects._program_file import load_command_file, make_command
from pytest_agentproc.subjects._reference import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.subjects._subject_names import describe_raised, find_subject, get_bundled_subjects
from pytest_agentproc.subjects._trivial import (
    TRIVIAL_SUBJECTS,
    KillsAgentAtOnce,
    NeverStartsAgent,
    StartsAgentAndReturns,
    UsesSubprocessRun,
)

__all__ = [
    "TRIVIAL_SUBJECTS",
    "AcpProgram",
    "CheckedSubject",
    "Client",
    "Command",
    "Declined",
    "Driven",
    "Function",
    "HeldSession",
    "KillsAgentAtOnce",
    "LiveSupervisor",
    "NeverStartsAgent",
    "ReferenceSupervisor",
    "StartsAgentAndReturns",
    "UsesSubprocessRun",
    "as_subject",
    "describe_raised",
    "find_subject",
    "get_bundled_subjects",
    "is_kit_file",
    "is_kit_or_library_file",
    "load_command_file",
    "make_command",
    "reference_supervisor",
]
