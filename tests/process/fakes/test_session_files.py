"""A fake keeps its session on disk as its CLI does, in homes below a temporary folder; later starts find it there.

The names of the files and the keys of their lines are compared with the real CLIs in `tests/fidelity`.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_agentproc.fake_agents.session_files.claude import Translator
from pytest_agentproc.harness.fakes._standalone import write_fake
from pytest_agentproc.scenario import loads

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_agentproc.harness import ScenarioRunner

NOBODY = "11111111-2222-4333-8444-555555555555"
TOOL = "[{tool: {id: a, name: %s, input: {command: ls}}}, {tool_done: {id: a, output: hi}}, {answer: done}]"


@dataclass(frozen=True)
class Cli:
    """How a CLI is started, and where its files are."""

    agent: str
    argv: tuple[str, ...]
    latest: tuple[str, ...]
    named: tuple[str, ...]
    unkept: str
    folder: str
    file: str
    tool: str
    missing: str

    def list_kinds(self, file: Path) -> list[str]:
        """List what the lines of a file are, of those that tools read."""
        lines = map(json.loads, file.read_text("utf-8").splitlines())
        found = [line.get("payload", line).get("message", line.get("payload", line)) for line in lines]
        return [line["role"] for line in found if isinstance(line, dict) and "role" in line]


CLAUDE = Cli(
    agent="claude",
    argv=("-p",),
    latest=("--continue",),
    named=("--resume", "ID"),
    unkept="--no-session-persistence",
    folder=".claude/projects",
    file="PROJECT/7399a635-bc22-4a28-86d3-700ddd9547d5.jsonl",
    tool="Bash",
    missing=f"No conversation found with session ID: {NOBODY}\n",
)
CODEX = Cli(
    agent="codex",
    argv=("exec", "--skip-git-repo-check"),
    latest=("resume", "--last"),
    named=("resume", "ID"),
    unkept="--ephemeral",
    folder=".codex/sessions",
    file="2026/11/21/rollout-2026-11-21T23-31-13-01a20072-e39f-7280-8216-1a538c0445ff.jsonl",
    tool="command_execution",
    missing=f"Error: thread/resume: thread/resume failed: no rollout found for thread id {NOBODY} (code -32600)\n",
)
PI = Cli(
    agent="pi",
    argv=("-p",),
    latest=("--continue",),
    named=("--session", "ID"),
    unkept="--no-session",
    folder=".pi/agent/sessions",
    file="-PROJECT--/2026-11-21T23-31-13-000Z_01a20073-0000-7000-8000-000000000000.jsonl",
    tool="bash",
    missing=f"No session found matching '{NOBODY}'\n",
)
EACH = pytest.mark.parametrize("cli", [CLAUDE, CODEX, PI], ids=lambda cli: cli.agent)


class Lab:
    """A home below the temporary folder, and a folder of work in it."""

    def __init__(self, runner: ScenarioRunner, folder: Path) -> None:
        self.runner, self.home, self.work = runner, folder / "home", folder / "home" / "work.d"
        self.work.mkdir(parents=True)

    def make(self, cli: Cli, script: str = "[{answer: done}]", more: str = "") -> Callable[..., Any]:
        """Make a fake; give the function that starts it once."""
        fake = self.runner.make_fake(loads(f"scenario: x\nagent: {cli.agent}\nscript: {script}\n{more}", "x"))

        def start(*argv: str, home: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
            env = {"HOME": str(home or self.home), **variables}
            words = [fake.path, *cli.argv, *argv]
            done = subprocess.run(
                words,
                check=False,
                env=env,
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert fake.first_fault is None
            return done

        return start

    def find_files(self, below: Path | None = None) -> list[Path]:
        """List all session files."""
        return sorted((below or self.home.parent).rglob("*.jsonl"))

    def name_file(self, cli: Cli) -> Path:
        """Name the file of the first session."""
        work = str(self.work)
        project = re.sub("[^a-zA-Z0-9]" if cli is CLAUDE else "/", "-", work)
        return self.home / cli.folder / cli.file.replace("PROJECT", project)


@pytest.fixture
def lab(runner: ScenarioRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Give the lab. The temporary folder is one of this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return Lab(runner, tmp_path)


@EACH
def test_a_run_is_kept_where_its_cli_keeps_it(lab: Lab, cli: Cli) -> None:
    """Tools that list sessions look there, and take the prompt, the answers and the results of tools from it."""
    assert lab.make(cli, TOOL % cli.tool)("say hi").returncode == 0
    (file,) = lab.find_files()
    assert file == lab.name_file(cli)
    assert "say hi" in file.read_text("utf-8")
    assert (
        cli.list_kinds(file)
        == {
            "claude": ["user", "assistant", "user", "assistant"],
            "codex": ["user", "assistant"],
            "pi": ["system", "user", "assistant", "toolResult", "assistant"],
        }[cli.agent]
    )


@EACH
def test_a_later_start_goes_on_with_the_last_session_or_a_named_one(lab: Lab, cli: Cli) -> None:
    """Each start adds its prompt and its answer to the same file; one that names no session begins another file."""
    start = lab.make(cli)
    start("first")
    before = cli.list_kinds(lab.name_file(cli))
    start(*cli.latest, "second")
    start(*(word.replace("ID", lab.name_file(cli).stem[-36:]) for word in cli.named), "third")
    assert lab.find_files() == [lab.name_file(cli)]
    assert cli.list_kinds(lab.name_file(cli)) == [*before, *["user", "assistant"] * 2]
    assert [word in lab.name_file(cli).read_text("utf-8") for word in ("first", "second", "third")] == [True] * 3
    start("fourth")
    (new,) = {*lab.find_files()} - {lab.name_file(cli)}
    assert cli.list_kinds(new) == before


@EACH
def test_no_line_of_a_file_has_the_id_of_another(lab: Lab, cli: Cli) -> None:
    """Tools count a line with a known id once. Each line of a chain has the one before it as its parent."""
    start = lab.make(cli, TOOL % cli.tool)
    start("first")
    start(*cli.latest, "second")
    lines = [json.loads(line) for line in lab.name_file(cli).read_text("utf-8").splitlines()]
    ids = [line[name] for line in lines for name in ("uuid", "id", "ordinal") if name in line and "type" in line][1:]
    assert len(ids) == len(set(ids)) > 5
    parents = [(line[name], line[own]) for line in lines for name, own in _CHAIN.items() if name in line]
    assert [parent for parent, _ in parents] == [None, *(own for _, own in parents[:-1])] if parents else cli is CODEX


_CHAIN = {"parentUuid": "uuid", "parentId": "id"}


@EACH
def test_a_session_that_no_file_has_does_not_exist(lab: Lab, cli: Cli) -> None:
    """Without a home the fake knows its own id. With one it is as stale as any other before the first start."""
    start = lab.make(cli)
    own = lab.name_file(cli).stem[-36:]
    for stale in (NOBODY, own):
        done = start(*(word.replace("ID", stale) for word in cli.named), "hi")
        assert (done.returncode, done.stderr) == (1, cli.missing.replace(NOBODY, stale))
    assert start(*cli.latest, "hi").returncode == 0, "the last session of none is a new one"
    assert start(*(word.replace("ID", own) for word in cli.named), "hi").returncode == 0


@EACH
def test_a_session_that_was_killed_can_be_resumed(lab: Lab, cli: Cli) -> None:
    """The file has all that was printed. The prompt is there as soon as the model is asked."""
    lab.make(cli, "[{say: half}, {die: KILL}]")("first")
    assert cli.list_kinds(lab.name_file(cli))[-2:] == ["user", "assistant"]
    assert lab.make(cli)(*cli.latest, "second").returncode == 0
    assert cli.list_kinds(lab.name_file(cli))[-2:] == ["user", "assistant"]


@EACH
def test_a_session_that_is_not_to_be_kept_is_not_kept(lab: Lab, cli: Cli) -> None:
    """A tool that asks for it leaves nothing."""
    assert lab.make(cli)(cli.unkept, "hi").returncode == 0
    assert lab.find_files() == []


@EACH
def test_a_home_that_is_not_below_the_temporary_folder_is_left_alone(lab: Lab, cli: Cli, tmp_path: Path) -> None:
    """The home of a user is no place for a fake, also not where a link below the temporary folder leads to it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as users:
        link = tmp_path / "link"
        link.symlink_to(users)
        start = lab.make(cli)
        for home in (Path(users), link, tmp_path / "link" / "deeper"):
            assert start("hi", home=home).returncode == 0
        (lab.home / cli.folder.partition("/")[0]).symlink_to(users)
        assert start("hi").returncode == 0
        assert list(Path(users).iterdir()) == []
    assert lab.find_files() == []


VARIABLES = [
    (CLAUDE, "CLAUDE_CONFIG_DIR", "projects"),
    (CODEX, "CODEX_HOME", "sessions"),
    (PI, "PI_CODING_AGENT_DIR", "sessions"),
    (PI, "PI_CODING_AGENT_SESSION_DIR", "."),
]


@pytest.mark.parametrize(
    ("cli", "variable", "folder"), VARIABLES, ids=lambda value: value if type(value) is str else ""
)
def test_a_variable_names_the_folder(lab: Lab, cli: Cli, variable: str, folder: str, tmp_path: Path) -> None:
    """It is heeded as by the CLI."""
    lab.make(cli)("hi", **{variable: str(tmp_path / "own")})
    assert lab.find_files(tmp_path / "own" / folder) == lab.find_files() != []


def test_a_fork_copies_the_session_into_a_new_file(lab: Lab) -> None:
    """The new file has the whole conversation; the old one stays as it was."""
    for cli, argv in ((CLAUDE, ("--continue", "--fork-session")), (PI, ("--fork", "01a20073"))):
        start = lab.make(cli, "[{say: hm}, {answer: done}]")
        start("first")
        old = lab.name_file(cli).read_bytes()
        start(*argv, "second")
        (new,) = {*lab.find_files(lab.home / cli.folder)} - {lab.name_file(cli)}
        assert lab.name_file(cli).read_bytes() == old
        assert [word in new.read_text("utf-8") for word in ("first", "second")] == [True, True]


def test_the_script_says_which_session_there_is(lab: Lab) -> None:
    """`continues` is stronger than the files: a caller's session is there, or is not, as the scenario says."""
    for missing, code in (("", 0), (", missing: true", 1)):
        more = f"continues: {{resume: {NOBODY}{missing}}}\ndrive: [{{wait: 1s}}]\n"
        cli = Cli(**{**vars(CLAUDE), "agent": "{dialect: claude, mode: session}", "argv": SESSION_WORDS})
        start = lab.make(cli, "[{exit: 0}]", more)
        assert start("--resume", NOBODY).returncode == code


SESSION_WORDS = ("-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")


def test_a_session_keeps_each_prompt(lab: Lab, runner: ScenarioRunner) -> None:
    """A prompt on stdin is kept when its turn begins."""
    script = "[{wait_for: prompt 1}, {answer: one}, {wait_for: prompt 2}, {answer: two}]"
    fake = runner.make_fake(loads(f"scenario: x\nagent: {{dialect: claude, mode: session}}\nscript: {script}\n", "x"))
    asked = [{"type": "user", "message": {"role": "user", "content": word}} for word in ("ask one", "ask two")]
    given = "".join(f"{json.dumps(line)}\n" for line in asked)
    env = {"HOME": str(lab.home)}
    words = [fake.path, *SESSION_WORDS]
    subprocess.run(words, input=given, env=env, cwd=lab.work, capture_output=True, text=True, timeout=60, check=True)
    lines = [json.loads(line) for line in lab.name_file(CLAUDE).read_text("utf-8").splitlines()]
    said = [line["message"]["content"] for line in lines if "message" in line]
    assert [words if isinstance(words, str) else words[0]["text"] for words in said] == [
        "ask one",
        "one",
        "ask two",
        "two",
    ]


def test_two_sessions_at_once_have_two_files(lab: Lab) -> None:
    """Both are asked for their first prompt after both have begun: the first has not written its file by then."""
    script = "[{wait_for: prompt 1}, {answer: done}]"
    agent = "{dialect: claude, mode: session}"
    fake = lab.runner.make_fake(loads(f"scenario: x\nagent: {agent}\nscript: {script}\n", "x"))
    words, env, pipe = [fake.path, *SESSION_WORDS], {"HOME": str(lab.home)}, subprocess.PIPE
    asked = {"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}}
    prompt = {"type": "user", "message": {"role": "user", "content": "hi"}}
    both = [subprocess.Popen(words, env=env, cwd=lab.work, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    for process in both:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{json.dumps(asked)}\n")
        process.stdin.flush()
        assert "control_response" in process.stdout.readline()
    for process in both:
        process.communicate(f"{json.dumps(prompt)}\n", timeout=60)
    assert [CLAUDE.list_kinds(file) for file in lab.find_files()] == [["user", "assistant"]] * 2


def test_the_times_are_those_of_the_clock_of_the_fake() -> None:
    """In virtual time an hour between two lines is an hour in the file."""
    begun = 1_795_303_786
    names = {"id": "s", "cwd": "/w", "prompt": "hi", "version": "2", "source": "", "path": "", "serves": False}
    translator = Translator({**names, "is_old": False, "objects": 0})
    event = {"type": "system", "subtype": "init"}
    user = next(line for line in translator.translate(event, [], 3_600_000_000_000) if "uuid" in line)
    assert datetime.fromisoformat(user["timestamp"]).timestamp() == begun + 3600


def test_an_app_server_goes_on_with_a_thread_on_disk(lab: Lab, runner: ScenarioRunner) -> None:
    """The first turn makes its file. A later app-server lists the earlier turns, and `codex exec` adds one."""
    script = "[{wait_for: prompt 1}, {answer: hello}]"
    agent = "{dialect: codex, mode: app-server}"
    fake = runner.make_fake(loads(f"scenario: x\nagent: {agent}\nscript: {script}\n", "x"))
    thread = lab.name_file(CODEX).stem[-36:]

    def talk(method: str, **params: str) -> dict[str, Any]:
        said = {"threadId": thread, "input": [{"type": "text", "text": "say hi"}]}
        lines = [{"method": "initialize", "params": {}}, {"method": method, "params": params}]
        lines.append({"method": "turn/start", "params": said})
        given = "".join(f"{json.dumps({'id': number, **line})}\n" for number, line in enumerate(lines))
        words = [fake.path, "app-server"]
        env = {"HOME": str(lab.home)}
        done = subprocess.run(
            words, input=given, env=env, cwd=lab.work, capture_output=True, text=True, timeout=60, check=True
        )
        found = {line.get("id"): line for line in map(json.loads, done.stdout.splitlines())}
        return dict(found[1]["result"]["thread"])

    begun = talk("thread/start")
    assert (begun["id"], begun["path"], begun["turns"]) == (thread, str(lab.name_file(CODEX)), [])
    (turn,) = talk("thread/resume", threadId=thread)["turns"]
    assert (turn["status"], [item["type"] for item in turn["items"]]) == ("completed", ["userMessage", "agentMessage"])
    assert lab.make(CODEX)("resume", thread, "third").returncode == 0
    lines = [json.loads(line) for line in lab.name_file(CODEX).read_text("utf-8").splitlines()]
    turns = [line["payload"]["turn_id"] for line in lines if line["payload"].get("type") == "task_started"]
    assert len(turns) == len(set(turns)) == 3


def test_a_fake_on_its_own_keeps_its_session_too(lab: Lab, tmp_path: Path) -> None:
    """A file of `agentproc fake` has all that it needs."""
    write_fake(
        loads("scenario: x\nagent: claude\nscript: [{answer: done}]\n", "x"), tmp_path / "claude", scale=1, lifetime=60
    )
    env = {"HOME": str(lab.home)}
    subprocess.run(
        [tmp_path / "claude", "-p", "hi"], env=env, cwd=lab.work, capture_output=True, timeout=60, check=True
    )
    assert lab.find_files() == [lab.name_file(CLAUDE)]
