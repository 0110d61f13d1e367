"""How Sphinx builds these pages: `sphinx-build -W docs build/docs`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest_agentproc

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "pytest-agentproc"
author = "The pytest-agentproc authors"
release = pytest_agentproc.__version__
extensions = ["myst_parser", "reference_pages"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
exclude_patterns = ["_ext"]
html_theme = "furo"
html_title = f"pytest-agentproc {release}"
html_show_copyright = False
