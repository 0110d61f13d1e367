"""Owns the hooks that prepare a pytest session: options are checked, scenario files are found. Runs nothing itself.

Opens no file: a suite without scenarios pays for a look at names only.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc import machine
from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX
from pytest_agentproc.plugin._options import get_backends, get_option, parse_corpus_node_id, validate_options

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Load the conftest files of this directory for node ids of bundled scenarios: their folder exists nowhere."""
    _skip_assertion_rewriting(early_config)
    given = early_config.known_args_namespace
    given.file_or_dir = [word for word in given.file_or_dir if parse_corpus_node_id(early_config, word) is None]
    return (yield)


def _skip_assertion_rewriting(config: pytest.Config) -> None:
    """Have pytest load the kit's modules as they are: it rewrites the assertions of every plugin."""
    # Rewriting the whole kit takes half a second of a first run. It also parses modules while tests run, which fails on
    # CPython before 3.11.8 and 3.12.2 if an object that a test left is finalized meanwhile.
    marked: set[str] = getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set())
    marked.discard("pytest_agentproc")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take every file called `*.scenario.yaml`."""
    if not file_path.name.endswith(SCENARIO_FILE_SUFFIX):
        return None
    from pytest_agentproc.plugin._items import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins may implement."""
    from pytest_agentproc import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot be run, in one sentence each, before anything is collected."""
    config.addinivalue_line(
        "markers",
        "virtual_time(start, backend, allow): the test runs in virtual time, which begins at this date; "
        "allow names programs that are no fakes and may run beside the agent",
    )
    config.addinivalue_line(
        "markers",
        "agentproc(name, ...): play these scenarios, files beside the test's or ids of bundled ones, before its body",
    )
    config.addinivalue_line("markers", "process_tree: the test fails if it leaves a process behind")
    validate_options(config)
    if machine.find_preload_shim() is not None:
        from pytest_agentproc.plugin._preload_run import measure_in_real_time

        measure_in_real_time()
    if get_option(config, "defect") is not None:
        from pytest_agentproc.plugin._contributions import find_chosen_defect

        find_chosen_defect(config)
    if "trio" in get_backends(config) and importlib.util.find_spec("trio") is None:
        raise pytest.UsageError(
            f"agentproc backend {get_option(config, 'backend')} needs trio, which is not installed: "
            "run pip install 'pytest-agentproc[trio]' or choose --agentproc-backend=asyncio"
        )
    hook = config.hook
    if hook.pytest_agentproc_dialects.get_hookimpls() or hook.pytest_agentproc_steps.get_hookimpls():
        from pytest_agentproc.plugin._contributions import get_language

        get_language(config)
    is_foreign = (
        get_option(config, "subject") or get_option(config, "command") or hook.pytest_agentproc_subjects.get_hookimpls()
    )
    if is_foreign:
        from pytest_agentproc.plugin._contributions import get_subjects

        get_subjects(config)
    if is_foreign or any(
        get_option(config, name) for name in ("corpus", "defect", "baseline", "update_baseline", "results")
    ):
        from pytest_agentproc.plugin.reports._results_store import begin_results

        begin_results(config)
    if get_option(config, "report") or get_option(config, "timeline") == "always":
        from pytest_agentproc.plugin.reports._pages import begin_report

        begin_report(config)
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        from pytest_agentproc.plugin._corpus import refuse_bundled_paths

        refuse_bundled_paths(config)
    if get_option(config, "corpus") or any(parse_corpus_node_id(config, word) is not None for word in config.args):
        from pytest_agentproc.plugin._corpus import add_bundled_scenarios

        add_bundled_scenarios(config)


def pytest_enter_pdb(pdb: Any) -> None:
    """Switch the guards of real time off, and have virtual time wait for each command: a user debugs."""
    from pytest_agentproc.clock import record_debugger
    from pytest_agentproc.plugin._preload_run import pause_at_debugger_prompts

    record_debugger()
    pause_at_debugger_prompts(pdb)
