"""Owns what a subject's name leads to: a known one, or an attribute of a module. Asks it nothing."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError, join_lines, suggest_known_word
from pytest_agentproc.files import shorten_path
from pytest_agentproc.foreign import is_exit_of_pytest, read_attribute
from pytest_agentproc.subjects._as_subject import as_subject
from pytest_agentproc.subjects._checked_subject import is_kit_or_library_file
from pytest_agentproc.subjects._program_file import load_command_file
from pytest_agentproc.subjects._reference import reference_supervisor
from pytest_agentproc.subjects._trivial import TRIVIAL_SUBJECTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_agentproc.vocabulary import Subject

_MISSING = object()


def get_bundled_subjects() -> dict[str, Any]:
    """Give the subjects that come with the kit, by name."""
    return {"reference": reference_supervisor(), **{str(trivial.name): trivial for trivial in TRIVIAL_SUBJECTS}}


def find_subject(name: str, place: str, root: str, known: Mapping[str, Any], remedy: str = "set PYTHONPATH") -> Subject:
    """Give the subject that a name leads to.

    Args:
        name: that of a known one, `package.module:attribute`, or a TOML file that describes a program.
        place: where the name stands, for messages.
        root: the folder in which Python also looks, for messages; it is in `sys.path` already.
        known: subjects by name.
        remedy: how a module becomes one that Python finds.

    Raises:
        UsageError: there is none, or it is no subject; one line.
    """
    if name in known:
        return _convert_to_subject(known[name], place)
    if name.endswith(".toml"):
        return _load_toml_subject(Path(root) / name, place)
    if ":" not in name:
        hint = suggest_known_word(name, known)
        end = "" if hint.endswith("?") else "."
        raise UsageError(
            f"{place}: there is no such subject, {hint}{end} Others are package.module:attribute or FILE.toml"
        )
    module_name, _, path = name.partition(":")
    thing = _import_module(module_name, place, root, remedy)
    for attribute in path.split("."):
        found = read_attribute(thing, attribute, _MISSING)
        if found is _MISSING:
            public = [variable for variable in dir(thing) if not variable.startswith("_")]
            hint = suggest_known_word(attribute, public, "write the name of a function, a class or a subject there")
            raise UsageError(f"{place}: {module_name} has no {attribute or 'attribute without a name'}: {hint}")
        thing = found
    return _convert_to_subject(thing, place)


def _import_module(name: str, place: str, root: str, remedy: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"{place}: there is no module {error.name} in {root}, nor where Python looks: "
                f"write package.module:attribute as seen from there, or {remedy}"
            ) from None
        raise UsageError(f"{place}: importing {name}: {describe_raised(error)}") from error
    except Exception as error:  # it is theirs, whatever it is
        if is_exit_of_pytest(error):
            raise
        raise UsageError(f"{place}: importing {name}: {describe_raised(error)}") from error


def describe_raised(error: Exception) -> str:
    """Describe an exception of foreign code on one line, with the last line of that code.

    A mistake in a call of the kit, which is a UsageError, is said with its place alone.
    """
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith("<") and not is_kit_or_library_file(file) and "pluggy" not in file:
            where = f"{shorten_path(file)}:{line}"
    if isinstance(error, UsageError) and where:
        return f"{where}: {join_lines(str(error))}"
    return f"raised {type(error).__name__}: {join_lines(str(error))}{f' at {where}' if where else ''}: mend that first"


def _convert_to_subject(thing: Any, place: str) -> Subject:
    try:
        return as_subject(thing)
    except UsageError as error:
        raise UsageError(f"{place}: {join_lines(str(error))}") from error


def _load_toml_subject(path: Path, place: str) -> Subject:
    try:
        return as_subject(load_command_file(path))
    except UsageError as error:
        message = join_lines(str(error)).removeprefix(f"{path.name}: ")  # the place has it already
        raise UsageError(f"{place}: {message}") from error
