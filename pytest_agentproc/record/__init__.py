"""The one record of a run, and its pure renderers. Knows no subject, no clock and no verdict."""

from __future__ import annotations

from pytest_agentproc.record._cells import duration, instant, stray_target
from pytest_agentproc.record._live import LiveRecord
from pytest_agentproc.record._normal import Entry, normal_form
from pytest_agentproc.record._page import Judged, page
from pytest_agentproc.record._page_index import Listed, index
from pytest_agentproc.record._page_marks import Mark
from pytest_agentproc.record._payload import Payload
from pytest_agentproc.record._record import Event, Record
from pytest_agentproc.record._sessions import beside, of_session, one_session
from pytest_agentproc.record._starts import Start, starts
from pytest_agentproc.record._text import text
from pytest_agentproc.record._timeline import Timeline

__all__ = [
    "Entry",
    "Event",
    "Judged",
    "Listed",
    "LiveRecord",
    "Mark",
    "Payload",
    "Record",
    "Start",
    "Timeline",
    "beside",
    "duration",
    "index",
    "instant",
    "normal_form",
    "of_session",
    "one_session",
    "page",
    "starts",
    "stray_target",
    "text",
]
