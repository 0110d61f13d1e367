"""All defects by their names. Each breaks one rule in one decider; production code knows nothing of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_agentproc.defects._run_defects import RUN_DEFECTS
from pytest_agentproc.defects._session_defects import SESSION_DEFECTS
from pytest_agentproc.errors import UsageError

if TYPE_CHECKING:
    from pytest_agentproc.defects._defect import Defect

DEFECTS: dict[str, Defect] = {made.name: made for made in (*RUN_DEFECTS, *SESSION_DEFECTS)}
DEFECT_NAMES = tuple(DEFECTS)


def find_defect(name: str) -> Defect:
    """Give a defect by its name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in DEFECTS:
        raise UsageError(f"defect is {name!r}, but must be one of {', '.join(DEFECT_NAMES)}")
    return DEFECTS[name]
