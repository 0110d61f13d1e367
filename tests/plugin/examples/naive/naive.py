"""What almost everybody writes first."""

import subprocess


def supervise(argv, env, timeout):
    """Give an agent so many seconds."""
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "inactive", ""
    return "failed" if done.returncode else "completed", done.stdout.strip()
