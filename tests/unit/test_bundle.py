"""What a fake loads: a bundle's functions, loaded when they are called first, are those of their source."""

from __future__ import annotations

import io
import marshal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import fake_agents
from pytest_agentproc.harness._bundle import BOOT, bundle

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

PRINTED = """\
(1, 'b', (), 3, 7, {}) (1, 2, (3,), 4, 5, {'e': 6})
[3, 5, 7] [3, 4]
base and thing THING 8 Thing! hidden thing
1 2 7 False a path True
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Bundle a source as the module `toy`, and run its `main` as a launcher would."""

    def run(source: str) -> subprocess.CompletedProcess[str]:
        path, loaded = tmp_path / "toy.py", tmp_path / "bundle"
        path.write_text(source)
        data, start, packages = bundle([("toy", path)])
        loaded.write_bytes(data)
        boot = BOOT.format(extensions=[], packages=packages, bundle=str(loaded), start=start, baked="a path")
        command = [sys.executable, "-IS", "-c", boot]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    return run


def test_functions_that_are_loaded_later_do_what_their_source_says(
    run: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    """Defaults, generators, properties, `super()` and closures: a fake's author need not know of the bundle."""
    done = run(SOURCE)
    assert (done.stdout, done.stderr) == (PRINTED, "")


def test_a_function_is_loaded_once(run: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    """What it costs is paid at its first call, not at every one."""
    done = run(f"def often():\n    {LONG}\n\ndef main(path):\n    often(), often()\n    print(len(_later))\n")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_every_function_that_the_fakes_load_later_stands_by_itself() -> None:
    """One that speaks of what is around it would fail in the one scenario that calls it."""
    root = Path(fake_agents.__file__).parent
    found = []
    for path in root.rglob("*.py"):
        data, start, _ = bundle([(path.stem, path)])
        stream = io.BytesIO(data[:start])
        while stream.tell() < start:
            found.append(marshal.load(stream))  # noqa: S302  # our own data
    assert len(found) > 200
    assert [code.co_name for code in found if code.co_freevars or "__class__" in code.co_names] == []
