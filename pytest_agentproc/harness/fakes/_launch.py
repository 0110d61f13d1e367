"""Executable fakes on disk: a launcher, the compiled modules, and everything baked in. Starts nothing.

A launcher names the interpreter, the bundle and the baked program. The bundle holds all compiled modules of
`fake_agents` that the dialect needs, and the modules of a dialect from another package. So the launcher works from any
directory, under any name, with an empty environment.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import finalize

from pytest_agentproc import fake_agents
from pytest_agentproc.fake_agents import process_log
from pytest_agentproc.files import read_own_file
from pytest_agentproc.harness._faults import locate_fault_file
from pytest_agentproc.harness._unrelated_processes import FAKE_INTERPRETER_OPTION
from pytest_agentproc.tree import find_interpreter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.fake_agents.program import Program


MODULE_LOADER_CODE = """
import marshal, sys
def load(name, is_package, code):
    module = sys.modules[name] = type(sys)(name)
    if is_package:
        module.__path__ = []
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, module)
    exec(code, module.__dict__)
    return module
for entry in marshal.loads(data):
    module = load(*entry)
"""
"""Loads the bundle `data`; afterwards `module` is its last module."""

LAUNCHER_CODE_TEMPLATE = """
import posix, sys
sys.setdlopenflags(posix.RTLD_LAZY)
if sys.argv[0] == "-c":
    del sys.argv[0]
with open({bundle!r}, "rb", 0) as file:
    data = file.read()
{load}
module.main({baked!r})
"""
"""The program of a launcher, for `str.format`: it loads the bundle, and then reads what is baked in a file of its own.

A module in C looks its symbols up when it calls them: most of them never do, so they are bound lazily.
"""


def compile_bundle(modules: Sequence[tuple[str, Path | None]]) -> bytes:
    """Compile modules into one piece, without docstrings and assertions.

    Args:
        modules: the full name and the source of each; without a source it is an empty package. They are executed in
            this order, so each comes after the modules that it imports when it is executed.
    """
    entries = []
    for name, path in modules:
        source = b"" if path is None else read_own_file(path)
        code = compile(source, str(path or name), "exec", dont_inherit=True, optimize=2)
        entries.append((name, path is None or path.name == "__init__.py", code))
    return marshal.dumps(entries)


_MODULES_OF_EVERY_FAKE = ("", "program", "glob", "lines", "player", "wire", "birth", "stage", "dialects")
REAL_TIME_MODULES = ("process_log", "realtime")
_SESSION_MODULES = ("questions", "session")
_FAKE_AGENTS_PACKAGE = fake_agents.__name__
_FAKE_AGENTS_MODULE_PREFIX = f"{_FAKE_AGENTS_PACKAGE}."
_PLAIN_TEXT_ENCODER_MODULES = (f"{_FAKE_AGENTS_MODULE_PREFIX}dialects.raw",)
"""The encoder of plain text, which needs no more than lines."""

_MAX_SHEBANG_BYTES = 250


class _LauncherKind(NamedTuple):
    """The common part of two launchers if one can stand for the other."""

    name: str
    encoder: tuple[str, ...]
    hears: bool
    spawn_error: str | None
    has_hub: bool
    has_log: bool
    flag_modules: tuple[str, ...]


class FakeBuilder:
    """Make executable fakes in a folder of their own, which is removed with this builder."""

    def __init__(self) -> None:
        self.folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="agentproc-")))
        self.close = finalize(self, _remove_folder, self.folder, os.getpid())
        """Remove everything; it is called by itself when nobody refers to this builder any more."""
        self._bundles: dict[tuple[str, ...], str] = {}
        self._free: dict[_LauncherKind, list[str]] = {}
        self._kinds: dict[str, _LauncherKind] = {}
        self._count = 0

    @property
    def death_notes_path(self) -> Path:
        """Where the lifeline broker notes deaths."""
        return self.folder / "deaths"

    @property
    def debugger_marker_path(self) -> Path:
        """The file that is there if a debugger watches the code that starts the fakes."""
        return self.folder / "debugged"

    def make_log_folder(self) -> Path:
        """Make a folder for the logs of one fake's processes; the first folder is ready in advance."""
        folder = Path(tempfile.mkdtemp(prefix="log-", dir=self.folder))
        (folder / process_log.SPARE_FILE_NAME).touch(0o600)
        return folder

    def write_fake(self, name: str, baked: dict[str, Any], *, spawn_error: str | None = None) -> str:
        """Write an executable fake and return its real path, in a folder that can be a PATH: no other program is there.

        Args:
            name: the command's name, such as `pi`.
            baked: what `pytest_agentproc.fake_agents.main` reads.
            spawn_error: `not_executable` writes a file that cannot be executed; `not_found` writes none, so that no
                supervisor finds it by its name on PATH; for the others see `UNSTARTABLE_FILE_TEXTS`.
        """
        program = baked["program"]
        encoder = (*program["encoder"], *list_session_file_modules(baked))
        kind = _LauncherKind(
            name,
            encoder,
            can_answer_requests(program),
            spawn_error,
            bool(baked["hub"]),
            "log" in baked,
            list_flag_modules(baked),
        )
        free = self._free.setdefault(kind, [])
        path = free.pop() if free else self._write_launcher(kind)
        plan = f"{os.path.split(path)[0]}.baked"
        faults = locate_fault_file(path)
        faults.unlink(missing_ok=True)
        _overwrite_file(plan, marshal.dumps({**baked, "faults": str(faults)}))
        for counted in ("count", "sessions"):
            Path(f"{plan}.{counted}").unlink(missing_ok=True)
        self._kinds[path] = kind
        return path

    def recycle_fake(self, path: str) -> None:
        """Reuse a fake that `write_fake` gave earlier: it is not started any more."""
        self._free[self._kinds.pop(path)].append(path)

    def _write_launcher(self, kind: _LauncherKind) -> str:
        self._count += 1
        folder = self.folder / str(self._count)
        os.mkdir(folder, 0o700)  # noqa: PTH102  # as in _find_module_source
        path = folder / kind.name
        boot = LAUNCHER_CODE_TEMPLATE.format(
            bundle=self._compile_bundle_once(kind), load=MODULE_LOADER_CODE, baked=str(folder.with_suffix(".baked"))
        )
        compiled = folder.with_suffix(".boot")
        _overwrite_file(str(compiled), marshal.dumps(compile(boot, str(path), "exec", dont_inherit=True, optimize=2)))
        if kind.spawn_error != "not_found":
            text = UNSTARTABLE_FILE_TEXTS.get(kind.spawn_error or "", _format_launcher(str(compiled)))
            _overwrite_file(str(path), text.encode())
            path.chmod(0o600 if kind.spawn_error == "not_executable" else 0o700)
        return str(path)

    def _compile_bundle_once(self, kind: _LauncherKind) -> str:
        """Give the file of a bundle, which is compiled once for all fakes of a kind."""
        more = (*(REAL_TIME_MODULES if kind.has_log else ()), *kind.flag_modules)
        name = (*kind.encoder, str(kind.hears), *more)
        if name not in self._bundles:
            file = self.folder / f"bundle-{len(self._bundles)}"
            _overwrite_file(str(file), compile_bundle(list_fake_modules(kind.encoder, more, hears=kind.hears)))
            self._bundles[name] = str(file)
        return self._bundles[name]


def _remove_folder(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a fork of the owner has the builder, too
        shutil.rmtree(folder, ignore_errors=True)


def _overwrite_file(path: str, data: bytes) -> None:
    """Overwrite a file: a file that is emptied first goes to the disk at once, which takes milliseconds."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(data)
        file.truncate()


def list_flag_modules(baked: dict[str, Any]) -> tuple[str, ...]:
    """List the modules of a fake that obeys its arguments."""
    if "flags" not in baked:
        return ()
    files = ("session_files", "session_files.disk") if list_session_file_modules(baked) else ()
    return ("flags", "children", "tool_servers", "dialects.final", *files)


def list_session_file_modules(baked: dict[str, Any]) -> tuple[str, ...]:
    """Name the module that knows the session files of its CLI, which needs the encoder."""
    kept = baked["flags"]["resuming"]["kept"] if "flags" in baked else ""
    return (f"{_FAKE_AGENTS_MODULE_PREFIX}session_files.{kept}",) if kept else ()


def can_answer_requests(program: Program) -> bool:
    """Say whether a fake loads what answers requests: no run of the kit's does, but one with background tasks."""
    is_ours = program["encoder"][-1].startswith(_FAKE_AGENTS_MODULE_PREFIX)
    return bool(program.get("serves") or program.get("tasks") or not is_ours)


def list_fake_modules(encoder: Sequence[str], more: Sequence[str], *, hears: bool) -> list[tuple[str, Path | None]]:
    """List what a fake loads, as `compile_bundle` takes it, in the order in which it must be executed.

    Args:
        encoder: the modules of its encoder, the kit's or another package's.
        more: modules of `fake_agents` beside those.
        hears: whether it answers requests.
    """
    shared = () if tuple(encoder) == _PLAIN_TEXT_ENCODER_MODULES else ("objects", "requests")
    names = (*_MODULES_OF_EVERY_FAKE, *shared, *(_SESSION_MODULES if hears else ()), *more)
    # Empty in a fake: it does not pay for the package that its modules are named after.
    root = _FAKE_AGENTS_PACKAGE.partition(".")[0]
    return [
        (root, None),
        *map(_find_module_source, names),
        *_list_encoder_sources(encoder),
        _find_module_source("main"),
    ]


def _list_encoder_sources(modules: Sequence[str]) -> list[tuple[str, Path | None]]:
    """List an encoder's own modules; another package's packages are empty in a fake."""
    found: dict[str, Path | None] = {}
    for module in modules:
        if module.startswith(_FAKE_AGENTS_MODULE_PREFIX):
            found[module] = _find_module_source(module.removeprefix(_FAKE_AGENTS_MODULE_PREFIX))[1]
            continue
        words = module.split(".")
        for length in range(1, len(words)):
            found.setdefault(".".join(words[:length]))
        spec = importlib.util.find_spec(module)
        assert spec is not None, "it was imported when the scenario was checked"
        assert spec.origin is not None, "it was read when the scenario was checked"
        found[module] = Path(spec.origin)
    return [*found.items()]


def _find_module_source(name: str) -> tuple[str, Path | None]:
    base = Path(fake_agents.__file__).parent.joinpath(*name.split("."))
    full = f"{_FAKE_AGENTS_MODULE_PREFIX}{name}" if name else _FAKE_AGENTS_PACKAGE
    is_package = os.path.isdir(base)  # noqa: PTH112  # a test may have put mocks into `Path`
    return full, base / "__init__.py" if is_package else base.with_suffix(".py")


UNSTARTABLE_FILE_TEXTS = {
    "no_interpreter": "#!/usr/bin/node-that-is-not-installed\n",
    "wrong_format": "\x7fELF of no machine\n",
}
"""Files that may be executed and cannot be: the kernel refuses them with ENOENT and with ENOEXEC."""


def _format_launcher(boot: str) -> str:
    """Give the text of a launcher: its first line holds the whole program, so that the file is not read.

    The rest is for a start with another interpreter. A fake whose files are gone exits with 70, without a traceback.
    """
    program = f"import marshal as m,posix as p;b={boot!r};p.access(b,4)or p._exit(70);"
    program += "exec(m.loads(open(b,'rb',0).read()))"
    return f"{build_shebang_line(f'{FAKE_INTERPRETER_OPTION}{program}')}\n{program}\n"


def build_shebang_line(option: str) -> str:
    """Give the first line of a Python program.

    If the line is too long for the kernel, a shell executes the same command, inside a text literal of Python.

    Args:
        option: the word for the interpreter before the file's path.
    """
    line = f"#!{find_interpreter()} {option}"
    if " " in find_interpreter() or len(line.encode()) > _MAX_SHEBANG_BYTES:
        return f"#!/bin/sh\n'''exec' {shlex.quote(find_interpreter())} {shlex.quote(option)} \"$0\" \"$@\"\n' '''"
    return line
