"""How Sphinx builds these pages: `sphinx-build -W docs build/docs`."""

from __future__ import annotations

import pytest_agentproc

project = "pytest-agentproc"
author = "The pytest-agentproc authors"
release = pytest_agentproc.__version__
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
exclude_patterns = ["_ext"]
html_theme = "furo"
html_title = f"pytest-agentproc {release}"
html_show_copyright = False
