"""What a fake's interpreter loads: the modules of one fake, compiled whole into one file. Starts nothing."""

from __future__ import annotations

import marshal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["BOOT", "LOAD", "bundle"]

LOAD = """
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

BOOT = """
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


def bundle(modules: Sequence[tuple[str, Path | None]]) -> bytes:
    """Compile modules into one piece, without docstrings and assertions.

    Args:
        modules: the full name and the source of each; without a source it is an empty package. They are executed in
            this order, so each comes after those that it imports when it is executed.
    """
    entries = []
    for name, path in modules:
        source = "" if path is None else path.read_text("utf-8")
        code = compile(source, str(path or name), "exec", dont_inherit=True, optimize=2)
        entries.append((name, path is None or path.name == "__init__.py", code))
    return marshal.dumps(entries)
