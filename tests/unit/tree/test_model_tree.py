"""Each containment finds in the model the processes that docs/explanation/process-trees.md promises."""

from __future__ import annotations

import pytest

from pytest_agentproc.harness import run_in_model
from pytest_agentproc.scenario import NotApplicable, loads
from pytest_agentproc.subjects import reference_supervisor
from tests.event_lines import list_lines

SECOND = 1_000_000_000
SILENT = "  - silence: for ever\n"
EXITS = "  - silence: 1s\n"


def list_left_processes(spawn: str, end: str, containment: str) -> list[str]:
    """Name the processes that outlive the run of an agent that spawns a process and ends so."""
    head = f"scenario: a tree\nagent: raw\npolicy: {{inactivity_timeout: 3s, containment: {containment}}}\nscript:\n"
    played = run_in_model(loads(f"{head}  - spawn: {spawn}\n{end}"), reference_supervisor())
    return [event.data["process"] for event in list_lines(played.record) if "leaked" in event.data]


@pytest.mark.parametrize("containment", ["group", "subreaper", "keeper"])
@pytest.mark.parametrize("end", [SILENT, EXITS], ids=["terminated", "exits"])
@pytest.mark.parametrize("how", ["same_group", "own_group", "double_fork"])
def test_what_stays_in_the_session_is_found_by_everyone(how: str, end: str, containment: str) -> None:
    """Also after its parent has ended."""
    assert list_left_processes(f"{{id: x, how: {how}}}", end, containment) == []


@pytest.mark.parametrize("containment", ["group", "subreaper", "keeper"])
def test_a_session_of_its_own_is_found_below_a_living_agent(containment: str) -> None:
    """The walk before the first signal goes from parent to child."""
    assert list_left_processes("{id: x, how: new_session, ignores_signals: true}", SILENT, containment) == []


@pytest.mark.parametrize(
    ("spawn", "end"),
    [
        ("{id: x, how: new_session}", EXITS),
        ("{id: x, how: daemon}", SILENT),
        ("{id: x, how: launcher}", EXITS),
        ("{id: x, how: refork, every: 10s}", SILENT),
        (
            "{id: a, for: 1s, how: new_session, clear_env: false}\n"  # noqa: ISC004
            "  - spawn: {id: x, how: daemon, ignores_signals: true}",
            SILENT,
        ),
    ],
)
def test_an_orphan_outside_the_session_is_found_by_the_process_that_adopts_it(spawn: str, end: str) -> None:
    """At `group` it is out of reach; its environment tells the other two whose it is."""
    assert [list_left_processes(spawn, end, containment) for containment in ("group", "subreaper", "keeper")] == [
        ["x"],
        [],
        [],
    ]


@pytest.mark.parametrize("spawn", ["{id: x, how: daemon, clear_env: true}", "{id: x, how: launcher, clear_env: true}"])
def test_an_orphan_without_an_environment_is_found_by_a_keeper_alone(spawn: str) -> None:
    """A supervisor that only adopts cannot distinguish it from another program's."""
    assert [list_left_processes(spawn, SILENT, containment) for containment in ("group", "subreaper", "keeper")] == [
        ["x"],
        ["x"],
        [],
    ]


def test_a_session_that_a_walk_has_seen_is_known_without_an_environment() -> None:
    """It ignored TERM below its parent, which then died: the second walk knows its session."""
    below = "script: [{spawn: {id: y, how: double_fork}}, {silence: 4s}]"
    cleared = f"{{id: x, how: new_session, clear_env: true, ignores_signals: true, {below}}}"
    assert [list_left_processes(cleared, SILENT, containment) for containment in ("subreaper", "keeper")] == [[], []]


def test_what_a_nested_subreaper_adopts_stays_below_the_agent() -> None:
    """Then even a plain walk finds a daemon."""
    reaper = "{id: r, subreaper: true, script: [{spawn: {id: x, how: daemon, clear_env: true}}, {silence: for ever}]}"
    assert list_left_processes(reaper, SILENT, "group") == []


def test_forks_without_a_pause_are_for_real_time() -> None:
    """In virtual time the instant would never end: the scenario does not apply, and its line says why."""
    scenario = loads("scenario: a\nagent: raw\nscript:\n  - meanwhile: [{spawn: {id: x, how: refork, every: 0s}}]\n")
    with pytest.raises(NotApplicable) as caught:
        run_in_model(scenario, reference_supervisor())
    assert (caught.value.name, caught.value.line) == ("the real clock (every: 0s)", 4)
