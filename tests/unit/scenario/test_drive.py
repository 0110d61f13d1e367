"""`drive`, `handler` and the expectations of a session, as they are read and bound."""

from __future__ import annotations

import pytest

from pytest_agentproc.errors import ScenarioError
from pytest_agentproc.scenario import BoundScenario, NotApplicable, loads
from pytest_agentproc.vocabulary import CallerAction, Handler, HookReaction, LimitsRequest, Policy

SECOND = 1_000_000_000
RPC = "{dialect: pi, mode: rpc}"
CLAUDE = "{dialect: claude, mode: session}"


def bind_drive(drive: str, *more: str, policy: Policy | None = None) -> BoundScenario:
    """Bind a file about a session of pi's; its drive stands in line 3."""
    lines = ["scenario: a", "agent: {dialect: pi, mode: rpc}", f"drive: {drive}", "script: [{wait_for: prompt 1}]"]
    return loads("\n".join([*lines, *more])).bind(policy or Policy())


def list_problems(drive: str, *more: str, agent: str = "{dialect: pi, mode: rpc}") -> list[str]:
    """Give what is said about a file, without its name."""
    lines = ["scenario: a", f"agent: {agent}", f"drive: {drive}", "script: []", *more]
    with pytest.raises(ScenarioError) as caught:
        loads("\n".join(lines), "x")
    return [line.removeprefix("x:") for line in str(caught.value).splitlines()]


def test_every_item_becomes_a_deed() -> None:
    """One table of items makes checker, reference and the caller's actions."""
    drive = """
  - prompt: one
  - {prompt: {repeat: ab, size: 5 B}, after: 1s}
  - wait_for: turn 2
  - wait_for: background 3
  - wait_for: status ready
  - wait: prompt_timeout + 1s
  - {cancel: {}, at: 5s}
  - cancel: {turn: 2}
  - attach: v
  - detach: v
  - stop: {}
  - close: {}"""
    assert bind_drive(drive, policy=Policy(prompt_timeout=9)).drive == (
        CallerAction(4, "prompt", "one"),
        CallerAction(5, "prompt", "ababa", after=SECOND),
        CallerAction(6, "turn", 2),
        CallerAction(7, "background", 3),
        CallerAction(8, "status", "ready"),
        CallerAction(9, "wait", 10 * SECOND),
        CallerAction(10, "cancel", at=5 * SECOND),
        CallerAction(11, "cancel", 2),
        CallerAction(12, "attach", "v"),
        CallerAction(13, "detach", "v"),
        CallerAction(14, "stop"),
        CallerAction(15, "close"),
    )


def test_a_mode_is_for_dialects_that_can_switch_it() -> None:
    """A mode may have any name: agents of ACP use addresses, too."""
    drive = '[{prompt: a}, {set_mode: "https://modes.example#plan", after: 1s}]'
    wanted = CallerAction(3, "set_mode", "https://modes.example#plan", after=SECOND)
    for agent in (CLAUDE, "acp"):
        text = f"scenario: a\nagent: {agent}\ndrive: {drive}\nscript: []\n"
        assert loads(text).bind(Policy()).drive[1] == wanted
    known = "drive.set_mode is for claude session, codex app-server or acp session"
    models = "3:21: the dialect pi switches no model: drive.set_model is for claude session or codex app-server"
    assert list_problems("[{set_model: m2}]") == [models]
    assert list_problems("[{set_mode: plan}]") == [f"3:20: the dialect pi switches no mode: {known}"]


def test_a_session_without_a_drive_is_asked_hi() -> None:
    """As a run is."""
    text = "scenario: a\nagent: {dialect: pi, mode: rpc}\nscript: []\n"
    assert loads(text).bind(Policy()).drive == (CallerAction(0, "prompt", "hi"),)


def test_a_run_has_no_drive_to_play() -> None:
    """Its one prompt is part of how it is started."""
    scenario = loads("scenario: a\nagent: pi\ndrive: [{prompt: yo}]\nscript: []\n")
    assert (scenario.prompt, scenario.bind(Policy()).drive) == ("yo", ())


@pytest.mark.parametrize(
    ("handler", "wanted"),
    [
        ("{permission: allow}", Handler(allowed=True)),
        ("{permission: deny, after: 2s}", Handler(allowed=False, after=2 * SECOND)),
        ("{permission: never}", Handler(allowed=None)),
    ],
)
def test_a_handler_answers_every_question_alike(handler: str, wanted: Handler) -> None:
    """Now, after a time, or never."""
    assert bind_drive("[{prompt: a}]", f"handler: {handler}").handler == wanted


def test_a_wait_for_a_limit_that_is_off_is_not_applicable() -> None:
    """A supervisor without it has nothing to be waited for."""
    with pytest.raises(NotApplicable, match=r"line 3 needs prompt_timeout, which"):
        bind_drive("[{prompt: a}, {wait: prompt_timeout}]", policy=Policy(prompt_timeout=None))


def test_an_outcome_of_a_turn_needs_its_limit_as_a_runs_does() -> None:
    """A supervisor without prompt_timeout cannot end a turn by it."""
    with pytest.raises(NotApplicable, match="prompt_timeout"):
        bind_drive("[{prompt: a}]", "expect: {turns: [{outcome: timed_out}]}", policy=Policy(prompt_timeout=None))


def test_a_session_has_no_limit_of_silence_unless_it_is_given_one() -> None:
    """Silence is no fault of an agent that waits for its caller."""

    class Subject:
        def policy(self, request: LimitsRequest) -> Policy:
            return Policy.for_dialect(request.dialect)

    text = "scenario: a\nagent: {dialect: claude, mode: session}\nscript: []\n"
    assert loads(text).request_agent_limits(Subject()).inactivity_timeout is None


def test_turns_become_one_expectation_for_each_leaf() -> None:
    """`catches` names a leaf, and a row of the verdict is one; of background turns the number counts, too."""
    expect = "expect: {turns: [{text: a}, {outcome: failed, elapsed: 1s}], background: [{text: {contains: b}}]}"
    expect = f"{expect[:-1]}, status: [starting, closed], viewers: {{v: {{status: ready, transcript: c}}}}}}"
    assert [
        (expectation.key, expectation.wanted) for expectation in bind_drive("[{prompt: a}, {prompt: b}]", expect).expect
    ] == [
        ("turns.1.text", {"exact": "a"}),
        ("turns.2.outcome", "failed"),
        ("turns.2.elapsed", SECOND),
        ("background", 1),
        ("background.1.text", {"contains": "b"}),
        ("status", ["starting", "closed"]),
        ("viewers.v.status", "ready"),
        ("viewers.v.transcript", {"exact": "c"}),
        ("leaks", []),
    ]


@pytest.mark.parametrize(
    ("drive", "wanted"),
    [
        ("[{prompt: a}, {wait_for: turn 2}]", "3:22: there is no turn 2 yet: one prompt was given before"),
        ("[]", "3:8: drive must have an item: write [{wait: 1s}] for a session that is asked nothing"),
        ("[{wait_for: turn 1}]", "3:9: there is no turn 1 yet: nothing was prompted before"),
        ("[{cancel: {turn: 1}}]", "3:9: there is no turn 1 yet: nothing was prompted before"),
        ("[{detach: v}]", "3:9: no viewer was attached before"),
        ("[{attach: v}, {detach: w}]", '3:22: unknown viewer "w": known is v'),
        (
            "[{wait_for: reddy}]",
            '3:20: drive.wait_for must be turn N, background N, status S, question, tool or message, not "reddy"',
        ),
        ("[{wait_for: status reddy}]", '3:20: unknown status "reddy": did you mean "ready"?'),
        ("[{wait_for: turn one}]", 'not "turn one": count from 1: "turn 1"'),
        ("[{stop: now}]", '3:16: drive.stop must be {}, not "now": write stop: {}'),
        ("[{prompt: a, stop: {}}]", "3:9: drive needs exactly one of prompt, wait_for, wait, cancel, stop, close, "),
        ("[{stop: {}, at: 1s, after: 1s}]", "3:9: drive has both at and after: at is an instant, after counts from "),
        ("[{wait: 1s, after: 1s}]", "3:9: drive.wait takes neither at nor after: it waits as it is"),
        ("hello", "drive must be a list such as"),
    ],
)
def test_a_mistake_in_a_drive_is_reported_with_its_place(drive: str, wanted: str) -> None:
    """An author is shown the item, not the file."""
    assert any(wanted in line for line in list_problems(drive)), list_problems(drive)


def test_a_run_takes_one_prompt_and_nothing_else() -> None:
    """No prompt follows it."""
    (reported,) = list_problems("[{stop: {}}]", agent="pi")
    assert reported == "3:10: drive: stop is for a session: write agent: {dialect: pi, mode: rpc}"
    (reported,) = list_problems("[{prompt: a}, {cancel: {}, at: 1s}]", agent="raw")
    assert reported == (
        "3:23: drive: cancel is for a session: the dialect raw has none, write agent: {dialect: acp}, for example"
    )


@pytest.mark.parametrize(
    ("item", "written"),
    [
        ("cancel: {at: 1s}", "{cancel: {}, at: 1s}"),
        ("cancel: {turn: 1, after: 1s}", "{cancel: {turn: 1}, after: 1s}"),
        ("stop: {at: 1s}", "{stop: {}, at: 1s}"),
        ("close: {at: 1s}", "{close: {}, at: 1s}"),
        ("abandon: {by: scope, at: 1s}", "{abandon: {by: scope}, at: 1s}"),
    ],
)
def test_a_time_within_an_action_is_moved_beside_it(item: str, written: str) -> None:
    """This is the commonest mistake in a drive, and the message has the item to write."""
    (reported,) = list_problems(f"[{{prompt: a}}, {{{item}}}]")
    assert reported.partition(": drive: ")[2].endswith(f" stands beside the action, not in it: write {written}")


def test_a_background_turn_that_nobody_waits_for_is_a_mistake() -> None:
    """The caller closes when its prompts are answered, and the turn would be cut or not, as it happens."""
    text = """scenario: a
agent: {dialect: claude, mode: session}
drive: [{prompt: a}, {wait_for: turn 1}]
script:
  - wait_for: prompt 1
  - task: b
  - answer: c
  - task_done: b
  - background_turn: {task: b, answer: d}
"""
    with pytest.raises(ScenarioError) as caught:
        loads(text, "f13")
    told = "drive ends after turn 1, but the script has a background turn (line 9): add {wait_for: background 1}"
    assert str(caught.value) == f"f13:3:1: {told}"
    loads(text.replace("turn 1}]", "turn 1}, {wait_for: background 1}]"))
    loads(text.replace("turn 1}]", "turn 1}, {close: {}}]"))


def test_keys_of_a_run_and_of_a_session_do_not_mix() -> None:
    """A session has no outcome of its own, a run no turns."""
    (reported,) = list_problems("[{prompt: a}]", "expect: {outcome: completed}")
    assert reported == (
        "5:10: expect.outcome is about a run, and this agent is a session's: write turns: [{outcome: ...}]"
    )
    (reported,) = list_problems("[{prompt: a}]", "expect: {turns: []}", agent="pi")
    assert (
        reported
        == "5:10: expect.turns is about a session, and this agent is a run's: write agent: {dialect: pi, mode: rpc}"
    )


@pytest.mark.parametrize(
    ("handler", "agent", "wanted"),
    [
        ("{permission: allow}", "pi", "5:10: handler answers a session's agent, and this one is a run's"),
        ("{permission: never, after: 1s}", RPC, "5:10: handler never answers: leave after out"),
        ("{permission: allow, raises: true}", RPC, "5:10: handler of a permission has no raises: leave it out"),
        ("{hook: a, after: 1s}", CLAUDE, "5:10: handler of a hook has no after: leave it out"),
        ("{hook: a}", RPC, "5:10: the dialect pi has no hooks: known by claude session"),
        ("{hook: a, registers_at: never, raises: true}", CLAUDE, "5:10: handler never calls back: leave raises and"),
        ("[{hook: a}, {hook: a}]", CLAUDE, '5:10: "a" is given twice in handler'),
        ("{}", RPC, "5:10: handler needs exactly one of permission or hook"),
    ],
)
def test_a_mistake_in_a_handler_is_reported_with_its_place(handler: str, agent: str, wanted: str) -> None:
    """Words beside the wrong thing would never be said."""
    (reported,) = list_problems("[{prompt: a}]", f"handler: {handler}", agent=agent)
    assert reported.startswith(wanted)


def test_only_claude_can_be_asked_for_its_states() -> None:
    """A dialect that has none would be asked for nothing."""
    (reported,) = list_problems("[{prompt: a}]", agent="{dialect: pi, mode: rpc, states: true}")
    assert reported == "2:8: the dialect pi reports no states in mode rpc: known by claude session"


def test_a_handler_can_be_several() -> None:
    """One answer for all questions, and a callback for each hook."""
    handler = "[{permission: deny}, {hook: a}, {hook: b, event: PreToolUse, registers_at: 2s, allowed: false}]"
    text = f"scenario: a\nagent: {CLAUDE}\nhandler: {handler}\nscript: []\n"
    made = loads(text).bind(Policy())
    assert made.handler == Handler(allowed=False)
    assert made.hooks == (
        HookReaction("a", "PostToolUse"),
        HookReaction("b", "PreToolUse", registers_at=2 * SECOND, allowed=False),
    )
