"""Owns where the bundled scenarios are and how they join a session from any directory. Knows no scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.corpus import PACKAGE, SUFFIX, corpus_folder
from pytest_agentproc.plugin._items import ScenarioFile

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

__all__ = ["add_corpus"]

_NAME = "agentproc-corpus"


def add_corpus(config: pytest.Config) -> None:
    """Let a session run the corpus, in place of the tests that it would find by itself.

    Raises:
        pytest.UsageError: this installation has no corpus.
    """
    folder = corpus_folder()
    if folder is None:
        raise pytest.UsageError(f"--agentproc-corpus: there are no scenarios beside {PACKAGE}: install the kit again")
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args.clear()
    config.pluginmanager.register(_CorpusPlugin(folder), _NAME)


class _CorpusPlugin:
    """Hang the corpus on the session itself, so that no folder in between is collected or imported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Add the corpus to what the session found, unless its folder was named and is found anyway."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed and not self._is_named(collector):
            corpus = Corpus.from_parent(collector, name=_NAME, path=self._folder, nodeid=_NAME)
            report.result.append(corpus)
        return report

    def _is_named(self, session: pytest.Session) -> bool:
        places = (self._folder, *self._folder.parents)
        return not _is_foreign(self._folder, session.config) and any(session.isinitpath(place) for place in places)


class Corpus(pytest.Collector):
    """The bundled scenarios: with ids of their paths where those can be named, else with `agentproc-corpus/...`."""

    def collect(self) -> Iterator[pytest.Collector]:
        is_foreign = _is_foreign(self.path, self.config)
        for file in sorted(self.path.rglob(f"*{SUFFIX}")):
            place = file.relative_to(self.path).as_posix()
            named: dict[str, Any] = {"nodeid": f"{_NAME}/{place}"} if is_foreign else {}
            yield ScenarioFile.from_parent(self, path=file, **named)


def _is_foreign(folder: Path, config: pytest.Config) -> bool:
    """Say whether the corpus is installed, or lies outside of the user's project."""
    return folder.name == "_corpus" or not folder.is_relative_to(config.rootpath)
