"""What is asked of the kernel with C modules alone: a keeper starts with it. Owns /proc and exec; judges nothing."""

import _ctypes
import posix
import select

__all__ = [
    "attempt",
    "call",
    "children",
    "execute",
    "is_dead",
    "name_of",
    "pidfd_of",
    "read_file",
    "stat_of",
    "state_of",
    "write_file",
]

_ABSENT = (2, 20)
"""No such file, no such folder."""
_NOBODY = (2, 3, 22)
"""No such process. For the number of a thread that leads none, newer kernels say: no such file; others: invalid."""
_has_lists = posix.access(f"/proc/self/task/{posix.getpid()}/children", posix.F_OK)
"""Whether this kernel lists children; else the parents of all processes tell."""


def children(pid: int) -> list[int]:
    """List the children of a process that has one thread or many, zombies too; none of one that is gone."""
    found: list[int] = []
    try:
        for task in posix.listdir(f"/proc/{pid}/task"):
            found += [int(word) for word in read_file(f"/proc/{pid}/task/{task}/children").split()]
    except OSError:
        if not _has_lists:
            return [int(name) for name in posix.listdir("/proc") if name.isdigit() and parent_of(int(name)) == pid]
    return found


def parent_of(pid: int) -> int:
    """Give the parent of a process; 0 once it is gone."""
    fields = stat_of(pid)
    return int(fields[1]) if fields else 0


def state_of(pid: int) -> str:
    """Give the kernel's letter for a process; "" once it is gone."""
    fields = stat_of(pid)
    return fields[0].decode() if fields else ""


def stat_of(pid: int) -> list[bytes]:
    """Give what the kernel says of a process, from its state on; nothing once it is gone."""
    try:
        return read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


def name_of(pid: int) -> str:
    """Give the start of a command line for a message, or the name, or nothing once it is gone."""
    try:
        words = read_file(f"/proc/{pid}/cmdline") or read_file(f"/proc/{pid}/comm")
    except OSError:
        return ""
    return words[:100].replace(b"\0", b" ").decode(errors="replace").strip()


def pidfd_of(pid: int) -> int | None:
    """Open a process; None if there is none of that pid, which may be the number of somebody's thread by now."""
    try:
        return posix.pidfd_open(pid)
    except OSError as error:
        if error.errno not in _NOBODY:
            raise
        return None


def is_dead(pidfd: int) -> bool:
    """Say whether a process has ended: a zombie has."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def read_file(path: str) -> bytes:
    """Read a file of the kernel's whole."""
    number = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        parts = b""
        while part := posix.read(number, 65536):
            parts += part
        return parts
    finally:
        posix.close(number)


def write_file(path: str, data: bytes) -> None:
    """Write a file of the kernel's."""
    number = posix.open(path, posix.O_WRONLY | posix.O_CLOEXEC)
    try:
        posix.write(number, data)
    finally:
        posix.close(number)


def attempt(function: object, *arguments: object) -> bool:
    """Do what may fail, and say whether it did not."""
    try:
        function(*arguments)  # type: ignore[operator]
    except OSError:
        return False
    return True


def execute(argv: list[bytes], environment: dict[bytes, bytes]) -> None:
    """Become a program, looked up as `subprocess` does; return by the exception that tells why not."""
    folders = environment.get(b"PATH", b"/bin:/usr/bin").split(b":")
    paths = [argv[0]] if b"/" in argv[0] else [folder + b"/" + argv[0] if folder else argv[0] for folder in folders]
    why: OSError | None = None
    for path in paths:
        try:
            posix.execve(path, argv, environment)
        except OSError as error:
            if why is None or why.errno in _ABSENT:
                why = error
    assert why is not None
    raise why


def call(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library that Python has no name for; `ctypes` itself is slow to import."""
    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # typeshed has not heard that None is this process
    result: int = _ctypes.call_function(_ctypes.dlsym(library, name), arguments)
    return result
