"""The one record of a run, and its pure renderers. Knows no subject, no clock and no verdict."""

from __future__ import annotations

from pytest_agentproc.record._agent_starts import AgentStart, list_agent_starts
from pytest_agentproc.record._cells import describe_stray_target, format_duration, format_instant
from pytest_agentproc.record._live_timeline import LiveRecord
from pytest_agentproc.record._normal_form import NormalFormEntry, compute_normal_form
from pytest_agentproc.record._page import PageVerdict, render_page
from pytest_agentproc.record._page_index import IndexEntry, render_index
from pytest_agentproc.record._page_marks import FailureMark
from pytest_agentproc.record._record import Record
from pytest_agentproc.record._sessions import add_session_to_trace, join_records, select_session_events
from pytest_agentproc.record._text import render_text
from pytest_agentproc.record._timeline import Timeline

__all__ = [
    "AgentStart",
    "FailureMark",
    "IndexEntry",
    "LiveRecord",
    "NormalFormEntry",
    "PageVerdict",
    "Record",
    "Timeline",
    "add_session_to_trace",
    "compute_normal_form",
    "describe_stray_target",
    "format_duration",
    "format_instant",
    "join_records",
    "list_agent_starts",
    "render_index",
    "render_page",
    "render_text",
    "select_session_events",
]
