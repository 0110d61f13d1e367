"""The search of the built site finds the page that answers each of thirty questions. It builds the site."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

_PROGRAM = Path(__file__).parent / "search.mjs"
_FIRST_RESULTS = 5
_TOOLS = "howto/run-and-debug"
ANSWERS = {
    "install with pip": "faq",
    "macos windows": f"{_TOOLS}/use-another-system",
    "crash in the middle of a tool": "faq",
    "kill the whole process tree": "faq",
    "only the scenarios about one thing": "faq",
    "not applicable": "explanation/conformance",
    "github actions": "faq",
    "gitlab jenkins junit": f"{_TOOLS}/run-in-ci",
    "share our own scenarios": "faq",
    "see the raw bytes": "faq",
    "aider copilot qwen": "faq",
    "version of the cli": "explanation/fidelity",
    "supervisor in docker": "faq",
    "supervisor go rust": "faq",
    "vitest jest": "faq",
    "known failures": "howto/judge/keep-known-failures",
    "keep my ci green": "faq",
    "how long does a whole run take": "faq",
    "stream tokens": "faq",
    "rate limit 429": "faq",
    "usage costs": "faq",
    "ctrl-c": "faq",
    "terminal": "howto/write-tests/use-a-terminal",
    "report a bug": "faq",
    "give a scenario to the project": "faq",
    "part of a text": "howto/judge/check-part-of-a-text",
    "debugger": f"{_TOOLS}/debug-a-failure",
    "first start fails second works": "faq",
    "unittest hypothesis": "howto/write-tests/use-fakes-without-fixtures",
    "switch the plugin off": "faq",
}
"""A page for what a user would type, for each of thirty questions."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, as the stage of the docs does."""
    pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "docs", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)
    return folder


@pytest.mark.slow
def test_the_first_results_of_a_search_have_the_answer(site: Path) -> None:
    """A newcomer looks once, and reads the first few results."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed, and the search of the site is a script")
    completed = subprocess.run(
        [node, str(_PROGRAM), str(site)],
        input=json.dumps([*ANSWERS]),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert len(ANSWERS) == 30
    first = {query: pages[:_FIRST_RESULTS] for query, pages in zip(ANSWERS, json.loads(completed.stdout), strict=True)}
    assert {query: first[query] for query, page in ANSWERS.items() if page not in first[query]} == {}
