"""The mirrors are scripts for fakes, not claims about a supervisor: they are not run by themselves."""

from __future__ import annotations

collect_ignore_glob = ["scenarios/*"]
