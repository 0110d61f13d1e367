"""The supervisor that most people write first."""

import subprocess


def supervise(argv, env, timeout):
    """Give an agent a number of seconds."""
    try:
        completed = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "inactive", ""
    return "failed" if completed.returncode else "completed", completed.stdout.strip()
