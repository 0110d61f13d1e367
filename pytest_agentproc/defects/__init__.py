"""Named wrong supervisors: the reference supervisor with one decider replaced. Scenarios say which they catch."""

from __future__ import annotations

from pytest_agentproc.defects._all_defects import DEFECT_NAMES, DEFECTS, find_defect
from pytest_agentproc.defects._defect import Defect

__all__ = ["DEFECTS", "DEFECT_NAMES", "Defect", "find_defect"]
