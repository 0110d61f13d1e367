"""A fake on its own: one executable file that needs neither this package, nor a harness, nor pytest. Starts nothing.

It holds the bundle and the program, plays on the real clock, and looks after its own end: see `fake_agents.guard`.
"""

from __future__ import annotations

import marshal
import sys
from typing import TYPE_CHECKING, Any

from pytest_agentproc.errors import UsageError
from pytest_agentproc.files import write_file
from pytest_agentproc.harness._agent_launch import MAX_PROMPT_CHARS_KNOWN, describe_accepted_flags
from pytest_agentproc.harness._faults import map_probe_answers
from pytest_agentproc.harness.fakes._launch import (
    MODULE_LOADER_CODE,
    REAL_TIME_MODULES,
    UNSTARTABLE_FILE_TEXTS,
    build_shebang_line,
    can_answer_requests,
    compile_bundle,
    list_fake_modules,
    list_flag_modules,
    list_session_file_modules,
)
from pytest_agentproc.procfs import read_stat
from pytest_agentproc.scenario import NotApplicable
from pytest_agentproc.vocabulary import DIALECTS, Policy

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_agentproc.scenario import Scenario


COMMAND_BY_DIALECT = {name: dialect.command for name, dialect in DIALECTS.items()}
"""What the CLI of each dialect is called."""

NAMES_OF_REFUSED_CLIS = (
    *("aider", "amp", "claude", "claude-agent-acp", "claude-code-acp", "codex", "codex-acp", "copilot", "crush"),
    *("cursor-agent", "gemini", "goose", "opencode", "pi", "qwen"),
)
"""Names of agent CLIs: beside a fake none of them may lead to a real one."""

_MARK_OF_OUR_FILES = "# an agent of pytest-agentproc: agentproc fake writes it anew"

_STANDALONE_FAKE_TEMPLATE = """{head}
{mark}
import sys
if sys.implementation.cache_tag != {tag!r}:
    sys.stderr.write("this fake agent was made for {tag}, and this is " + sys.implementation.cache_tag + ": "
                     "make it again with agentproc fake\\n")
    sys.exit(70)
import marshal
data = {data!r}
{load}
module.play_baked_program(marshal.loads({baked!r}), {counter!r})
"""

_MISSING_CLI_STUB_TEMPLATE = """#!/bin/sh
{mark}
echo "{name}: there is no fake of this name, and the real program is not started" >&2
exit 127
"""


def write_fake(scenario: Scenario, path: Path, *, scale: float, lifetime: float, harness: int | None = None) -> None:
    """Write the fake of a scenario as one executable file; it replaces an older file and its count of starts.

    Args:
        scenario: the agent and its script, under the default policy and the scenario's own.
        path: the file.
        scale: the divisor of every duration.
        lifetime: real seconds after which the kernel kills it, and each of its descendants.
        harness: the pid of the process that it must not outlive; None: that of `AGENTPROC_HARNESS` in its environment.

    Raises:
        UsageError: the scenario has several agents, needs a limit that is off, or there is no such harness.
        OSError: the file cannot be written.
    """
    if scenario.parts:
        names = ", ".join(scenario.parts)
        raise UsageError(f"{scenario.path} has a fake for each of its sessions: {names}", "name one of them")
    policy = Policy.for_dialect(scenario.dialect_record, **scenario.policy)
    try:
        bound = scenario.bind(policy.adapt_to_session() if scenario.is_session else policy)
    except NotApplicable as limit:
        words = f"{scenario.path}:{limit.line}: its script needs {limit.name}, which is off by default"
        raise UsageError(words, f"give it a value under policy: {{{limit.name}: 60s}}") from None
    program = {**bound.program, "name": path.name, "prompt": scenario.prompt[:MAX_PROMPT_CHARS_KNOWN]}
    baked: dict[str, Any] = {
        "hub": b"",
        "lifeline": b"",
        "scale": scale,
        "program": program,
        "probes": map_probe_answers(scenario.dialect_record),
        "guard": (lifetime, None if harness is None else (harness, _read_start_ticks(harness))),
        **describe_accepted_flags(scenario),
    }
    counter = path.absolute().with_name(f".{path.name}")
    data = compile_bundle(
        list_fake_modules(
            (*program["encoder"], *list_session_file_modules(baked)),
            (*REAL_TIME_MODULES, *list_flag_modules(baked), "guard"),
            hears=can_answer_requests(program),
        )
    )
    text = _STANDALONE_FAKE_TEMPLATE.format(
        head=build_shebang_line("-IS"),
        mark=_MARK_OF_OUR_FILES,
        tag=sys.implementation.cache_tag,
        data=data,
        load=MODULE_LOADER_CODE,
        baked=marshal.dumps(baked),
        counter=str(counter),
    )
    for counted in ("count", "sessions"):
        counter.with_name(f"{counter.name}.{counted}").unlink(missing_ok=True)
    text = UNSTARTABLE_FILE_TEXTS.get(scenario.cannot_spawn or "", text)
    write_file(path, text, 0o644 if scenario.cannot_spawn == "not_executable" else 0o755)


def write_missing_cli_stub(path: Path) -> None:
    """Write what stands for a CLI that is not to be found: it says so and exits 127.

    Raises:
        OSError: it cannot be written.
    """
    write_file(path, _MISSING_CLI_STUB_TEMPLATE.format(mark=_MARK_OF_OUR_FILES, name=path.name), 0o755)


def can_overwrite(path: Path) -> bool:
    """Say whether a file may be overwritten: it is a fake or a refusal of ours, or does not exist."""
    try:
        with path.open("rb") as file:
            lines = file.read(4096).split(b"\n")
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return _MARK_OF_OUR_FILES.encode() in lines[:4]


def _read_start_ticks(pid: int) -> int:
    seen = read_stat(pid)
    if seen is None:
        raise UsageError(f"there is no process {pid}", "name the pid of a process that runs, such as $$")
    return seen.started
