"""Owns every hook of the plugin: each looks whether a test needs the kit, and loads the kit only then.

pytest calls these hooks in every project that has the kit installed. So this file imports as little as it can.
It opens no file: a suite without scenarios pays for a look at names only.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc import machine
from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX, describe_wrong_file_name
from pytest_agentproc.plugin._interruption import watch_session
from pytest_agentproc.plugin._options import get_backends, get_option, parse_corpus_node_id, validate_options
from pytest_agentproc.plugin._rewriting import skip_assertion_rewriting

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Load the conftest files of this directory for node ids of bundled scenarios: their folder exists nowhere."""
    skip_assertion_rewriting(early_config.pluginmanager.rewrite_hook)
    given = early_config.known_args_namespace
    given.file_or_dir = [word for word in given.file_or_dir if parse_corpus_node_id(early_config, word) is None]
    return (yield)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take every file called `*.scenario.yaml`."""
    if not file_path.name.endswith(SCENARIO_FILE_SUFFIX):
        return None
    from pytest_agentproc.plugin._items import ScenarioFile

    return ScenarioFile.from_parent(parent, path=file_path)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have a terminal that is not UTF-8 show what it cannot write as escapes, character by character.

    Scenarios and agents print any character. For one of them pytest escapes the whole text, and puts it on one line.
    """
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    stream = getattr(getattr(reporter, "_tw", None), "_file", None)
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):  # the latter: LC_ALL=C
        stream.reconfigure(errors="backslashreplace")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Say why pytest finds no test in a scenario that the command line names, if its name is the reason."""
    try:
        return (yield)
    except pytest.UsageError as error:
        hints = [hint for word in session.config.args if (hint := _explain_uncollected_file(session.config, word))]
        raise pytest.UsageError(*error.args, *hints) from None


def _explain_uncollected_file(config: pytest.Config, word: str) -> str:
    """Explain why a file was not collected; "" if that is not for its name, or it is another tool's YAML."""
    path = config.invocation_params.dir / word.partition("::")[0]
    hint = describe_wrong_file_name(path)
    if not hint:
        return ""
    from pytest_agentproc.files import read_text_file

    try:
        text = read_text_file(path, _MAX_FILE_BYTES)
    except (OSError, ValueError):  # it is not there, or no text
        return ""
    return f"{word}: {hint}" if re.search("^(scenario|script):", text, re.MULTILINE) else ""


_MAX_FILE_BYTES = 1 << 24


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins may implement."""
    from pytest_agentproc import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot be run, in one sentence each, before anything is collected."""
    _declare_markers(config)
    validate_options(config)
    watch_session(config)
    if config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0:
        config.pluginmanager.register(_PlayFigures(), "agentproc-play-figures")
    if machine.find_preload_shim() is not None:
        from pytest_agentproc.plugin._preload_run import measure_in_real_time

        measure_in_real_time()
    if get_option(config, "defect") is not None:
        from pytest_agentproc.plugin._contributions import find_chosen_defect

        find_chosen_defect(config)
    _require_trio(config)
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
    if config.args_source is pytest.Config.ArgsSource.ARGS and any(
        _leads_outside(config, word) for word in config.args
    ):
        from pytest_agentproc.plugin._corpus import refuse_bundled_paths

        refuse_bundled_paths(config)
    if get_option(config, "corpus") or any(parse_corpus_node_id(config, word) is not None for word in config.args):
        from pytest_agentproc.plugin._corpus import add_bundled_scenarios

        add_bundled_scenarios(config)


def _declare_markers(config: pytest.Config) -> None:
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


def _require_trio(config: pytest.Config) -> None:
    if "trio" in get_backends(config) and importlib.util.find_spec("trio") is None:
        raise pytest.UsageError(
            f"agentproc backend {get_option(config, 'backend')} needs trio, which is not installed: "
            "run pip install 'pytest-agentproc[trio]' or choose --agentproc-backend=asyncio"
        )


def _leads_outside(config: pytest.Config, word: str) -> bool:
    """Say whether a word of the command line is a path outside of the folder in which pytest was called."""
    here = str(config.invocation_params.dir)
    path = os.path.normpath(os.path.join(here, word.partition("::")[0]))  # noqa: PTH118  # pathlib costs more
    return path != here and not path.startswith(here.rstrip(os.sep) + os.sep)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Start pytest below the coordinator of the preload clock if that is asked for."""
    if get_option(config, "virtual_sync"):
        from pytest_agentproc.plugin._preload_run import start_below_coordinator

        start_below_coordinator(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Have each local worker start below a coordinator of its own if that is asked for."""
    if get_option(config, "virtual_sync"):
        from pytest_agentproc.plugin._preload_run import start_workers_below_coordinators

        start_workers_below_coordinators(specs)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each scenario that a function is marked with, for each way to play it."""
    if metafunc.definition.get_closest_marker("agentproc") is not None:
        from pytest_agentproc.plugin._marked_tests import parametrize_with_scenarios

        parametrize_with_scenarios(metafunc)


def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    """Give virtual time and the process tree to tests that carry their markers.

    Raises:
        pytest.UsageError: the process tree of every test is to be watched, and /proc does not show it.
    """
    watches_all = get_option(config, "process_tree")
    if watches_all and sys.platform == "linux":
        from pytest_agentproc.errors import UsageError
        from pytest_agentproc.tree import require_own_proc

        try:
            require_own_proc()
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None
    for item in items:
        names = getattr(item, "fixturenames", None)
        if names is None:
            continue
        markers = {marker.name for marker in item.iter_markers()}
        is_virtual = "virtual_time" in markers
        is_watched = watches_all or "process_tree" in names or "process_tree" in markers
        if is_virtual or is_watched:
            from pytest_agentproc.plugin._virtual_time import move_fixture_first

            if is_virtual:
                names[:] = move_fixture_first(item, names, "virtual_clock")
            if is_watched:  # it ends after the other fixtures of the test, and so sees their processes end
                item.fixturenames = move_fixture_first(item, names, "process_tree")  # type: ignore[attr-defined]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Start pytest again below the coordinator if a test of this session needs that; show the progress of scenarios."""
    marked = [item for item in session.items if item.get_closest_marker("virtual_time") is not None]
    if marked:
        from pytest_agentproc.plugin._preload_run import restart_below_coordinator
        from pytest_agentproc.plugin._virtual_time import uses_preload_clock

        restart_below_coordinator(session, sum(map(uses_preload_clock, marked)))
    _show_progress(session.config, [item.nodeid for item in session.items])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Show the progress of scenarios that the workers of pytest-xdist play."""
    _show_progress(node.config, ids)


def _show_progress(config: pytest.Config, ids: Sequence[str]) -> None:
    if any(f"{SCENARIO_FILE_SUFFIX}::" in nodeid for nodeid in ids):
        from pytest_agentproc.plugin.reports._progress import show_progress

        show_progress(config, ids)


def pytest_report_collectionfinish(config: pytest.Config, items: Sequence[pytest.Item]) -> list[str]:
    """Say early how long scenarios in real time take."""
    in_real_time = [item for item in items if getattr(item, "clock", "") == "real"]
    if not in_real_time:
        return []  # an empty text would be an empty line
    from pytest_agentproc.plugin.reports._progress import announce_real_time

    return announce_real_time(config, in_real_time)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Play the scenario of a marked test before its body; run an async test in virtual time that no plugin runs."""
    if "virtual_clock" in pyfuncitem.fixturenames:
        from pytest_agentproc.plugin._virtual_time import wrap_in_virtual_time

        wrap_in_virtual_time(pyfuncitem)
    callspec = getattr(pyfuncitem, "callspec", None)
    if callspec is not None and "agent_scenario" in callspec.params:
        from pytest_agentproc.plugin._marked_tests import play_before_body

        play_before_body(pyfuncitem)
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leave the machinery of the kit out of what a failed test shows."""
    if "pytest_agentproc.errors" not in sys.modules:  # every part of the kit that a test can use loads it
        return (yield)
    from pytest_agentproc.plugin.reports._tracebacks import make_report

    return (yield from make_report(item, call))


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Have the process of plain functions exit before pytest-cov, which is around this, combines what was counted."""
    result = yield
    if "pytest_agentproc.plugin._contributions" in sys.modules:
        from pytest_agentproc.plugin._preload_run import end_play_process

        end_play_process(session.config)
    return result


def pytest_enter_pdb(pdb: Any) -> None:
    """Switch the guards of real time off, have virtual time wait for each command, and give it stdin: a user debugs."""
    from pytest_agentproc.clock import record_debugger
    from pytest_agentproc.harness import restore_user_stdin
    from pytest_agentproc.plugin._preload_run import pause_at_debugger_prompts

    record_debugger()
    restore_user_stdin()
    pause_at_debugger_prompts(pdb)


class _PlayFigures:
    """What `-v` shows of a scenario beside its result. Without `-v` no hook is called for each report."""

    def __init__(self) -> None:
        self._is_session_over = False

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Generator[None, Any, Any]:
        """Say how long a scenario took."""
        status = yield
        properties = getattr(report, "user_properties", ())
        is_played = any(str(name).startswith("agentproc_") for name, _ in properties)
        if not is_played or not status or self._is_session_over:
            return status
        from pytest_agentproc.plugin.reports._progress import add_play_figures

        return add_play_figures(status, report)

    def pytest_sessionfinish(self) -> None:
        """Leave the words of the summary alone: people and tools look there for `FAILED` and an id after it."""
        self._is_session_over = True
