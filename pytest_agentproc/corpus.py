"""Owns where the bundled scenarios are, and how scenario files are called. Opens none of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = [
    "PACKAGE_FOLDER",
    "SCENARIO_FILE_SUFFIX",
    "YAML_FILE_SUFFIXES",
    "describe_wrong_file_name",
    "find_corpus_folder",
    "index_corpus_files",
    "list_corpus_files",
    "split_agent",
]

SCENARIO_FILE_SUFFIX = ".scenario.yaml"
YAML_FILE_SUFFIXES = (".yaml", ".yml")
PACKAGE_FOLDER = Path(__file__).resolve().parent


def describe_wrong_file_name(path: str | os.PathLike[str]) -> str:
    """Say that pytest does not collect a YAML file because of its name; "" if its name is right, or it is no YAML."""
    name = os.path.basename(path)  # noqa: PTH119  # a name alone
    if name.endswith(SCENARIO_FILE_SUFFIX) or not name.endswith(YAML_FILE_SUFFIXES):
        return ""
    stem = name.rpartition(".")[0].removesuffix(".scenario")
    return f"pytest collects only *{SCENARIO_FILE_SUFFIX}: call the file {stem}{SCENARIO_FILE_SUFFIX}"


def find_corpus_folder() -> Path | None:
    """Find the bundled scenarios; None if this installation has none."""
    return next(
        (place for place in (PACKAGE_FOLDER / "_corpus", PACKAGE_FOLDER.parent / "scenarios") if place.is_dir()), None
    )


def list_corpus_files() -> list[Path]:
    """List the files of the bundled scenarios, in the order of their paths; none if this installation has none."""
    folder = find_corpus_folder()
    return [] if folder is None else sorted(folder.rglob(f"*{SCENARIO_FILE_SUFFIX}"))


def index_corpus_files() -> dict[str, Path]:
    """Give the file of each bundled scenario by its id, which is the file's name without the suffix."""
    return {file.name.removesuffix(SCENARIO_FILE_SUFFIX): file for file in list_corpus_files()}


def split_agent(name: str) -> tuple[str, str]:
    """Split `NAME[AGENT]`, one agent of a file that runs once for each of several, into both; the agent may be ""."""
    found = re.fullmatch(r"(.+)\[([a-z0-9-]+)\]", name)
    return (found[1], found[2]) if found else (name, "")
