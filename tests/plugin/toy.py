"""A package of another author that adds a dialect, two steps and a defect: its files. Knows nothing of the tests."""

from __future__ import annotations

__all__ = ["CHAT", "PACKAGE", "SCENARIO", "TESTS"]

PACKAGE = {
    "toy_agent/__init__.py": """\
raise_if_in_a_fake = __file__  # the package itself stays at home
""",
    "toy_agent/plugin.py": """\
from pytest_agentproc.vocabulary import Dialect, ScriptStep

TOY = Dialect(
    name="toy",
    encoder="toy_agent.encoder",
    encoder_parts=["toy_agent.marks"],
    decoders={"plain": "toy_agent.decoder:Plain", "loud": "toy_agent.decoder:Plain"},
    command="toy",
    options={"loud": ["--loud"], "chat": ["--chat"]},
    session_protocols={"chat": "toy_agent.protocol:Chat"},
    stop_reasons=["full"],
)


def pytest_agentproc_dialects(config):
    return [TOY]


def pulses(value):
    return [{"silence": value["every"]}, {"beat": "lub"}] * value["times"]


def pytest_agentproc_steps(config):
    return [
        ScriptStep(name="beat", value=["lub", "dub"], doc="a sign of life"),
        ScriptStep(name="pulse", value={"every": "time", "times": "number"}, doc="some beats", expand=pulses),
    ]


def pytest_agentproc_defects(config):
    from pytest_agentproc.defects import Defect
    from pytest_agentproc.supervisor import Deciders
    from toy_agent.wrong import DeafWatchdog

    return [Defect("beats-are-noise", "A8", "takes a beat for no progress", deciders=Deciders(watchdog=DeafWatchdog))]
""",
    "toy_agent/marks.py": """\
BEAT, SAID, DONE, FAILED = b"~", b">", b"=", b"!"
""",
    "toy_agent/encoder.py": """\
from __future__ import annotations

from pytest_agentproc.fake_agents.lines import Lines
from pytest_agentproc.fake_agents.questions import ClientQuestions
from toy_agent.marks import BEAT, DONE, FAILED, SAID


def Encoder(program):
    return Host(program) if program["mode"] == "chat" else Plain(program)


class Plain:
    error_is_exit = False
    error_stream = "stdout"

    def __init__(self, program):
        self._lines = Lines(program)
        self._is_loud = program["mode"] == "loud"
        self.events = {"beat": self.beat}

    def encode_text(self, text, stop, now):
        return self._lines.join([SAID + (text.upper() if self._is_loud else text).encode()])

    def encode_answer(self, text, now):
        return self.encode_text(text, None, now) + self._lines.join([DONE])

    def encode_result(self, fields, now):
        return self._lines.join([(FAILED if fields["is_error"] else DONE) + (fields["text"] or "").encode()])

    def beat(self, sound, now):
        return self._lines.join([BEAT + sound.encode()])


class Host(Plain):
    code = version = 0
    history = ()

    def __init__(self, program):
        super().__init__(program)
        self.questions = ClientQuestions()
        self._prompts = 0

    def handle_request(self, request, now):
        word = request.split()[0]
        self._prompts += word == b"prompt"
        if word == b"hello":
            return self._lines.join([b"welcome"]), "handshake"
        return b"", "cancel" if word == b"cancel" else ""

    def take_late_answers(self):
        return b""

    def note_stdin_end(self):
        pass

    def encode_handshake_refusal(self, request, error):
        return self._lines.join([b"unwelcome " + error.encode()])

    def has_received_prompt(self, number):
        return self._prompts >= number

    def begin_prompt_turn(self, number, now):
        return self._lines.join([b"@%d" % number])

    def end_cancelled_turn(self, now):
        return self._lines.join([FAILED + b"cancelled"])
""",
    "toy_agent/decoder.py": """\
from pytest_agentproc.supervisor.dialects import Finished, Message, Noise, Other


class Plain:
    has_completion = True
    limit = None

    def decode(self, line):
        mark, text = line[:1], line[1:].decode()
        if mark == b"~":
            return [Other("beat")]
        if mark == b">":
            return [Message(text)]
        if mark in (b"=", b"!"):
            return [Finished(mark == b"=", error=text)]
        return [Noise(line)]

    def end(self, stderr):
        return []
""",
    "toy_agent/protocol.py": """\
from pytest_agentproc.supervisor.dialects import (
    Finished, HandshakeDone, HandshakeRefused, Message, Noise, Other, TurnBegun
)


class Chat:
    is_marked, begins_at_once, answers_cancel = True, False, False

    def __init__(self, setting):
        pass

    def encode_greeting(self):
        return b"hello\\n"

    def encode_prompt(self, number, text):
        return f"prompt {number} {text}\\n".encode()

    def encode_cancel(self, number):
        return b"cancel\\n"

    def encode_answer(self, question, *, allowed):
        return b""

    def encode_hook_answer(self, hook, refusal=""):
        return b""

    def decode(self, line):
        word, _, rest = line.decode().partition(" ")
        if word == "welcome":
            return [HandshakeDone()]
        if word == "unwelcome":
            return [HandshakeRefused(rest)]
        mark, text = line[:1], line[1:].decode()
        if mark == b"@":
            return [TurnBegun((int(text),))]
        if mark == b">":
            return [Message(text)]
        if mark in (b"=", b"!"):
            return [Finished(mark == b"=", error=text)]
        return [Other("beat") if mark == b"~" else Noise(line)]
""",
    "toy_agent/wrong.py": """\
from pytest_agentproc.supervisor import Watchdog
from pytest_agentproc.supervisor.dialects import Other


class DeafWatchdog(Watchdog):
    def is_progress(self, meaning):
        return not isinstance(meaning, Other) and super().is_progress(meaning)
""",
    "toy_agent-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: toy-agent\nVersion: 1.0\n",
    "toy_agent-1.0.dist-info/entry_points.txt": "[pytest11]\ntoy = toy_agent.plugin\n",
}

SCENARIO = """\
scenario: an agent that beats is at work
agent: {dialect: toy, mode: loud}
policy: {progress_timeout: 10s, linger_grace: 10s}
script:
  - pulse: {every: 5s, times: 3}
  - answer: built
expect:
  outcome: completed
  text: BUILT
  elapsed: 15s
  received: {argv: [--loud, hi]}
catches: {beats-are-noise: outcome}
"""

CHAT = """\
scenario: a prompt that takes too long is cancelled, and the agent lives on
agent: {dialect: toy, mode: chat}
policy: {prompt_timeout: 1m}
drive: [{prompt: build}, {wait_for: turn 1}, {prompt: again}]
script:
  - handshake: {after: 2s}
  - wait_for: prompt 1
  - wait_for: cancel
  - beat: lub
  - acknowledge: cancel
  - wait_for: prompt 2
  - answer: built
expect:
  turns: [{outcome: timed_out}, {text: built}]
  spawns: [0]
  received: {argv: [--chat]}
"""

TESTS = """\
from functools import partial

from pytest_agentproc.supervisor import run_once
from toy_agent.plugin import TOY

SCRIPT = [{"beat": "dub"}, {"pulse": {"every": "2s", "times": 1}}, {"answer": "hi"}]


def test_by_hand(fake_agent, virtual_clock):
    agent = fake_agent({"agent": "toy", "script": SCRIPT})
    result = virtual_clock.run(partial(run_once, agent.argv, dialect=TOY))
    assert (result.outcome, result.text, virtual_clock.now) == ("completed", "hi", 2)


def test_run(agent_run):
    run = agent_run({"agent": "toy", "script": [{"result": {"text": "no", "is_error": True}}]})
    assert run.outcome == "failed"
"""
