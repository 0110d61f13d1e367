"""The stdin of the process while a scenario is played, each time in a Python of its own: this one's is pytest's."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import os, select, sys
from pytest_agentproc.harness._open_stdin import keep_stdin_open, restore_user_stdin

def is_silent():
    return not select.select([0], [], [], 0)[0]

def list_open():
    return sorted(os.listdir("/proc/self/fd"))
"""


def run_python(code: str, shell: str = 'exec "$0" -c "$1"') -> str:
    """Run code in a Python whose user types a line; give what it prints."""
    words = ["sh", "-c", shell, sys.executable, BEGIN + code]
    return subprocess.run(words, input="typed\n", capture_output=True, text=True, check=True, timeout=60).stdout


LEAVES_NOTHING = """
before, opened = os.readlink("/proc/self/fd/0"), list_open()
with keep_stdin_open():
    print(is_silent(), os.get_inheritable(0))
print(os.readlink("/proc/self/fd/0") == before, list_open() == opened, is_silent())
"""
IS_NOT_SYS_STDIN = """
with keep_stdin_open():
    print(input())
print(sys.stdin is sys.__stdin__)
"""
TWO_PLAYS = """
one, two = keep_stdin_open(), keep_stdin_open()
one.__enter__()
two.__enter__()
one.__exit__(None, None, None)
print(is_silent())
two.__exit__(None, None, None)
print(is_silent())
"""
ANOTHER_FILE = """
with keep_stdin_open(), open("/dev/zero") as other:
    os.dup2(other.fileno(), 0)
print(os.readlink("/proc/self/fd/0"))
"""
A_DEBUGGER = """
with keep_stdin_open():
    restore_user_stdin()
    print(is_silent(), input())
"""
CLOSED_MEANWHILE = """
with keep_stdin_open():
    os.close(0)
print(input())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (LEAVES_NOTHING, "True True\nTrue True False\n"),
        (IS_NOT_SYS_STDIN, "typed\nTrue\n"),
        (TWO_PLAYS, "True\nFalse\n"),
        (ANOTHER_FILE, "/dev/zero\n"),
        (A_DEBUGGER, "False typed\n"),
        (CLOSED_MEANWHILE, "typed\n"),
    ],
    ids=["nothing stays open", "sys.stdin", "two plays", "another file", "a debugger", "closed meanwhile"],
)
def test_the_user_keeps_what_is_typed(code: str, printed: str) -> None:
    """An agent that inherits stdin sees an open pipe without data; after it everything is as it was."""
    assert run_python(code) == printed


@pytest.mark.slow
def test_a_program_without_stdin_has_one() -> None:
    """Some services close it, and then a pipe of the supervisor would get its number."""
    code = "with keep_stdin_open(): print(is_silent())\nprint(os.readlink('/proc/self/fd/0'))"
    assert run_python(code, 'exec "$0" -c "$1" <&-') == "True\n/dev/null\n"
