"""Supervisors under test, behind one protocol (`vocabulary.Subject`)."""

from __future__ import annotations

from pytest_agentproc.subjects._core import Core, core

__all__ = ["Core", "core"]
