"""Spoil files of one kind, hand each to the kit, and report what breaks.

Usage: fuzzing.py KIND SEED COUNT. It prints one JSON object: the number of inputs, how many were accepted,
the computing seconds of the slowest one, the highest memory in MiB, the descriptors kept, and each kind of fault once.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.capture import LOG_DIALECTS, Redactor, draft_scenario_from_log
from pytest_agentproc.errors import AdapterError, KitError, ScenarioError, UsageError
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.plugin import _options
from pytest_agentproc.record import render_text as text_of
from pytest_agentproc.scenario import NotApplicable, load, loads
from pytest_agentproc.subjects import reference_supervisor
from pytest_agentproc.subjects._program_file import load_command_file
from pytest_agentproc.subjects._program_report import ProgramEnd, parse_field_sources, read_report_fields
from pytest_agentproc.subjects._report_reading import read_answer
from pytest_agentproc.verdict import Baseline, judge_play
from tests.attacks import MAX_MEGABYTES, MAX_SECONDS
from tests.unit.mutations import MUTATIONS, ODD

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
_REFUSALS = (ScenarioError, UsageError, AdapterError, KitError, NotApplicable, pytest.UsageError)
_LONGEST_MESSAGE = 700
_SIGNS = ["```", "> ", "$ ", "[12:00:01] ", "2026-01-01T00:00:00Z ", "<-- ", '{"type":"result"', "{" * 2000, "\\u0000"]
_SIGNS += [
    "killed after 2m",
    "exit code 99999999999999999999",
    "1e999",
    '"type":',
    "{agent}",
    "{agent!r}",
    "inf",
    "nan",
]
_JSON_WRAPPER = """\
command = "node wrapper.mjs {inactivity_timeout} {folder} {agent}"
dialects = ["raw"]
limits = {inactivity_timeout = 60, kill_grace = 60}
[says]
outcome = {json = "result.json", key = "status", words = {ok = "completed", timeout = "inactive"}}
"""
_CODE_WRAPPER = """\
command = ["a", "{agent}"]
name = "x"
on_path = true
dialects = ["gemini stream", "claude"]
limits = {inactivity_timeout = 0.5}
[env]
A = "{agent}"
[says]
outcome = {exit_code = {0 = "completed", 124 = "inactive", other = "failed"}}
text = "stdout"
"""
_BASELINE = """\
- {scenario: lingers-and-ignores-term, check: outcome, reason: because}
- {scenario: lingers-and-ignores-term, check: leaks, subject: mine, reason: it is slow}
"""
_RESULTS = '{"status": "ok",\n"answer": {"text": "done"},\n"elapsed": 12, "usage": {"input": 3}\n}\n'
_SAYS = {
    "outcome": {"json": "r.json", "key": "status", "words": {"ok": "completed"}},
    "text": {"json": "r.json", "key": "answer.text"},
    "elapsed": {"json": "r.json", "key": "elapsed"},
    "usage": {"json": "r.json", "key": "usage"},
}


class TooSlow(BaseException):
    """The limit of one input is over."""


def mutate_text(text: str, rnd: random.Random, others: list[str]) -> str:
    """Change a file as authors, editors, merges and generators do, or more wildly."""
    if rnd.random() < 0.6:
        lines = text.split("\n")
        for _ in range(rnd.choice([1, 1, 2, 3, 6])):
            rnd.choice(MUTATIONS)(lines, rnd)
            lines = lines or [""]
        return "\n".join(lines)
    for _ in range(rnd.choice([1, 1, 2, 5, 20])):
        start = rnd.randrange(len(text) + 1)
        end = min(len(text), start + rnd.choice([0, 0, 1, 5, 40, 400]))
        other = rnd.choice(others)
        piece = other[rnd.randrange(len(other) + 1) :][: rnd.choice([5, 50, 500])]
        put = rnd.choice(["", piece, rnd.choice(_SIGNS), rnd.choice(ODD), chr(rnd.randrange(0x110000))])
        text = text[:start] + put + text[end:]
    return text * rnd.choice([2, 20]) if rnd.random() < 0.02 and len(text) < 50_000 else text


def mutate_bytes(text: str, rnd: random.Random) -> bytes:
    """Give the bytes of a file, some of them in another encoding, changed or lost."""
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if rnd.random() < 0.1:
        data = bytearray(text.encode(rnd.choice(["utf-16", "utf-32", "latin-1"]), "replace"))
    for _ in range(rnd.choice([0, 0, 0, 1, 10]) if data else 0):
        data[rnd.randrange(len(data))] = rnd.randrange(256)
    return bytes(data)


class Fuzz:
    """The kinds of files, and what the kit makes of one.

    Args:
        rnd: makes each input.
        folder: where files are written.
    """

    def __init__(self, rnd: random.Random, folder: Path) -> None:
        self.rnd = rnd
        self.file = folder / "x"
        self.seeds: list[str] = []
        self.input: str | bytes = ""

    def make_input(self, *suffixes: str) -> str:
        """Make the next input of files with these endings."""
        if not self.seeds:
            files = sorted(file for suffix in suffixes for file in ROOT.glob(suffix))
            self.seeds = [file.read_text("utf-8", "replace")[:20_000] for file in files]
        self.input = text = mutate_text(self.rnd.choice(self.seeds), self.rnd, self.seeds)
        return text

    def attack_scenario(self) -> None:
        """Check a scenario."""
        data = self.input = mutate_bytes(self.make_input("scenarios/**/*.scenario.yaml"), self.rnd)
        self.file.write_bytes(data)
        try:
            load(self.file)
        except ScenarioError as error:
            wrong = [
                problem
                for problem in error.problems
                if not problem.message.isprintable() or problem.line < 1 or problem.column < 1
            ]
            wrong += [problem for problem in error.problems if len(problem.message) > _LONGEST_MESSAGE]
            if wrong:
                raise AssertionError(f"a message: {wrong[0]!r}") from None
            raise

    def play(self) -> None:
        """Play a scenario in the model, judge it and write its timeline."""
        text = self.make_input("scenarios/**/*.scenario.yaml").encode("utf-8", "replace").decode()
        scenario = loads(text, "x.scenario.yaml", ROOT / "scenarios")
        played = run_in_model(scenario, reference_supervisor())
        judge_play(played)
        text_of(played.record, scenario)

    def attack_pasted_log(self) -> None:
        """Import a pasted log; the draft loads."""
        text = self.make_input("tests/unit/pasted/*.txt", "tests/data/transcripts/**/*.jsonl")
        dialect = self.rnd.choice(LOG_DIALECTS)
        self.input = f"{dialect}\n{text}"
        draft = draft_scenario_from_log(text, dialect, "log.txt")
        try:
            loads(draft, "x.scenario.yaml")
        except ScenarioError as error:
            raise AssertionError(f"the draft does not load: {error}") from None

    def attack_program_description(self) -> None:
        """Read a description of a program."""
        self.seeds = [_JSON_WRAPPER, _CODE_WRAPPER]
        self.file.write_bytes(mutate_bytes(self.make_input(), self.rnd))
        load_command_file(self.file)

    def attack_results(self) -> None:
        """Read what a program says in a file."""
        self.seeds = [_RESULTS]
        text = self.make_input()
        fields, _ = read_report_fields(
            parse_field_sources(_SAYS), ProgramEnd(self.rnd.choice([0, 1, 137]), text, lambda _name: text)
        )
        read_answer(fields, 1.0)

    def attack_baseline(self) -> None:
        """Read a file of known failures."""
        self.seeds = [_BASELINE]
        Baseline(self.make_input().encode("utf-8", "replace").decode(), "b.yaml").list_unknown_scenarios(
            ["lingers-and-ignores-term"]
        )

    def attack_ini_value(self) -> None:
        """Read a value of an ini file."""
        self.seeds = [
            "virtual",
            "3",
            "auto",
            "reference, null",
            "C1,T1",
            "my-supervisor {agent}",
            "a.yaml",
            "true",
            "1e3",
        ]
        value, option = self.make_input(), self.rnd.choice(_options._PLUGIN_OPTIONS)  # noqa: SLF001  # all that can be said
        self.input = f"{option.name} = {value}"
        with contextlib.suppress(ValueError):  # how a reader refuses
            if option.read is not None:
                option.read(value)

    def attack_redaction(self) -> None:
        """Redact a stream: its size and its lines stay."""
        text = self.make_input("tests/unit/pasted/*.txt", "tests/data/transcripts/**/*.jsonl")
        data = self.input = mutate_bytes(text, self.rnd)
        redactor = Redactor({"X_TOKEN": "abcdefgh12"})
        redactor.learn_secrets(data)
        shown = redactor.redact_bytes(data, "stdout")
        assert len(shown) == len(data), "another size"
        assert shown.count(b"\n") == data.count(b"\n"), "other lines"


KINDS: dict[str, Callable[[Fuzz], None]] = {
    "scenario": Fuzz.attack_scenario,
    "play": Fuzz.play,
    "log": Fuzz.attack_pasted_log,
    "wrapper": Fuzz.attack_program_description,
    "results": Fuzz.attack_results,
    "baseline": Fuzz.attack_baseline,
    "ini": Fuzz.attack_ini_value,
    "secret": Fuzz.attack_redaction,
}


def _find_line_of_error(error: BaseException) -> str:
    frames = reversed(traceback.extract_tb(error.__traceback__))
    ours = (frame for frame in frames if "pytest_agentproc/" in frame.filename or "fake_agents/" in frame.filename)
    return next((f"{Path(frame.filename).name}:{frame.lineno}" for frame in ours), "")


def run_attack(kind: str, seed: str, count: int, folder: Path) -> dict[str, Any]:
    """Make the inputs."""
    rnd = random.Random(f"{kind} {seed}")  # noqa: S311  # the same inputs each time
    fuzz = Fuzz(rnd, folder)
    found: dict[str, str] = {}
    accepted, slowest = 0, 0.0
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # counted, not opened
    for number in range(count):
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        try:
            KINDS[kind](fuzz)
            accepted += 1
        except _REFUSALS as error:
            str(error)
        except (Exception, TooSlow) as error:  # noqa: BLE001  # what is raised is what this looks for
            what = f"{type(error).__name__} {_find_line_of_error(error)}: {str(error)[:300]}"
            found.setdefault(what.partition(":")[0], f"number {number}, {what}, of {fuzz.input[:2000]!r}")
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        slowest = max(slowest, time.process_time() - began)
    kept = len(os.listdir("/proc/self/fd")) - before  # noqa: PTH208  # as above
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    fields = {"inputs": count, "accepted": accepted, "slowest": round(slowest, 2), "megabytes": peak, "kept": kept}
    return {**fields, "found": list(found.values())}


def _raise_too_slow(_number: int, _frame: object) -> None:
    raise TooSlow(f"over {MAX_SECONDS} s")


def main() -> None:
    """Attack, with a ceiling of memory that a machine survives."""
    kind, seed, count = sys.argv[1:]
    signal.signal(signal.SIGPROF, _raise_too_slow)
    resource.setrlimit(resource.RLIMIT_AS, (4 * MAX_MEGABYTES << 20, 4 * MAX_MEGABYTES << 20))
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(json.dumps(run_attack(kind, seed, int(count), Path(folder))) + "\n")


if __name__ == "__main__":
    main()
