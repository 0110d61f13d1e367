"""Owns which supervisors are under test, and where each name leads. Asks them nothing."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import UsageError
from pytest_agentproc.plugin._contributions import defect_named
from pytest_agentproc.plugin._options import asked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_agentproc.vocabulary import Subject

__all__ = ["axes_of", "core_of", "is_core", "is_plain", "subjects_of"]

_SUBJECTS: pytest.StashKey[tuple[Subject, ...]] = pytest.StashKey()
_CORE: pytest.StashKey[Subject] = pytest.StashKey()
_OPTION = "--agentproc-subject"
_HOOK = "pytest_agentproc_subjects"


def is_plain(config: pytest.Config) -> bool:
    """Say whether the core alone is under test, as it ships or with a defect built in."""
    return [subject is core_of(config) for subject in subjects_of(config)] == [True]


def is_core(subject: Subject) -> bool:
    """Say whether a subject is the kit's own, as it ships or with a defect built in."""
    from pytest_agentproc.subjects import Core

    return isinstance(subject, Core)


def axes_of(config: pytest.Config, subject: Subject, clock: str, backend: str) -> str:
    """Write one way to run a scenario as it stands in the brackets of a node id.

    Each supervisor is named, but for the reference supervisor where that alone is under test: so an id never runs
    another supervisor than the one that it was printed for.
    """
    is_named = subject.name != "core" or len(subjects_of(config)) > 1
    return "-".join([*([subject.name] if is_named else []), backend, *([clock] if clock == "real" else [])])


def core_of(config: pytest.Config) -> Subject:
    """Give the core, or the core with the defect that was asked for."""
    core = config.stash.get(_CORE, None)
    if core is None:
        from pytest_agentproc import subjects

        defect = asked(config, "defect")
        if defect is None:
            core = subjects.core()
        else:
            made = defect_named(config, defect)
            core = subjects.Core(defect, made.deciders, made.session_deciders)
        config.stash[_CORE] = core
    return core


def subjects_of(config: pytest.Config) -> tuple[Subject, ...]:
    """Give the supervisors under test: those that the options name, else those that the hook gives, else the core.

    Raises:
        pytest.UsageError: one of them is none, or cannot be found.
    """
    chosen = config.stash.get(_SUBJECTS, None)
    if chosen is None:
        chosen = config.stash[_SUBJECTS] = _chosen(config)
    return chosen


def _chosen(config: pytest.Config) -> tuple[Subject, ...]:
    names, commands, defect = asked(config, "subject"), asked(config, "command"), asked(config, "defect")
    contributed = _contributed(config)
    if not names and not commands:
        return tuple(contributed.values()) if contributed and defect is None else (core_of(config),)
    if defect is not None and "core" not in names:
        raise pytest.UsageError(
            f"--agentproc-defect={defect} is built into the core, and {_asked_for(names, commands)} leaves the core "
            f"out: choose one of the two, or name core, too"
        )
    known = _known(config) | contributed
    chosen = [_found(config, name, known) for name in dict.fromkeys(names)]
    chosen += [_program(line, f"--agentproc-command={line}") for line in dict.fromkeys(commands)]
    _require_names(chosen, _asked_for(names, commands))
    _require_programs(chosen)
    return tuple(chosen)


def _asked_for(names: tuple[str, ...], commands: tuple[str, ...]) -> str:
    options = [f"{_OPTION}={','.join(names)}"] if names else []
    return " and ".join([*options, *(f"--agentproc-command={line}" for line in commands)])


def _known(config: pytest.Config) -> dict[str, Any]:
    from pytest_agentproc.subjects import bundled

    return bundled() | {"core": core_of(config)}


def _contributed(config: pytest.Config) -> dict[str, Subject]:
    """Give what conftest files and plugins contribute, by name."""
    impls = config.hook.pytest_agentproc_subjects.get_hookimpls()
    if not impls:
        return {}
    try:
        given = [list(_several(some)) for some in config.hook.pytest_agentproc_subjects(config=config)]
    except Exception as error:  # it is theirs, whatever it is
        from pytest_agentproc.subjects import raised

        raise pytest.UsageError(f"{_HOOK} {raised(error)}") from error
    subjects = [_taken(one, _HOOK) for some in given for one in some]
    _require_names(subjects, _HOOK)
    return {subject.name: subject for subject in subjects}


def _several(given: Any) -> Iterable[Any]:
    return given if hasattr(given, "__iter__") and not isinstance(given, str) else [given]


def _require_names(chosen: list[Subject], place: str) -> None:
    names = [subject.name for subject in chosen]
    for name in names:
        if names.count(name) > 1:
            raise pytest.UsageError(f"{place}: two subjects are called {name}: give one of them another name")


def _require_programs(chosen: list[Subject]) -> None:
    """Refuse a program that is not there: that is one mistake, and not one of each scenario."""
    for subject in chosen:
        try:
            getattr(subject, "require_files", lambda: None)()
        except UsageError as error:
            raise pytest.UsageError(f"adapter error: {subject.name}: {_line(str(error))}") from error


def _found(config: pytest.Config, name: str, known: dict[str, Any]) -> Subject:
    """Give a subject by its name; a module is looked for as pytest's `pythonpath` would with the rootdir in it."""
    from pytest_agentproc.subjects import named

    root = str(config.rootpath)
    if name not in known and ":" in name and root not in sys.path:
        sys.path.insert(0, root)
        config.add_cleanup(partial(_forget, root))
    try:
        return named(name, f"{_OPTION}={name}", root, known, "set pythonpath in the ini file")
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error


def _forget(folder: str) -> None:
    if folder in sys.path:
        sys.path.remove(folder)


def _taken(thing: Any, place: str) -> Subject:
    from pytest_agentproc.subjects import taken

    take: Callable[[Any], Subject] = taken
    try:
        return take(thing)
    except UsageError as error:
        raise pytest.UsageError(f"{place}: {_line(str(error))}") from error


def _line(text: str) -> str:
    return ": ".join(line.strip() for line in text.splitlines() if line.strip())


def _program(line: str, place: str) -> Subject:
    """Make a subject of a command line."""
    from pytest_agentproc.subjects import command_of_line, taken

    try:
        return taken(command_of_line(line))
    except UsageError as error:
        words = ": ".join(part.strip() for part in str(error).splitlines() if part.strip())
        raise pytest.UsageError(f"{place}: {words}") from error
