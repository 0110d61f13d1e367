"""Says where a scenario may be written, by whom it may be read, and where programs can be recorded. Owns the names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pytest_agentproc.errors import UsageError
from pytest_agentproc.files import write_file

SCENARIO_FILE_SUFFIX = ".scenario.yaml"


def check_scenario_output_path(path: str) -> Path:
    """Give the path of a scenario that is to be written.

    Raises:
        UsageError: its name or its folder is none for a scenario, or a folder is in its place.
    """
    target = Path(path)
    if not target.name.endswith(SCENARIO_FILE_SUFFIX) or target.name == SCENARIO_FILE_SUFFIX:
        raise UsageError(f'--out is "{path}"', f"name a file that ends in {SCENARIO_FILE_SUFFIX}")
    if not target.parent.is_dir():
        raise UsageError(f'--out is "{path}", and there is no folder "{target.parent}"', "make it first")
    if not os.access(target.parent, os.W_OK):
        raise UsageError(f'--out is "{path}", and nothing can be written there', "name another folder")
    for file in (target, get_record_path(target)):
        if file.is_dir():
            raise UsageError(f'--out is "{path}", and {file} is a folder', "name another file")
    return target


def get_record_path(scenario: Path) -> Path:
    """Give the file of the record that stands beside a recorded scenario."""
    return scenario.with_name(f"{scenario.name.removesuffix(SCENARIO_FILE_SUFFIX)}.record.jsonl")


def write_private_file(path: Path, data: bytes) -> None:
    """Write a file that its owner alone may read, in place of whatever is there.

    Raises:
        OSError: it cannot be written.
        UsageError: a folder has the name.
    """
    try:
        write_file(path, data, 0o600)
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, and a file is to be written there", "remove it") from None


def require_linux() -> None:
    """See that programs can be recorded here.

    Raises:
        UsageError: they cannot.
    """
    system = sys.platform
    if system != "linux":
        raise UsageError(f"programs can be recorded on Linux only, and this is {system}", "record there, check here")
