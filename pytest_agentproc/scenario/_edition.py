"""Owns the name of what decides whether a file has a mistake. Refuses to know any file."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

import fake_agents
from pytest_agentproc import vocabulary
from pytest_agentproc.scenario._nodes import READER

__all__ = ["edition"]


@cache
def edition() -> str:
    """Name the edition of the kit's own language: a text that one took for sound need not be so for another.

    It is made of the files that read and check, each with its size and its time, so that it changes with every edit of
    them, of the interpreter, and of the reader of YAML.
    """
    folders = [os.path.split(str(module))[0] for module in (__file__, vocabulary.__file__, fake_agents.__file__)]
    files = sorted(file for folder in folders for file in Path(folder).glob("*.py"))
    told = [(file.name, known.st_size, known.st_mtime_ns) for file in files for known in [file.stat()]]
    return hashlib.sha256(repr((sys.version, READER, told)).encode()).hexdigest()
