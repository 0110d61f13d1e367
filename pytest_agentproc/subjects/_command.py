"""A program as the supervisor under test. Owns its start and the meaning of its end; keeps no time of its own."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from pytest_agentproc.errors import AdapterError, Declined, UsageError
from pytest_agentproc.events import FieldMissing, ProgramEnded, ScaleIgnored
from pytest_agentproc.files import read_file
from pytest_agentproc.originals import which
from pytest_agentproc.subjects._limit_statements import (
    has_time_limit,
    require_cannot_words,
    require_dialects,
    require_first_signal,
    require_limits,
    require_outcomes,
)
from pytest_agentproc.subjects._program_report import ProgramEnd, parse_field_sources, read_report_fields
from pytest_agentproc.subjects._report_reading import read_answer
from pytest_agentproc.vocabulary import (
    LIMITS_IN_SECONDS,
    LIMITS_OFF_IF_UNSTATED,
    NANOSECONDS_PER_SECOND,
    LimitsRequest,
    Policy,
    RunReport,
    RunRequest,
    format_signal_name,
    mark_unstated_limits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence


_PLACEHOLDER_PATTERN = re.compile(r"\{([a-z_]+)\}")
_MISSPELLED_PLACEHOLDER_PATTERN = re.compile(r"\{([A-Za-z_]+)\}")
_PLACEHOLDER_NAMES = ("agent", "agent_path", "prompt", "prompt_file", "folder", "here", "scale", *LIMITS_IN_SECONDS)
_EXAMPLE_OF_A_COMMAND = (
    'write Command(["my-supervisor", "--timeout", "{inactivity_timeout}", "--", "{agent}"]), for example'
)

_MAX_EXIT_CODE = 255
_STDIN_DESCRIPTOR = 0
_MAX_OUTPUT_BYTES = 64 * 1024**2
"""So many bytes a file may have in which it says how it ended, and so many it may print on a stream."""
_BYTES_PER_READ = 1 << 16

_BYTES_IN_OUTPUT_TAIL = 128 * 1024
"""So many bytes of its stderr are kept: the last ones. Java prints the error first, and up to 1,024 lines after it."""

_DEFAULT_SECONDS_OF_PLACEHOLDERS = {
    "inactivity_timeout": 60.0,
    "internal_tool_timeout": 180.0,
    "linger_grace": 3.0,
    "linger_kill_grace": 3.0,
    "leftover_kill_grace": 3.0,
    "kill_grace": 6.0,
}
"""The value of a limit, in seconds, where a scenario sets none. In real time a grace of a quarter of a second makes the
whole play slow, and a silence of minutes is too slow to be played at all."""

_INTERPRETER_NAME_PATTERN = re.compile(r"python[\d.]*|node|bun|deno|ruby|perl|php|tsx|(ba|da|z)?sh")
_SCRIPT_FILE_PATTERN = re.compile(r"[^{}\s]+\.(py|[cm]?[jt]s|rb|pl|php|sh)")
_HOW_TO_NAME_AN_EXECUTABLE = "name an executable on PATH, or by its path from the folder where the command runs"


class Command:
    """A program that runs an agent: started once for a scenario, below a keeper, in virtual time if that can reach it.

    Each process that it leaves is found, a fake or not, noted, and ended. A missing report makes the check undecided,
    or it is not made. It holds no sessions and keeps no artifacts.

    In the words of the command, and in the values of `env`, stand `{agent}` for the agent's command (a word of its own
    becomes several, elsewhere it is quoted for a shell), `{agent_path}` for the agent's executable alone, `{prompt}`
    for the prompt, `{prompt_file}` for the path of a file with the prompt, `{folder}` for a folder of the run's own,
    empty at first, `{here}` for the folder where the command runs, and the name of a limit, such as
    `{inactivity_timeout}`, for that limit in seconds: the scenario's, the stated one, or a default. In real time it is
    divided already, and `{scale}` is the number by which durations are divided; without it a program with limits of its
    own is played at scale 1. Its stdin is the prompt if the agent's is, or with `prompt_on_stdin`. Else it inherits
    the stdin of this process, which is an open pipe without data while a scenario is played.

    Args:
        argv: its command.
        limits: limits that it keeps by itself, in seconds or as `Policy` has them.
        name: what the verdict calls it; None: the last part of the command's first word.
        env: variables that it needs beside those of this process; the agent's own are added.
        says: what of its end says which field of a `RunReport`, such as `{"outcome": {"exit_code": {0: "completed",
            124:
            "inactive", "other": "failed"}}, "text": {"json": "result.json", "key": "answer"}}`, with files of
            `{folder}`; its own exit code counts as the answer's only if `{"exit_code": "exit_code"}` is there. None:
            its exit code is all it says.
        dialects: the dialects whose agents it can run; see `Function`.
        cannot: what it cannot do, such as `["stdin"]`; see `Function`. Its environment is its own in any case, and the
            command line, too, if `{agent}` does not stand in the command.
        outcomes: the outcomes that it can tell apart; see `Function`.
        first_signal: with which it begins to end an agent; see `Function`.
        declines: `{"exit_code": 77}` says that it exits with code 77, and has started no agent, if it cannot take an
            order: the scenario is not applicable, and the last line of its stderr is the reason.
        prompt_on_stdin: whether it reads the prompt from its stdin, however the agent gets it.
        on_path: whether it starts the agent by its name on PATH (`claude`, `pi`, `codex`, `gemini`; else `agent`).
        cwd: where it runs; None: where this process does.

    A limit of `vocabulary.LIMITS_OFF_IF_UNSTATED` that it is neither given nor keeps, it does not have. Any other of
    these is unstated; see `Function`.

    Raises:
        UsageError: no command, no `{agent}` in it, a word in braces that stands for nothing or has no value, or a
            limit, a dialect or a field that does not exist.
    """

    keeps_artifacts = False
    holds_sessions = False
    needs_keeper = True

    def __init__(
        self,
        argv: Sequence[str],
        *,
        limits: Mapping[str, Any] | None = None,
        name: str | None = None,
        env: Mapping[str, str] | None = None,
        says: Mapping[str, Any] | None = None,
        dialects: Iterable[str] | None = None,
        declines: Mapping[str, int] | None = None,
        cannot: Iterable[str] = (),
        outcomes: Iterable[str] = (),
        first_signal: str = "TERM",
        prompt_on_stdin: bool = False,
        on_path: bool = False,
        cwd: str | None = None,
    ) -> None:
        if isinstance(argv, str) or not argv or not all(isinstance(word, str) for word in argv):
            raise UsageError(f"the command {argv!r} must be a list of words", _EXAMPLE_OF_A_COMMAND)
        self.argv = tuple(argv)
        self._env = dict(env or {})
        placeholders = {
            word for part in (*self.argv, *self._env.values()) for word in _PLACEHOLDER_PATTERN.findall(part)
        }
        for word in sorted(placeholders - set(_PLACEHOLDER_NAMES)):
            raise UsageError(
                f"{{{word}}} in the command stands for nothing", f"known are {', '.join(_PLACEHOLDER_NAMES)}"
            )
        for found in (
            found
            for part in (*self.argv, *self._env.values())
            for found in _MISSPELLED_PLACEHOLDER_PATTERN.finditer(part)
        ):
            if found[0] != f"{{{found[1].lower()}}}" and (word := found[1].lower()) in _PLACEHOLDER_NAMES:
                raise UsageError(f"{found[0]} in the command stands for nothing", f"write {{{word}}}")
        if not {"agent", "agent_path"} & placeholders and not on_path:
            remedy = f"{_EXAMPLE_OF_A_COMMAND}; or say on_path, if it finds the agent on PATH"
            raise UsageError(f"the command {argv!r} must be a list of words with {{agent}} among them", remedy)
        self.name = name or Path(argv[0]).name
        self.dialects = require_dialects(dialects)
        self.cannot = (*require_cannot_words(cannot), "env", *(() if "agent" in placeholders else ("argv",)))
        self.outcomes = require_outcomes(outcomes)
        self.first_signal = require_first_signal(first_signal)
        given: Mapping[str, Any] = {"exit_code": "exit_code"} if says is None else says
        parse_field_sources(given)  # a mistake in it is one of the caller's
        self._declines = _parse_decline_code(declines)
        self._says = given
        self._limits = require_limits(limits or {})
        self._told = frozenset(placeholders) & frozenset(LIMITS_IN_SECONDS)
        for limit in sorted(self._told):
            if self._limits.get(limit, _DEFAULT_SECONDS_OF_PLACEHOLDERS.get(limit, getattr(Policy(), limit))) is None:
                raise UsageError(
                    f"{{{limit}}} in the command has no value where a scenario sets none",
                    f"state one under limits, such as {limit} = 3600, or take the word away",
                )
        own = {limit: value for limit, value in self._limits.items() if limit not in self._told}
        self.is_scaled = "scale" in placeholders or not has_time_limit(own)
        """Whether its limits follow the scale of real time; else it is right at scale 1 only."""
        self._prompt_on_stdin = prompt_on_stdin
        self._cwd = cwd

    def require_files(self) -> None:
        """Look whether the program, and the script that an interpreter is to run, are there.

        Raises:
            UsageError: one of them is not.
        """
        here, program = self._cwd or str(Path.cwd()), self.argv[0]
        if program == "{agent}":
            return  # the fake itself: a supervisor that adds nothing
        is_there = Path(here, program).exists() if os.sep in program else which(program) is not None
        if not is_there:
            raise UsageError(f"{program} is not there", _HOW_TO_NAME_AN_EXECUTABLE)
        if _INTERPRETER_NAME_PATTERN.fullmatch(Path(program).name):
            script = next((word for word in self.argv[1:] if not word.startswith("-")), "")
            if _SCRIPT_FILE_PATTERN.fullmatch(script) and not Path(here, script).exists():
                raise UsageError(f"there is no {script} in {here}", "name the file by its path from there")

    def policy(self, request: LimitsRequest) -> Policy:
        """Take the limits that it can be given; of the others it has the limits that it keeps by itself."""
        default = Policy.for_dialect(request.dialect)
        limits: dict[str, Any] = {name: None for name in LIMITS_OFF_IF_UNSTATED if name not in self._told}
        limits |= {
            name: _DEFAULT_SECONDS_OF_PLACEHOLDERS.get(name, getattr(default, name)) for name in self._told
        } | self._limits
        limits |= {name: value for name, value in request.limits.items() if name in self._told}
        return mark_unstated_limits(Policy.for_dialect(request.dialect, **limits), {*self._told, *self._limits})

    async def run(self, order: RunRequest) -> RunReport:
        """Start it below the order's keeper and wait for its end, as long as the caller lets it.

        Raises:
            AdapterError: it could not be started, it prints without end, or what it says is no answer.
            Declined: its exit code says that it cannot take the order.
        """
        if not self.is_scaled and order.scale != 1:
            order.trace(ScaleIgnored(order.clock.instant(), "supervisor", "{scale}"))
        with tempfile.TemporaryDirectory(prefix="agentproc-") as base:
            folder = make_run_folder(base, order.prompt)
            status, stdout, stderr = await self._run_program_to_end(order, folder)
            end = ProgramEnd(
                status if status >= 0 else 128 - status, stdout, lambda name: _read_text_if_exists(Path(folder, name))
            )
            record_end(order, status, stderr)
            if self._declines is not None and status == self._declines:
                raise Declined(stderr.strip().rpartition("\n")[2] or f"it exits with code {status}")
            fields, missing = read_report_fields(parse_field_sources(self._says), end)
            for field, why in missing.items():
                order.trace(FieldMissing(order.clock.instant(), "supervisor", field, why))
            return read_answer(fields, order.scale)

    async def _run_program_to_end(self, order: RunRequest, folder: str) -> tuple[int, str, str]:
        keeper = order.keeper
        self.require_no_real_agent(order)
        start = self.make_start_arguments(order, make_placeholder_values(order, folder, self.working_folder))
        with (
            tempfile.TemporaryFile() as given,
            OutputStream("stdout") as told,
            OutputStream("stderr") as rest,
            ExitStack() as ends,
            ExitStack() as held,
        ):
            is_given = self._prompt_on_stdin or order.prompt_by == "stdin"
            given.write(order.prompt.encode())
            given.seek(0)
            stdin = _STDIN_DESCRIPTOR
            if is_given:
                stdin = given.fileno()
            elif order.left is not None:
                stdin, open_end = os.pipe2(os.O_CLOEXEC)
                ends.callback(os.close, stdin)
                held.callback(os.close, open_end)
            try:
                pid = keeper.start(*start, (stdin, told.given, rest.given))
            except OSError as error:
                if error.errno == errno.E2BIG:
                    raise Declined("the prompt makes its command line too long") from None
                raise AdapterError(
                    f"{error.filename} could not be started: {error.strerror}\n{_HOW_TO_NAME_AN_EXECUTABLE}"
                ) from None
            try:
                await _wait_for_end(pid, (told, rest), partial(end_with_caller, order, pid, held.close))
            except anyio.get_cancelled_exc_class():
                # The traceback that explains why a supervisor hangs is often on its stderr.
                rest.read_available()
                record_given_up(order, rest.tail_text)
                raise
            status = keeper.read_status(pid)
            keeper.reap(pid)
            return status, told.data.decode(errors="replace"), rest.tail_text

    @property
    def working_folder(self) -> str:
        """The folder where it runs."""
        return self._cwd or str(Path.cwd())

    def make_start_arguments(
        self, order: RunRequest, values: Mapping[str, str]
    ) -> tuple[list[str], str, dict[str, str]]:
        """Give its words, where it runs, and its environment."""
        own = {
            name: _PLACEHOLDER_PATTERN.sub(lambda found: values[found[1]], value) for name, value in self._env.items()
        }
        path = f"{order.env['PATH']}:{os.environ.get('PATH', '')}"
        return (
            self._make_command_line(order, values),
            self.working_folder,
            {**os.environ, **order.env, **own, "PATH": path},
        )

    def require_no_real_agent(self, order: RunRequest) -> None:
        """Decline where a program that looks for its agent on PATH would find a real one in place of none."""
        agent = Path(order.argv[0]).name
        if "argv" in self.cannot and which(agent, path=order.env["PATH"]) is None and which(agent):
            raise Declined(f"a real {agent} is on PATH, and the scenario is about one that cannot be started")

    def _make_command_line(self, order: RunRequest, values: Mapping[str, str]) -> list[str]:
        words: list[str] = []
        for word in self.argv:
            words += (
                order.argv if word == "{agent}" else [_PLACEHOLDER_PATTERN.sub(lambda found: values[found[1]], word)]
            )
        return words


class OutputStream:
    """What a program prints on one of its streams.

    It is a pipe that each holder could read, too: a process that outlives the program gets no SIGPIPE, and is found. No
    look at a file from time to time: in virtual time each look is a step, and a program that prints on and on lets no
    time pass.
    """

    def __init__(self, name: str) -> None:
        self.data = bytearray()
        self._name = name
        self.source, end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.given = os.open(f"/proc/self/fd/{end}", os.O_RDWR | os.O_CLOEXEC)
        os.close(end)

    def __enter__(self) -> OutputStream:  # noqa: PYI034  # it has no subclass
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.source)
        os.close(self.given)

    @property
    def tail_text(self) -> str:
        """The last bytes, as text."""
        return self.data[-_BYTES_IN_OUTPUT_TAIL:].decode(errors="replace")

    async def read_until_cancelled(self) -> None:
        """Read what the program prints, until this task is cancelled.

        Raises:
            AdapterError: it printed more than anybody reads.
        """
        while True:
            await anyio.wait_readable(self.source)
            self.read_available()

    def read_available(self) -> None:
        """Read what the pipe holds now."""
        with suppress(BlockingIOError):
            while data := os.read(self.source, _BYTES_PER_READ):
                self.data += data
                if len(self.data) > _MAX_OUTPUT_BYTES:
                    excess = f"it printed more than {_MAX_OUTPUT_BYTES} bytes on its {self._name}, and was ended"
                    raise AdapterError(f"{excess}\nhave it print less there")


async def _wait_for_end(
    pid: int, streams: Sequence[OutputStream], end_with_caller: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Wait for the end of a program, and take what it prints; its caller may end it.

    Raises:
        AdapterError: it printed more on a stream than anybody reads.
    """
    pidfd = os.pidfd_open(pid)
    try:
        async with anyio.create_task_group() as group:
            for stream in streams:
                group.start_soon(stream.read_until_cancelled)
            group.start_soon(end_with_caller)
            await anyio.wait_readable(pidfd)
            group.cancel_scope.cancel()
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        os.close(pidfd)
    for stream in streams:
        stream.read_available()


async def end_with_caller(order: RunRequest, pid: int, end_stdin: Callable[[], None]) -> None:
    """End a program at the instant at which its caller goes away and takes it along; see `RunRequest.left`.

    Args:
        order: the order of the program.
        pid: the program, which leads a session and is not reaped.
        end_stdin: ends its stdin.
    """
    if order.left is None:
        return
    wait = (order.left.at or order.left.after or 0) - order.clock.instant()
    await anyio.sleep(max(0, wait) / NANOSECONDS_PER_SECOND / order.scale)
    order.trace(order.left.make_event(order.clock.instant()))
    if order.left.value == "kill":
        os.kill(pid, signal.SIGKILL)
    else:
        os.killpg(pid, signal.SIGHUP)  # as the kernel does for the processes of a terminal
        end_stdin()


def record_end(order: RunRequest, status: int, stderr: str) -> None:
    """Note in the record how the program ended, and the end of what it printed on stderr."""
    ended = f"exits with code {status}" if status >= 0 else f"dies of {format_signal_name(-status)}"
    order.trace(ProgramEnded(order.clock.instant(), "supervisor", ended, status, stderr))


def record_given_up(order: RunRequest, stderr: str) -> None:
    """Note in the record that the program has not ended, and the end of what it printed on stderr."""
    order.trace(ProgramEnded(order.clock.instant(), "supervisor", "is given up", 0, stderr))


def make_run_folder(base: str, prompt: str) -> str:
    """Make the run's own folder, with the prompt in a file beside it."""
    folder = Path(base, "run")
    folder.mkdir()
    folder.with_name("prompt").write_text(prompt, "utf-8")
    return str(folder)


def _parse_decline_code(declines: Any) -> int | None:
    if declines is None:
        return None
    code = declines.get("exit_code") if isinstance(declines, Mapping) and len(declines) == 1 else None
    if isinstance(code, bool) or not isinstance(code, int) or not 0 < code <= _MAX_EXIT_CODE:
        raise UsageError(f"declines is {declines!r}", 'write declines={"exit_code": 77}, with a code from 1 to 255')
    return code


def make_placeholder_values(order: RunRequest, folder: str, here: str) -> dict[str, str]:
    """Give what each word in braces stands for."""
    limits = {
        name: "" if limit is None else f"{limit / NANOSECONDS_PER_SECOND / order.scale:g}"
        for name, limit in order.policy.nanoseconds().items()
    }
    own = {"agent": shlex.join(order.argv), "prompt": order.prompt, "folder": folder, "here": here}
    own["agent_path"] = order.argv[0]
    own["prompt_file"] = str(Path(folder).with_name("prompt"))
    return {**limits, **own, "scale": f"{order.scale:g}"}


def _read_text_if_exists(path: Path) -> str | None:
    try:
        return read_file(path, _MAX_OUTPUT_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return None
