"""Has pytest load the kit's modules as they are: it rewrites the assertions of every plugin. Knows no session.

Rewriting the whole kit takes half a second of a first run, and each later run reads rewritten modules more slowly. It
also parses modules while tests run, which fails on CPython before 3.11.8 and 3.12.2 if an object that a test left is
finalized meanwhile. So the plugin imports this file before its other files.
"""

from __future__ import annotations

import sys


def skip_assertion_rewriting(finder: object) -> None:
    """Take the kit off the list of a finder of pytest that rewrites assertions."""
    marked: set[str] = getattr(finder, "_must_rewrite", set())
    marked -= {name for name in marked if name.partition(".")[0] == "pytest_agentproc"}


for _finder in sys.meta_path:
    if type(_finder).__module__ == "_pytest.assertion.rewrite":
        skip_assertion_rewriting(_finder)
