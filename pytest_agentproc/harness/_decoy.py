"""A decoy: a process without a reason for signals, which notes those it gets. Standard library only; run by path.

It blocks every signal and takes them one by one, so that the kernel reports the sender of each. A byte on stdin asks
for the notes. The answer is one line on stdout, `signal:origin` for each signal in the order of delivery; then the
notes are dropped. The end of stdin is its own end; the harness holds the other end. News of stdin comes as a signal
too. All pending signals are noted before the answer, so a signal from before the question is in it.
Origins: `run` is the harness or a descendant of it, `else` a process that is neither, `kernel` a terminal, `unknown` a
sender that had already ended. The argument is the harness's pid. Other arguments are names, for programs that kill by
name.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys

STDIN_NEWS_SIGNAL = signal.SIGRTMIN


def main() -> None:
    """Note signals until stdin ends."""
    harness = int(sys.argv[1])
    every = signal.valid_signals()
    signal.pthread_sigmask(signal.SIG_BLOCK, every)
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETSIG, STDIN_NEWS_SIGNAL)
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    noted: list[str] = []
    while answer_requests(noted, harness):
        noted += format_signal_notes(signal.sigwaitinfo(every), harness)


def answer_requests(noted: list[str], harness: int) -> bool:
    """Answer the questions; False once there can be no more."""
    while True:
        try:
            asked = os.read(0, 1)
        except BlockingIOError:
            return True
        if not asked:
            return False
        while (pending := signal.sigtimedwait(signal.valid_signals(), 0)) is not None:
            noted += format_signal_notes(pending, harness)
        try:
            os.write(1, " ".join(noted).encode() + b"\n")
        except BrokenPipeError:  # the harness was killed after it had asked
            return False
        noted.clear()


def format_signal_notes(info: signal.struct_siginfo, harness: int) -> list[str]:
    """Give what there is to note of a signal: nothing of the one that brings news of stdin."""
    if info.si_signo == STDIN_NEWS_SIGNAL and info.si_code > 0:
        return []
    return [f"{info.si_signo}:{find_signal_origin(info.si_code, info.si_pid, harness)}"]


def find_signal_origin(code: int, sender: int, harness: int) -> str:
    """Say where a signal came from."""
    if code > 0:
        return "kernel"
    pid = sender
    while pid != harness:
        if pid in (0, 1):
            return "else"
        try:
            with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
                above = int(file.read(4096).rpartition(b")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return "unknown"
        if above == 1 != harness and pid == sender:
            return "unknown"  # it has lost its parent
        pid = above
    return "run"


if __name__ == "__main__":
    main()
