"""The cost of the kit for a repository that does not use it. Owns an installation in a folder; knows no scenario.

pytest reads the list of files of each installed plugin, and CPython 3.12 and newer look for every file on it. So the
whole kit is installed, as pip does it, and not only what is imported.

The floor, in instructions beside pytest 9.2 with the kit's dependencies on CPython 3.13: a plugin of one empty file
costs 0.2 % more. The kit's plugin costs 2.2 %, and its list 18 %: half of it for the scenarios, half for the code and
its byte code. No wheel with these files can cost less there. On CPython 3.11 the list costs 6 %.
"""

from __future__ import annotations

import compileall
import importlib.metadata
import os
import shutil
import statistics
import subprocess
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from packaging.requirements import Requirement

from tests.architecture.sources import ROOT
from tests.benchmarks._figures import Part, Ratio, measure_mean
from tests.benchmarks.costs._bare import INTERPRETER

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["measure_unused"]

_COUNT_MODULES = "import sys, pytest; pytest.main(sys.argv[1:]); print(len(sys.modules))"


class _Installation(NamedTuple):
    """What is installed beside the standard library, and which words pytest is called with."""

    folders: tuple[Path, ...]
    words: tuple[str, ...] = ()


@contextmanager
def measure_unused(*, is_small: bool) -> Iterator[Part]:
    """Measure pytest on one test, and on many empty ones, with the kit and without it.

    `dependencies` has the packages that the kit needs, such as anyio, whose own plugin pytest loads, too. `blocked` has
    the kit and does not load its plugin (`-p no:agentproc`): what it costs more than `dependencies` is the list of the
    kit's files. The plugin itself is to cost 3 % at most; the limit leaves room for the noise of a machine under load.
    """
    with TemporaryDirectory(prefix="agentproc-benchmark-") as name:
        folder = Path(name)
        pytest_alone, others, kit = (folder / part for part in ("pytest", "others", "kit"))
        needed_by_pytest = {"pytest", *_list_requirements("pytest")}
        _link_packages(pytest_alone, needed_by_pytest)
        _link_packages(others, _list_requirements("pytest-agentproc") - needed_by_pytest)
        count = _install_kit(kit, has_byte_code=not is_small)
        _write_tests(folder / "one", 1)
        _write_tests(folder / "many", 100 if is_small else 2000)
        installations = {
            "pytest alone": _Installation((pytest_alone,)),
            "dependencies": _Installation((pytest_alone, others)),
            "blocked": _Installation((pytest_alone, others, kit), ("-p", "no:agentproc")),
            "kit": _Installation((pytest_alone, others, kit)),
        }
        walls: dict[str, list[float]] = {name: [] for name in installations}

        def measure(name: str, tests: Path) -> float:
            begin = monotonic()
            cpu = measure_mean(lambda: _run_pytest(installations[name], tests), 1)
            if tests.name == "one":
                walls[name].append((monotonic() - begin) * 1000)
            return cpu

        def count_facts() -> dict[str, float]:
            modules = {f"modules with {name}": _count_modules(installations[name], folder / "one") for name in walls}
            times = {f"wall ms with {name}": statistics.median(values) for name, values in walls.items()}
            return {"files of the kit": count, **modules, **times}

        measures = {name: partial(measure, name, folder / "one") for name in installations}
        measures |= {f"many, {name}": partial(measure, name, folder / "many") for name in ("blocked", "kit")}
        if not is_small:
            for each in measures.values():
                each()  # writes byte code of the tests and of other packages
            for values in walls.values():
                values.clear()
        yield Part(
            measures,
            {
                "kit over dependencies": Ratio("kit", "dependencies"),
                "kit over blocked": Ratio("kit", "blocked", 1.05),
                "kit over blocked, many tests": Ratio("many, kit", "many, blocked", 1.05),
                "dependencies over pytest alone": Ratio("dependencies", "pytest alone"),
            },
            count_facts,
        )


def _list_requirements(name: str) -> set[str]:
    """Name the packages that a package needs, and those that they need."""
    found: set[str] = set()
    for text in importlib.metadata.requires(name) or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found |= {requirement.name, *_list_requirements(requirement.name)}
    return found


def _link_packages(folder: Path, names: set[str]) -> None:
    """Have a folder lead to installed packages."""
    folder.mkdir()
    for name in names:
        distribution = importlib.metadata.distribution(name)
        for part in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            (folder / part).symlink_to(Path(str(distribution.locate_file(part))))


def _install_kit(folder: Path, *, has_byte_code: bool) -> int:
    """Install the kit as pip does, with byte code and a list of all files; give their number."""
    package = folder / "pytest_agentproc"
    shutil.copytree(ROOT / "pytest_agentproc", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "scenarios", package / "_corpus", dirs_exist_ok=True)
    if has_byte_code:
        compileall.compile_dir(package, quiet=2)
    files = [str(file.relative_to(folder)) for file in package.rglob("*") if file.is_file()]
    home = folder / "pytest_agentproc-0.dist-info"
    home.mkdir()
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: pytest-agentproc\nVersion: 0\n")
    (home / "entry_points.txt").write_text("[pytest11]\nagentproc = pytest_agentproc.plugin\n")
    (home / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    return len(files)


def _write_tests(folder: Path, count: int) -> None:
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text("".join(f"def test_{number}():\n    pass\n\n" for number in range(count)))


def _run_pytest(installation: _Installation, tests: Path) -> None:
    _run(installation, tests, "-m", "pytest")


def _count_modules(installation: _Installation, tests: Path) -> int:
    return int(_run(installation, tests, "-c", _COUNT_MODULES).split()[-1])


def _run(installation: _Installation, tests: Path, *how: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PY", "VIRTUAL_ENV"))}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, installation.folders))
    command = [INTERPRETER, "-S", *how, "-q", "-p", "no:cacheprovider", *installation.words, "test_it.py"]
    return subprocess.run(
        command, cwd=tests, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300
    ).stdout
