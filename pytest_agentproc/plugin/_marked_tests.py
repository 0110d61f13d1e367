"""Owns scenarios that are ordinary test functions: `@pytest.mark.agentproc`. Plays and judges as scenario items do."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pytest_agentproc.errors import AgentprocError, UsageError
from pytest_agentproc.plugin._options import format_rerun_command, list_clocks_and_backends

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.plugin._run_fixture import AgentRun
    from pytest_agentproc.vocabulary import Subject


_MARKER_NAME, _FIXTURE_NAME = "agentproc", "agent_scenario"


class _MarkedCase(NamedTuple):
    """One scenario with one subject on one backend under one clock; it is loaded when it is played."""

    given: str
    subject: Subject
    clock: str
    backend: str


def parametrize_with_scenarios(metafunc: pytest.Metafunc) -> None:
    """Make a test of each scenario that a function is marked with, for each way to play it.

    Raises:
        pytest.fail.Exception: a marker says nothing, or no text.
    """
    marks = [*metafunc.definition.iter_markers(_MARKER_NAME)][::-1]
    given = [argument for mark in marks for argument in mark.args]
    if not all(mark.args and not mark.kwargs for mark in marks) or not all(
        isinstance(scenario, str | Path) for scenario in given
    ):
        pytest.fail(
            f"{metafunc.definition.nodeid}: @pytest.mark.agentproc takes the names of scenarios: "
            'write @pytest.mark.agentproc("mine.scenario.yaml"), or the id of a bundled one',
            pytrace=False,
        )
    if _FIXTURE_NAME not in metafunc.fixturenames:
        metafunc.fixturenames.append(_FIXTURE_NAME)
    cases = [*_make_marked_cases(metafunc.config, given)]
    metafunc.parametrize(_FIXTURE_NAME, [case for case, _ in cases], indirect=True, ids=[name for _, name in cases])


def _make_marked_cases(config: pytest.Config, given: list[str | Path]) -> Iterator[tuple[_MarkedCase, str]]:
    from pytest_agentproc.corpus import SCENARIO_FILE_SUFFIX
    from pytest_agentproc.harness import explain_no_virtual_time
    from pytest_agentproc.plugin._contributions import format_item_parameters, get_subjects

    for scenario, subject in product(given, get_subjects(config)):
        for clock, backend in list_clocks_and_backends(config, is_real=bool(explain_no_virtual_time(subject))):
            axes = format_item_parameters(config, subject, clock, backend)
            yield (
                _MarkedCase(str(scenario), subject, clock, backend),
                f"{Path(scenario).name.removesuffix(SCENARIO_FILE_SUFFIX)}-{axes}",
            )


def get_marked_run(request: pytest.FixtureRequest) -> AgentRun:
    """Give what came of the scenario that the test is marked with.

    Raises:
        UsageError: it is not marked.
    """
    if not isinstance(getattr(request, "param", None), _MarkedCase):
        raise UsageError(
            "agent_scenario is for tests that are marked with a scenario",
            'write @pytest.mark.agentproc("mine.scenario.yaml") above the test',
        )
    run: AgentRun = request.param  # the case, which the run takes the place of once the test is called
    return run


def play_before_body(function: pytest.Function) -> None:
    """Play the scenario of a marked test before its body, so that a red one is a failure of the test."""
    callspec = getattr(function, "callspec", None)
    case = None if callspec is None else callspec.params.get(_FIXTURE_NAME)
    if isinstance(case, _MarkedCase):
        function.funcargs[_FIXTURE_NAME] = _play_marked_case(function, case)


def _play_marked_case(function: pytest.Function, case: _MarkedCase) -> AgentRun:
    from pytest_agentproc.plugin._contributions import get_language
    from pytest_agentproc.plugin._items import ScenarioItem, ScenarioSource
    from pytest_agentproc.plugin._judged_items import ScenarioFailed
    from pytest_agentproc.plugin._run_fixture import make_agent_run
    from pytest_agentproc.plugin._scripts import load_named_scenario

    assert function.parent is not None, "a function is collected by something"
    language = get_language(function.config)
    try:
        scenario = load_named_scenario(case.given, function.path.parent, language)
        item = ScenarioItem.from_parent(
            function.parent,
            name=function.name,
            nodeid=function.nodeid,
            written=ScenarioSource(Path(scenario.path), scenario.path, language, scenario=scenario),
            subject=case.subject,
            backend=case.backend,
            clock=case.clock,
        )
        item.report_as_test(function)
        item.runtest()
    except pytest.skip.Exception as reason:
        raise pytest.skip.Exception(f"{scenario.id}: {reason}", _use_item_location=True) from None
    except ScenarioFailed as red:
        raise pytest.fail.Exception(f"{red}\nrerun: {format_rerun_command(function)}", pytrace=False) from None
    except AgentprocError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    assert item.played is not None, "what was not played is not green"
    return make_agent_run(item.played)
