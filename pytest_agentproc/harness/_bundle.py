"""What a fake's interpreter loads: the modules, compiled. Reads sources; writes and starts nothing.

A fake's start is measured, and half of what it costs beyond a bare interpreter is the loading of code that most fakes
never call. So a bundle holds two things: the functions that are only loaded when they are called first, one after the
other, and then the modules, in which a stub of the same signature stands for each of these.
"""

from __future__ import annotations
import __future__

import ast
import marshal
from types import CodeType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["BOOT", "Bundle", "bundle"]

_AT_START = frozenset(
    (
        *("__init__", "main", "settle_signals", "hear_signals", "handed_over", "_again", "_first", "_live", "_connect"),
        *("_hold_lifeline", "module_of", "encoder", "argument", "desk", "in_turn", "entry", "grant", "move", "until"),
        *("play", "note", "writable", "write", "stdin_ready", "_advance", "_emit", "_is_ready", "_main", "_play"),
        *("_open_session", "_play_on", "_resumed", "_write", "_diary", "_started_at", "_writer", "_staged"),
        *("_play_by_grants", "take_notes", "take_signals", "arm"),
    )
)
"""Functions that a start calls, or every step: a stub would only be one more thing to load."""

_SMALL = 200
"""Bytes of a function's code below which a stub gains nothing."""

_PLACE = "_place"
"""The parameter of a stub that says where its function is: all else they have in common, so they can share code."""

LOAD = """
for name, origin in {extensions!r}:
    spec = type(sys.implementation)(name=name, origin=origin)
    module = sys.modules[name] = (_imp.create_dynamic if origin else _imp.create_builtin)(spec)
    (_imp.exec_dynamic if origin else _imp.exec_builtin)(module)
class Later(dict):
    def __missing__(self, place):
        function = self[place] = type(self.__missing__.__func__)(marshal.loads(data[place:]), self.scope)
        return function
for name, code in marshal.loads(data[{start}:]):
    module = sys.modules[name] = type(sys)(name)
    if name in {packages!r}:
        module.__path__ = []
    module._later = Later()
    module._later.scope = module.__dict__
    exec(code, module.__dict__)
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, module)
"""
"""Loads a bundle whose bytes are `data`, for `str.format`; `module` is the last of its modules then.

It wants the modules in C with their files (none: they are built in), which modules are packages, and where in the bytes
the modules begin; `_imp`, `marshal` and `sys` are there.
"""

BOOT = (
    """
import _imp, marshal, sys
if sys.argv[0] == "-c":
    del sys.argv[0]
data = memoryview(open({bundle!r}, "rb").read())
"""
    + LOAD
    + """
module.main({baked!r})
"""
)
"""The program of a launcher: `LOAD` from the file `bundle`, and then what is baked in the file `baked`."""


class Bundle(NamedTuple):
    """A bundle.

    Args:
        data: its bytes.
        start: where the modules begin in them.
        packages: which of them are packages.
    """

    data: bytes
    start: int
    packages: tuple[str, ...]


def bundle(modules: Sequence[tuple[str, Path | None]]) -> Bundle:
    """Compile modules.

    Args:
        modules: the full name and the source of each; without a source it is an empty package. They are executed in
            this order, so each comes after those that it imports when it is executed.
    """
    later: list[bytes] = []
    stubs: dict[CodeType, CodeType] = {}
    compiled = [(name, _slim(_compile(path, later), stubs)) for name, path in modules]
    before = b"".join(later)
    packages = tuple(name for name, path in modules if path is None or path.name == "__init__.py")
    return Bundle(before + marshal.dumps(compiled), len(before), packages)


def _compile(path: Path | None, later: list[bytes]) -> CodeType:
    if path is None:
        return _code(ast.Module([], []), "")
    tree = _Bare().visit(ast.parse(path.read_text(encoding="utf-8")))
    return _code(_Stubs(str(path), later).visit(tree), str(path))


def _code(tree: ast.Module, path: str) -> CodeType:
    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(ast.fix_missing_locations(tree), path, "exec", flags, dont_inherit=True, optimize=2)
    return code


def _slim(code: CodeType, stubs: dict[CodeType, CodeType]) -> CodeType:
    """Leave out of a code what only a traceback would ask for, and have stubs of one signature share theirs.

    Without its lines and names it is a fifth smaller, and as much faster to load.
    """
    inner = tuple(_slim(one, stubs) if isinstance(one, CodeType) else one for one in code.co_consts)
    slim = code.replace(co_linetable=b"", co_qualname=code.co_name, co_consts=inner)
    if _PLACE not in code.co_varnames:
        return slim
    slim = slim.replace(co_name=_PLACE, co_qualname=_PLACE, co_filename=_PLACE, co_firstlineno=1)
    return stubs.setdefault(slim, slim)


class _Bare(ast.NodeTransformer):
    """Leave out what says nothing when it runs: annotations, and what stands there for type checkers."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == "__future__" else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_for_types else self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)


class _Stubs(ast.NodeTransformer):
    """Put a stub in the place of each function, a class's among them, that can be loaded by itself."""

    def __init__(self, path: str, later: list[bytes]) -> None:
        self._path = path
        self._later = later

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name in _AT_START or _needs_its_place(node):
            return node
        code = marshal.dumps(self._alone(node))
        if len(code) < _SMALL:
            return node
        place = sum(map(len, self._later))
        self._later.append(code)
        node.body = ast.parse(f"return _later[{_PLACE}]({_forwarded(node.args)})").body
        node.args.kwonlyargs.append(ast.arg(_PLACE))
        node.args.kw_defaults.append(ast.Constant(place))
        return node

    def _alone(self, node: ast.FunctionDef) -> CodeType:
        """Compile a function without its defaults, which its stub has filled in."""
        given = node.args
        plain = ast.arguments(
            given.posonlyargs,
            given.args,
            given.vararg,
            given.kwonlyargs,
            [None] * len(given.kwonlyargs),
            given.kwarg,
            [],
        )
        alone = ast.FunctionDef(node.name, plain, node.body, [])
        [code] = [one for one in _code(ast.Module([alone], []), self._path).co_consts if isinstance(one, CodeType)]
        return code


def _needs_its_place(node: ast.FunctionDef) -> bool:
    """Say whether a function speaks of its class in a way that only works inside of it: `super()`, or `__names`."""
    names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    names |= {name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute)}
    return any(name in ("super", "__class__") or (name[:2] == "__" and name[-2:] != "__") for name in names)


def _forwarded(given: ast.arguments) -> str:
    words = [one.arg for one in (*given.posonlyargs, *given.args)]
    if given.vararg:
        words.append(f"*{given.vararg.arg}")
    words += [f"{one.arg}={one.arg}" for one in given.kwonlyargs]
    if given.kwarg:
        words.append(f"**{given.kwarg.arg}")
    return ", ".join(words)
