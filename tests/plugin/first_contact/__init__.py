"""The tests that a stranger writes first, each with a twin whose code has a fault."""

from __future__ import annotations
