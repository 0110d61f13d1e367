"""Owns the coordinator and the shim as files: finds them in the wheel, or compiles them once. Starts neither.

They are compiled into the user's cache folder, under a name that says from which sources and for which machine. A
folder there is complete or is not there: it is made under another name, by one process at a time, and renamed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from pytest_agentproc.errors import UsageError

_SOURCE_FOLDER = Path(__file__).parent
COMPILED_FOLDER_NAME = "built"
"""The folder beside the sources in which a wheel carries what was compiled."""

_SUPPORTED_MACHINES = ("x86_64", "aarch64")
_COMPILER_FLAGS = ("-std=gnu11", "-O2", "-U_FORTIFY_SOURCE")
_SHIM_COMPILER_FLAGS = ("-shared", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec")
_SHARED_SOURCE_FILE_NAME = "image.c"
_LINKER_FLAGS = ("-ldl", "-lpthread", "-lrt")
_COMPILE_TIMEOUT_SECONDS = 120


def find_coordinator() -> Path:
    """Give the path of the coordinator; the shim lies beside it.

    Raises:
        UsageError: it is not there and cannot be compiled; the text says what to install.
    """
    carried = _SOURCE_FOLDER / COMPILED_FOLDER_NAME / "coordinator"
    if carried.exists():
        return carried
    if not has_compiler():
        raise UsageError(
            "virtual time for programs needs a C compiler, once, and there is no `cc`",
            "install one, such as by `apt install gcc libc6-dev`",
        )
    return _find_compiled_folder() / "coordinator"


def has_compiler() -> bool:
    """Say whether there is a compiler."""
    return shutil.which("cc") is not None


def build_coordinator(folder: Path, compiler: str = "cc") -> None:
    """Compile both into a folder.

    Args:
        folder: it is there.
        compiler: the command, found by PATH.

    Raises:
        UsageError: the compiler fails.
    """
    shim = sorted(_SOURCE_FOLDER.glob("shim*.c"))
    rest = sorted(set(_SOURCE_FOLDER.glob("*.c")) - set(shim))
    _run_compiler(
        [
            compiler,
            *_COMPILER_FLAGS,
            *_SHIM_COMPILER_FLAGS,
            "-o",
            folder / "shim.so",
            *shim,
            _SOURCE_FOLDER / _SHARED_SOURCE_FILE_NAME,
            *_LINKER_FLAGS,
        ]
    )
    _run_compiler([compiler, *_COMPILER_FLAGS, "-o", folder / "coordinator", *rest])


def _run_compiler(words: list[str | Path]) -> None:
    completed = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_COMPILE_TIMEOUT_SECONDS
    )
    if completed.returncode:
        raise UsageError(
            f"virtual time for programs could not be compiled:\n{completed.stderr.decode(errors='replace').strip()}",
            "it needs gcc or clang and the headers of glibc 2.31 or newer, such as by `apt install gcc libc6-dev`",
        )


def _find_compiled_folder() -> Path:
    """Give the folder in the cache, and compile first if it is not there."""
    if platform.machine() not in _SUPPORTED_MACHINES or platform.libc_ver()[0] != "glibc":
        raise UsageError(
            f"virtual time for programs works on {' and '.join(_SUPPORTED_MACHINES)} with glibc, and this is "
            f"{platform.machine()} with {platform.libc_ver()[0] or 'another libc'}"
        )
    base = _make_private_folder()
    folder = base / f"preload-{_compute_fingerprint()}"
    if folder.exists():
        return folder
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():  # else another process has compiled it meanwhile
            _compile_into(folder)
    return folder


def _compile_into(folder: Path) -> None:
    building = Path(tempfile.mkdtemp(prefix="making-", dir=folder.parent))
    try:
        build_coordinator(building)
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _compute_fingerprint() -> str:
    digest = hashlib.sha256(
        " ".join((platform.machine(), *platform.libc_ver(), *_COMPILER_FLAGS, *_SHIM_COMPILER_FLAGS)).encode()
    )
    for file in sorted([*_SOURCE_FOLDER.glob("*.c"), *_SOURCE_FOLDER.glob("*.h")]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _make_private_folder() -> Path:
    """Give the cache folder; what lies there is executed, so nobody else may write to it."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pytest-agentproc"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = base.stat()
    except OSError as error:
        raise UsageError(
            f"virtual time for programs is compiled into {base}, which cannot be made: {error.strerror}",
            "set XDG_CACHE_HOME to a folder of yours",
        ) from error
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UsageError(
            f"virtual time for programs is compiled into {base}, to which others can write",
            f"run `chmod go-w {base}` if it is yours, or set XDG_CACHE_HOME to a folder of yours",
        )
    return base
