"""Frames of a traceback: which of them are left out because they are machinery."""

from __future__ import annotations

import sysconfig

import pytest

from pytest_agentproc import subjects

LIBRARY = sysconfig.get_path("stdlib")


@pytest.mark.parametrize(
    "file",
    [
        f"{LIBRARY}/asyncio/events.py",
        "<frozen runpy>",
        "/another/environment/lib/python3.11/site-packages/anyio/_core/_eventloop.py",
        "/usr/lib/python3/dist-packages/trio/_core/_run.py",
        str(subjects.__file__),
    ],
)
def test_machinery_is_left_out(file: str) -> None:
    """An environment may use the packages of another one, so their folder decides nothing."""
    assert subjects.is_kit_or_library_file(file)


@pytest.mark.parametrize(
    "file",
    [
        "/home/user/supervisor.py",
        f"{LIBRARY}/site-packages/supervisor/run.py",
        "/usr/lib/python3/dist-packages/supervisor/run.py",
        "/usr/lib/python3/dist-packages/trio_supervisor/run.py",
    ],
)
def test_a_supervisor_is_never_left_out(file: str) -> None:
    """An installed supervisor is nobody's machinery, also beside the packages of Python itself."""
    assert not subjects.is_kit_or_library_file(file)
