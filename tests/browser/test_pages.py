"""The pages as a user sees them: failures are in sight, no word covers another, and dark is as legible as light."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_agentproc import defects
from pytest_agentproc.harness import run_in_model
from pytest_agentproc.record import IndexEntry, PageVerdict, render_index, render_page
from pytest_agentproc.subjects import ReferenceSupervisor, reference_supervisor
from pytest_agentproc.verdict import choose_overall_verdict, find_last_step, judge_all_expectations, list_unmet_checks
from tests.browser.chromium import measure_page, take_screenshot
from tests.bundled import load_bundled

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

RED = [
    ("grandchild-inherits-stdout-and-ignores-term", "direct-child-only"),
    ("gemini-tools", "direct-child-only"),
    ("hidden-children-below-a-living-agent", "group-only"),
    ("byte-a-minute", "duration-timeout"),
    ("sessions-answers-do-not-mix", "last-prompt-first"),
]
GREEN = [
    "session-old-crashes-are-forgotten",
    "claude-session-background-agent",
    "sessions-cancel-stays-in-one",
    "gemini-batch-of-25",
    "stopped-child-is-continued",
]
MEASURE = """
  const shown = (range, node) => {
    const rects = [];
    for (const one of range.getClientRects()) {
      let {left, right, top, bottom} = one;
      for (let above = node.parentElement; above; above = above.parentElement) {
        if (getComputedStyle(above).overflow === 'visible') continue;
        const edge = above.getBoundingClientRect();
        [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
        [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)];
      }
      if (right - left > 1 && bottom - top > 1) rects.push([left, right, top, bottom]);
    }
    return rects;
  };
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const around = node.parentElement;
    if (!node.data.trim() || !around.checkVisibility() || around.closest('.aside, .skip, script')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of shown(range, node)) texts.push([node.data.trim().slice(0, 60), node, ...rect]);
  }
  const covered = [];
  for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
    const [one, a, l1, r1, t1, b1] = texts[i], [two, b, l2, r2, t2, b2] = texts[j];
    if (a !== b && Math.min(r1, r2) - Math.max(l1, l2) > 1 && Math.min(b1, b2) - Math.max(t1, t2) > 1)
      covered.push([one, two]);
  }
  const outside = [...document.querySelectorAll('.g i.a, .g i.d')].filter(one => {
    const mark = one.getBoundingClientRect(), cell = one.closest('td').getBoundingClientRect();
    return mark.left < cell.left || mark.right > cell.right || mark.top < cell.top || mark.bottom > cell.bottom;
  }).length;
  const banner = document.querySelector('.banner'), place = banner && banner.getBoundingClientRect();
  getSelection().selectAllChildren(document.body);
  const selected = getSelection().toString();
  const stops = [...document.querySelectorAll('a[href], summary, [tabindex="0"]')].map(one => one.className);
  const row = document.querySelector('tr[id^=r]');
  location.hash = row ? row.id : 'all';
  return {
    texts: texts.length, covered, outside, banner: place && [place.top, place.bottom], selected, first: stops[0],
    drawn: document.querySelectorAll('img, svg, canvas, video').length, width: document.documentElement.scrollWidth,
    target: document.querySelector(':target')?.id,
  };
"""
COLOURS = """
  const parse = text => {
    const canvas = document.createElement('canvas').getContext('2d');
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = one => {
    for (; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const contrast = {};
  for (const where of ['h1', '.facts dt', '.verdict', '.banner b', '.banner dt', '.banner dd', '.banner a', '.words',
      '.quiet .words', '.strong .words', '.run .bad .words', '.band', '.time', '.n a', '.source code', '.note.bad',
      '.source .bad code', '.h.left', 'footer']) {
    const one = document.querySelector(where);
    const [a, b] = [light(parse(getComputedStyle(one).color)), light(behind(one))];
    contrast[where] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  }
  return {contrast, paper: parse(getComputedStyle(document.body).backgroundColor)};
"""


HEADING = """
  const names = [...document.querySelectorAll('.run thead .h')];
  const row = [...document.querySelectorAll('.run tbody tr')].at(-2);
  row.scrollIntoView({block: 'end'});
  scrollBy(document.documentElement.scrollWidth, 0);
  return names.map(one => {
    const place = one.getBoundingClientRect();
    const top = document.elementFromPoint((place.left + place.right) / 2, (place.top + place.bottom) / 2);
    return [one.textContent, place.top >= 0 && place.bottom <= innerHeight && one.contains(top), scrollY > 0];
  });
"""
PHONE = """
  const words = [...document.querySelectorAll('.run .words')].map(one => one.getBoundingClientRect());
  const bars = [...document.querySelectorAll('.run tbody .g div')].map(one => one.getBoundingClientRect());
  const box = document.querySelector('#run .scroll');
  return {
    page: document.documentElement.scrollWidth, box: box.scrollWidth - box.clientWidth,
    narrowest: Math.min(...words.map(one => one.width)), right: Math.max(...words.map(one => one.right)),
    bars: Math.max(...bars.map(one => one.right)),
  };
"""
PRINT = """
  const take = rules => [...rules].forEach(rule => {
    if (!rule.media) return;
    rule.media.mediaText = rule.media.mediaText.includes('print') ? 'all'
      : rule.media.mediaText.includes('screen') ? 'not all' : rule.media.mediaText;
    take(rule.cssRules);
  });
  [...document.styleSheets].forEach(sheet => take(sheet.cssRules));
  const canvas = document.createElement('canvas').getContext('2d');
  const light = text => {
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [x, y, z] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
      .map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  return Object.fromEntries(['h1', '.verdict', '.banner b', '.banner dd', '.words', '.source code', '.time'].map(
    where => [where, 1.05 / (light(getComputedStyle(document.querySelector(where)).color) + 0.05)]));
"""


def draw_page(name: str, defect: str = "") -> str:
    """Play a scenario of the corpus in the model, and draw its page."""
    subject = reference_supervisor()
    if defect:
        made = defects.find_defect(defect)
        subject = ReferenceSupervisor(defect, made.deciders, made.session_deciders)
    played = run_in_model(load_bundled(name), subject)
    rows = judge_all_expectations(played)
    failed = list_unmet_checks(rows)
    assert bool(failed) == bool(defect)
    steps = {process: find_last_step(played.record, process) or 0 for process in played.bound.parts or ("agent",)}
    others = [row for row in rows if row not in failed]
    return render_page(
        played.record, played.bound.scenario, PageVerdict(str(choose_overall_verdict(rows)), failed, others, steps)
    )


@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize(("name", "defect"), [*RED, *((name, "") for name in GREEN)])
def test_no_word_covers_another(name: str, defect: str, width: int, tmp_path: Path) -> None:
    """Everything can be read and selected, nothing is painted, and each failure is in sight without scrolling."""
    seen = measure_page(draw_page(name, defect), MEASURE, tmp_path, width=width)
    assert seen.console == []
    found = seen.measured
    assert found["texts"] > 60
    assert found["covered"] == []
    assert found["outside"] == 0
    assert found["drawn"] == 0
    assert found["width"] <= width
    assert found["first"] == "skip"
    assert found["target"].startswith("r")
    assert "what happened" in found["selected"]
    assert "RETURNS" in found["selected"]
    assert (found["banner"] is not None) == bool(defect)
    if defect:
        top, bottom = found["banner"]
        assert 0 <= top < bottom <= 800


@pytest.mark.parametrize("width", [1280, 800, 500])
@pytest.mark.parametrize(("name", "defect"), [RED[0], RED[2], RED[4]])
def test_the_names_of_the_lanes_stay_in_sight(name: str, defect: str, width: int, tmp_path: Path) -> None:
    """Far below the heading a reader still sees whose lane an arrow reaches, and no bar hides a name."""
    seen = measure_page(draw_page(name, defect), HEADING, tmp_path, width=width, height=400).measured
    assert len(seen) > 1
    assert [lane for lane in seen if lane[1:] != [True, True]] == []


@pytest.mark.parametrize(("name", "defect"), [*RED, (GREEN[0], "")])
def test_a_page_can_be_read_on_a_phone(name: str, defect: str, tmp_path: Path) -> None:
    """Words have the width of the screen; only lanes that are wider than that move, in their own box."""
    seen = measure_page(draw_page(name, defect), PHONE, tmp_path, width=400).measured
    assert seen["page"] <= 400
    assert seen["narrowest"] >= 250
    assert seen["right"] <= 400
    assert seen["box"] == 0 or seen["bars"] > 400


@pytest.mark.parametrize("dark", [False, True])
def test_a_printed_page_is_legible(tmp_path: Path, *, dark: bool) -> None:
    """Paper is white, and printers leave backgrounds out."""
    found = measure_page(draw_page(*RED[0]), PRINT, tmp_path, dark=dark).measured
    assert {where: round(ratio, 1) for where, ratio in found.items() if ratio < 4.5} == {}


def test_a_script_that_fails_would_be_seen(tmp_path: Path) -> None:
    """A page's console output is read, and words that cover each other are found."""
    broken = (
        '<!doctype html><html lang="en"><head><title>x</title></head><body><p>one</p>'
        '<p style="margin-top:-30px">two</p><script>console.error("heard")</script></body></html>'
    )
    seen = measure_page(broken, MEASURE, tmp_path)
    assert len(seen.console) == 1
    assert "heard" in seen.console[0]
    assert seen.measured["covered"] == [["one", "two"]]


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_is_legible(tmp_path: Path, *, dark: bool) -> None:
    """WCAG asks for 4.5 between a text and its background; dark is dark."""
    found = measure_page(draw_page(*RED[0]), COLOURS, tmp_path, dark=dark).measured
    assert {where: round(ratio, 1) for where, ratio in found["contrast"].items() if ratio < 4.5} == {}
    assert (max(found["paper"][:3]) < 64) == dark


def test_a_page_as_it_is_has_a_picture(tmp_path: Path) -> None:
    """With its policy, which the measured copies do not have."""
    picture = take_screenshot(draw_page(*RED[0]), tmp_path)
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 20_000


def test_the_index_is_legible(tmp_path: Path) -> None:
    """Long claims and many columns stand beside each other."""
    claim = "an agent that is told a great many things does what it was told, " * 4
    ways = [("reference", loop, clock) for loop in ("asyncio", "trio") for clock in ("virtual", "real")]
    entries = [
        IndexEntry(f"{'name-' * 12}{number}", claim, ("A1", "C4"), way, "not applicable", ("n/a",), "x.html")
        for number in range(5)
        for way in ways
    ]
    seen = measure_page(render_index(entries), MEASURE, tmp_path)
    assert seen.console == []
    assert seen.measured["covered"] == []
    assert seen.measured["width"] <= 1280
