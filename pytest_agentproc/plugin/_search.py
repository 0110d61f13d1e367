"""Owns `--agentproc-search` and `--agentproc-explore`: the search as a part of a scenario's test. Judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.plugin._options import asked, lab_of
from pytest_agentproc.plugin._play import NotGreen
from pytest_agentproc.plugin._rerun import rerun_command

if TYPE_CHECKING:
    import pytest

    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject

__all__ = ["look_for_more"]

_SEED = 0


def look_for_more(node: pytest.Item, scenario: Scenario, backend: str, subject: Subject) -> None:
    """Search what a scenario leaves open, or move what it says, in as many settings as the session asks for.

    Args:
        node: the test whose scenario it is.
        scenario: one with open values is searched, one without is explored.
        backend: the event loop on which it is played.
        subject: the supervisor under test; the core is searched in the model.

    Raises:
        NotGreen: a promise is broken; the text has the scenario that shows it, whole.
        UsageError: Hypothesis is not installed.
    """
    is_open = bool(scenario.openings)
    word = "search" if is_open else "explore"
    runs = asked(node.config, word)
    if not runs:
        return
    from pytest_agentproc.search import confirm, explore, require_hypothesis, search, written

    if is_open:
        require_hypothesis()
    lab = lab_of(node.config)
    came = (search if is_open else explore)(scenario, subject, runs=runs, seed=_SEED, lab=lab, backend=backend)
    if came.find is None:
        return
    confirmed = confirm(came.find, subject, lab, backend=backend)
    if not confirmed.repeats:
        raise NotGreen(
            f"{scenario.path}: the search broke a promise, and real processes do not repeat it: "
            f"that is the kit's fault, not the supervisor's\n{confirmed.difference}"
        )
    file = f"found-{scenario.id.replace('[', '-').rstrip(']')}.scenario.yaml"
    text = written(
        came.find,
        subject=subject.name,
        seed=_SEED,
        run=came.first,
        replay=rerun_command(node, file),
        is_defect=False,
        explored=not is_open,
    )
    raise NotGreen(
        f"{scenario.path}: the search broke a promise in setting {came.first} of {came.runs}: {came.find.reason}\n"
        f"this is the scenario that shows it; keep it as {file}:\n\n{text}"
    )
