"""Runs the command as `python -m pytest_agentproc.cli`."""

from __future__ import annotations

from pytest_agentproc.cli import main

raise SystemExit(main())
