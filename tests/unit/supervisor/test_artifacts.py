"""The artifacts of a run, over a store of values: their content, their words, and the effect of a failing disk."""

from __future__ import annotations

import datetime as dt
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.harness._supervise import MemoryStore
from pytest_agentproc.supervisor import Artifacts, FileStore, FolderStore, Result, RunHeader, RunMachine, RunSettings
from pytest_agentproc.supervisor import _events as machine_events
from pytest_agentproc.supervisor.dialects import Failure, Finished, Line, Meaning, Message, Noise, Other, Resumed
from pytest_agentproc.vocabulary import ARTIFACT_TEXTS, RESULT_FIELD_TEXTS, Policy

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000
START = dt.datetime(2026, 11, 22, 23, 59, 59, 500_000, dt.UTC)
HEADLINE = RunHeader(
    run_id="r1", argv=("pi", "-p", "hi"), cwd="/w", requested_model="m0", started_at=START, started=5 * SECOND
)


def build_artifacts(store: FileStore) -> tuple[Artifacts, RunMachine]:
    """Make a keeper beside a machine whose agent was started."""
    machine = RunMachine(RunSettings("raw", b"", Policy()))
    machine.feed(machine_events.RunStarted(), HEADLINE.started)
    machine.feed(machine_events.AgentSpawned(7), HEADLINE.started)
    return Artifacts(store, HEADLINE), machine


def build_output_event(data: bytes, stream: str = "stdout") -> machine_events.OutputRead:
    """Make the event of bytes."""
    return machine_events.OutputRead(stream, data, drained=True)


def finish_run(store: FileStore, *events: machine_events.MachineEvent) -> Result:
    """Keep a run of events, a second each, that ends with exit code 3."""
    keeper, machine = build_artifacts(store)
    instant = HEADLINE.started
    for event in (*events, machine_events.AgentExited(3), machine_events.TreeSwept(alone=True)):
        instant += SECOND
        machine.feed(event, instant)
        keeper.log_event(event, machine.meanings, instant)
    return keeper.finish(machine.build_result(HEADLINE.started, instant))


def write_and_read_events(*meanings: Meaning) -> list[dict[str, Any]]:
    """Write meanings down, and read the lines back."""
    store = MemoryStore()
    keeper, machine = build_artifacts(store)
    keeper.log_event(machine_events.DeadlineReached(), list(meanings), HEADLINE.started + SECOND // 2)
    machine.feed(machine_events.AgentExited(0), HEADLINE.started + SECOND)
    keeper.finish(machine.build_result(HEADLINE.started))
    return [json.loads(line) for line in store.files["events.jsonl"].splitlines()]


def test_a_run_leaves_five_files() -> None:
    """The bytes are there unchanged, their meanings line by line, the ending in one object."""
    store = MemoryStore()
    result = finish_run(
        store, build_output_event(b"one\ntw\xff"), build_output_event(b"x\r", "stderr"), build_output_event(b"o\n")
    )
    assert sorted(store.files) == sorted(ARTIFACT_TEXTS)
    assert store.files["stdout.log"] == b"one\ntw\xffo\n"
    assert store.files["stderr.log"] == b"x\r"
    assert store.files["transcript.log"].decode() == f"{result.transcript}\n" == "one\ntw\ufffdo\n"
    assert [json.loads(line) for line in store.files["events.jsonl"].splitlines()] == [
        {"at": 1.0, "event": "line", "text": "one"},
        {"at": 3.0, "event": "line", "text": "tw\ufffdo"},
    ]
    assert (result.warnings, result.unwritten) == ((), {})


def test_result_json_has_the_documented_fields_in_their_order() -> None:
    """Its reader has one list to look at; wall clock times are counted on by the run's clock, over midnight too."""
    store = MemoryStore()
    finish_run(store, build_output_event(b"one\n"))
    fields = json.loads(store.files["result.json"])
    assert [*fields] == [*RESULT_FIELD_TEXTS]
    assert fields == {
        "run_id": "r1",
        "argv": ["pi", "-p", "hi"],
        "cwd": "/w",
        "started_at": "2026-11-22T23:59:59.500000Z",
        "ended_at": "2026-11-23T00:00:02.500000Z",
        "elapsed": 2.0,
        "returned": 3.0,
        "outcome": "failed",
        "exit_code": 3,
        "agent_status": 3,
        "forced": False,
        "text": "one",
        "stop_reason": None,
        "requested_model": "m0",
        "resolved_model": None,
        "usage": None,
        "error": "the agent exited with code 3, 1 s after its last output",
        "warnings": [],
        "leaks": [],
        "containment": None,
        "unwritten": {},
    }


def test_a_run_may_end_after_the_last_date() -> None:
    """Virtual time knows no year 9999, and a file must not end a run."""
    store = MemoryStore()
    keeper, machine = build_artifacts(store)
    machine.feed(machine_events.AgentExited(0), HEADLINE.started)
    keeper.finish(machine.build_result(HEADLINE.started, HEADLINE.started + 10**9 * 86400 * 366 * 9000))
    assert json.loads(store.files["result.json"])["ended_at"] is None


def test_every_meaning_has_its_line() -> None:
    """A field that an event does not set is left out; a line that is no text is shown as well as it can be."""
    assert write_and_read_events(
        Message("ä", "stop", "m1", {"input": 3}),
        Message(""),
        Line("x\n\ny"),
        Finished(ok=None, final=False),
        Failure("no"),
        Resumed(),
        Noise(b"\xff}"),
        Other("turn_start"),
    ) == [
        {"at": 0.5, "event": "message", "text": "ä", "stop_reason": "stop", "model": "m1", "usage": {"input": 3}},
        {"at": 0.5, "event": "message", "text": ""},
        {"at": 0.5, "event": "line", "text": "x"},
        {"at": 0.5, "event": "line", "text": ""},
        {"at": 0.5, "event": "line", "text": "y"},
        {"at": 0.5, "event": "finished", "final": False, "error": ""},
        {"at": 0.5, "event": "failure", "error": "no"},
        {"at": 0.5, "event": "resumed"},
        {"at": 0.5, "event": "noise", "line": "\ufffd}"},
        {"at": 0.5, "event": "other", "kind": "turn_start"},
    ]


def test_what_json_can_carry_and_utf_8_or_json_cannot_write_is_written_all_the_same() -> None:
    """An agent's data is the agent's: half a character, NaN, nesting without an end must not end a run."""
    deep: dict[str, Any] = {}
    for _ in range(200_000):
        deep = {"deeper": deep}
    half, numbers, nested = write_and_read_events(
        Line("\ud83d"),
        Message("", usage={"cost": float("nan"), "most": [float("inf"), 1.5]}),
        Message("", usage=deep),
    )
    assert half["text"] == "\ud83d"
    assert numbers["usage"] == {"cost": "nan", "most": ["inf", 1.5]}
    assert json.dumps(nested).count("deeper") == 19


@pytest.mark.parametrize("name", ARTIFACT_TEXTS)
@pytest.mark.parametrize("step", ["begin", "write", "finish"])
def test_one_file_that_fails_is_given_up_and_the_others_are_whole(name: str, step: str) -> None:
    """Best effort means every file that can be there is; result.json names the others."""

    class Failing(MemoryStore):
        """A disk on which one file fails at one step."""

        attempts = 0

        def fail(self, at: str, file: str) -> None:
            if (file, at) == (name, step):
                self.attempts += 1
                raise OSError(5, "Input/output error", file)

        def begin(self, file: str) -> None:
            self.fail("begin", file)
            super().begin(file)

        def write(self, file: str, data: bytes) -> None:
            self.fail("write", file)
            super().write(file, data)

        def finish(self, file: str) -> None:
            self.fail("finish", file)
            super().finish(file)

    store = Failing()
    result = finish_run(
        store,
        build_output_event(b"a\n"),
        build_output_event(b"b\n"),
        build_output_event(b"c", "stderr"),
        build_output_event(b"d", "stderr"),
    )
    assert sorted(store.files) == sorted(set(ARTIFACT_TEXTS) - {name})
    assert store.attempts == 1
    assert (result.outcome, result.exit_code, result.elapsed) == ("failed", 3, 5 * SECOND)
    assert (result.warnings, result.unwritten) == (("artifacts_incomplete",), {name: "Input/output error"})
    if name != "result.json":
        fields = json.loads(store.files["result.json"])
        assert (fields["warnings"], fields["unwritten"]) == (["artifacts_incomplete"], {name: "Input/output error"})


@pytest.mark.parametrize("disk", ["read_only", "full"])
def test_a_disk_that_takes_nothing_costs_the_artifacts_alone(disk: str) -> None:
    """Outcome, code and time are those of the run on any disk (C3)."""
    store = MemoryStore(disk)
    result = finish_run(store, build_output_event(b"a\n"), build_output_event(b"b", "stderr"))
    assert store.files == {}
    assert sorted(result.unwritten) == sorted(ARTIFACT_TEXTS)
    assert (result.outcome, result.exit_code, result.elapsed, result.text) == ("failed", 3, 3 * SECOND, "a")


@pytest.mark.slow
def test_a_stream_of_64_mib_grows_no_memory(tmp_path: Path) -> None:
    """Bytes go to the disk as they come; the one chunk at hand is all that is ever held."""
    keeper, _ = build_artifacts(FolderStore(tmp_path))
    chunk = build_output_event(b"x" * 65536)
    tracemalloc.start()
    try:
        for _ in range(1024):
            keeper.log_event(chunk, [], SECOND)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024
    (log,) = tmp_path.glob("stdout.log.*.part")
    assert log.stat().st_size == 64 * 1024**2
    log.unlink()
    for name in ARTIFACT_TEXTS:
        keeper._store.drop(name)  # noqa: SLF001  # nobody finishes this run
    assert [*tmp_path.iterdir()] == []


def test_a_file_is_seen_whole_or_not_at_all(tmp_path: Path) -> None:
    """While it grows it has another name; an older one stays in its place until then; only its owner reads it."""
    folder = FolderStore(tmp_path / "new" / "run")
    folder.begin("stdout.log")
    assert (tmp_path / "new" / "run").stat().st_mode & 0o777 == 0o700
    log = tmp_path / "new" / "run" / "stdout.log"
    log.write_bytes(b"older")
    folder.write("stdout.log", b"new")
    assert log.read_bytes() == b"older"
    folder.finish("stdout.log")
    assert (log.read_bytes(), log.stat().st_mode & 0o777) == (b"new", 0o600)
    assert [file.name for file in log.parent.iterdir()] == ["stdout.log"]


def test_a_file_that_is_dropped_leaves_the_older_one(tmp_path: Path) -> None:
    """Half a log in place of a whole one would be worse than none."""
    (tmp_path / "stdout.log").write_bytes(b"older")
    folder = FolderStore(tmp_path)
    folder.begin("stdout.log")
    folder.write("stdout.log", b"new")
    folder.drop("stdout.log")
    folder.drop("stdout.log")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("stdout.log", b"older")]


def test_two_stores_in_one_directory_keep_apart(tmp_path: Path) -> None:
    """Two runs that were told one directory: the later one's file stands, and it is one run's."""
    first, second = FolderStore(tmp_path), FolderStore(tmp_path)
    for folder, data in ((first, b"first"), (second, b"second")):
        folder.begin("stdout.log")
        folder.write("stdout.log", data)
    second.finish("stdout.log")
    first.finish("stdout.log")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("stdout.log", b"first")]


def test_a_run_that_its_caller_gave_up_is_stopped_or_what_it_was() -> None:
    """A result that was there before stands; a kill is forced, an exit that was never seen is the agent's own."""
    stopped = RunMachine(RunSettings("raw", b"", Policy()))
    stopped.feed(machine_events.RunStarted(), 0)
    stopped.feed(machine_events.AgentSpawned(7), 0)
    stopped.stop(SECOND, -9, "given up")
    result = stopped.build_result(0)
    assert (result.outcome, result.exit_code, result.agent_status, result.forced) == ("stopped", 130, -9, True)
    assert (result.error, result.elapsed) == ("given up", SECOND)

    completed = RunMachine(RunSettings("pi", b"", Policy()))
    completed.feed(machine_events.RunStarted(), 0)
    completed.feed(machine_events.AgentSpawned(7), 0)
    event = {"type": "message_end", "message": {"role": "assistant", "content": "done", "stopReason": "stop"}}
    completed.feed(build_output_event(json.dumps(event).encode() + b"\n"), SECOND)
    completed.stop(2 * SECOND, 0, "given up")
    result = completed.build_result(0)
    assert (result.outcome, result.exit_code, result.agent_status, result.forced) == ("completed", 0, 0, False)
    assert (result.error, result.elapsed, result.text) == ("", SECOND, "done")

    unstarted = RunMachine(RunSettings("raw", b"", Policy()))
    unstarted.stop(0, None, "given up")
    result = unstarted.build_result(0)
    assert (result.outcome, result.exit_code, result.agent_status, result.forced) == ("stopped", 130, None, False)
