"""Command lines with wrong values: what the real CLIs refuse, and with which words, stream and code.

`python -m tests.fidelity.command_lines` measures all again, and writes the file. The fakes are held against the file.
`python -m tests.fidelity.command_lines --new` measures new lines alone, and `--fakes` prints how the fakes differ.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.harness import ScenarioRunner
from pytest_agentproc.scenario import loads
from tests.fidelity.model_server import ModelServer
from tests.fidelity.running import RealCLI

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COMMAND_LINES", "MEASURED", "Refusal", "measure_fake", "measure_real", "read_measured"]

MEASURED = Path(__file__).parents[1] / "data" / "real-command-lines.jsonl"
"""One line of JSON for each command line."""
_LIMIT = 40.0
"""Real seconds for one start."""
_UUID = "11111111-2222-4333-8444-555555555555"
_CLAUDE_STREAM = "-p --output-format stream-json --verbose"
_EXEC = "exec --skip-git-repo-check --json"
_GEMINI = "-m gemini-2.5-flash --skip-trust"
_PI = "--provider fake --model m1 --mode json -p"
COMMAND_LINES = {
    "claude": [
        "-p hi",
        f"{_CLAUDE_STREAM} hi",
        "-p --output-format json hi",
        "-p --output-format stream-json hi",
        "-p --output-format yaml hi",
        "-p --input-format stream-json hi",
        "-p --frobnicate hi",
        "-p --model",
        "-p --permission-mode frob hi",
        "-p --permission-mode plan hi",
        "-p --max-turns x hi",
        "-p --max-turns 0 hi",
        "-p --max-turns -1 hi",
        "-p --max-turns 1.5 hi",
        "-p --max-turns 3 hi",
        "-p --max-budget-usd abc hi",
        "-p --max-budget-usd 0 hi",
        "-p --max-budget-usd 1.5 hi",
        "-p --max-thinking-tokens x hi",
        "-p --json-schema '{bad' hi",
        "-p --json-schema '[]' hi",
        '-p --json-schema \'{"type": "nope"}\' hi',
        '-p --json-schema \'{"type": "object"}\' hi',
        "-p --agents '{bad' hi",
        "-p --agents '[]' hi",
        "-p --agents nofile.json hi",
        "-p --agents '{\"a\": {}}' hi",
        "-p --mcp-config '{bad' -- hi",
        "-p --mcp-config nofile.json -- hi",
        "-p --mcp-config '{}' -- hi",
        "-p --mcp-config bad.json -- hi",
        "-p --settings '{bad' hi",
        "-p --settings nofile.json hi",
        "-p --settings bad.json hi",
        "-p --settings '[]' hi",
        "-p --system-prompt-file nofile hi",
        "-p --append-system-prompt-file nofile hi",
        "-p --system-prompt a --system-prompt-file good.txt hi",
        "-p --session-id nope hi",
        f"-p --session-id {_UUID} hi",
        f"-p --resume {_UUID} hi",
        "-p --resume nosuch hi",
        f"-p --continue --resume {_UUID} hi",
        "-p --continue hi",
        "-p --fork-session hi",
        "-p --effort zzz hi",
        "-p --model nope hi",
        "-p --fallback-model claude-sonnet-4-5 --model claude-sonnet-4-5 hi",
        "-p --add-dir nodir -- hi",
        "-p --plugin-dir nodir hi",
        "-p --setting-sources frob hi",
        "-p --thinking frob hi",
        "-p --permission-prompt-tool nope hi",
        "-p --include-partial-messages hi",
        "-p --replay-user-messages hi",
        "-p --debug-file nodir/x hi",
        "-p --worktree -- hi",
        "-p --tools '' hi",
        "-p /compact",
        "-p",
        "--version",
        "auth status",
        "mcp list",
        "mcp get nosuch",
        "-p --max-budget-usd -1 hi",
        "-p --mcp-config nodir -- hi",
        "-p --settings sub hi",
        '-p --json-schema \'{"type": "object", "properties": 3}\' hi',
        "-p --json-schema '{\"required\": 1}' hi",
        '-p --agents \'{"a": {"description": "d"}}\' hi',
        "-p --agents '{\"a\": 3}' hi",
        "-p --system-prompt-file sub hi",
        "-p --resume-session-at x hi",
        "-p --task-budget x hi",
        "plugin list",
        "plugin marketplace list",
        "agents",
        "mcp remove nosuch",
        "mcp frob",
        "doctor --bogus",
        "update --zz",
        "-p --cloud hi",
        "-p /clear",
        "-p /help",
        "-p --resume= hi",
        "-p ''",
        "-p --permission-prompts frob hi",
        "-p --autocompact frob hi",
        "-p --init-only",
        "-p --rewind-files x hi",
    ],
    "codex": [
        "exec hi",
        "exec --yolo hi",
        f"{_EXEC} hi",
        f"{_EXEC} ''",
        f"{_EXEC} -s frob hi",
        f"{_EXEC} -C nodir hi",
        f"{_EXEC} -C good.txt hi",
        f"{_EXEC} -C sub hi",
        "exec -C repo hi",
        "exec -C repo/inner hi",
        f"{_EXEC} -c foo hi",
        f"{_EXEC} -c model_provider=nope hi",
        f"{_EXEC} -c model_reasoning_effort=nope hi",
        f"{_EXEC} -c approval_policy=nope hi",
        f"{_EXEC} -c sandbox_mode=nope hi",
        f"{_EXEC} -c foo=bar hi",
        f"{_EXEC} -c =x hi",
        f"{_EXEC} --output-schema nodir hi",
        f"{_EXEC} --output-schema bad.json hi",
        f"{_EXEC} --output-schema good.json hi",
        f"{_EXEC} -i nofile.png -- hi",
        f"{_EXEC} -i good.txt -- hi",
        f"{_EXEC} -o nodir/x hi",
        f"{_EXEC} -o sub hi",
        f"{_EXEC} -o last.txt hi",
        f"{_EXEC} --oss hi",
        f"{_EXEC} --oss --local-provider nope hi",
        f"{_EXEC} -p nosuch hi",
        f"{_EXEC} -m nope hi",
        f"{_EXEC} --color frob hi",
        f"{_EXEC} --enable nosuch hi",
        f"{_EXEC} --disable nosuch hi",
        f"{_EXEC} --add-dir nodir hi",
        f"{_EXEC} --frobnicate hi",
        f"{_EXEC} hi there",
        f"{_EXEC} resume {_UUID} hi",
        f"{_EXEC} resume nosuch hi",
        f"{_EXEC} resume --last hi",
        f"{_EXEC} resume",
        "exec resume --last hi",
        f"{_EXEC} --json hi",
        f"{_EXEC}",
        "exec --help",
        "exec review",
        "exec review --uncommitted",
        "login status",
        "frob",
        "mcp list",
        "--version",
        f"{_EXEC} hi -o",
        f"{_EXEC} -o '' hi",
        f"{_EXEC} --output-schema sub hi",
        f"{_EXEC} -m '' hi",
        f"{_EXEC} -c model_reasoning_summary=nope hi",
        f"{_EXEC} -c mcp_servers.x=3 hi",
        f"{_EXEC} -c 'sandbox_mode=[' hi",
        f"{_EXEC} -c web_search=nope hi",
        f"{_EXEC} -c model_verbosity=nope hi",
        f"{_EXEC} --full-auto hi",
        f"{_EXEC} -a never hi",
        "exec resume",
        "mcp get nosuch",
        "mcp remove nosuch",
        "mcp frob",
        f"{_EXEC} --cd= hi",
        "exec -C nodir hi",
        f"{_EXEC} -c model_context_window=x hi",
        f"{_EXEC} -c model_providers.x=3 hi",
        f"{_EXEC} -c =  hi",
        "login status --frob",
        "logout",
        "exec fork",
        "exec fork nosuch",
        "archive nosuch",
        "apply",
        "cloud",
        f"{_EXEC} --json --last hi",
        f"{_EXEC} -",
        "exec --skip-git-repo-check",
        "--frob",
    ],
    "gemini": [
        f"{_GEMINI} -p hi",
        f"{_GEMINI} hi",
        f"{_GEMINI} -o stream-json -p hi",
        f"{_GEMINI} -o yaml -p hi",
        f"{_GEMINI} -p hi --frobnicate",
        f"{_GEMINI} -p",
        f"{_GEMINI} -p hi there",
        f"{_GEMINI} -y --approval-mode yolo -p hi",
        f"{_GEMINI} --approval-mode frob -p hi",
        f"{_GEMINI} --approval-mode plan -p hi",
        f"{_GEMINI} --resume nosuch -p hi",
        f"{_GEMINI} --resume latest -p hi",
        f"{_GEMINI} --resume 99 -p hi",
        f"{_GEMINI} --session-id nope -p hi",
        f"{_GEMINI} --include-directories nodir -p hi",
        f"{_GEMINI} --policy nodir -p hi",
        f"{_GEMINI} --session-file nodir -p hi",
        f"{_GEMINI} --allowed-mcp-server-names nope -p hi",
        f"{_GEMINI} -e nosuch -p hi",
        f"{_GEMINI} --list-sessions",
        f"{_GEMINI} --list-extensions",
        f"{_GEMINI} --delete-session nosuch",
        "-m gemini-2.5-flash -p hi",
        f"{_GEMINI}",
        "--version",
        "mcp list",
        f"{_GEMINI} -o json",
        f"{_GEMINI} -p ''",
        f"{_GEMINI} --include-directories good.txt -p hi",
        f"{_GEMINI} --session-file good.json -p hi",
        f"{_GEMINI} --session-file bad.json -p hi",
        f"{_GEMINI} --resume latest --session-id {_UUID} -p hi",
        f"{_GEMINI} -i hi",
        f"{_GEMINI} -p hi -i hi",
        "extensions list",
        "skills list",
        "hooks list",
        f"{_GEMINI} --output-format",
        f"{_GEMINI} --delete-session 1",
        f"{_GEMINI} --list-sessions -p hi",
        f"{_GEMINI} --list-extensions -p hi",
        "extensions frob",
        "mcp remove nosuch",
        "mcp frob",
        "extensions uninstall nosuch",
        f"{_GEMINI} --worktree x -p hi",
        f"{_GEMINI} -p hi --model",
        f"{_GEMINI} -p a -p b",
        "-p hi --list-sessions",
    ],
    "opencode": [
        "run hi",
        "run --format json hi",
        "run --format yaml hi",
        "run --frobnicate hi",
        "run --dir nodir hi",
        "run --dir good.txt hi",
        "run --dir sub hi",
        "run --attach http://127.0.0.1:9 hi",
        "run --attach nope hi",
        "run --command nope hi",
        "run --agent nope hi",
        "run --model nope hi",
        "run --model nope/m1 hi",
        "run --model fake/nope hi",
        "run --model fake/m1 hi",
        "run --file nodir -- hi",
        "run --file good.txt -- hi",
        "run --session nosuch hi",
        "run --continue hi",
        "run --fork hi",
        "run --port x hi",
        "run --log-level frob hi",
        "run --variant nope hi",
        "run",
        "run --help",
        "--version",
        "auth list",
        "models",
        "session list",
        "serve --frobnicate",
        "serve word",
        "serve --help",
        "serve --log-level frob",
        "run --format text hi",
        "run --file nodir --file good.txt -- hi",
        "run --session ses_nosuch hi",
        "run --attach http://127.0.0.1:9 --dir sub hi",
        "run --model fake hi",
        "run ''",
        "mcp list",
        "providers list",
        "models fake",
        "models nope",
        "session frob",
        "session delete nosuch",
        "export nosuch",
        "run --model /m1 hi",
        "run --format",
        "run --session ses_nosuch --fork hi",
        "run --log-level",
        "run --file",
        "run --attach http://127.0.0.1:9 --session ses_x hi",
        "mcp frob",
        "--frob",
    ],
    "pi": [
        f"{_PI} hi",
        "--provider fake --model m1 -p hi",
        "--mode json -p --model nope hi",
        "--mode json -p --provider nope hi",
        "--mode json -p --provider nope --model m1 hi",
        "--mode json -p --model fake/m1 hi",
        "--mode json -p --model fake/nope hi",
        f"{_PI} --thinking frob hi",
        f"{_PI} --mode zzz hi",
        f"{_PI} @nodir hi",
        f"{_PI} @good.txt hi",
        f"{_PI} --tools nope hi",
        f"{_PI} --session nosuch hi",
        f"{_PI} --fork nosuch hi",
        f"{_PI} --fork nosuch --continue hi",
        f"{_PI} --continue hi",
        f"{_PI} --session-dir nodir/x hi",
        f"{_PI} --extension nodir hi",
        f"{_PI} --skill nodir hi",
        f"{_PI} --prompt-template nodir hi",
        f"{_PI} --theme nodir hi",
        f"{_PI} --models nope hi",
        f"{_PI} --frobnicate hi",
        f"{_PI} --model",
        "--export nodir",
        "--export bad.json",
        "--list-models",
        "--list-models nope",
        "list",
        _PI,
        "--version",
        f"{_PI} --extension good.txt hi",
        f"{_PI} @sub hi",
        "--export",
        "--export good.txt out.html",
        "mcp list",
        f"{_PI} --tui-mode frob hi",
        f"{_PI} --session bad.json hi",
        f"{_PI} --session-id '' hi",
        f"{_PI} --provider nope hi",
        "--provider fake --mode json -p hi",
        "--models",
        f"{_PI} --name",
        f"{_PI} --session-dir good.txt hi",
        f"{_PI} --fork bad.json hi",
        f"{_PI} --mode",
        f"{_PI} --thinking",
        "auth list",
        "auth",
        "mcp",
        "install",
        "remove nosuch",
        "uninstall",
        "update nosuch",
        "--list-models m1",
        "--list-models fake",
    ],
}
"""By CLI, the words after its name. The folder has `good.txt`, `good.json`, `bad.json`, `sub`, and a `repo` of Git."""


@dataclass(frozen=True)
class Refusal:
    """What a CLI does with a command line.

    Args:
        code: its exit code; None: it did not end in time.
        answers: whether the model was asked.
        stdout: its first line on stdout if the model was not asked.
        stderr: its first line on stderr if the model was not asked.
    """

    code: int | None
    answers: bool
    stdout: str
    stderr: str


def measure_real(cli: str, line: str, packages: Mapping[str, str] | None = None) -> Refusal:
    """Start a real CLI in a home of its own; `packages` as for `RealCLI`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, ModelServer() as server:
        real = RealCLI(cli, Path(home), server.url, packages)
        ran = _start(real.path, line, real.environ, real.folder)
        return _describe(ran, str(real.folder), asked=server.script.taken.total() > 0)


def measure_fake(cli: str, line: str) -> Refusal:
    """Start the fake of a CLI."""
    with ScenarioRunner() as runner, tempfile.TemporaryDirectory() as folder:
        fake = runner.make_fake(loads(f"scenario: x\nagent: {cli}\nscript: [{{answer: hello}}]\n", "x"))
        ran = _start(fake.path, line, {"LANG": "C.UTF-8"}, Path(folder))
        fake.finish()
        return _describe(ran, folder, asked="hello" in ran[1])


def _start(path: str, line: str, environ: Mapping[str, str], folder: Path) -> tuple[int | None, str, str]:
    (folder / "good.txt").write_text("text\n", encoding="utf-8")
    (folder / "good.json").write_text('{"type": "object"}\n', encoding="utf-8")
    (folder / "bad.json").write_text("{bad\n", encoding="utf-8")
    (folder / "sub").mkdir()
    for name in (".git/objects", ".git/refs", "inner"):
        (folder / "repo" / name).mkdir(parents=True)
    (folder / "repo" / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    pipe, command = subprocess.PIPE, [path, *shlex.split(line)]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        env=environ,
        cwd=folder,
        text=True,
        start_new_session=True,
    ) as program:
        try:
            stdout, stderr = program.communicate(timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, 9)
            return None, "", ""
    return program.returncode, stdout, stderr


def _describe(ran: tuple[int | None, str, str], folder: str, *, asked: bool) -> Refusal:
    code, stdout, stderr = ran
    lines = ["", ""] if asked else [_find_first_line(text).replace(folder, "<folder>") for text in (stdout, stderr)]
    return Refusal(code, asked, *lines)


def _find_first_line(text: str) -> str:
    noise = ("Ripgrep", "Warning: ", "YOLO", "Reading ")
    return next((line for line in text.splitlines() if line and not line.startswith(noise)), "")


def read_measured() -> dict[tuple[str, str], Refusal]:
    """Read the file: CLI and command line, and what was seen."""
    rows = [json.loads(line) for line in MEASURED.read_text("utf-8").splitlines()]
    return {(row.pop("cli"), row.pop("line")): Refusal(**row) for row in rows}


def _write_measured(clis: list[str]) -> None:
    old = read_measured() if MEASURED.exists() else {}
    with MEASURED.open("w", encoding="utf-8") as file:
        for cli, lines in COMMAND_LINES.items():
            for line in lines:
                known = (cli, line) in old and cli not in clis
                seen = old[cli, line] if known else measure_real(cli, line)
                file.write(json.dumps({"cli": cli, "line": line, **asdict(seen)}) + "\n")
                file.flush()


def print_differences() -> None:
    """Print where the fakes differ, and for how many command lines of each CLI the exit code is equal."""
    equal, whole = Counter[str](), Counter[str]()
    for (cli, line), real in read_measured().items():
        fake = measure_fake(cli, line)
        equal[cli] += real.code == fake.code
        whole[cli] += 1
        if real != fake:
            sys.stdout.write(f"{cli} {line}\n  real {real}\n  fake {fake}\n")
    for cli, number in whole.items():
        sys.stdout.write(f"{cli}: {equal[cli]} of {number} exit codes are equal\n")


if __name__ == "__main__":
    if "--fakes" in sys.argv:
        print_differences()
    else:
        _write_measured([] if "--new" in sys.argv else sys.argv[1:] or [*COMMAND_LINES])
