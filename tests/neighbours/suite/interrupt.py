"""Ctrl-C while a fake lives, after a test that has failed. The names are in the order of the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_agentproc.plugin import Fakes

_REPORT_TIMEOUT_SECONDS = 30


def _press_ctrl_c() -> None:
    """Do what a terminal does, once the failure of the other test is reported and the fake speaks."""
    end = time.monotonic() + _REPORT_TIMEOUT_SECONDS
    while not Path("one-has-failed").exists() and time.monotonic() < end:
        threading.Event().wait(0.01)
    os.killpg(os.getpgrp(), signal.SIGINT)


def test_a_fails() -> None:
    """Its failure must not be lost."""
    pytest.fail("an earlier failure")


def test_b_is_interrupted(fake_agent: Fakes) -> None:
    """The fake takes no notice of the signal, so the kit has to end it."""
    agent = fake_agent("- when: {signal: INT}\n  do: []\n- say: hi\n- silence: for ever")
    with subprocess.Popen(agent.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"hi\n"
        threading.Thread(target=_press_ctrl_c).start()
        process.wait(60)
