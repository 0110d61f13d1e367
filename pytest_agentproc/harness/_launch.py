"""Executable fakes on disk: one small script with everything baked in. Owns files; starts nothing.

A launcher names the interpreter, the bundle (all modules of `fake_agents`, compiled) and the baked program, so it works
from any directory, under any name, with an empty environment.
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
_REAL = ("claude", "codex", "gemini", "pi")
"""Beside a fake these names lead to nothing, whatever else is in the PATH."""

_DECOY = """\
#!/bin/sh
echo "agentproc: this test has no fake called ${0##*/}, and the real one is not started" >&2
exit 127
"""

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
        """Write an executable fake and return its path, in a folder that can be a PATH: no other program is there.

        Args:
            name: the command's name, such as `pi`.
            baked: what `fake_agents.main` reads.
            executable: False writes a file that cannot be executed.
        """
        kind = _Kind(name, module_of(baked["program"]), executable, not baked["hub"])
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
            bundle=self._bundle(kind.module, _REAL_TIME if kind.is_real else ()),
            baked=str(folder.with_suffix(".baked")),
        )
        path.write_text(stub, encoding="utf-8")
        path.chmod(0o700 if kind.is_executable else 0o600)
        for other in _REAL:
            if other != kind.name:
                (folder / other).symlink_to(self._decoy())
        return path

    def _decoy(self) -> Path:
        """Give what stands in for a real CLI that a test has no fake of, so that a longer PATH leads to none."""
        decoy = self.folder / "decoy"
        if not decoy.exists():
            decoy.write_text(_DECOY, encoding="utf-8")
            decoy.chmod(0o700)
        return decoy

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _bundle(self, module: str, more: tuple[str, ...]) -> str:
        name = ".".join((module, *more, "bundle"))
        if name not in self._bundles:
            path = self.folder / name
            path.write_bytes(marshal.dumps(_compile(module, more)))
            self._bundles[name] = str(path)
        return self._bundles[name]


def _compile(module: str, more: tuple[str, ...]) -> list[tuple[str, CodeType]]:
    modules = []
    extra: tuple[str, ...] = () if module == "raw" else ("objects",)
    if module in _HOSTS:
        extra = (*extra, *_SESSION)
    extra = (*extra, *(f"dialects.{name}" for name in _BUILT_ON.get(module, ())))
    for name in (*_MODULES, *extra, *more, f"dialects.{module}", "main"):
        base = Path(fake_agents.__file__).parent.joinpath(*name.split("."))
        path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tree.body = [node for node in tree.body if not _is_future(node)]
        flags = __future__.annotations.compiler_flag
        full = f"fake_agents.{name}" if name else "fake_agents"
        modules.append((full, compile(tree, str(path), "exec", flags, dont_inherit=True, optimize=2)))
    return modules


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
