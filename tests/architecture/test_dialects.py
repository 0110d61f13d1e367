"""Every mode of the kit's dialects has all its parts, and the two halves of a dialect share no code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.fake_agents.dialects import make_encoder
from pytest_agentproc.harness import write_fake
from pytest_agentproc.scenario import loads
from pytest_agentproc.supervisor.dialects import DIALECT_AND_MODE_NAMES, Setting, make_decoder, make_session_protocol
from pytest_agentproc.vocabulary import DIALECTS
from tests.architecture.sources import ROOT, list_imports

if TYPE_CHECKING:
    from pathlib import Path

MODES = [(name, mode) for name, record in DIALECTS.items() for mode in record.modes]


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_a_mode_has_all_its_parts(name: str, mode: str, tmp_path: Path) -> None:
    """With one forgotten, `check` would call a scenario sound that no fake could play."""
    record = DIALECTS[name]
    is_session = mode in record.session_modes
    assert f"{name} {mode}" in DIALECT_AND_MODE_NAMES
    if mode not in record.served:  # no supervisor of the kit speaks with those
        assert (make_session_protocol(name, mode, Setting()) if is_session else make_decoder(name, mode)) is not None
    plain = name == "raw" or (name, mode) == ("acp", "session")  # neither has an option for its mode
    assert plain or record.options.get(mode), "the record has no command line for the mode"
    for has_tasks in (False, True):
        program: Any = {"dialect": name, "mode": mode, "prompt": "", "argv": [], "tasks": has_tasks}
        encoder: Any = make_encoder({**program, "encoder": record.list_encoder_modules(mode, has_tasks=has_tasks)})
        told = {*encoder.events, *(["nested"] if "nested" in record.steps.get(mode, ()) else [])}
        stated = {*record.steps.get(mode, ())} - {"ask", "request"}
        assert told <= stated if not has_tasks else told == stated
        assert not is_session or callable(encoder.ask_client)
    body = "  - wait_for: prompt 1\n  - answer: hi\n" if is_session else "  - answer: hi\n"
    text = f"scenario: It answers.\nagent: {{dialect: {name}, mode: {mode}}}\nscript:\n{body}expect:\n"
    expected = "  turns: [{outcome: completed}]\n" if is_session else "  outcome: completed\n"
    write_fake(loads(text + expected, "x.scenario.yaml"), tmp_path / record.command, scale=1, lifetime=60)


def test_the_modules_of_an_encoder_are_all_that_it_imports() -> None:
    """A fake loads the modules that the record lists, in this order, and no other of `fake_agents.dialects`."""
    for name, mode in MODES:
        for has_tasks in (False, True):
            modules = DIALECTS[name].list_encoder_modules(mode, has_tasks=has_tasks)
            loaded: set[str] = set()
            for module in modules:
                place = ROOT.joinpath(*module.split("."))
                file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
                wanted = {
                    found.module
                    for found in list_imports(file)
                    if found.module.startswith("pytest_agentproc.fake_agents.dialects.")
                }
                assert wanted <= loaded, f"{name} {mode}: {module} needs {sorted(wanted - loaded)} before it"
                loaded.add(module)
