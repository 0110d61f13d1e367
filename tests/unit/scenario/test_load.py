"""A loaded scenario's knowledge of itself, and the files that it may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import load, loads
from pytest_agentproc.vocabulary import ERRNO_BY_SPAWN_ERROR, Policy

if TYPE_CHECKING:
    from pathlib import Path

SMALL = "scenario: a claim\nagent: raw\nscript: []\n"


def test_a_small_scenario_has_the_defaults_of_the_language() -> None:
    """Three keys are enough to begin with."""
    scenario = loads(SMALL, "sub/first.scenario.yaml")
    assert (scenario.id, scenario.path, scenario.claim) == ("first", "sub/first.scenario.yaml", "a claim")
    assert (scenario.source, scenario.covers, scenario.catches, scenario.level) == ("", (), {}, "must")
    assert (scenario.dialect, scenario.mode, scenario.prompt_by, scenario.prompt) == ("raw", "text", "argv", "hi")
    assert (scenario.cannot_spawn, scenario.policy, scenario.text) == (None, {}, SMALL)


def test_a_full_scenario_keeps_everything() -> None:
    """Harness and verdict get the values of the file."""
    scenario = loads(
        "scenario: a claim\nsource: https://example.test/issues/3\ncovers: [A1, A4]\nlevel: should\n"
        "agent: {dialect: pi, mode: json, prompt: stdin}\n"
        "policy: {inactivity_timeout: 1.5m, max_runtime: 1h - 1s, linger_grace: 10ms}\n"
        "drive: [{prompt: {repeat: 'é', size: 5 B}}]\nscript: []\n"
        "expect: {outcome: completed}\ncatches: {timer-beats-exit: outcome, direct-child-only: leaks}\n"
    )
    assert (scenario.source, scenario.covers, scenario.level) == (
        "https://example.test/issues/3",
        ("A1", "A4"),
        "should",
    )
    assert scenario.catches == {"timer-beats-exit": "outcome", "direct-child-only": "leaks"}
    assert scenario.policy == {"inactivity_timeout": 90.0, "max_runtime": 3599.0, "linger_grace": 0.01}
    assert (scenario.dialect, scenario.mode, scenario.prompt_by, scenario.prompt) == ("pi", "json", "stdin", "éé")


def test_off_switches_a_limit_off() -> None:
    """None is what the vocabulary calls it."""
    assert loads(f"{SMALL}policy: {{inactivity_timeout: none}}\n").policy == {"inactivity_timeout": None}


def test_a_prompt_of_many_mebibytes_has_its_size() -> None:
    """Size is counted in bytes of UTF-8, which is what goes through the pipe."""
    prompt = loads(f"{SMALL}drive: [{{prompt: {{repeat: 'abc', size: 8 MiB}}}}]\n").prompt
    assert len(prompt.encode()) == 8 * 1024**2
    assert prompt.startswith("abcabc")


@pytest.mark.parametrize("reason", ERRNO_BY_SPAWN_ERROR)
def test_an_agent_that_cannot_be_spawned_needs_no_script(reason: str) -> None:
    """There is no agent to play it."""
    scenario = loads(f"scenario: a\nagent: {{dialect: pi, cannot_spawn: {reason}}}\n")
    assert scenario.cannot_spawn == reason
    assert scenario.bind(Policy()).program["steps"] == []


def test_a_byte_order_mark_and_crlf_are_no_problem(tmp_path: Path) -> None:
    """An editor on Windows writes both."""
    file = tmp_path / "windows.scenario.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert load(file).claim == "a claim"


def test_a_file_beside_the_scenario_is_read_when_it_is_loaded(tmp_path: Path) -> None:
    """Its bytes travel in the program: the fake opens nothing."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "answer.bin").write_bytes(b"\xff\x00")
    (tmp_path / "link.bin").symlink_to("data/answer.bin")
    file = tmp_path / "reads.scenario.yaml"
    file.write_text("scenario: a\nagent: raw\nscript: [{raw: {file: data/answer.bin}}, {raw: {file: link.bin}}]\n")
    steps = load(file).bind(Policy()).program["steps"]
    assert [args for _, _, args in steps] == [("stdout", b"\xff\x00")] * 2


@pytest.mark.parametrize("tag", ["python/object/apply:os.mkdir", "python/name:os.mkdir", "python/module:os"])
def test_no_tag_of_yaml_builds_an_object_of_python(tag: str, tmp_path: Path) -> None:
    """A scenario is data from anywhere: to load it runs nothing."""
    made = tmp_path / "made"
    with pytest.raises(ScenarioError):
        loads(f"scenario: !!{tag} [{made}]\nagent: raw\nscript: [{{answer: done}}]\n")
    assert not made.exists()


@pytest.mark.parametrize("name", ["../secret", "link", "folder/secret", "/etc/hostname"])
def test_a_file_outside_the_scenarios_folder_is_refused(tmp_path: Path, name: str) -> None:
    """A scenario is data from anywhere: it must not read what its folder does not hold, links included."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").write_text("s")
    (inside / "link").symlink_to("../secret")
    (inside / "folder").symlink_to("..")
    file = inside / "a.scenario.yaml"
    file.write_text(f"scenario: a\nagent: raw\nscript: [{{raw: {{file: {name}}}}}]\n")
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert (
        str(caught.value) == f'{file}:3:16: raw.file "{name}" leaves the folder of the scenario: copy the file into it'
    )


def test_a_text_without_a_folder_names_no_file() -> None:
    """Relative to what?"""
    with pytest.raises(ScenarioError, match=r"raw\.file needs a scenario that is a file itself"):
        loads("scenario: a\nagent: raw\nscript: [{raw: {file: a}}]\n")


def test_a_loop_of_links_is_a_located_problem(tmp_path: Path) -> None:
    """The operating system's own words, with the place that asked."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ScenarioError, match=r"^<text>:3:16: raw\.file \"loop\" "):
        loads("scenario: a\nagent: raw\nscript: [{raw: {file: loop}}]\n", folder=tmp_path)


def test_half_a_character_is_a_located_problem() -> None:
    """Text made in Python can hold what no UTF-8 file can; it must not end in a traceback of the parser."""
    with pytest.raises(ScenarioError, match=r"<text>:2:8: U\+D800 is half a character: no file can hold it"):
        loads("scenario: a\nagent: \ud800\n")


def test_a_limit_that_is_no_size_is_a_located_problem() -> None:
    """The other limits of the file are tried all the same."""
    text = "scenario: a\nagent: raw\npolicy: {max_line_bytes: many, linger_grace: 1s}\nscript:\n  - silence: 1s\n"
    with pytest.raises(ScenarioError, match=r"<text>:3:26: policy.max_line_bytes must be a size such as 64 KiB"):
        loads(text)
