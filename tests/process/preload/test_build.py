"""Checks the origin of the coordinator and the shim, and the users that may have written them."""

from __future__ import annotations

import os
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.clock.preload import find_coordinator
from pytest_agentproc.clock.preload._build import build_coordinator
from pytest_agentproc.errors import UsageError
from tests.process.preload.stand import LIMIT, require_program

if TYPE_CHECKING:
    from pathlib import Path

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
    assert sorted(file.name for file in folder.iterdir()) == ["coordinator", "shim.so"]
    assert find_coordinator() == found[0]
    assert cache.stat().st_mode & 0o077 == 0


def test_a_folder_to_which_others_can_write_is_refused(cache: Path) -> None:
    """The files in that folder are executed."""
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(UsageError) as error:
        find_coordinator()
    assert str(error.value) == (
        f"virtual time for programs is compiled into {cache}, to which others can write\n"
        f"run `chmod go-w {cache}` if it is yours, or set XDG_CACHE_HOME to a folder of yours"
    )


def test_a_kernel_without_what_virtual_time_needs_is_named() -> None:
    """It is the machine that lacks something, and no failure of the coordinator: hence the code 2."""
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    require_program("unshare")
    if subprocess.run(
        [*inside, "mount -t tmpfs none /proc"], capture_output=True, timeout=LIMIT, check=False
    ).returncode:
        pytest.skip("this user can mount nothing")
    script = f"mount -t tmpfs none /proc; exec {find_coordinator()} true"
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
