"""Sessions on disk: which file a start of a fake writes, and what it finds there. Knows no CLI's lines.

A fake keeps its session where its CLI does, but only below a temporary folder: its own home is the user's.
Each CLI has a module beside this one, which is called its form. It has these names:

    find_folder(read_variable)  the folder of the sessions, as the environment names it
    SessionFolder(path, cwd)    the file of each session, by its id; which may be the last one; the file of a new one
    Translator(facts)           `translate(event, later, now)` gives the lines for an event that is printed; `path` is
                                the file to which the last ones belong
"""

from __future__ import annotations

import posix
import sys

from pytest_agentproc.fake_agents.objects import encode_json_line
from pytest_agentproc.fake_agents.requests import parse_json_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence
    from typing import Any

    from pytest_agentproc.fake_agents.program import Program

    SessionFacts = dict[str, Any]

_ID_TAIL_LENGTH = 12


def find_folder_below(path: str, roots: Sequence[str]) -> str:
    """Give the real path of a folder, which may be missing still; "" if it is not below one of the roots."""
    head, missing, name = path.rstrip("/"), list[str](), ""
    while True:
        try:
            number = posix.open(head, posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC)
        except FileNotFoundError:
            head, _, name = head.rpartition("/")
            missing.insert(0, name)
        except OSError:
            return ""
        else:
            break
        if not head or name == "..":
            return ""
    real = "/".join([posix.readlink(f"/proc/self/fd/{number}"), *missing])
    posix.close(number)
    return real if any(real.startswith(f"{root}/") for root in roots) else ""


def list_files(folder: str, depth: int) -> Iterator[str]:
    """Give the files of lines that are so deep in a folder; none if it is missing."""
    try:
        entries = sorted(posix.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if depth and entry.is_dir(follow_symlinks=False):
            yield from list_files(entry.path, depth - 1)
        elif not depth and entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
            yield entry.path


def read_objects(path: str) -> list[dict[str, Any]]:
    """Give the lines of a file that are objects; none if it is missing."""
    try:
        with open(path, "rb") as file:
            return [found for line in file for found in (parse_json_object(line),) if found is not None]
    except OSError:
        return []


def find_form(table: Mapping[str, Any]) -> Any:
    """Give the module of the CLI whose command line this is."""
    return sys.modules[f"{__name__.rpartition('.')[0]}.{table['resuming']['kept']}"]


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(".jsonl")


class KeptSessions:
    """The sessions that a start finds on disk, and the one that it resumes or begins.

    Args:
        table: the command line of the CLI; see `vocabulary.CommandLine`.
        options: the options that the start was given, by their long names.
        folder: the folder of all sessions.
    """

    def __init__(self, table: Mapping[str, Any], options: Mapping[str, Sequence[str]], folder: str) -> None:
        self._table, self._resuming, self._options = table, table["resuming"], options
        self._form = find_form(table)
        self._cwd = posix.getcwd()
        self._path = folder
        self._folder = self._form.SessionFolder(folder, self._cwd)
        self._paths: dict[str, str] = self._folder.list_sessions()

    def __contains__(self, name: object) -> bool:
        """Say whether there is such a session."""
        return bool(self._find_id(str(name)))

    def _find_id(self, name: str) -> str:
        if name in self._paths:
            return name
        if self._resuming["files"] and _is_path(name):
            return next((session for session, path in self._paths.items() if path == name), "")
        found = [session for session in self._paths if self._resuming["prefix"] and session.startswith(name)]
        return found[0] if found else ""

    def _find_latest(self) -> str:
        """Give the session whose file was written last; "" if there is none in this folder."""
        found = [
            (posix.stat(path).st_mtime_ns, session)
            for session, path in self._paths.items()
            if self._folder.may_be_latest(path)
        ]
        return max(found)[1] if found else ""

    def choose_session(self, program: Program, resumed: str, own: str, prompt: str, taken: Container[str]) -> Program:
        """Give the program with the session that this start resumes or begins.

        Args:
            program: the script's.
            resumed: the session that the arguments name; "" if they name none.
            own: the id of the first session of this CLI's fake.
            prompt: the prompt among the arguments; "" if it comes on stdin.
            taken: the files of the sessions that other starts have begun, and may not have written yet.
        """
        resuming = self._resuming
        old = self._find_id(resumed) if resumed else ""
        if any(option in self._options for option in resuming["continues"]):
            old = self._find_latest()
        is_fork = bool(old) and resuming["forks"] in self._options
        named = self._options.get(resuming["new"], [""])[-1]
        is_known = bool(old) or (resumed != "" and (self._table["trusts"] or program.get("knows") == resumed))
        session = (old or resumed) if is_known and not is_fork else (named or self._make_new_id(own, taken))
        path, source = self._paths.get(session, ""), self._paths[old] if is_fork else ""
        if not old and resuming["files"] and _is_path(resumed):
            path = self._find_named_file(resumed)
            if not path:
                return program
        objects = read_objects(source or path)
        head = objects[0] if path and objects else {"id": session, "cwd": self._cwd}
        if source:
            head["parentSession"] = source
        facts = {
            "id": head.get("id", session),
            "cwd": self._cwd,
            "prompt": prompt,
            "version": next(word for word in str(self._table["version"]).split() if word[0].isdigit()),
            "source": source,
            "module": self._form.__name__,
            "serves": bool(program.get("serves")),
            "is_old": bool(objects),
            "objects": len(objects),
            "head": head,
            "path": path,
            "paths": self._paths,
            "folder": self._path,
        }
        if resuming["unkept"] in self._options:
            return {**program, "session": {**facts, "path": ""}}
        facts["path"] = path or self._folder.build_path(session)
        return {**program, "session": facts, "kept_lines": []}

    def _find_named_file(self, name: str) -> str:
        """Give the real path of a file that an option names; "" if a fake may not write there."""
        path = name if name.startswith("/") else f"{posix.getcwd()}/{name}"
        folder, _, name = path.rpartition("/")
        real = find_folder_below(folder, self._table["kept_below"])
        return real and f"{real}/{name}"

    def _make_new_id(self, first: str, taken: Container[str]) -> str:
        """Give the first id that no file has: a random id would make two runs differ."""
        head, number = first[:-_ID_TAIL_LENGTH], int(first[-_ID_TAIL_LENGTH:], 16)
        while (session := f"{head}{number:0{_ID_TAIL_LENGTH}x}") in self._paths or (
            self._folder.build_path(session) in taken
        ):
            number += 1
        return session


class SessionFile:
    """The file of the session that a program plays: it gives the bytes, and the stage writes them.

    Args:
        program: the program, with the session that `KeptSessions` chose.
    """

    def __init__(self, program: Program) -> None:
        self.facts: SessionFacts = program["session"]
        self._lines: list[bytes] = program["kept_lines"]
        self._translator = sys.modules[self.facts["module"]].Translator(self.facts)

    def note_request(self, request: bytes, now: int) -> None:
        """Take a line of a session's stdin: a prompt is kept until its turn."""
        self._translator.note_request(parse_json_object(request) or {}, now)

    def encode_new_lines(self, now: int, read_stdin: Callable[[], str]) -> Iterator[tuple[str, bytes]]:
        """Give what the file has to say of all events since the last call, event by event, with its path."""
        events = [parse_json_object(line) or {} for line in self._lines]
        self._lines.clear()
        self._translator.read_prompt = lambda: self.facts["prompt"] or read_stdin()
        for place, event in enumerate(events):
            lines = self._translator.translate(event, events[place + 1 :], now)
            if lines:
                yield self._translator.path, b"".join(encode_json_line(line) + b"\n" for line in lines)
