"""Named wrong supervisors: the reference supervisor with one decider replaced. Scenarios say which they catch."""

from __future__ import annotations

from pytest_agentproc.defects._defect import Defect
from pytest_agentproc.defects._named import DEFECT_NAMES, DEFECTS, find_defect

__all__ = ["DEFECTS", "DEFECT_NAMES", "Defect", "find_defect"]
