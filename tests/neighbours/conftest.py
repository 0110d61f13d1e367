"""The suite is for the inner sessions only."""

from __future__ import annotations

collect_ignore = ["suite"]
