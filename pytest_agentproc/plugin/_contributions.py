"""What a session shares: additions of plugins, supervisors under test, the runner. Asks no supervisor anything.

Plugins are asked one by one, so that each problem of a contribution is reported with the plugin's name.
"""

from __future__ import annotations

import os
import re
import sys
from abc import abstractmethod
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import UsageError, join_lines, suggest_known_word
from pytest_agentproc.foreign import format_foreign_value, is_exit_of_pytest, is_real_instance
from pytest_agentproc.plugin._options import find_option_source, get_option
from pytest_agentproc.plugin._preload_run import END_OF_PLAYS_STASH_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_agentproc.defects import Defect
    from pytest_agentproc.harness import ScenarioRunner
    from pytest_agentproc.plays import PlayResult
    from pytest_agentproc.scenario import Scenario, ScenarioLanguage
    from pytest_agentproc.vocabulary import Subject


_LANGUAGE_STASH_KEY: pytest.StashKey[ScenarioLanguage] = pytest.StashKey()
_DEFECTS_STASH_KEY: pytest.StashKey[dict[str, Defect]] = pytest.StashKey()
_LANGUAGE_HOOK_NAMES = ("pytest_agentproc_dialects", "pytest_agentproc_steps")
_DEFECTS_HOOK_NAME = "pytest_agentproc_defects"


def get_language(config: pytest.Config) -> ScenarioLanguage:
    """Give the language of the session's scenarios: the kit's, with what plugins add.

    Raises:
        pytest.UsageError: a plugin adds another kind of object, or its name is taken.
    """
    language = config.stash.get(_LANGUAGE_STASH_KEY, None)
    if language is None:
        from pytest_agentproc import scenario
        from pytest_agentproc.vocabulary import Dialect, ScriptStep

        language = scenario.BUNDLED_LANGUAGE
        kinds: tuple[tuple[type, Callable[[ScenarioLanguage, Any, str], ScenarioLanguage]], ...] = (
            (Dialect, scenario.add_dialect),
            (ScriptStep, scenario.add_step),
        )
        for hook, (kind, grown) in zip(_LANGUAGE_HOOK_NAMES, kinds, strict=True):
            for origin, given in _call_hook_of_plugins(config, hook, kind):
                try:
                    language = grown(language, given, origin)
                except UsageError as error:
                    raise pytest.UsageError(_format_hook_error(hook, origin, error)) from None
        config.stash[_LANGUAGE_STASH_KEY] = language
    return language


def find_chosen_defect(config: pytest.Config) -> Defect | None:
    """Give the defect that the options name: the kit has it, or a plugin adds it; None: none is named.

    Raises:
        pytest.UsageError: there is none of that name, a plugin adds another kind of object, or its name is taken.
    """
    name = get_option(config, "defect")
    if name is None:
        return None
    from pytest_agentproc import defects

    if name in defects.DEFECT_NAMES:
        return defects.find_defect(name)
    added = config.stash.get(_DEFECTS_STASH_KEY, None)
    if added is None:
        added = config.stash[_DEFECTS_STASH_KEY] = _collect_defects(config)
    if name not in added:
        known = (*defects.DEFECT_NAMES, *added)
        hint = suggest_known_word(name, known, f"only {', '.join(known)}")
        raise pytest.UsageError(f"{''.join(find_option_source(config, 'defect'))}: there is no such defect, {hint}")
    return added[name]


def _collect_defects(config: pytest.Config) -> dict[str, Defect]:
    from pytest_agentproc import defects
    from pytest_agentproc.vocabulary import RULES

    found: dict[str, tuple[Defect, str]] = {}
    for origin, given in _call_hook_of_plugins(config, _DEFECTS_HOOK_NAME, defects.Defect):
        name = given.name
        problem = None
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            problem = UsageError(f"defect {name!r}: that is no name", 'write small letters with "-" between the words')
        elif name in defects.DEFECT_NAMES or name in found:
            whose = f"{found[name][1]} adds one, too" if name in found else "the kit has it"
            problem = UsageError(f"defect {name}: the name is taken, {whose}", "choose another name")
        elif given.breaks not in RULES:
            problem = UsageError(f"defect {name}: it breaks {given.breaks!r}", f"rules are {', '.join(RULES)}")
        if problem is not None:
            raise pytest.UsageError(_format_hook_error(_DEFECTS_HOOK_NAME, origin, problem))
        found[name] = given, origin
    return {name: given for name, (given, _) in found.items()}


def _call_hook_of_plugins(config: pytest.Config, hook: str, kind: type) -> Iterator[tuple[str, Any]]:
    """Call the hook of each plugin by itself, in pytest's order; give each object with the name of its plugin."""
    manager = config.pluginmanager
    for impl in reversed(getattr(config.hook, hook).get_hookimpls()):
        if impl.wrapper or impl.hookwrapper:
            continue
        origin = _describe_plugin(impl.plugin_name)
        others = [plugin for plugin in manager.get_plugins() if plugin is not impl.plugin]
        try:
            answers = manager.subset_hook_caller(hook, others)(config=config)
            things = [thing for answer in answers for thing in (answer if hasattr(answer, "__iter__") else [answer])]
        except Exception as error:  # it is theirs, whatever it is
            if is_exit_of_pytest(error):
                raise
            from pytest_agentproc.subjects import describe_raised

            raise pytest.UsageError(f"{hook} of {origin}: {describe_raised(error)}") from error
        for thing in things:
            if not is_real_instance(thing, kind):
                wanted = f"{kind.__module__.rpartition('.')[0]}.{kind.__name__}"
                raise pytest.UsageError(
                    _format_hook_error(
                        hook, origin, UsageError(f"it gave {format_foreign_value(thing)}", f"give {wanted} objects")
                    )
                )
            yield origin, thing


def _describe_plugin(name: str) -> str:
    return os.path.relpath(name) if Path(name).is_absolute() else f"the plugin {name}"


def _format_hook_error(hook: str, origin: str, error: UsageError) -> str:
    return f"{hook} of {origin}: {error.message}" + (f": {error.remedy}" if error.remedy else "")


_SUBJECTS_STASH_KEY: pytest.StashKey[tuple[Subject, ...]] = pytest.StashKey()
_REFERENCE_STASH_KEY: pytest.StashKey[Subject] = pytest.StashKey()
_SUBJECT_OPTION = "--agentproc-subject"
_SUBJECTS_HOOK_NAME = "pytest_agentproc_subjects"


def is_reference_alone(config: pytest.Config) -> bool:
    """Say whether the reference supervisor alone is under test, as it ships or with a defect built in."""
    return [subject is get_reference_subject(config) for subject in get_subjects(config)] == [True]


def is_reference_supervisor(subject: Subject) -> bool:
    """Say whether a subject is the kit's own, as it ships or with a defect built in."""
    from pytest_agentproc.subjects import ReferenceSupervisor

    return isinstance(subject, ReferenceSupervisor)


def format_item_parameters(config: pytest.Config, subject: Subject, clock: str, backend: str) -> str:
    """Write one way to run a scenario as it stands in the brackets of a node id.

    Each supervisor is named, but for the reference supervisor where that alone is under test: so an id never runs
    another supervisor than the one that it was printed for.
    """
    is_named = subject.name != "reference" or len(get_subjects(config)) > 1
    return "-".join([*([subject.name] if is_named else []), backend, *([clock] if clock == "real" else [])])


def get_reference_subject(config: pytest.Config) -> Subject:
    """Give the reference supervisor, with the defect that was asked for, if one was."""
    reference_supervisor = config.stash.get(_REFERENCE_STASH_KEY, None)
    if reference_supervisor is None:
        from pytest_agentproc import subjects

        defect = find_chosen_defect(config)
        if defect is None:
            reference_supervisor = subjects.reference_supervisor()
        else:
            reference_supervisor = subjects.ReferenceSupervisor(defect.name, defect.deciders, defect.session_deciders)
        config.stash[_REFERENCE_STASH_KEY] = reference_supervisor
    return reference_supervisor


def get_subjects(config: pytest.Config) -> tuple[Subject, ...]:
    """Give the supervisors under test: those of the options, else those of the hook, else the reference supervisor.

    Raises:
        pytest.UsageError: one of them is none, or cannot be found.
    """
    chosen = config.stash.get(_SUBJECTS_STASH_KEY, None)
    if chosen is None:
        chosen = config.stash[_SUBJECTS_STASH_KEY] = _choose_subjects(config)
    return chosen


def _choose_subjects(config: pytest.Config) -> tuple[Subject, ...]:
    names, commands, defect = get_option(config, "subject"), get_option(config, "command"), get_option(config, "defect")
    contributed = _collect_contributed_subjects(config)
    if not names and not commands:
        return tuple(contributed.values()) if contributed and defect is None else (get_reference_subject(config),)
    if defect is not None and "reference" not in names:
        raise pytest.UsageError(
            f"--agentproc-defect={defect} is built into the reference supervisor, and "
            f"{_format_subject_options(names, commands)} leaves that out: choose one of the two, or name reference, too"
        )
    known = _list_known_subjects(config) | contributed
    chosen = [_find_subject(config, name, known) for name in dict.fromkeys(names)]
    chosen += [_make_command_subject(line, f"--agentproc-command={line}") for line in dict.fromkeys(commands)]
    _require_different_names(chosen, _format_subject_options(names, commands))
    _require_existing_programs(chosen)
    return tuple(chosen)


def _format_subject_options(names: tuple[str, ...], commands: tuple[str, ...]) -> str:
    options = [f"{_SUBJECT_OPTION}={','.join(names)}"] if names else []
    return " and ".join([*options, *(f"--agentproc-command={line}" for line in commands)])


def _list_known_subjects(config: pytest.Config) -> dict[str, Any]:
    from pytest_agentproc.subjects import get_bundled_subjects

    return get_bundled_subjects() | {"reference": get_reference_subject(config)}


def _collect_contributed_subjects(config: pytest.Config) -> dict[str, Subject]:
    """Give what conftest files and plugins contribute, by name."""
    impls = config.hook.pytest_agentproc_subjects.get_hookimpls()
    if not impls:
        return {}
    try:
        given = [list(_convert_to_list(some)) for some in config.hook.pytest_agentproc_subjects(config=config)]
    except Exception as error:  # it is theirs, whatever it is
        if is_exit_of_pytest(error):
            raise
        from pytest_agentproc.subjects import describe_raised

        raise pytest.UsageError(f"{_SUBJECTS_HOOK_NAME}: {describe_raised(error)}") from error
    subjects = [_convert_to_subject(subject, _SUBJECTS_HOOK_NAME) for some in given for subject in some]
    _require_different_names(subjects, _SUBJECTS_HOOK_NAME)
    return {subject.name: subject for subject in subjects}


def _convert_to_list(given: Any) -> Iterable[Any]:
    return given if hasattr(given, "__iter__") and not isinstance(given, str) else [given]


def _require_different_names(chosen: list[Subject], place: str) -> None:
    names = [subject.name for subject in chosen]
    for name in names:
        if names.count(name) > 1:
            raise pytest.UsageError(f"{place}: two subjects are called {name}: give one of them another name")


def _require_existing_programs(chosen: list[Subject]) -> None:
    """Refuse a program that is not there: that is one mistake, and not one of each scenario."""
    for subject in chosen:
        with _convert_to_pytest_error(f"adapter error: {subject.name}: "):
            getattr(subject, "require_files", lambda: None)()


def _find_subject(config: pytest.Config, name: str, known: dict[str, Any]) -> Subject:
    """Give a subject by its name; a module is looked for as pytest's `pythonpath` would with the rootdir in it."""
    from pytest_agentproc.subjects import find_subject

    root = str(config.rootpath)
    if name not in known and ":" in name and root not in sys.path:
        sys.path.insert(0, root)
        config.add_cleanup(partial(_remove_from_import_path, root))
    place = f"{_SUBJECT_OPTION}={name}"
    if name not in known and name.endswith(".toml"):
        name = _find_command_file(config, name)
    with _convert_to_pytest_error(""):
        return find_subject(name, place, root, known, "set pythonpath in the ini file")


def _find_command_file(config: pytest.Config, name: str) -> str:
    """Find the TOML file of a program, in the folder where pytest was started, else in the rootdir.

    The rootdir may be elsewhere: pytest takes it from the scenario files that the command line names.
    """
    here = config.invocation_params.dir / name
    return str(here if here.exists() else config.rootpath / name)


def _remove_from_import_path(folder: str) -> None:
    if folder in sys.path:
        sys.path.remove(folder)


def _convert_to_subject(thing: Any, place: str) -> Subject:
    from pytest_agentproc.subjects import as_subject

    with _convert_to_pytest_error(f"{place}: "):
        return as_subject(thing)


def _make_command_subject(line: str, place: str) -> Subject:
    """Make a subject of a command line."""
    from pytest_agentproc.subjects import make_command

    with _convert_to_pytest_error(f"{place}: "):
        return _convert_to_subject(make_command(line), place)


@contextmanager
def _convert_to_pytest_error(place: str) -> Iterator[None]:
    """Raise a mistake of the caller's as pytest shows it: on one line, after its place."""
    try:
        yield
    except UsageError as error:
        raise pytest.UsageError(place + join_lines(str(error))) from error


_RUNNER_STASH_KEY: pytest.StashKey[ScenarioRunner] = pytest.StashKey()


def is_fake_command(config: pytest.Config, command: str) -> bool:
    """Say whether a command line is that of one of the session's fakes; makes no runner."""
    runner = config.stash.get(_RUNNER_STASH_KEY, None)
    return runner is not None and runner.is_fake(command)


def get_runner(config: pytest.Config) -> ScenarioRunner:
    """Give the session's scenario runner; the first to ask makes it."""
    runner = config.stash.get(_RUNNER_STASH_KEY, None)
    if runner is None:
        from pytest_agentproc.harness import ScenarioRunner

        added = get_language(config).dialects.values()
        runner = config.stash[_RUNNER_STASH_KEY] = ScenarioRunner(
            commands=[addition.dialect.command for addition in added]
        )
        config.stash[END_OF_PLAYS_STASH_KEY] = runner.end_play_process
        config.add_cleanup(runner.close)  # and with it every fake that may be left
    return runner


class ScenarioTest(pytest.Item):
    """The test of one scenario, with one subject on one backend under one clock."""

    subject: Subject
    backend: str
    clock: str
    played: PlayResult | None

    @property
    @abstractmethod
    def scenario(self) -> Scenario:
        """Give the scenario; it is loaded when it is first asked for."""
