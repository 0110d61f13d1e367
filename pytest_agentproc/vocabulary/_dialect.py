"""The record of a dialect, of the kit's own as of other packages'. Owns the form and its checks; knows no dialect."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_agentproc.vocabulary._command_line import CommandLine


_MEMBERS_OF_DECODERS = ("has_completion", "limit", "decode", "end")
_MEMBERS_OF_SESSION_PROTOCOLS = (
    *("is_marked", "begins_at_once", "answers_cancel"),
    *("encode_greeting", "encode_prompt", "encode_cancel", "encode_answer", "encode_hook_answer", "decode"),
)
_FIELDS_BY_MODE = ("options", "encoders", "task_encoders", "identifying_words", "steps", "signals")
_DOTTED_NAME_PATTERN = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


@dataclass(frozen=True, slots=True)
class SignalReaction:
    """What a CLI does by itself on a signal. `tests/fidelity/signals.py` measures it.

    Args:
        code: its exit code; None: it ignores the signal, and goes on.
        kills_tools: whether it kills the tools that run.
        last_words: what it still prints: "" is nothing, "tools" the ends of the tools that run, and "turn" the end of
            the turn, too.
    """

    code: int | None
    kills_tools: bool = False
    last_words: str = ""


@dataclass(frozen=True, slots=True)
class StdinReading:
    """How a CLI reads stdin before a run although its arguments have the prompt. `tests/fidelity/stdin.py` measures it.

    Args:
        patience: the seconds without a byte after which it goes on without stdin; None: it waits for the end.
        notice: what it prints on stderr before it reads.
        prompt_notice: the same if its prompt is on stdin.
        warning: what it prints on stderr once its patience is over.
        resumed: whether a session that is resumed reads it, too.
    """

    patience: float | None = None
    notice: str = ""
    prompt_notice: str = ""
    warning: str = ""
    resumed: bool = True

    def to_step_values(self, *, has_prompt: bool) -> tuple[int | None, bytes, bytes]:
        """Give the patience in nanoseconds, the notice and the warning, as a program has them."""
        patience = None if self.patience is None else round(self.patience * 1e9)
        notice, warning = (
            f"{text}\n".encode() if text else b""
            for text in (self.notice if has_prompt else self.prompt_notice, self.warning)
        )
        return patience, notice, warning


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """A dialect in both its halves, which share no code and load when they are used.

    Args:
        name: what `agent:` calls it in a scenario.
        encoder: the module whose `Encoder(program)` runs in the fake, dotted as an import writes it; see
            `pytest_agentproc.fake_agents.contracts.Encoder`, and `SessionEncoder` there for sessions. The fake gets the
            module and no package around it, so it may import the standard library, `encoder_parts`, and of
            `pytest_agentproc.fake_agents` lines, objects, program, questions and requests.
        decoders: its modes of one-shot runs, the default first, each with the supervisor's half as
            `package.module:Class`, which is made without arguments; see `supervisor.dialects.Decoder`.
        session_protocols: its modes that hold sessions, in the same way; the class takes a
            `supervisor.dialects.Setting`, see `supervisor.dialects.SessionProtocol`. The default of a dialect that has
            no others is the first one.
        served: its modes that hold sessions as servers, over HTTP: the encoder is a `ServerEncoder` of `contracts`. The
            kit's supervisor speaks with none of them, so only a supervisor that names such a mode is judged with it.
        encoder_parts: modules that the encoder is built on, in the order in which they must be loaded.
        encoders: by mode, the modules of an encoder of its own in that order, the one with `Encoder` last.
        task_encoders: the same for a script with background tasks.
        command: what the fake's executable is called.
        command_line: the arguments that its CLI takes, which the fake obeys; None: it takes any.
        options: by mode, the arguments with which a real supervisor would start such an agent; none if absent.
        model: the model that these arguments ask for; "" if none.
        partials: further arguments that ask for partial messages; empty if there are none of these.
        states: the environment that asks a session's agent to tell its state; empty if it cannot.
        identifying_words: by mode, the words of a command line from which a recording is known to be of that mode.
        identifying_output: a pattern of the output from which a recording is known to be of this version, if the
            record is one of `older`; "" if it cannot be known.
        probes: what the CLI prints for certain arguments, such as `--version`, without starting the agent.
        tells_on_stderr: whether it prints that on stderr if its stdin is no terminal.
        nameless: its modes that never tell which model answers.
        handshakes: its modes with a handshake; None: each that holds sessions.
        steps: by mode, the steps that the encoder can tell beside text; if absent, what the encoder has in `events`.
        lines: by name, lines that its CLI prints beside the steps; the encoder adds what belongs to its session.
        keys: the keys of steps, and what can be acknowledged, that only some dialects have, and this one too: `parent`
            of a tool, for example.
        stop_reasons: what `stop:` of a `say` may be.
        subtypes: what `subtype:` of a `result` may be.
        signals: by mode and the name of a signal, what its CLI does on it; it dies of a signal that is absent.
        stdin: how its runs read stdin before they begin; None: they do not.
        begins: its modes of runs in which its CLI prints the first events of a turn before its model answers.
        silence: the default of `inactivity_timeout` for its agents; None: that of most dialects (A1).
        older: the records of the older versions of the CLI that a scenario may name; each has a version in `probes`.

    Raises:
        UsageError: one of these is not what it must be.
    """

    name: str
    encoder: str
    decoders: Mapping[str, str] = field(default_factory=dict)
    session_protocols: Mapping[str, str] = field(default_factory=dict)
    served: Sequence[str] = ()
    encoder_parts: Sequence[str] = ()
    encoders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    task_encoders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    command: str = "agent"
    command_line: CommandLine | None = None
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    model: str = ""
    partials: Sequence[str] = ()
    states: Mapping[str, str] = field(default_factory=dict)
    identifying_words: Mapping[str, str] = field(default_factory=dict)
    probes: Mapping[str, str] = field(default_factory=dict)
    tells_on_stderr: bool = False
    nameless: Sequence[str] = ()
    handshakes: Sequence[str] | None = None
    steps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    keys: Sequence[str] = ()
    stop_reasons: Sequence[str] = ()
    subtypes: Sequence[str] = ()
    signals: Mapping[str, Mapping[str, SignalReaction]] = field(default_factory=dict)
    stdin: StdinReading | None = None
    begins: Sequence[str] = ()
    silence: float | None = None
    older: Sequence[Dialect] = ()
    identifying_output: str = ""

    def __post_init__(self) -> None:
        self._require("name", self.name, r"[a-z][a-z0-9_-]*", "a word of small letters, such as toy")
        for part in (self.encoder, *_require_list_of_texts(self, "encoder_parts")):
            self._require("encoder", part, _DOTTED_NAME_PATTERN, "a module's dotted name, such as toy_agent.encoder")
        self._require("command", self.command, r"[^/\0]+", "the name of a file, such as toy")
        for name in (*_FIELDS_BY_MODE, "decoders", "session_protocols", "states", "probes"):
            if not hasattr(getattr(self, name), "items"):
                raise UsageError(
                    f"dialect {self.name}: {name} is {getattr(self, name)!r}", "it must be a mapping of modes"
                )
        for mode, place in (*self.decoders.items(), *self.session_protocols.items()):
            self._require("a mode", mode, r"[a-z][a-z0-9_-]*", "a word of small letters, such as text")
            remedy = "package.module:Class, such as toy_agent.decoder:Decoder"
            self._require(
                f"the supervisor's half of mode {mode}",
                place,
                rf"{_DOTTED_NAME_PATTERN}:{_DOTTED_NAME_PATTERN}",
                remedy,
            )
        if not self.modes or len(self.modes) < len(self.decoders) + len(self.session_protocols):
            raise UsageError(
                f"dialect {self.name}: its modes are {', '.join((*self.decoders, *self.session_protocols)) or 'none'}",
                "it must have one at least, and each either in decoders or in session_protocols",
            )
        for name in _FIELDS_BY_MODE:
            for mode in getattr(self, name):
                if mode not in self.modes:
                    raise UsageError(
                        f"dialect {self.name}: there are {name} for mode {mode!r}", f"modes are {', '.join(self.modes)}"
                    )
        for name in ("stop_reasons", "subtypes", "keys", "nameless", "partials", "begins", "served"):
            _require_list_of_texts(self, name)

    def _require(self, what: str, given: Any, form: str, wanted: str) -> None:
        if not isinstance(given, str) or not re.fullmatch(form, given):
            raise UsageError(f"dialect {self.name}: {what} is {given!r}", f"it must be {wanted}")

    @property
    def version(self) -> str:
        """The version of the CLI that its fake imitates; "" if it imitates none."""
        found = re.search(r"\d+(\.\d+)+", self.probes.get("--version", ""))
        return found[0] if found else ""

    @property
    def versions(self) -> tuple[str, ...]:
        """Every version that its fake can imitate, the default first."""
        return tuple(record.version for record in (self, *self.older) if record.version)

    def find_version(self, version: str) -> Dialect | None:
        """Find the record of a version, which may be short, such as 0.73; "" is the default."""
        if not version:
            return self
        records = (self, *self.older)
        return next((record for record in records if f"{record.version}.".startswith(f"{version}.")), None)

    def find_older_version(self, output: str) -> str:
        """Find the older version that printed an output; "" if the newest may have printed it."""
        found = (old for old in self.older if old.identifying_output and re.search(old.identifying_output, output))
        return next((old.version for old in found), "")

    @property
    def modes(self) -> tuple[str, ...]:
        """Every mode, the default first."""
        return tuple(dict.fromkeys((*self.decoders, *self.session_modes)))

    @property
    def session_modes(self) -> tuple[str, ...]:
        """The modes whose agents live on from prompt to prompt."""
        return (*self.session_protocols, *self.served)

    @property
    def default_mode(self) -> str:
        """The mode of an agent of which no mode is told."""
        return self.modes[0]

    @property
    def has_completion_event(self) -> bool:
        """Whether its agent, in one of the modes of runs, says that it is done before it exits."""
        return any(self.make_decoder(mode).has_completion for mode in self.decoders)

    def has_handshake(self, mode: str) -> bool:
        """Say whether an agent in a mode answers a handshake."""
        return mode in (self.session_modes if self.handshakes is None else self.handshakes)

    def list_encoder_modules(self, mode: str, *, has_tasks: bool = False) -> tuple[str, ...]:
        """List the modules of the fake's half of a mode, in the order in which they are loaded; the last has `Encoder`.

        Args:
            mode: the mode.
            has_tasks: whether its script has background tasks.
        """
        own = self.encoders.get(mode, (*self.encoder_parts, self.encoder))
        return tuple(self.task_encoders.get(mode, own) if has_tasks else own)

    def make_decoder(self, mode: str = "") -> Any:
        """Make the decoder of a mode; "" is the first.

        Raises:
            UsageError: there is no such mode, or its decoder cannot be found or made.
        """
        place = self._find_class_path(self.decoders, mode, "")
        return self._make_protocol_object(place, lambda half: half(), _MEMBERS_OF_DECODERS, "decoder", "Decoder")

    def make_session_protocol(self, mode: str = "", setting: Any = None) -> Any:
        """Make the conversation of a mode with one agent process; "" is the first that holds sessions.

        Args:
            mode: the mode.
            setting: what it begins with, as `supervisor.dialects.Setting` says it.

        Raises:
            UsageError: there is no such mode that holds sessions, or its half cannot be found or made.
        """
        place = self._find_class_path(self.session_protocols, mode, " for a session")
        return self._make_protocol_object(
            place, lambda half: half(setting), _MEMBERS_OF_SESSION_PROTOCOLS, "session protocol", "SessionProtocol"
        )

    def _find_class_path(self, modes: Mapping[str, str], mode: str, what: str) -> str:
        if mode not in modes and (mode or not modes):
            raise UsageError(f"mode is {mode!r}, but {self.name} has {', '.join(modes) or 'none'}{what}")
        return modes[mode or next(iter(modes))]

    def _make_protocol_object(
        self, place: str, make: Callable[[Any], Any], members: Sequence[str], what: str, form: str
    ) -> Any:
        module, _, path = place.partition(":")
        try:
            half: Any = importlib.import_module(module)
            for attribute in path.split("."):
                half = getattr(half, attribute)
            protocol_object = make(half)
        except Exception as error:  # it is theirs, whatever it is
            raise UsageError(
                f"dialect {self.name}: its {what} {place} cannot be made, {type(error).__name__}: {error}",
                f"it must be a class as pytest_agentproc.supervisor.dialects.{form} describes it",
            ) from error
        missing = [member for member in members if not hasattr(protocol_object, member)]
        if missing:
            raise UsageError(
                f"dialect {self.name}: its {what} {place} has no {', '.join(missing)}",
                f"pytest_agentproc.supervisor.dialects.{form} says what it must have",
            )
        return protocol_object


def _require_list_of_texts(dialect: Dialect, name: str) -> Sequence[str]:
    given: Sequence[str] = getattr(dialect, name)
    if isinstance(given, str) or not all(isinstance(word, str) for word in given):
        raise UsageError(f"dialect {dialect.name}: {name} is {given!r}", "it must be a list of texts")
    return given
