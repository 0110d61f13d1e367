"""Checks the origin of the coordinator and the shim, and the users that may have written them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pytest_agentproc
from pytest_agentproc.clock.preload import _build, find_coordinator
from pytest_agentproc.clock.preload._build import build_coordinator
from pytest_agentproc.errors import UsageError
from tests.process.preload.stand import LIMIT, require_program

OTHER_USER = 54321
_AARCH64 = b"\xb7\x00"
"""The machine in the head of an ELF file."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a cache folder in which nothing was compiled yet."""
    require_program("cc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pytest-agentproc"


@pytest.mark.slow
def test_it_is_compiled_once_however_many_ask_for_it(cache: Path) -> None:
    """Workers of pytest-xdist begin at the same time; none may start a half of a file."""
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(find_coordinator())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (folder,) = cache.glob("*/")
    assert found == [folder / "coordinator"] * 3
    assert sorted(file.name for file in folder.iterdir()) == ["coordinator", "files.json", "shim.so"]
    assert find_coordinator() == found[0]
    assert cache.stat().st_mode & 0o077 == 0


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["truncated", "missing", "changed", "not executable", "no note"])
def test_a_broken_file_is_written_again(cache: Path, broken: str) -> None:
    """A disk that was full, or a clean-up of old files, leaves half of a folder for ever."""
    coordinator = find_coordinator()
    shim, whole = coordinator.parent / "shim.so", coordinator.parent.joinpath("shim.so").read_bytes()
    if broken == "truncated":
        shim.write_bytes(whole[:1000])
    elif broken == "missing":
        shim.unlink()
    elif broken == "changed":
        shim.write_bytes(whole[:-1] + b"x")
    elif broken == "not executable":
        coordinator.chmod(0o600)
    else:
        coordinator.parent.joinpath("files.json").unlink()
    assert find_coordinator() == coordinator
    assert shim.read_bytes() == whole
    require_run_without_complaint(coordinator)
    assert [path.name for path in cache.iterdir() if path.name.startswith("making")] == []


def require_run_without_complaint(coordinator: Path) -> None:
    """Run a command in virtual time; ld.so complains on stderr of a shim that it cannot load."""
    completed = subprocess.run([coordinator, "true"], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert completed.returncode == 0
    assert re.fullmatch(r"agentproc time: 0 s of virtual time in [\d.]+ s\n", completed.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["a space", "a:colon", "a$LIB", "others write", "others write above", "a file"])
def test_a_folder_that_cannot_be_used_is_passed_over(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    """The files are executed, and LD_PRELOAD splits a path at spaces and colons, and replaces `$LIB`."""
    base = cache.parent / fault
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if fault == "a file":
        base.touch()
    elif fault.startswith("others"):
        base.joinpath("pytest-agentproc").mkdir(parents=True)
        (base if fault.endswith("above") else base / "pytest-agentproc").chmod(0o777)
    coordinator = find_coordinator()
    assert coordinator.is_relative_to(tmp_path / "home" / ".cache" / "pytest-agentproc")
    require_run_without_complaint(coordinator)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_link_of_another_user_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder for temporary files he could have this user write, and empty a file `lock`, where he likes."""
    own, shared = tmp_path / "own", tmp_path / "shared"
    own.mkdir(mode=0o700)
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "pytest-agentproc-0"
    link.symlink_to(own)
    os.lchown(link, OTHER_USER, OTHER_USER)
    monkeypatch.setattr(_build, "_list_cache_folders", lambda: [link])
    with pytest.raises(UsageError, match=f"another user made {link}"):
        find_coordinator()
    assert [*own.iterdir()] == []


@pytest.mark.slow
@pytest.mark.parametrize("options", ["noexec", "size=16k", "ro"])
def test_a_file_system_that_cannot_hold_the_files_is_passed_over(tmp_path: Path, options: str) -> None:
    """Programs may not be run there, or it is full, or nobody can write to it."""
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-euc"]
    require_program("unshare")
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir(mode=0o700)
    mount = f"mount -t tmpfs -o {options} none {home}"
    if subprocess.run([*inside, mount], capture_output=True, timeout=LIMIT, check=False).returncode:
        pytest.skip("this user can mount nothing")
    find = "from pytest_agentproc.clock.preload import find_coordinator; print(find_coordinator())"
    env = {**os.environ, "HOME": str(home), "TMPDIR": str(other)}
    env.pop("XDG_CACHE_HOME", None)
    words = [*inside, f"{mount}; exec {sys.executable} -c '{find}'"]
    completed = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False, env=env)
    assert completed.stderr == ""
    assert Path(completed.stdout.strip()).is_relative_to(other)


@pytest.mark.slow
def test_a_wheel_in_a_folder_with_a_space_needs_no_compiler(tmp_path: Path) -> None:
    """A virtual environment may lie in `My Projects`."""
    site, made = tmp_path / "site packages", find_coordinator().parent
    package = Path(pytest_agentproc.__file__).parent
    shutil.copytree(package, site / "pytest_agentproc", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(made, site / "pytest_agentproc" / "clock" / "preload" / "built", dirs_exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(site), "PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = [sys.executable, "-P", "-m", "pytest_agentproc", "time", "/bin/sleep", "1000"]
    completed = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, check=False, env=env, cwd=tmp_path)
    assert (completed.returncode, completed.stdout) == (0, "")
    assert re.fullmatch(r"agentproc time: 1000 s of virtual time in [\d.]+ s\n", completed.stderr)
    assert [*tmp_path.glob("cache/pytest-agentproc/preload-*/shim.so")]


def test_if_no_folder_can_be_used_each_reason_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, and what to do."""
    file, split = tmp_path / "file", tmp_path / "a b"
    file.touch()
    monkeypatch.setattr(_build, "_list_cache_folders", lambda: [split, file])
    with pytest.raises(UsageError) as error:
        find_coordinator()
    assert str(error.value) == (
        f"virtual time for programs has no folder for its two files: {split}: its path has a space, a colon or a "
        f"dollar sign, which LD_PRELOAD reads otherwise; {file}: file exists\n"
        "set XDG_CACHE_HOME to a folder of yours, without spaces, colons and dollars, from which programs may be run"
    )


def test_a_kernel_without_what_virtual_time_needs_is_named() -> None:
    """It is the machine that lacks something, and no failure of the coordinator: hence the code 2."""
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    require_program("unshare")
    if subprocess.run(
        [*inside, "mount -t tmpfs none /proc"], capture_output=True, timeout=LIMIT, check=False
    ).returncode:
        pytest.skip("this user can mount nothing")
    own = 'mkdir /proc/$$; ln -s $$ /proc/self; echo "NSpid:\t$$" > /proc/$$/status'
    script = f"mount -t tmpfs none /proc; {own}; exec {find_coordinator()} true"
    completed = subprocess.run([*inside, script], capture_output=True, text=True, timeout=LIMIT, check=False)
    said = "agentproc time: this kernel has no /proc/PID/schedstat, and virtual time needs it\n"
    assert (completed.returncode, completed.stderr) == (2, said)


def test_a_compiler_that_fails_is_reported(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers are missing more often than the compiler."""
    compiler = tmp_path / "bin" / "cc"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\necho 'fatal error: time.h: No such file' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}:{os.environ['PATH']}")
    with pytest.raises(UsageError) as error:
        find_coordinator()
    assert str(error.value) == (
        "virtual time for programs could not be compiled:\nfatal error: time.h: No such file\n"
        "it needs gcc or clang and the headers of glibc 2.31 or newer, such as by `apt install gcc libc6-dev`"
    )
    assert [file.name for file in cache.iterdir()] == ["lock"]


@pytest.mark.slow
def test_it_compiles_for_aarch64(tmp_path: Path) -> None:
    """The shim has code of its own for each machine, and this machine runs only one half of it."""
    build_coordinator(tmp_path, require_program("aarch64-linux-gnu-gcc"))
    for name in ("coordinator", "shim.so"):
        assert (tmp_path / name).read_bytes()[18:20] == _AARCH64
