"""Owns `python -m pytest_agentproc`, which is the command `agentproc`. Knows no argument."""

from __future__ import annotations

import sys

from pytest_agentproc.cli import main

if __name__ == "__main__":
    sys.exit(main())
