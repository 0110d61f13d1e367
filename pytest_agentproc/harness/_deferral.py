"""What of a fake's module can wait: the functions that no start calls, and the imports that only these use.

Sources in, code out; it packs and writes nothing.
"""

from __future__ import annotations
import __future__

import ast
import marshal
from collections import Counter
from types import CodeType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

__all__ = ["AT_START", "IN_LOCKSTEP", "Import", "Part", "Source", "defer", "read"]

Import = tuple[str, str, str]
"""A name in the module, the module that it comes from, and its name there; empty: it is that module itself."""

AT_START = frozenset(
    (
        *("__init__", "main", "settle_signals", "hear_signals", "handed_over", "_first", "_live", "_connect"),
        *("_hold_lifeline", "module_of", "encoder", "argument", "desk", "in_turn", "entry", "grant", "move", "until"),
        *("play", "note", "writable", "write", "stdin_ready", "_advance", "_emit", "_is_ready", "_main", "_play"),
        *("_open_session", "_play_on", "_resumed", "_write", "_diary", "_started_at", "_writer"),
        *("take_notes", "take_signals", "arm", "in_order", "_instant"),
    )
)
"""Functions that a start in real time calls, or every step: a stub would only be one more thing to load."""

IN_LOCKSTEP = AT_START | frozenset(
    (
        *(
            "_live_by_grants",
            "_staged",
            "_ring_at",
            "_identity",
            "hello",
            "granted",
            "_play_by_grants",
            "keep",
            "wants",
            "wait",
        ),
        *("tell", "_take_stdin", "_react", "_cut", "_do_sleep", "_do_say", "_do_answer", "_do_exit", "_do_event"),
        *("read", "leave", "line", "join", "say", "answer", "result", "hear", "take", "has", "serve", "success"),
        *("do_await_prompt", "initialized", "late", "mark", "open", "queue", "stamp", "unseen", "uuid", "news"),
        *("_about", "_answered", "_ask_model", "_asked", "_begin", "_chunk", "_close", "_deltas", "_end", "_end_block"),
        *("_end_text", "_ended", "_event", "_finish", "_head", "_is_over", "_item", "_joined", "_known", "_lifecycle"),
        *("_line", "_mark", "_message", "_note_news", "_open_block", "_open_turn", "_opened", "_over", "_part"),
        *("_partial", "_piece", "_queue", "_replay", "_replayed", "_request", "_response", "_result", "_running_again"),
        *("_said", "_session", "_shake", "_shut", "_stamp", "_start", "_started", "_state", "_succeeded", "_tell"),
        *("_turn_end", "_update", "_uuid", "_whole"),
    )
)
"""Beside those, what most plays in virtual time call (of the bundled scenarios, counted by dialect): the rest is rarely
opened then."""

_SMALL = 150
"""Bytes of a function's code, wherever its file is, below which a stub gains nothing."""

_PLACE = "_place"
"""The parameter of a stub that says where its function is: all else they have in common, so they can share code."""


class Source(NamedTuple):
    """A module's source, without what says nothing when it runs.

    Args:
        path: its file.
        tree: what is left of it.
        imports: what was taken out of it, by the name in the module.
        others: the modules that it imports in its own way, wherever that is.
    """

    path: str
    tree: ast.Module
    imports: dict[str, Import]
    others: frozenset[str]

    @property
    def asks(self) -> set[tuple[str, str]]:
        """What it asks of other modules: of which, and for what."""
        names = (node for node in ast.walk(self.tree) if isinstance(node, ast.Attribute))
        of_modules = ((self.imports.get(node.value.id), node) for node in names if isinstance(node.value, ast.Name))
        asked = {(found[1], node.attr) for found, node in of_modules if found and not found[2]}
        return asked | {(origin, name) for _, origin, name in self.imports.values()}


class Part(NamedTuple):
    """A module of which functions wait.

    Args:
        code: what is executed, with a stub in the place of each of these.
        imports: what must be there before it is.
    """

    code: CodeType
    imports: tuple[Import, ...]


def read(path: Path | None, known: Collection[str]) -> Source:
    """Read a module; None: one that is empty.

    Args:
        path: its file.
        known: the modules that imports at its top are taken out for; all other imports stay statements.
    """
    tree = _Bare().visit(ast.parse("" if path is None else path.read_text(encoding="utf-8")))
    imports = _take_imports(tree, known)
    return Source(str(path or ""), tree, imports, frozenset(_imported_in(tree)) & {*known})


def defer(
    source: Source,
    asked: Collection[str],
    later: list[bytes],
    stubs: dict[CodeType, CodeType],
    kept: Collection[str] = AT_START,
) -> Part:
    """Compile a module. What is imported and used nowhere is there at the start: it may be for what it does.

    Args:
        source: the module.
        asked: what others ask of it.
        later: the functions that wait, marshalled, each with its imports; the module's are added.
        stubs: the code of the stubs so far, which are shared.
        kept: the names of functions that do not wait.
    """
    owners = _owners(source.tree)
    used = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
    functions = (node for node in ast.walk(source.tree) if isinstance(node, ast.FunctionDef))
    able = {node for node in functions if node.name not in kept and _can_wait(node, owners)}
    at_start = {*_needed_at_start(source.tree, able), *asked, *(own for own in source.imports if own not in used)}
    waiting = {own: one for own, one in source.imports.items() if own not in at_start}
    code = _code(_Stubs(source.path, able, owners, waiting, later).visit(source.tree), source.path)
    return Part(_slim(code, stubs), tuple(one for own, one in source.imports.items() if own in at_start))


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


def _take_imports(tree: ast.Module, known: Collection[str]) -> dict[str, Import]:
    """Take the imports at a module's top that name known modules out of it."""
    found: dict[str, Import] = {}
    for node in tree.body[:]:
        taken = [*_resolved(node, known)]
        if taken:
            tree.body.remove(node)
            found |= {one[0]: one for one in taken}
    return found


def _resolved(node: ast.stmt, known: Collection[str]) -> Iterator[Import]:
    if isinstance(node, ast.Import) and all(one.name in known and "." not in one.name for one in node.names):
        for one in node.names:
            yield one.asname or one.name, one.name, ""
    if not isinstance(node, ast.ImportFrom) or node.level or node.names[0].name == "*":
        return
    module = node.module or ""
    for one in node.names if module in known else ():
        inner = f"{module}.{one.name}"
        yield (one.asname or one.name, *((inner, "") if inner in known else (module, one.name)))


def _imported_in(tree: ast.Module) -> Iterator[str]:
    """Name every module that a statement imports, or may import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{one.name}" for one in node.names))


def _owners(tree: ast.Module) -> dict[ast.FunctionDef, str]:
    """Give the methods in which `super()` is `super(Class, self)`, with the class: nothing else has its name."""
    names = Counter(node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    names.update(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and names[node.name] == 1)
    return {
        method: one.name
        for one in classes
        for method in one.body
        if isinstance(method, ast.FunctionDef) and (method.args.posonlyargs or method.args.args)
    }


def _can_wait(node: ast.FunctionDef, owners: Collection[ast.FunctionDef]) -> bool:
    """Say whether a function can be loaded by itself; one that speaks of its class as only those inside can, cannot."""
    names = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    if "__class__" in names or ("super" in names and node not in owners):
        return False
    names |= {name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute)}
    return not any(name[:2] == "__" and name[-2:] != "__" for name in names)


def _needed_at_start(tree: ast.Module, able: Collection[ast.FunctionDef]) -> set[str]:
    """Give the names that are used outside of functions that can wait."""
    names: set[str] = set()
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.Module | ast.ClassDef):
            left += ast.iter_child_nodes(node)
        elif isinstance(node, ast.FunctionDef) and node in able:
            left += [node.args, *node.decorator_list]
        else:
            names |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names


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

    def __init__(
        self,
        path: str,
        able: Collection[ast.FunctionDef],
        owners: dict[ast.FunctionDef, str],
        waiting: dict[str, Import],
        later: list[bytes],
    ) -> None:
        self._path = path
        self._able = able
        self._owners = owners
        self._waiting = waiting
        self._later = later

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node not in self._able:
            return node
        used = {name.id for line in node.body for name in ast.walk(line) if isinstance(name, ast.Name)}
        imports = tuple(one for own, one in self._waiting.items() if own in used)
        code = self._alone(node)
        if not imports and len(marshal.dumps(_slim(code, {}).replace(co_filename=""))) < _SMALL:
            return node
        place = sum(map(len, self._later))
        self._later.append(marshal.dumps((code, imports)))
        node.body = ast.parse(f"return _later({_PLACE})({_forwarded(node.args)})").body
        node.args.kwonlyargs.append(ast.arg(_PLACE))
        node.args.kw_defaults.append(ast.Constant(place))
        return node

    def _alone(self, node: ast.FunctionDef) -> CodeType:
        """Compile a function without its defaults, which its stub has filled in, and tell its `super()` which it is."""
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
        if node in self._owners:
            own = (*given.posonlyargs, *given.args)[0].arg
            for call in (one for line in node.body for one in ast.walk(line) if isinstance(one, ast.Call)):
                if isinstance(call.func, ast.Name) and call.func.id == "super" and not call.args:
                    call.args = [ast.Name(self._owners[node], ast.Load()), ast.Name(own, ast.Load())]
        alone = ast.FunctionDef(node.name, plain, node.body, [])
        [code] = [one for one in _code(ast.Module([alone], []), self._path).co_consts if isinstance(one, CodeType)]
        return code


def _forwarded(given: ast.arguments) -> str:
    words = [one.arg for one in (*given.posonlyargs, *given.args)]
    if given.vararg:
        words.append(f"*{given.vararg.arg}")
    words += [f"{one.arg}={one.arg}" for one in given.kwonlyargs]
    if given.kwarg:
        words.append(f"**{given.kwarg.arg}")
    return ", ".join(words)
