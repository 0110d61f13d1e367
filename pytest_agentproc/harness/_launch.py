"""Executable fakes on disk: one small script with everything baked in. Owns files; starts nothing.

A launcher names the interpreter, the bundle (all modules of `fake_agents` that the dialect needs, compiled, and of a
dialect that another package adds that one's own) and the baked program, so it works from any directory, under any name,
with an empty environment.
"""

from __future__ import annotations
import __future__

import ast
import importlib.util
import marshal
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import fake_agents
from fake_agents.dialects import module_of

if TYPE_CHECKING:
    from types import CodeType

__all__ = ["Workshop", "interpreter"]

_MODULES = ("", "program", "glob", "lines", "player", "wire", "birth", "stage", "dialects")
_REAL_TIME = ("diary", "realtime")
_SESSION = ("requests", "questions", "session")
_HOSTS = ("pi_rpc", "claude_session", "claude_behind", "acp")
"""Dialects' modules for sessions."""
_TURNS = (
    *("claude_forms", "claude", "claude_control", "claude_prompts", "claude_refusals", "claude_tasks"),
    "claude_turns",
)
_BUILT_ON = {
    "pi_rpc": ("pi",),
    "claude": ("claude_forms",),
    "claude_session": _TURNS,
    "claude_behind": (*_TURNS, "claude_session"),
}
"""Dialects' modules that build on others, in the order in which these must be loaded."""
_LONGEST_SHEBANG = 250

_STUB = """{head}
import _imp, marshal, sys
for name, origin in {extensions!r}:
    module = sys.modules[name] = _imp.create_dynamic(type(sys.implementation)(name=name, origin=origin))
    _imp.exec_dynamic(module)
for name, code in marshal.loads(open({bundle!r}, "rb").read()):
    module = sys.modules[name] = type(sys)(name)
    module.__path__ = []
    exec(code, module.__dict__)
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, module)
module.main({baked!r})
"""


class _Kind(NamedTuple):
    """What two launchers have in common if one can stand for the other."""

    name: str
    module: str
    added: tuple[str, ...]
    is_executable: bool
    is_real: bool


class Workshop:
    """Make executable fakes in a folder of their own, which goes with the workshop."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="agentproc-"))
        self._bundles: dict[str, str] = {}
        self._free: dict[_Kind, list[Path]] = {}
        self._kinds: dict[str, _Kind] = {}
        self._count = 0

    @property
    def deaths(self) -> Path:
        """Where the lifeline broker notes deaths."""
        return self.folder / "deaths"

    def new_diary(self) -> Path:
        """Make an empty folder for the diaries of one fake's processes."""
        return Path(tempfile.mkdtemp(prefix="diary-", dir=self.folder))

    def make(self, name: str, baked: dict[str, Any], *, executable: bool = True) -> str:
        """Write an executable fake and return its path, alone in a folder that can be a PATH.

        Args:
            name: the command's name, such as `pi`.
            baked: what `fake_agents.main` reads.
            executable: False writes a file that cannot be executed.
        """
        program = baked["program"]
        added = tuple(program.get("encoder", ()))
        kind = _Kind(name, "" if added else module_of(program), added, executable, not baked["hub"])
        free = self._free.setdefault(kind, [])
        path = free.pop() if free else self._write(kind)
        plan = path.parent.with_suffix(".baked")
        plan.write_bytes(marshal.dumps(baked))
        if "then" in baked["program"]:
            plan.with_suffix(".baked.count").unlink(missing_ok=True)
        self._kinds[str(path)] = kind
        return str(path)

    def take_back(self, path: str) -> None:
        """Take one fake that `make` gave for the next that is made: nobody starts it any more."""
        self._free[self._kinds.pop(path)].append(Path(path))

    def _write(self, kind: _Kind) -> Path:
        self._count += 1
        folder = self.folder / str(self._count)
        folder.mkdir()
        path = folder / kind.name
        stub = _STUB.format(
            head=_head(),
            extensions=_extensions(kind.module),
            bundle=self._bundle(kind.module, kind.added, _REAL_TIME if kind.is_real else ()),
            baked=str(folder.with_suffix(".baked")),
        )
        path.write_text(stub, encoding="utf-8")
        path.chmod(0o700 if kind.is_executable else 0o600)
        return path

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _bundle(self, module: str, added: tuple[str, ...], more: tuple[str, ...]) -> str:
        name = ".".join((module, *added, *more, "bundle"))
        if name not in self._bundles:
            path = self.folder / (name if module else f"added-{len(self._bundles)}.bundle")
            path.write_bytes(marshal.dumps([*_compile(module, more), *_compile_added(added), _compiled("main")]))
            self._bundles[name] = str(path)
        return self._bundles[name]


def _compile(module: str, more: tuple[str, ...]) -> list[tuple[str, CodeType]]:
    extra: tuple[str, ...] = () if module == "raw" else ("objects",)
    if module in _HOSTS or not module:
        extra = (*extra, *_SESSION)
    own = (*_BUILT_ON.get(module, ()), module) if module else ()
    return [_compiled(name) for name in (*_MODULES, *extra, *more, *(f"dialects.{name}" for name in own))]


def _compiled(name: str) -> tuple[str, CodeType]:
    """Compile a module of `fake_agents` under its whole name."""
    base = Path(fake_agents.__file__).parent.joinpath(*name.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return f"fake_agents.{name}" if name else "fake_agents", _code(path)


def _compile_added(modules: tuple[str, ...]) -> list[tuple[str, CodeType]]:
    """Compile a dialect's own modules; the packages that they are in are empty in a fake."""
    found: dict[str, CodeType] = {}
    for module in modules:
        words = module.split(".")
        for length in range(1, len(words)):
            found.setdefault(".".join(words[:length]), compile("", module, "exec", dont_inherit=True))
        spec = importlib.util.find_spec(module)
        assert spec is not None, "it was imported when the scenario was checked"
        assert spec.origin is not None, "it was read when the scenario was checked"
        found[module] = _code(Path(spec.origin))
    return list(found.items())


def _code(path: Path) -> CodeType:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not _is_future(node)]
    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(tree, str(path), "exec", flags, dont_inherit=True, optimize=2)
    return code


def _extensions(module: str) -> list[tuple[str, str]]:
    """Give the extension modules of a fake with their files: a start would look for them in every folder."""
    names = ("select", "_socket", "fcntl", *(("_json",) if module != "raw" else ()))
    specs = [(name, importlib.util.find_spec(name)) for name in names]
    return [(name, spec.origin) for name, spec in specs if spec and spec.origin and spec.origin.endswith(".so")]


def _is_future(node: ast.stmt) -> bool:
    """Say whether a statement imports from `__future__`, which a start would pay for though it says nothing then."""
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _head() -> str:
    """Give the first line: a shebang, or where the kernel would cut it, a shell's exec that Python takes for text."""
    python = interpreter()
    if " " in python or len(python) > _LONGEST_SHEBANG:
        return f"#!/bin/sh\n'''exec' '{python}' -IS \"$0\" \"$@\"\n' '''"
    return f"#!{python} -IS"


def interpreter() -> str:
    """Give the interpreter below any virtual environment.

    It starts faster, and fakes need the standard library only.
    """
    return getattr(sys, "_base_executable", None) or sys.executable
