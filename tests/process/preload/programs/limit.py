"""A child may be silent for 180 s; it answers after the seconds that are given. A thread reads, a queue waits."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time

begin = time.monotonic()
child = subprocess.Popen(["sh", "-c", f"sleep {sys.argv[1]}; echo answer; exec sleep 1000"], stdout=subprocess.PIPE)
lines: queue.Queue[bytes] = queue.Queue()
threading.Thread(target=lambda: lines.put(child.stdout.readline() if child.stdout else b""), daemon=True).start()
try:
    lines.get(timeout=180)
    seen = "data"
except queue.Empty:
    seen = "timeout"
sys.stdout.write(f"{seen} {round((time.monotonic() - begin) * 1000)}\n")
child.kill()
child.wait(timeout=5)
