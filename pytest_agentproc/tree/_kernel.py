"""Questions to the kernel with C modules alone: a keeper starts with them. Owns /proc and exec; judges nothing."""

import _ctypes
import _thread
import posix
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Result = TypeVar("Result")


_FILE_ABSENT_ERRNOS = (2, 20)
"""No such file, no such folder."""
_PROCESS_ABSENT_ERRNOS = (2, 3, 22)
"""No such process. For the number of a thread that leads none, newer kernels say: no such file; others: invalid."""
_NO_DESCRIPTOR_LEFT_ERRNOS = (23, 24)
"""Too many open files: of the machine, of this process."""
_SPARE_DESCRIPTOR_COUNT = 3
"""Descriptors set aside: one for a held process, one for a file that is read about it, one for a nested look."""
_kernel_lists_children = posix.access(f"/proc/self/task/{posix.getpid()}/children", posix.F_OK)
"""Whether this kernel lists children; otherwise the parents of all processes are read."""


_spare_descriptors: list[int] = []
_reserve_user_count = [0]
_spare_descriptor_lock = _thread.RLock()


def reserve_descriptors() -> None:
    """Set descriptors aside for `call_with_spare_descriptor`, once for all callers.

    Each of them calls `release_descriptors` at its end.

    Raises:
        OSError: there are none left.
    """
    with _spare_descriptor_lock:
        # A tree with more processes than free descriptors once made a run raise OSError, and its agent lived on. The
        # reserve is taken before the agent starts, so that the end of the tree never depends on luck.
        _reserve_user_count[0] += 1
        try:
            _refill_reserve()
        except OSError:
            release_descriptors()
            raise


def release_descriptors() -> None:
    """Undo one `reserve_descriptors`; the last one gives the descriptors back."""
    with _spare_descriptor_lock:
        _reserve_user_count[0] -= 1
        while _spare_descriptors and not _reserve_user_count[0]:
            posix.close(_spare_descriptors.pop())


def _refill_reserve() -> None:
    while len(_spare_descriptors) < _SPARE_DESCRIPTOR_COUNT:
        _spare_descriptors.append(posix.eventfd(0, posix.EFD_CLOEXEC))


def is_out_of_descriptors(error: OSError) -> bool:
    """Say whether a call failed only because no descriptor was left."""
    return error.errno in _NO_DESCRIPTOR_LEFT_ERRNOS


def call_with_spare_descriptor(function: "Callable[..., Result]", *arguments: object) -> "Result":
    """Call a function that closes every descriptor it opens; if none is left, lend it one that was set aside.

    The function may be called twice: it must do nothing before it opens its first descriptor.

    Raises:
        OSError: what the function raised, also if another thread took the last descriptor.
    """
    try:
        # The first try needs no reserve and no lock. Only its failure shows that the descriptors have run out.
        return function(*arguments)
    except OSError as error:
        if error.errno not in _NO_DESCRIPTOR_LEFT_ERRNOS or not _spare_descriptors:
            raise
    # One thread at a time closes a spare and uses the free place. Another thread of the program may still take it; then
    # the error is raised.
    with _spare_descriptor_lock:
        if _spare_descriptors:
            posix.close(_spare_descriptors.pop())
        try:
            return function(*arguments)
        finally:
            if _reserve_user_count[0]:
                try_to_call(_refill_reserve)


def list_children(pid: int) -> list[int]:
    """List the children of a process, of all its threads, zombies too; none once it has disappeared."""
    found: list[int] = []
    try:
        # Each thread has its own list of children. A walk of the main thread's list alone would miss all others.
        for task in call_with_spare_descriptor(posix.listdir, f"/proc/{pid}/task"):
            found += [int(word) for word in read_file(f"/proc/{pid}/task/{task}/children").split()]
    except OSError as error:
        if error.errno in _NO_DESCRIPTOR_LEFT_ERRNOS:
            raise
        if not _kernel_lists_children:
            everybody = [int(name) for name in call_with_spare_descriptor(posix.listdir, "/proc") if name.isdigit()]
            return [pid_ for pid_ in everybody if read_parent(pid_) == pid]
    return found


def read_parent(pid: int) -> int:
    """Give the parent of a process; 0 once it has disappeared."""
    fields = read_stat(pid)
    return int(fields[1]) if fields else 0


def read_state(pid: int) -> str:
    """Give the kernel's letter for a process; "" once it has disappeared."""
    fields = read_stat(pid)
    return fields[0].decode() if fields else ""


def read_stat(pid: int) -> list[bytes]:
    """Give the kernel's fields of a process, from its state on; nothing once it has disappeared."""
    try:
        # The name in brackets may itself contain brackets and spaces, so the last bracket counts. Exhaustion is raised:
        # an unread process is no dead process, and an empty tree would be a wrong proof.
        return read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError as error:
        if error.errno in _NO_DESCRIPTOR_LEFT_ERRNOS:
            raise
        return []


def read_command_label(pid: int) -> str:
    """Give the start of a command line for a message, or the name, or nothing once the process has disappeared."""
    try:
        words = read_file(f"/proc/{pid}/cmdline") or read_file(f"/proc/{pid}/comm")
    except OSError:
        return ""
    return words[:100].replace(b"\0", b" ").decode(errors="replace").strip()


def open_pidfd(pid: int) -> int | None:
    """Open a process; None if the pid belongs to no process: it may be a thread's number by now."""
    try:
        return posix.pidfd_open(pid)
    except OSError as error:
        if error.errno not in _PROCESS_ABSENT_ERRNOS:
            raise
        return None


def is_dead(pidfd: int) -> bool:
    """Say whether a process has ended: a zombie has."""
    # The pidfd decides, and not the pid: pid and start time are no identity either. 94 of 100 forced reuses of a pid
    # fell into the same clock tick.
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def read_file(path: str) -> bytes:
    """Read a whole file of the kernel."""
    return call_with_spare_descriptor(_read_whole_file, path)


def _read_whole_file(path: str) -> bytes:
    number = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        parts = b""
        while part := posix.read(number, 65536):
            parts += part
        return parts
    finally:
        posix.close(number)


def try_to_call(function: object, *arguments: object) -> bool:
    """Call a function that may fail; say whether it succeeded."""
    try:
        function(*arguments)  # type: ignore[operator]
    except OSError:
        return False
    return True


def execute_program(argv: list[bytes], environment: dict[bytes, bytes]) -> None:
    """Become a program, looked up as `subprocess` does; return by an exception that says why not."""
    folders = environment.get(b"PATH", b"/bin:/usr/bin").split(b":")
    paths = [argv[0]] if b"/" in argv[0] else [folder + b"/" + argv[0] if folder else argv[0] for folder in folders]
    why: OSError | None = None
    for path in paths:
        try:
            posix.execve(path, argv, environment)
        except OSError as error:
            # A "permission denied" says more than a later "no such file", so it is the error that is kept.
            if why is None or why.errno in _FILE_ABSENT_ERRNOS:
                why = error
    assert why is not None
    raise why


def call_libc(name: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library that Python has no name for; `ctypes` itself is slow to import."""
    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # typeshed has not heard that None is this process
    result: int = _ctypes.call_function(_ctypes.dlsym(library, name), arguments)
    return result
