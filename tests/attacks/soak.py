"""A soak test by hand: one process plays random scenarios for minutes, and random faults meet it. It prints figures.

    nice python -m tests.attacks.soak --minutes 120 --seed 7

The supervisors are the kit's own and its defects, the examples of the tests with one fault each, and programs below a
coordinator. A play without a fault must have the verdict that is known: by the model, or by an earlier play. A play
that a fault met has that verdict, too, if the fault did not matter. Otherwise it has an error, and never a verdict.
The seed and the number of a play decide all of it but its speed: `--first 40 --plays 1` makes play 40 again.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.defects import DEFECTS
from pytest_agentproc.errors import AgentprocError, NotApplicable
from pytest_agentproc.harness import NotForRealTime, ScenarioRunner, run_in_model
from pytest_agentproc.harness._limit_binding import bind_to_subject
from pytest_agentproc.subjects import Function, ReferenceSupervisor, load_command_file, reference_supervisor
from pytest_agentproc.verdict import Judgement, Verdict, confirm_red_judgement, judge_play
from tests.attacks.descriptors import leave_descriptors_free
from tests.attacks.trials import Trial
from tests.bundled import load_all_bundled
from tests.plugin.examples import at_once, careful, faulty, faulty_streams, polling, streaming
from tests.process.preload.supervising import supervise_with_thread
from tests.process.verdicts.test_faulty import OF_PI, PLAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_agentproc.scenario import Scenario
    from pytest_agentproc.vocabulary import Subject

__all__ = ["Figures", "run_soak"]

EXAMPLES = Path(careful.__file__).parent
SUBJECTS: dict[str, list[Subject]] = {
    "reference": [reference_supervisor()],
    "defect": [ReferenceSupervisor(name, each.deciders, each.session_deciders) for name, each in DEFECTS.items()],
    "example": [careful.subject, streaming.subject, at_once.subject, polling.subject, polling.pi, polling.at_the_end],
    "mutant": [
        *(careful.of_plain(getattr(faulty, name)) for name in PLAIN),
        *(streaming.of_pi(getattr(faulty_streams, name)) for name in OF_PI),
    ],
    "program": [
        load_command_file(EXAMPLES / "shell" / "supervise.toml"),
        load_command_file(EXAMPLES / "node" / "wrapper.toml"),
        Function(supervise_with_thread, limits={"inactivity_timeout": 180, "kill_grace": 5}, dialects=["raw"]),
    ],
}
WEIGHT_BY_FAULT = {"none": 40, "kill": 25, "stop": 15, "descriptors": 7, "files": 6, "interrupt": 7}
TARGETS = ("broker", "watcher", "coordinator", "play server", "fake")
SECONDS_STOPPED = 0.3
PLAYS_OF_A_ROUND = 40
WARM_ROUNDS = 5
"""What is loaded late, and caches of the corpus, fill in the first rounds."""
MAX_SECONDS = 120
LATE = "after "
"""A process that was killed as its play ended may be missed only in the next play that needs it."""
MAX_FIRST_PLAYS = 3
MAX_AMOUNT, DESCRIPTOR_LIMIT, BYTES_OF_A_UNIT = 100, 512, 100


class Plan(NamedTuple):
    """What is to happen in a play: a value that the seed and the number of the play decide."""

    scenario: Scenario
    subject: Subject
    backend: str
    fault: str
    delay: float
    targets: list[str]
    amount: int


def draw_plan(seed: int, number: int) -> Plan:
    """Draw a play and its fault."""
    rnd = random.Random(f"{seed} {number}")  # noqa: S311  # the same plays each time
    subject = rnd.choice(SUBJECTS[rnd.choice(list(SUBJECTS))])
    dialects = getattr(subject, "dialects", None)
    scenario = rnd.choice([each for each in load_all_bundled() if not dialects or each.dialect in dialects])
    backend = rnd.choice(["asyncio", "trio"])
    if not isinstance(subject, ReferenceSupervisor):
        backend = "trio" if subject is at_once.subject else "asyncio"
    [fault] = rnd.choices(list(WEIGHT_BY_FAULT), list(WEIGHT_BY_FAULT.values()))
    delay, targets = 10 ** rnd.uniform(-3, 0), rnd.sample(TARGETS, len(TARGETS))
    return Plan(scenario, subject, backend, fault, delay, targets, rnd.randrange(MAX_AMOUNT))


class Player:
    """The process that plays, and tells the other side of each play.

    Args:
        seed: that of the plans.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._known_ends: dict[tuple[str, ...], str] = {}

    def play_round(self, runner: ScenarioRunner, numbers: range) -> None:
        """Make some plays with one runner."""
        for number in numbers:
            plan = draw_plan(self._seed, number)
            known = self._find_known_end(runner, plan)
            _tell(begins=number)
            start = time.monotonic()
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                with _take_resources(plan):
                    seen = _play_and_name_end(runner, plan)
            except KeyboardInterrupt:
                seen = "error: interrupted"
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            _tell(ends=number, known=known, seen=seen, seconds=time.monotonic() - start)

    def _find_known_end(self, runner: ScenarioRunner, plan: Plan) -> str:
        """Name the end that the play has without a fault: the model knows it, or else a first play finds it out."""
        key = plan.scenario.id, plan.subject.name, plan.backend
        is_modelled = isinstance(plan.subject, ReferenceSupervisor)
        for _ in range(MAX_FIRST_PLAYS):
            if self._known_ends.get(key, "error: ").startswith("error: "):  # of a fault that came after its play
                self._known_ends[key] = _play_and_name_end(None if is_modelled else runner, plan)
        return self._known_ends[key]


def _play_and_name_end(runner: ScenarioRunner | None, plan: Plan) -> str:
    """Play as pytest does, with processes or in the model, and name the end: the verdicts, or the error."""
    try:
        judgement = _judge(runner, plan)
    except (NotApplicable, NotForRealTime):
        return "not applicable"
    except AgentprocError as error:
        return f"error: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001  # what is raised is what this looks for
        return f"raised: {error!r}"
    if judgement.verdict in (Verdict.KIT_ERROR, Verdict.ADAPTER_ERROR):
        return f"error: {judgement.rows[0].seen}: {judgement.rows[0].hint}"
    return f"{judgement.verdict}: {' '.join(f'{row.key}={row.verdict}' for row in judgement.rows)}"


def _judge(runner: ScenarioRunner | None, plan: Plan) -> Judgement:
    if runner is None:
        assert isinstance(plan.subject, ReferenceSupervisor)
        bind_to_subject(plan.scenario, plan.subject)  # the model plays scenarios, too, that need a program
        return judge_play(run_in_model(plan.scenario, plan.subject))
    is_reference = isinstance(plan.subject, ReferenceSupervisor)
    play = partial(runner.play, plan.scenario, plan.subject, backend=plan.backend)
    judgement = judge_play(play(), is_reference=is_reference)
    return confirm_red_judgement(judgement, play) if judgement.is_red else judgement


@contextlib.contextmanager
def _take_resources(plan: Plan) -> Iterator[None]:
    """Have few descriptors, or little space in any file, while the block runs."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with contextlib.ExitStack() as stack:
        if plan.fault == "descriptors":
            stack.enter_context(leave_descriptors_free(plan.amount, DESCRIPTOR_LIMIT))
        if plan.fault == "files":
            stack.callback(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
            resource.setrlimit(resource.RLIMIT_FSIZE, (plan.amount * BYTES_OF_A_UNIT, limits[1]))
        yield


def _tell(**fields: Any) -> None:
    """Tell the other side something, and wait until it has heard it."""
    sys.stdout.write(f"{json.dumps(fields)}\n")
    sys.stdout.flush()
    sys.stdin.readline()


def be_player(options: argparse.Namespace) -> None:
    """Make rounds of plays; after each, when its runner is closed, tell the size of this process."""
    player, end = Player(options.seed), time.monotonic() + options.minutes * 60
    first, last = options.first, options.first + options.plays
    while first < last and time.monotonic() < end:
        numbers = range(first, min(first + PLAYS_OF_A_ROUND, last))
        with ScenarioRunner() as runner:
            player.play_round(runner, numbers)
        first = numbers.stop
        faulty.KEPT.clear()
        gc.collect()
        subprocess._cleanup()  # type: ignore[attr-defined]  # noqa: SLF001  # agents that no supervisor waited for
        ctypes.CDLL(None).malloc_trim(0)  # what malloc keeps for later is no growth: long lines move it in steps of MiB
        kib = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize() // 1024
        _tell(kib=kib, descriptors=[os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()])


@dataclass
class Figures:
    """What came of a soak: counts of plays by fault and end, the size of the player after each round, what is wrong."""

    plays: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    kib: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    last_descriptors: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{count:7} {words}" for words, count in sorted(self.plays.items())]
        lines += [f"{count:7} {words}" for words, count in self.errors.most_common()]
        lines += [f"wrong: {text}" for text in self.wrong] + [f"left: {text}" for text in self.left]
        plays = sum(self.plays.values())
        lines += [f"{plays} plays, {len(self.wrong)} wrong, {len(self.left)} left"]
        step = max(1, len(self.kib) // 12)
        return "\n".join(
            [*lines, f"KiB: {self.kib[::step]}", f"descriptors: {self.descriptors[::step]}", *self.last_descriptors]
        )

    def note_play(self, plan: Plan, fault: str, fields: dict[str, Any]) -> None:
        """Judge the end of a play."""
        known, seen = fields["known"], fields["seen"]
        place = f"play {fields['ends']}, {plan.scenario.id}, {plan.subject.name}, {plan.backend}, {fault}"
        is_error = seen.startswith("error: ") and fault != "none"
        is_known = seen == known or (fault != "none" and _is_red_alike(known, seen))
        if fault == "kill fake" and not seen.startswith(("failed", "crashed", "raised")):
            is_known = True  # the kit cannot see who killed an agent; what it promises is that no red stands
        self.plays[f"{fault}: {'as known' if is_known else 'an error' if is_error else 'WRONG'}"] += 1
        if is_error and not is_known:
            self.errors[f"{fault}: {seen[:300]}"] += 1
        elif not is_known or known.startswith(("error: ", "raised: ")):
            self.wrong.append(f"{place}\n  known {known[:1500]}\n  seen  {seen[:1500]}")
        if fields["seconds"] > MAX_SECONDS:
            self.wrong.append(f"{place}: it took {fields['seconds']:.0f} s")


def _is_red_alike(known: str, seen: str) -> bool:
    """Say whether two ends have the same red verdict, and a row of it in common: so much a replay confirms."""
    (verdict, _, rows), (again, _, more) = known.partition(": "), seen.partition(": ")
    return verdict == again != "passed" and any(row.endswith(verdict) and row in more.split() for row in rows.split())


class Attacker:
    """The other side: it hears what the player tells, and does what a process does to another one.

    Args:
        trial: the player.
        seed: that of the plans.
    """

    def __init__(self, trial: Trial, seed: int) -> None:
        self.figures = Figures()
        self._trial, self._seed = trial, seed
        self._plan, self._fault, self._kill = draw_plan(seed, 0), "none", ""
        self._files = trial.folder / "t"
        assert trial.process.stdin is not None
        assert trial.process.stdout is not None
        self._from_player, self._to_player = trial.process.stdout, trial.process.stdin

    def attack(self) -> None:
        """Attack every play, until the player has ended."""
        with self._from_player, self._to_player:
            while line := self._from_player.readline():
                self._hear(json.loads(line))

    def _hear(self, fields: dict[str, Any]) -> None:
        if "begins" in fields:
            self._plan = draw_plan(self._seed, fields["begins"])
            self._answer()
            self._fault = self._strike(self._plan)
            if self._fault == "none" and self._kill:
                self._fault = f"{LATE}{self._kill}"
            return
        if "ends" in fields:
            self.figures.note_play(self._plan, self._fault, fields)
            if self._fault.startswith("kill "):
                self._kill = self._fault
            elif (self._plan.subject in SUBJECTS["program"]) is not self._kill.endswith("broker"):
                self._kill = ""
        else:
            self._note_round(fields)
        self._answer()

    def _answer(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._to_player.write(b"\n")
            self._to_player.flush()

    def _strike(self, plan: Plan) -> str:
        """Attack a play at its instant, unless it has ended; give the fault that it had."""
        if plan.fault in ("none", "descriptors", "files"):
            return plan.fault
        if select.select([self._from_player], [], [], plan.delay)[0]:
            return "none"
        if plan.fault == "interrupt":
            self._trial.process.send_signal(signal.SIGINT)
            return plan.fault
        roles = self._trial.find_roles()
        target = next((role for role in plan.targets if role in roles), "none")
        if target == "none":
            return "none"
        with contextlib.suppress(ProcessLookupError):
            os.kill(roles[target], signal.SIGKILL if plan.fault == "kill" else signal.SIGSTOP)
            if plan.fault == "stop":
                select.select([self._from_player], [], [], SECONDS_STOPPED)
                os.kill(roles[target], signal.SIGCONT)
        return f"{plan.fault} {target}"

    def _note_round(self, fields: dict[str, Any]) -> None:
        """Note the size of the player, and all that is left when its runner is closed."""
        self.figures.kib.append(fields["kib"])
        self.figures.descriptors.append(len(fields["descriptors"]))
        self.figures.last_descriptors = fields["descriptors"]
        living = self._trial.await_end_of_others()
        self.figures.left += [f"a process: {command}" for command in living]
        self.figures.left += [f"a file: {file.name}" for file in self._files.iterdir()]


def run_soak(folder: Path, options: argparse.Namespace) -> Figures:
    """Let a player play, attack it, and give the figures.

    Args:
        folder: an empty folder for its files.
        options: those of the command line.
    """
    words = [f"--{name}={getattr(options, name)}" for name in ("minutes", "seed", "first", "plays")]
    pipe = subprocess.PIPE
    trial = Trial(folder, [sys.executable, "-m", "tests.attacks.soak", *words, "--player"], stdin=pipe, stdout=pipe)
    attacker = Attacker(trial, options.seed)
    attacker.attack()
    attacker.figures.left += trial.find_faults_at_end([0], was_killed=False)
    return attacker.figures


def parse_options(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Play random scenarios, and have random faults meet them.")
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--first", type=int, default=0, help="the number of the first play")
    parser.add_argument("--plays", type=int, default=1_000_000, help="how many plays at most")
    parser.add_argument("--player", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def main() -> int:
    """Play, or have another process play and print the figures."""
    options = parse_options()
    if options.player:
        be_player(options)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        figures = run_soak(Path(folder) / "soak", options)
    sys.stdout.write(f"{figures}\n")
    return 1 if figures.wrong or figures.left else 0


if __name__ == "__main__":
    sys.exit(main())
