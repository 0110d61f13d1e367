"""A mistake in a package's addition to the language is reported where a scenario uses it, with the package's name."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.errors import ScenarioError, UsageError
from pytest_agentproc.harness import forecast_run, run_in_model
from pytest_agentproc.scenario import BUNDLED_LANGUAGE, Scenario, ScenarioLanguage, add_dialect, add_step, loads
from pytest_agentproc.subjects import Function, ReferenceSupervisor
from pytest_agentproc.supervisor.dialects import Setting, make_decoder
from pytest_agentproc.vocabulary import Dialect, Policy, ScriptStep
from tests.plugin.toy import CHAT, PACKAGE, SCENARIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENCODER, DECODER = PACKAGE["toy_agent/encoder.py"], PACKAGE["toy_agent/decoder.py"]
MARKS, PROTOCOL = PACKAGE["toy_agent/marks.py"], PACKAGE["toy_agent/protocol.py"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Callable[..., Dialect]:
    """Write a dialect's halves as modules of a name that no other test has."""
    name = f"toy_{abs(hash(request.node.name))}"
    monkeypatch.syspath_prepend(tmp_path)

    def make(encoder: str = ENCODER, decoder: str = DECODER, protocol: str = "", **more: Any) -> Dialect:
        if protocol:
            more["session_protocols"] = {"chat": f"{name}.protocol:Chat"}
        for half, text in (("encoder", encoder), ("decoder", decoder), ("marks", MARKS), ("protocol", protocol)):
            file = tmp_path / name / f"{half}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(text.replace("toy_agent", name))
        how = {
            "encoder": f"{name}.encoder",
            "decoders": {"plain": f"{name}.decoder:Plain", "loud": f"{name}.decoder:Plain"},
        }
        return Dialect(name="toy", **{"encoder_parts": [f"{name}.marks"], **how, **more})

    return make


def extend_language(*added: Dialect | ScriptStep) -> ScenarioLanguage:
    """Give the language with all of these."""
    language = BUNDLED_LANGUAGE
    for addition in added:
        grow: Any = add_dialect if isinstance(addition, Dialect) else add_step
        language = grow(language, addition, "the plugin toy")
    return language


def load_scenario(*steps: str, agent: str = "toy", language: ScenarioLanguage) -> Scenario:
    """Load a scenario with these steps."""
    script = "".join(f"  - {step}\n" for step in steps)
    return loads(f"scenario: a\nagent: {agent}\nscript:\n{script}", language=language)


def list_problems(*steps: str, agent: str = "toy", language: ScenarioLanguage) -> list[str]:
    """List what is wrong with such a scenario."""
    with pytest.raises(ScenarioError) as raised:
        load_scenario(*steps, agent=agent, language=language)
    return [str(problem).removeprefix("<text>:") for problem in raised.value.problems]


BEAT = ScriptStep(name="beat", value=["lub", "dub"], doc="a sign of life")


def say_twice(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Say it, with a silence after it, two times."""
    return [{"say": value["say"]}, {"silence": value["after"]}] * 2


TWICE = ScriptStep(name="twice", value={"say": "text", "after": "time"}, doc="says it twice", expand=say_twice)


def test_a_step_that_stands_for_others_is_them_on_its_own_line() -> None:
    """A failure names a line of the scenario; times of the step may name limits, as everywhere."""
    made = load_scenario(
        "say: a", "twice: {say: b, after: inactivity_timeout - 1s}", agent="raw", language=extend_language(TWICE)
    )
    second = 1_000_000_000
    assert made.bind(Policy(inactivity_timeout=10)).program["steps"] == [
        (4, "say", ("a", None)),
        *[(5, "say", ("b", None)), (5, "sleep", (9 * second,))] * 2,
    ]


def test_a_step_that_stands_for_others_ends_a_script_as_they_would() -> None:
    """Every check of a script's order looks at what is played."""
    quits = ScriptStep(name="quits", value="number", doc="exits", expand=lambda code: [{"say": "bye"}, {"exit": code}])
    assert list_problems("quits: 3", "say: b", agent="raw", language=extend_language(quits)) == [
        "5:5: this step is never reached: exit in line 4 ends the script"
    ]


def test_a_step_of_a_dialect_gets_times_and_sizes_as_numbers(package: Callable[..., Dialect]) -> None:
    """An encoder knows neither units nor limits."""
    toy = package(ENCODER.replace('"beat": self.beat', '"rest": self.beat'))
    rest = ScriptStep(name="rest", value={"time": "time", "room": "size", "times": "number"}, doc="rests")
    language = extend_language(toy, rest)
    made = load_scenario("rest: {time: 2s, room: 1 KiB, times: 3}", language=language)
    value = {"time": 2_000_000_000, "room": 1024, "times": 3}
    assert made.bind(Policy()).program["steps"] == [(4, "event", ("rest", value))]


@pytest.mark.parametrize(
    ("expand", "message"),
    [
        (lambda _: [{"sya": "x"}], 'is wrong: unknown step "sya": did you mean "say"?'),
        (lambda _: [{"silence": "1"}], "is wrong: *unit*"),
        (lambda _: [{"say": object}], "is wrong: no script can have <class 'object'>: *mapping*"),
        (lambda _: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda value: [{"odd": value}], "is wrong: the step odd, which the plugin toy adds, stands for itself"),
    ],
)
def test_a_wrong_expansion_is_the_plugins_at_the_place_of_the_step(expand: Any, message: str) -> None:
    """The author of the scenario has made no mistake, and the message names the package that has."""
    odd = ScriptStep(name="odd", value="text", doc="something", expand=expand)
    [problem] = list_problems("say: a", "odd: x", agent="raw", language=extend_language(odd))
    about = "5:10: the step odd, which the plugin toy adds, "
    head, star, tail = f"{about}{message}".partition("*")
    assert problem.startswith(head)
    assert problem == head if not star else tail.strip("*") in problem


def test_a_wrong_value_of_a_contributed_step_is_the_scenarios() -> None:
    """It is reported like any other step."""
    assert list_problems(
        "twice: {say: b, aftr: 1s}", "beta: lub", agent="raw", language=extend_language(TWICE, BEAT)
    ) == [
        '4:21: unknown key in twice "aftr": did you mean "after"?',
        '5:5: unknown step "beta": did you mean "beat"?',
    ]


def test_a_message_names_the_steps_modes_and_reasons_of_a_dialect(package: Callable[..., Dialect]) -> None:
    """Messages count a contributed dialect among the known ones."""
    language = extend_language(package(stop_reasons=["full"]), BEAT)
    assert list_problems("beat: lub", agent="raw", language=language) == [
        "4:11: the dialect raw has no beat in mode text: known by toy plain or toy loud"
    ]
    thinkers = (
        "claude print, claude session, pi json, pi rpc, codex exec, codex app-server, opencode run, opencode serve or "
        "acp session"
    )
    assert list_problems("beat: lubb", "think: hm", "say: {text: a, stop: ful}", language=language) == [
        '4:11: unknown beat "lubb": did you mean "lub"?',
        f"5:12: the dialect toy has no think in mode plain: known by {thinkers}",
        '6:10: unknown stop reason "ful": did you mean "full"?',
    ]
    [mode] = list_problems("say: a", agent="{dialect: toy, mode: lout}", language=language)
    assert mode == '2:8: the dialect toy has no mode "lout": known are plain or loud'
    assert list_problems("say: a", agent="toi", language=language) == [
        '2:8: unknown dialect "toi": did you mean "toy"?'
    ]
    assert list_problems("beat: lub", agent="raw", language=extend_language(BEAT)) == [
        "4:11: the dialect raw has no beat in mode text: no dialect here has it"
    ]


@pytest.mark.parametrize(
    ("encoder", "decoder", "message"),
    [
        (
            ENCODER.replace("from __future__ import annotations", "import yaml"),
            DECODER,
            "encoder.py:1 imports yaml, which",
        ),
        (
            ENCODER.replace("toy_agent.marks", "toy_agent.other"),
            DECODER,
            ".other, which a fake does not have: it has the ",
        ),
        (
            ENCODER.replace("def encode_answer", "def reply"),
            DECODER,
            ".encoder lacks encode_answer in mode plain: pytest_agentproc.fake_agents.contracts.Encoder says ",
        ),
        (
            ENCODER.replace('"stdout"', '"out"'),
            DECODER,
            ".encoder lacks error_stream (stdout or stderr) in mode plain: ",
        ),
        (ENCODER.replace("def Encoder", "def Coder"), DECODER, "raised AttributeError: "),
        (ENCODER, DECODER.replace("class Plain", "class Other"), ":Plain cannot be made, AttributeError: "),
        (ENCODER, DECODER.replace("def end", "def stop"), ":Plain has no end: pytest_agentproc.supervisor.dialects."),
    ],
)
def test_a_half_that_cannot_be_used_is_named_where_the_dialect_is(
    package: Callable[..., Dialect], encoder: str, decoder: str, message: str
) -> None:
    """Without it a fake would die at its start, far from whoever can mend it."""
    [problem] = list_problems("say: a", language=extend_language(package(encoder, decoder)))
    assert problem.startswith("2:8: the dialect toy, which the plugin toy adds, cannot be used: ")
    assert message in problem


def test_a_session_protocol_that_cannot_be_made_is_named_too(package: Callable[..., Dialect]) -> None:
    """A dialect is whole or cannot be used: also its other modes are under suspicion."""
    language = extend_language(package(session_protocols={"chat": "toy_agent.protocol:Chat"}))
    assert list_problems("say: a", language=language)[0].startswith(
        "2:8: the dialect toy, which the plugin toy adds, cannot be used: its session protocol "
        "toy_agent.protocol:Chat cannot be made, "
    )


def test_a_host_is_asked_for_more_than_an_encoder(package: Callable[..., Dialect]) -> None:
    """A session calls methods that a run never calls; its words are heard, asked and waited for."""
    toy = package(ENCODER.replace("def has_received_prompt", "def had"), protocol=PROTOCOL)
    [problem] = list_problems("say: a", language=extend_language(toy))
    assert problem.endswith(
        ".encoder lacks has_received_prompt in mode chat: "
        "pytest_agentproc.fake_agents.contracts.SessionEncoder says what it must have"
    )


def test_a_session_of_a_contributed_dialect_is_one(package: Callable[..., Dialect]) -> None:
    """Its mode stands beside the kit's in every message, and its agent lives on."""
    language = extend_language(package(protocol=PROTOCOL))
    able = "claude session, pi rpc, codex app-server, opencode serve, acp session or toy chat"
    assert list_problems("wait_for: prompt 1", language=language) == [
        f"4:15: the dialect toy receives no prompt in mode plain: known by {able}"
    ]
    made = load_scenario("wait_for: prompt 1", "answer: hi", agent="{dialect: toy, mode: chat}", language=language)
    assert made.is_session
    assert made.bind(Policy()).program["serves"] is True


def test_a_session_protocol_may_read_every_part_of_its_setting(package: Callable[..., Dialect]) -> None:
    """It is made once without a session, from all that a session gives it."""
    names = [field.name for field in fields(Setting)]
    protocol = PROTOCOL.replace("        pass\n", f"        [getattr(setting, name) for name in {names}]\n", 1)
    assert protocol != PROTOCOL
    language = extend_language(package(protocol=protocol))
    assert load_scenario("wait_for: prompt 1", agent="{dialect: toy, mode: chat}", language=language).is_session


def test_a_module_that_is_not_there_is_named(package: Callable[..., Dialect]) -> None:
    """A name is misspelt sooner than a class is wrong."""
    [problem] = list_problems(
        "say: a", language=extend_language(package(encoder="", decoder="", encoder_parts=["no.such"]))
    )
    assert "cannot be used: there is no module no.such (No module named 'no'): name it as an import would" in problem


def test_the_model_plays_a_contributed_dialect(package: Callable[..., Dialect]) -> None:
    """Real time is paced by what the model foresees."""
    pulse = ScriptStep(
        name="pulse",
        value={"every": "time", "times": "number"},
        doc="some beats",
        expand=lambda value: [{"silence": value["every"]}, {"beat": "lub"}] * value["times"],
    )
    made = loads(SCENARIO, language=extend_language(package(), BEAT, pulse))
    foreseen = forecast_run(made, made.request_limits(ReferenceSupervisor()))
    assert (foreseen.margin, foreseen.duration, foreseen.fault) == (5_000_000_000, 15_000_000_000, "")


def test_the_model_holds_sessions_of_a_contributed_dialect(package: Callable[..., Dialect]) -> None:
    """The session protocol is made anew for each agent, in memory as for real."""
    played = run_in_model(
        loads(CHAT, language=extend_language(package(protocol=PROTOCOL), BEAT)), ReferenceSupervisor()
    )
    assert played.answer is not None
    assert [(turn.outcome, turn.text) for turn in played.answer.turns or ()] == [
        ("timed_out", None),
        ("completed", "built"),
    ]


def test_a_subject_claims_a_contributed_dialect_by_itself(package: Callable[..., Dialect]) -> None:
    """Its name alone is no word that another author's function could be held to."""
    toy = package()
    assert Function(print, dialects=["raw", toy]).dialects == ("raw", "toy")
    with pytest.raises(UsageError, match="there is no dialect 'toy'"):
        Function(print, dialects=["toy"])


def test_the_reference_reads_it_without_pytest(package: Callable[..., Dialect]) -> None:
    """The production side needs no plugin, and refuses a mode that there is not."""
    toy = package()
    assert [str(meaning) for meaning in make_decoder(toy, "loud").decode(b">hi")] == [
        str(meaning) for meaning in make_decoder(toy).decode(b">hi")
    ]
    with pytest.raises(UsageError, match="mode is 'soft', but toy has plain, loud"):
        make_decoder(toy, "soft")
