"""Owns the coordinator and the shim as files: finds them in the wheel, or compiles them once. Starts neither.

The files in a folder of the cache are executed. So a folder is used only if nobody else can write to it, and if its
files have the sizes and hashes that were noted when they were written. A broken file is written again. If a folder
cannot be used, the next one is tried: the user's cache, then a private folder among the temporary files. A wheel
carries both files. It needs a folder only if LD_PRELOAD would misread the path of the wheel, or if programs may not be
run there.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_agentproc.errors import UsageError
from pytest_agentproc.originals import which

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE_FOLDER = Path(__file__).parent
COMPILED_FOLDER_NAME = "built"
"""The folder beside the sources in which a wheel carries what was compiled."""

_SUPPORTED_MACHINES = ("x86_64", "aarch64")
_COMPILER_FLAGS = ("-std=gnu11", "-O2", "-fwrapv", "-U_FORTIFY_SOURCE")
_SHIM_COMPILER_FLAGS = ("-shared", "-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec")
_LINKER_FLAGS = ("-ldl", "-lpthread", "-lrt")
_COMPILE_TIMEOUT_SECONDS = 120
_FILE_NAMES = ("coordinator", "shim.so")
_NOTE_NAME = "files.json"
_CACHE_NAME = "pytest-agentproc"
_COUNT_OF_ALL_UIDS = 2**32 - 1
_UNLOADABLE_CHARS_PATTERN = re.compile(r"[\s:$]")


def find_coordinator() -> Path:
    """Give the path of the coordinator; the shim lies beside it.

    Raises:
        UsageError: it is not there and cannot be compiled, or no folder can hold it; the text says what to do.
    """
    carried = _SOURCE_FOLDER / COMPILED_FOLDER_NAME
    is_carried = all((carried / name).exists() for name in _FILE_NAMES)
    if is_carried and _explain_unusable_path(carried) is None:
        return carried / "coordinator"
    if not is_carried:
        _require_compiler()
    reasons = []
    for base in _list_cache_folders():
        try:
            reason = _explain_unusable_path(base) or _make_private_folder(base)
            if reason is None:
                return _fill_cache_folder(base, carried if is_carried else None) / "coordinator"
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
        reasons.append(f"{base}: {reason}")
    raise UsageError(
        f"virtual time for programs has no folder for its two files: {'; '.join(dict.fromkeys(reasons))}",
        "set XDG_CACHE_HOME to a folder of yours, without spaces, colons and dollars, from which programs may be run",
    )


def _require_compiler() -> None:
    """Refuse a machine on which the files can be neither compiled nor used."""
    if not has_compiler():
        raise UsageError(
            "virtual time for programs needs a C compiler, once, and there is no `cc`",
            "install one, such as by `apt install gcc libc6-dev`",
        )
    if platform.machine() not in _SUPPORTED_MACHINES or platform.libc_ver()[0] != "glibc":
        raise UsageError(
            f"virtual time for programs works on {' and '.join(_SUPPORTED_MACHINES)} with glibc, and this is "
            f"{platform.machine()} with {platform.libc_ver()[0] or 'another libc'}"
        )


def has_compiler() -> bool:
    """Say whether there is a compiler."""
    return which("cc") is not None


def build_coordinator(folder: Path, compiler: str = "cc") -> None:
    """Compile both into a folder.

    Args:
        folder: it is there.
        compiler: the command, found by PATH.

    Raises:
        UsageError: the compiler fails.
    """
    library, coordinator, shared = (
        sorted(_SOURCE_FOLDER.glob(f"{name}/*.c")) for name in ("library", "coordinator", "shared")
    )
    _run_compiler(
        [
            compiler,
            *_COMPILER_FLAGS,
            *_SHIM_COMPILER_FLAGS,
            "-o",
            folder / "shim.so",
            *library,
            *shared,
            *_LINKER_FLAGS,
        ]
    )
    _run_compiler([compiler, *_COMPILER_FLAGS, "-o", folder / "coordinator", *coordinator, *shared])


def _run_compiler(words: list[str | Path]) -> None:
    completed = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_COMPILE_TIMEOUT_SECONDS
    )
    if completed.returncode:
        raise UsageError(
            f"virtual time for programs could not be compiled:\n{completed.stderr.decode(errors='replace').strip()}",
            "it needs gcc or clang and the headers of glibc 2.31 or newer, such as by `apt install gcc libc6-dev`",
        )


def _compute_fingerprint() -> str:
    digest = hashlib.sha256(
        " ".join((platform.machine(), *platform.libc_ver(), *_COMPILER_FLAGS, *_SHIM_COMPILER_FLAGS)).encode()
    )
    for file in sorted([*_SOURCE_FOLDER.glob("*/*.c"), *_SOURCE_FOLDER.glob("*/*.h")]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _list_cache_folders() -> Iterator[Path]:
    """List the folders that may hold the files, the best one first."""
    if os.environ.get("XDG_CACHE_HOME"):
        yield Path(os.environ["XDG_CACHE_HOME"]).absolute() / _CACHE_NAME
    with suppress(RuntimeError):  # the user has no home
        yield Path.home().absolute() / ".cache" / _CACHE_NAME
    for folder in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")):  # noqa: S108 - checked below
        yield Path(folder).absolute() / f"{_CACHE_NAME}-{os.geteuid()}"


def _explain_unusable_path(folder: Path) -> str | None:
    """Say why no file below a path can be preloaded and executed; None: it can be, as far as the path tells.

    The coordinator asks the kernel for its own path, which has no links in it.
    """
    real = folder.resolve()
    if _UNLOADABLE_CHARS_PATTERN.search(str(real)):
        return "its path has a space, a colon or a dollar sign, which LD_PRELOAD reads otherwise"
    place = next(parent for parent in (real, *real.parents) if parent.exists())
    return "programs may not be run there (noexec)" if os.statvfs(place).f_flag & os.ST_NOEXEC else None


def _make_private_folder(base: Path) -> str | None:
    """Make a folder to which nobody else can write; say why it is not one.

    Raises:
        OSError: it cannot be made or read.
    """
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    real, trusted = base.resolve(), _list_trusted_owners()
    for place in (real, *real.parents):
        found = place.stat()
        others_may_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        is_shared_safely = place != real and found.st_mode & stat.S_ISVTX  # there nobody replaces what is not theirs
        if found.st_uid not in trusted or (others_may_write and not is_shared_safely):
            return f"others can write to {place}"
    for place in (base, *base.parents):
        if place.lstat().st_uid not in trusted:
            return f"another user made {place}"
    return None if real.stat().st_uid == os.geteuid() else f"{real} belongs to another user"


def _list_trusted_owners() -> set[int]:
    """List the users who may own a parent of the cache folder: this one, root, and the root of the host."""
    owners = {0, os.geteuid()}
    if Path("/proc/self/uid_map").read_text("ascii").split() != ["0", "0", str(_COUNT_OF_ALL_UIDS)]:
        owners.add(int(Path("/proc/sys/kernel/overflowuid").read_text("ascii")))  # in a user namespace it has no number
    return owners


def _fill_cache_folder(base: Path, carried: Path | None) -> Path:
    """Give a folder of the cache with both files as they were made; make them if one is missing or differs.

    Args:
        base: the private folder.
        carried: the folder of the wheel from which to copy them; None: compile them.

    Raises:
        OSError: they cannot be written there.
        UsageError: the compiler fails.
    """
    folder = base / f"preload-{_compute_fingerprint()}"
    if _is_intact(folder):
        return folder
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_intact(folder):  # else another process has written them meanwhile
            with tempfile.TemporaryDirectory(prefix="agentproc-build-") as building:
                if carried is None:
                    build_coordinator(Path(building))
                _write_files(carried or Path(building), folder)
    return folder


def _write_files(source: Path, folder: Path) -> None:
    """Copy the files under other names, and then rename them; last comes the note of their sizes and hashes."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as made:
        for name in _FILE_NAMES:
            shutil.copy(source / name, Path(made, name))
        Path(made, _NOTE_NAME).write_text(json.dumps(_describe_files(Path(made))), "utf-8")
        for name in (*_FILE_NAMES, _NOTE_NAME):
            Path(made, name).replace(folder / name)


def _is_intact(folder: Path) -> bool:
    """Say whether the files are as they were written, by size and hash."""
    try:
        return bool(json.loads(folder.joinpath(_NOTE_NAME).read_bytes()) == _describe_files(folder))
    except (OSError, ValueError):
        return False


def _describe_files(folder: Path) -> dict[str, list[int | str]]:
    """Give the size, the hash and the execution rights of each file."""
    contents = {name: (folder / name).read_bytes() for name in _FILE_NAMES}
    return {
        name: [len(data), hashlib.sha256(data).hexdigest(), (folder / name).stat().st_mode & 0o777]
        for name, data in contents.items()
    }
