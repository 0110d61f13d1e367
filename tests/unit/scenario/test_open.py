"""Open values: their places, their values in a plain run, the messages about wrong ones, and the closed text."""

from __future__ import annotations

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import loads

_HEAD = "scenario: a\nagent: pi\nscript:\n"
_ALL = (
    _HEAD
    + """\
  - silence: {between: [0s, inactivity_timeout + 10s]}
  - any_order: [{say: a}, {silence: {between: [1s, 2s]}}, {say: "b, c"}]
  - some_of: [{say: e}, {say: f}]
  - one_of: [{answer: x}, {die: {one_of: [TERM, KILL]}}]
"""
)


def test_a_plain_run_plays_the_lower_bound_the_first_option_and_all_steps_in_order() -> None:
    """The author reads the file from top to bottom; a play without a search takes the first value."""
    steps = [(step.name, getattr(step.value, "text", step.value)) for step in loads(_ALL).scripts[0]]
    assert steps == [
        ("silence", "0s"),
        ("say", {"text": "a"}),
        ("silence", "1s"),
        ("say", {"text": "b, c"}),
        ("say", {"text": "e"}),
        ("say", {"text": "f"}),
        ("answer", "x"),
    ]


def test_a_closed_text_is_an_ordinary_scenario() -> None:
    """A find is kept as a file that any user can read and play, without a word of the search in it."""
    text = loads(_ALL).fill_open_values(["inactivity_timeout - 1ms", (2, 1, 0), "1500ms", (), 1, 1])
    assert text == (
        _HEAD
        + """\
  - silence: inactivity_timeout - 1ms
  - {say: "b, c"}
  - {silence: 1500ms}
  - {say: a}
  # nothing here
  - {die: KILL}
"""
    )
    assert loads(text).openings == ()


def test_a_default_that_is_filled_in_is_what_a_plain_run_plays() -> None:
    """The two ways to choose, in the nodes and in the text, must not drift apart."""
    scenario = loads(_ALL)
    again = loads(scenario.fill_open_values([opening.default_choice for opening in scenario.openings]))
    named = [
        [(step.name, str(getattr(step.value, "text", step.value))) for step in entry.scripts[0]]
        for entry in (scenario, again)
    ]
    assert named[0] == named[1]


_BLOCK_LISTS = (
    _HEAD
    + """\
  - silence:
      between:
        - 0s   # at once
        - inactivity_timeout
  - any_order:
    - say: a

    # the second one
    - say:
        text: |
          # b
            c
  - one_of:
      - silence:
          one_of:
            - 1s
            - 2s
      - when: {signal: TERM}
        do:
          - say: d
  - some_of:
      - say: e
      - say: f
  - answer: x
"""
)


def test_a_list_may_have_a_line_for_each_item() -> None:
    """Formatters of YAML turn a list in brackets into such a list."""
    assert loads(_BLOCK_LISTS).fill_open_values(["1s", (1, 0), 1, 0, (1,)]) == (
        _HEAD
        + """\
  - silence:
      1s
  - say:
      text: |
        # b
          c
  - say: a
  - when: {signal: TERM}
    do:
      - say: d
  - say: f
  - answer: x
"""
    )
    plain = loads(_BLOCK_LISTS)
    filled = loads(plain.fill_open_values([opening.default_choice for opening in plain.openings]))
    assert [(step.name, str(step.value)) for step in filled.scripts[0] if step.name != "silence"] == [
        (step.name, str(step.value)) for step in plain.scripts[0] if step.name != "silence"
    ]


def test_a_tool_s_own_arguments_are_never_open() -> None:
    """Data of a tool stands as it is: a schema of JSON has the word, too."""
    text = _HEAD + "  - tool: {id: t, name: x, input: {one_of: [1, 2]}}\n"
    scenario = loads(text)
    assert scenario.openings == ()
    assert scenario.scripts[0][0].value["input"] == {"one_of": [1, 2]}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            "- silence: {between: 3s}",
            "4:14: between must have a list: write {between: [LOW, HIGH]}",
        ),
        (
            "- silence: {between: [0s, soon]}",
            "4:14: between takes two times, two sizes or two whole numbers: write {between: [0s, 700s]}",
        ),
        ("- silence: {one_of: []}", "4:14: one_of has 0 items: from 1 to 20 are possible"),
        (
            "- meanwhile: [{any_order: [{say: a}]}]",
            "4:17: any_order stands for steps, on a line of its own: write - any_order: [{STEP}, {STEP}, ...]",
        ),
        ("- one_of: [{say: a}, {sya: b}]", '4:25: unknown step "sya": did you mean "say"?'),
        ("- silence: {between: [0s, 0s - 3s]}", '4:29: "0s - 3s" is -3s: a time cannot be negative'),
    ],
)
def test_a_mistake_in_an_open_value_is_reported_at_its_place(step: str, message: str) -> None:
    """Every option is checked before anything is drawn, so that no search ends in a mistake of the file's."""
    with pytest.raises(ScenarioError) as caught:
        loads(f"{_HEAD}  {step}\n")
    assert [str(problem) for problem in caught.value.problems] == [f"<text>:{message}"]
