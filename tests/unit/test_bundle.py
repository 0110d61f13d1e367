"""What a fake loads: a bundle's functions, loaded when they are called first, are those of their source."""

from __future__ import annotations

import ast
import io
import marshal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fake_agents
from pytest_agentproc.harness._bundle import BOOT, LOAD, bundle
from pytest_agentproc.harness._deferral import IN_LOCKSTEP

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = "; ".join(f"filler_{number} = {number}" for number in range(20))
"""A function of a few bytes is not worth a stub."""

SOURCE = f"""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import nowhere

count: int = 7
unset: int

def plain(a: int, /, b: str = "b", *rest: str, c: int, d: int = count, **named: nowhere.Type) -> tuple:
    {LONG}
    return a, b, rest, c, d, named

def counted(start, *, step=2):
    {LONG}
    value = start
    while True:
        yield value
        value += step

class Base:
    def greet(self):
        {LONG}
        return "base"

class Thing(Base):
    word: str = "thing"

    def greet(self):
        {LONG}
        return super().greet() + " and " + self.word

    @property
    def loud(self):
        {LONG}
        return self.word.upper()

    @staticmethod
    def double(value):
        {LONG}
        return 2 * value

    @classmethod
    def named(cls, value):
        {LONG}
        return cls.__name__ + value

    def __hidden(self):
        {LONG}
        return "hidden"

    def shown(self):
        {LONG}
        return self.__hidden()

def counter():
    {LONG}
    seen = 0
    def more():
        nonlocal seen
        seen += 1
        return seen
    return more

def main(path):
    from itertools import islice
    thing, more = Thing(), counter()
    print(plain(1, c=3), plain(1, 2, 3, c=4, d=5, e=6))
    print(list(islice(counted(3), 3)), list(islice(counted(3, step=1), 2)))
    print(thing.greet(), thing.loud, Thing.double(4), thing.named("!"), thing.shown(), Thing.word)
    print(more(), more(), count, "unset" in globals(), path, _later is not None)
"""

COUNTED = f"""
import marshal

def often():
    {LONG}

def main(path):
    loaded, loads = [], marshal.loads
    marshal.loads = lambda data: loaded.append(data) or loads(data)
    often(), often()
    print(len(loaded))
"""

PRINTED = """\
(1, 'b', (), 3, 7, {}) (1, 2, (3,), 4, 5, {'e': 6})
[3, 5, 7] [3, 4]
base and thing THING 8 Thing! hidden thing
1 2 7 False a path True
"""


WORDS = """
import _json

quote = _json.encode_basestring
"""
"""A module that imports one in C, and that only a function imports that is loaded when it is called first."""

OTHERS = """
def quote(text):
    return text
"""

PARTS = """
from box.others import quote

class Part:
    pass

marks = 3
"""
"""One that another one asks for what it has imported itself."""

USED = """
import sys
import select
from box import words
from box.words import quote as quoted
from box import parts
from box.parts import Part
from box.parts import marks as own

marks = own

def speak(text):
    return quoted(text) + words.quote(text)

def loaded():
    return [name in sys.modules for name in ("select", "_json", "box.words", "box.parts")]

class Piece(Part):
    def hear(self, quoted):
        return quoted + parts.quote("c")

def main(path):
    from box import read_inside
    before = loaded()
    print(before, speak("a"), Piece().hear("b"), loaded(), marks, read_inside.__name__)
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Bundle a source as the module `toy`, others in a package `box`, and run its `main` as a launcher would."""

    def run(source: str, **others: str) -> subprocess.CompletedProcess[str]:
        modules = []
        for name, text in {**others, "toy": source}.items():
            path = tmp_path / f"{name}.py"
            path.write_text(text)
            modules.append((name if name == "toy" else f"box.{name}", path))
        in_c = [(name, find_spec(name)) for name in ("select", "_json")]
        origins = [(name, spec.origin or "") for name, spec in in_c if spec is not None]
        extensions = [(name, "" if origin == "built-in" else origin) for name, origin in origins]
        start, rest = bundle([("box", None), *modules], extensions)
        files = [tmp_path / "start", tmp_path / "rest"]
        for path, data in zip(files, (start, rest), strict=True):
            path.write_bytes(data)
        boot = BOOT.format(start=str(files[0]), size=len(start), rest=str(files[1]), load=LOAD, baked="a path")
        command = [sys.executable, "-IS", "-c", boot]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    return run


def test_functions_that_are_loaded_later_do_what_their_source_says(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """Defaults, generators, properties, `super()` and closures: a fake's author need not know of the bundle."""
    done = run(SOURCE)
    assert (done.stdout, done.stderr) == (PRINTED, "")


def test_a_function_is_loaded_once(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """What it costs is paid at its first call, not at every one."""
    done = run(COUNTED)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_module_that_only_waiting_functions_use_waits_with_them(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """What a start does not call needs neither its own code nor that of others: here the words, and `_json` for them.

    A name that is also an argument is only taken for more than it is; a module that is imported in a function is there.
    """
    done = run(USED, words=WORDS, others=OTHERS, parts=PARTS, read_inside="")
    told = '[True, False, False, True] "a""a" bc [True, True, True, True] 3 box.read_inside\n'
    assert (done.stdout, done.stderr) == (told, "")


def test_every_function_that_the_fakes_load_later_stands_by_itself() -> None:
    """One that speaks of what is around it would fail in the one scenario that calls it."""
    root = Path(fake_agents.__file__).parent
    found = []
    for path in root.rglob("*.py"):
        rest = bundle([(path.stem, path)]).rest
        stream = io.BytesIO(rest)
        while stream.tell() < len(rest):
            found.append(marshal.load(stream))  # noqa: S302  # our own data
    assert len(found) > 200
    assert [code.co_name for code, _ in found if code.co_freevars or "__class__" in code.co_names] == []


def test_what_is_loaded_in_lockstep_is_there() -> None:
    """A function that was renamed, and is a name of nobody's now, would wait to be called for no reason."""
    folder = Path(fake_agents.__file__).parent
    trees = [ast.parse(file.read_text("utf-8")) for file in folder.rglob("*.py")]
    names = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert names >= IN_LOCKSTEP
