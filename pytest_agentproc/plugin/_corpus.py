"""How the bundled scenarios join a session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.corpus import PACKAGE_FOLDER, SCENARIO_FILE_SUFFIX, find_corpus_folder
from pytest_agentproc.plugin._options import CORPUS_NODE_ID_PREFIX, parse_corpus_node_id

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pytest_agentproc.plugin._items import ScenarioItem


def add_bundled_scenarios(config: pytest.Config) -> None:
    """Let a session run the bundled scenarios that are named by node ids, or all in place of the tests of the project.

    Raises:
        pytest.UsageError: this installation has no corpus, or no bundled scenario has such a name.
    """
    folder = find_corpus_folder()
    if folder is None:
        raise pytest.UsageError(
            f"--agentproc-corpus: there are no scenarios beside {PACKAGE_FOLDER}: install the kit again"
        )
    places = {word: parse_corpus_node_id(config, word) for word in config.args}
    named = [place for place in places.values() if place is not None]
    is_asked = config.args_source is pytest.Config.ArgsSource.ARGS
    config.args[:] = [word for word in config.args if is_asked and places[word] is None]
    config.pluginmanager.register(_CorpusPlugin(folder, _read_node_ids(folder, named)), CORPUS_NODE_ID_PREFIX)


def refuse_bundled_paths(config: pytest.Config) -> None:
    """Refuse the path of a bundled scenario outside of the project: no conftest file of the project would be loaded.

    Raises:
        pytest.UsageError: there is one.
    """
    folder, here = find_corpus_folder(), config.invocation_params.dir
    if folder is None or (here.is_relative_to(config.rootpath) and not _is_outside_project(folder, config)):
        return
    for word in config.args:
        path, colons, name = word.partition("::")
        file = Path(os.path.normpath(here / path))
        if file.is_relative_to(folder) and not file.is_relative_to(here):
            place = (CORPUS_NODE_ID_PREFIX / file.relative_to(folder)).as_posix()
            raise pytest.UsageError(
                f"{path} is outside of this project, so that no conftest.py of the project would be loaded: "
                f"write {place}{colons}{name}"
            )


def _read_node_ids(folder: Path, named: list[str]) -> dict[Path, set[str]]:
    """Give the files that node ids name, each with the names of its tests; without a name all of them."""
    if not named:
        return {file: set() for file in sorted(folder.rglob(f"*{SCENARIO_FILE_SUFFIX}"))}
    wanted: dict[Path, set[str]] = {}
    for place in named:
        path, _, name = place.partition("::")
        file = folder / path
        files = sorted(file.rglob(f"*{SCENARIO_FILE_SUFFIX}")) if file.is_dir() else [file]
        if not all(file.is_file() for file in files):
            from difflib import get_close_matches

            known = [path.relative_to(folder).as_posix() for path in folder.rglob(f"*{SCENARIO_FILE_SUFFIX}")]
            near = get_close_matches(path, known, 1)
            hint = f"did you mean {CORPUS_NODE_ID_PREFIX}/{near[0]}?" if near else "agentproc list shows them all"
            raise pytest.UsageError(f"{CORPUS_NODE_ID_PREFIX}/{path}: no bundled scenario has this name: {hint}")
        for file in files:
            wanted.setdefault(file, set()).update({name} if name else set())
    return wanted


class _CorpusPlugin:
    """Hang the corpus on the session itself, so that no folder in between is collected or imported."""

    def __init__(self, folder: Path, wanted: dict[Path, set[str]]) -> None:
        self._folder = folder
        self._wanted_files = wanted

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the corpus to what the session found, unless its folder was named and is found anyway."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed and not self._is_corpus_named(collector):
            how: dict[str, Any] = {"path": self._folder, "nodeid": CORPUS_NODE_ID_PREFIX, "wanted": self._wanted_files}
            report.result.append(BundledCollector.from_parent(collector, name=CORPUS_NODE_ID_PREFIX, **how))
        return report

    def _is_corpus_named(self, session: pytest.Session) -> bool:
        places = (self._folder, *self._folder.parents)
        return not _is_outside_project(self._folder, session.config) and any(
            session.isinitpath(place) for place in places
        )


class BundledCollector(pytest.Collector):
    """The bundled scenarios: with ids of their paths where those can be named, else with `agentproc-corpus/...`.

    It collects the files itself. pytest would look for the folder of a node id on disk, and `--lf` skips files that it
    does not find there.
    """

    def __init__(self, *, wanted: dict[Path, set[str]], **others: Any) -> None:
        super().__init__(**others)
        self._wanted_files = wanted

    def collect(self) -> Iterator[ScenarioItem]:
        """Give the tests of all scenarios, or those that node ids name."""
        from pytest_agentproc.plugin._items import ScenarioFile

        is_foreign = _is_outside_project(self.path, self.config)
        for path, names in self._wanted_files.items():
            place = path.relative_to(self.path).as_posix()
            named: dict[str, Any] = {"nodeid": f"{CORPUS_NODE_ID_PREFIX}/{place}"} if is_foreign else {}
            items = [*ScenarioFile.from_parent(self, path=path, **named).collect()]
            known = {name for item in items for name in (item.name, item.name.partition("[")[0])}
            for name in sorted(names - known):
                found = ", ".join(item.name for item in items)
                raise self.CollectError(
                    f"{CORPUS_NODE_ID_PREFIX}/{place}::{name}: there is no such test: {found}; "
                    f"{_MISSING_SUPERVISOR_REMEDY}"
                )
            yield from (item for item in items if not names or {item.name, item.name.partition("[")[0]} & names)


_MISSING_SUPERVISOR_REMEDY = (
    "the brackets name the supervisor: name the folder of its conftest.py, too, or repeat --agentproc-subject"
)


def _is_outside_project(folder: Path, config: pytest.Config) -> bool:
    """Say whether the corpus is installed, or lies outside of the user's project."""
    return folder.name == "_corpus" or not folder.is_relative_to(config.rootpath)
