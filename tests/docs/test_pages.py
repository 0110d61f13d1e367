"""The pages are true: each block of code does what its page says, and each link leads somewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_agentproc.errors import ScenarioError
from tests.architecture.sources import ROOT
from tests.docs.blocks import CodeBlock, find_blocks, matches_shown, play_page
from tests.docs.reference import is_made, list_anchors, make_pages

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.once

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if not is_made(page))]
"""Those that a person wrote; tests/docs/test_reference.py is about the others."""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT).with_suffix("")) for page in PAGES])
def test_each_block_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    """A reader copies it before reading on."""
    play_page(page, tmp_path)


def _play_text(text: str, folder: Path) -> str:
    """Play a page with this text; give the message of its failure, or nothing."""
    folder.mkdir(exist_ok=True)
    page = folder / "page.md"
    page.write_text(text, "utf-8")
    try:
        play_page(page, folder)
    except AssertionError as error:
        return str(error)
    return ""


def test_blocks_are_found_with_their_lines_and_files() -> None:
    """A failure names the line of the block; a directive of the page is no example."""
    page = "# T\n\n```{toctree}\na\n```\n\n```yaml\n# a.scenario.yaml\nscenario: x\n```\n\n````text\n```\n````\n"
    assert find_blocks(page) == [
        CodeBlock("yaml", "# a.scenario.yaml\nscenario: x\n", 7),
        CodeBlock("text", "```\n", 12),
    ]
    assert [block.file for block in find_blocks(page)] == ["a.scenario.yaml", ""]


def test_output_fits_but_for_what_varies() -> None:
    """Pids, durations and digests differ from run to run; three dots stand for lines."""
    assert matches_shown("a\n...\n1 passed in 0.10s\n", "a\nb\nc\n1 passed in 7.31s\n")
    assert matches_shown("", "")
    assert not matches_shown("a\n", "b\n")
    assert not matches_shown("a\n", "a\nb\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "```\nx\n```\n",
            "page.md:1: a block is one of yaml, python, console, sh, toml, json, text, js, ini, not without",
        ),
        ("```yaml\na: 1\n```\n", "page.md:1: name the file in the first line, such as # hang.scenario.yaml"),
        ("\n```console\n$ echo b\na\n```\n", "page.md:2: $ echo b\nshown:\na\n\nprinted:\nb\n"),
        ("```sh\nfalse\n```\n", "page.md:1: false\n"),
        ("```python\n1 / 0\n```\n", "page.md:1: Traceback"),
        ("```js\nlet a\n```\n", "page.md:1: name the file in the first line, such as // agent.test.mjs"),
    ],
)
def test_a_false_block_is_reported_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    """The author of a page has to find the block."""
    assert _play_text(text, tmp_path).startswith(message)


@pytest.mark.slow
def test_the_blocks_of_a_page_share_a_folder(tmp_path: Path) -> None:
    """A file that one block writes is there for the command of the next; what no command names is run at the end."""
    scenario = "scenario: it answers\nagent: raw\nscript:\n- answer: done\nexpect: {outcome: completed}\n"
    command = "```console\n$ head -n 1 a.scenario.yaml\n# a.scenario.yaml\n```\n"
    page = f"```yaml\n# a.scenario.yaml\n{scenario}```\n\n{command}"
    assert _play_text(page, tmp_path / "good") == ""
    assert "1 failed" in _play_text(f"```yaml\n{scenario.replace('completed', 'failed')}```\n", tmp_path / "bad")
    with pytest.raises(ScenarioError, match='unknown step "anser"'):
        _play_text("```yaml\n# agent: claude\n- anser: x\n```\n", tmp_path / "steps")


def _find_bad_links(page: Path) -> dict[str, str]:
    """List the links of a page that are no addresses, each with what is wrong with it."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    return {link: _find_fault_of_link(page, link) for link in links if not re.match(r"https?:|mailto:", link)}


def _find_fault_of_link(page: Path, link: str) -> str:
    name, _, place = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if is_made(target):
        text = make_pages().get(str(target.relative_to(DOCS / "reference")), "")
    elif not target.exists():
        return "no such file"
    else:
        text = target.read_text("utf-8") if target.suffix == ".md" else ""
    return "no such heading" if place and place not in list_anchors(text) else ""


def test_every_link_leads_somewhere() -> None:
    """A map with a road that ends is no map; a heading that was renamed is such an end."""
    pages = (*PAGES, *ROOT.glob("*.md"), ROOT / "scenarios" / "README.md")
    broken = [
        f"{page.relative_to(ROOT)}: {link}: {fault}"
        for page in pages
        for link, fault in _find_bad_links(page).items()
        if fault
    ]
    assert broken == []


def test_each_shown_duration_is_half_a_second() -> None:
    """It is masked, so it would stay what a loaded machine once took."""
    shown = [
        (page.name, time) for page in PAGES for time in re.findall(r"\bin (\d+\.\d\d)s\b", page.read_text("utf-8"))
    ]
    assert len(shown) > 30
    assert [(page, time) for page, time in shown if time != "0.50"] == []


def test_every_path_that_a_page_cites_exists() -> None:
    """A reader opens what a page names; CONTRIBUTING.md names files that its reader is to write."""
    cited = re.compile(r"`((?:pytest_agentproc|fake_agents|tests|scenarios|docs|\.ci)/[\w./-]+)`")
    pages = [page for page in (*PAGES, *ROOT.glob("*.md")) if page.name not in ("CONTRIBUTING.md", "CHANGELOG.md")]
    found = [(page.name, path) for page in pages for path in cited.findall(page.read_text("utf-8"))]
    assert [(page, path) for page, path in found if not (ROOT / path).exists()] == []
