"""What a fake's interpreter loads: the modules, compiled. Reads sources; writes and starts nothing.

A fake's start is measured, and half of what it costs beyond a bare interpreter is the loading of code that most fakes
never call. So a bundle has two parts: what a start needs, in which a stub of the same signature stands for each
function that waits; and those functions, with the modules that only they use, which are loaded when they are called.
"""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_agentproc.harness._deferral import AT_START, defer, read

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path
    from types import CodeType

    from pytest_agentproc.harness._deferral import Part, Source

__all__ = ["BOOT", "LOAD", "Bundle", "bundle"]

LOAD = """
def extend(name, origin):
    spec = type(sys.implementation)(name=name, origin=origin)
    module = sys.modules[name] = (_imp.create_dynamic if origin else _imp.create_builtin)(spec)
    (_imp.exec_dynamic if origin else _imp.exec_builtin)(module)
    return module
gc = extend("gc", "")
gc.disable()
waiting, modules = marshal.loads(start)
def bring(imports, scope):
    for own, origin, name in imports:
        if origin not in sys.modules:
            found = waiting[origin]
            extend(origin, found) if type(found) is str else load(*marshal.loads(rest()[found:]))
        module = sys.modules[origin]
        scope[own] = module.__dict__[name] if name else module
def later(scope):
    known = {}
    def loaded(place):
        if place not in known:
            code, imports = marshal.loads(rest()[place:])
            bring(imports, scope)
            known[place] = type(later)(code, scope)
        return known[place]
    return loaded
def load(name, is_package, imports, code):
    module = sys.modules[name] = type(sys)(name)
    if is_package:
        module.__path__ = []
    scope = module.__dict__
    bring(imports, scope)
    scope["_later"] = later(scope)
    exec(code, scope)
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, module)
    return module
for module in modules:
    module = load(*module)
gc.freeze()
gc.enable()
"""
"""Loads a bundle of which `start` is there, and `rest()` gives the rest; `module` is the last of its modules then.

`_imp`, `marshal` and `sys` are there. Nothing that it makes is garbage, so the collector rests meanwhile, and leaves it
alone from then on.
"""

BOOT = """
import _imp, marshal, posix, sys
sys.setdlopenflags(posix.RTLD_LAZY)
if sys.argv[0] == "-c":
    del sys.argv[0]
file = posix.open({start!r}, posix.O_RDONLY | posix.O_CLOEXEC)
start = posix.read(file, {size})
posix.close(file)
data = []
def rest():
    if not data:
        try:
            data.append(memoryview(open({rest!r}, "rb", 0).read()))
        except FileNotFoundError:
            posix._exit(70)
    return data[0]
{load}
module.main({baked!r})
"""
"""The program of a launcher, for `str.format`: `LOAD` from two files, and then what is baked in a third one.

The one, of so many bytes, is what a start needs; the other is read as soon as something of it is called. A fake whose
files are gone has nobody to live for. Modules in C look their symbols up when they call them: most never do.
"""


class Bundle(NamedTuple):
    """A bundle.

    Args:
        start: what a start needs.
        rest: what waits.
    """

    start: bytes
    rest: bytes


def bundle(
    modules: Sequence[tuple[str, Path | None]],
    extensions: Sequence[tuple[str, str]] = (),
    kept: Collection[str] = AT_START,
) -> Bundle:
    """Compile modules.

    Args:
        modules: the full name and the source of each; without a source it is an empty package. They are executed in
            this order, so each comes after those that it imports when it is executed.
        extensions: the modules in C that they may import, and the file of each; empty: it is built in.
        kept: the names of functions that do not wait.
    """
    later: list[bytes] = []
    stubs: dict[CodeType, CodeType] = {}
    known = [name for name, _ in (*modules, *extensions)]
    sources = {name: read(path, known) for name, path in modules}
    asked = {one for source in sources.values() for one in source.asks}
    parts = {
        name: defer(source, {word for origin, word in asked if origin == name}, later, stubs, kept)
        for name, source in sources.items()
    }
    packages = {name for name, path in modules if path is None or path.name == "__init__.py"}
    entries = {name: (name, name in packages, part.imports, part.code) for name, part in parts.items()}
    at_start = _needed_at_start(parts, _not_only_taken(sources) | packages)
    waiting: dict[str, Any] = dict(extensions)
    for name in parts:
        if name not in at_start:
            waiting[name] = sum(map(len, later))
            later.append(marshal.dumps(entries[name]))
    return Bundle(marshal.dumps((waiting, [entries[name] for name in parts if name in at_start])), b"".join(later))


def _not_only_taken(sources: dict[str, Source]) -> set[str]:
    """Give the modules that some statement imports, and those that nobody does."""
    taken = {origin for source in sources.values() for _, origin, _ in source.imports.values()}
    stated = {name for source in sources.values() for name in source.others}
    return stated | (sources.keys() - taken)


def _needed_at_start(parts: dict[str, Part], first: set[str]) -> set[str]:
    """Give the modules that are executed at once: these, and what they import so that it must be there."""
    left, needed = [*first], set[str]()
    while left:
        name = left.pop()
        if name in parts and name not in needed:
            needed.add(name)
            left += [origin for _, origin, _ in parts[name].imports]
    return needed
