"""Supervisors of other people: correct ones are conformant; the results of the others are pinned by rule."""

from __future__ import annotations

import shutil

import pytest

from tests.architecture.sources import ROOT
from tests.docs.blocks import find_blocks
from tests.plugin.examples.__main__ import FOLDERS, HERE, VERDICTS, verdicts
from tests.plugin.reports.test_summary import find_sentences

pytestmark = pytest.mark.once

LONGEST = 40


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_an_example_gets_the_verdicts_that_are_kept(folder: str) -> None:
    """`python -m tests.plugin.examples` writes them; they show what each of five ways to supervise gets."""
    if folder == "node" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    seen, printed = verdicts(folder)
    if "the machine was too slow" in printed:
        pytest.skip("undecided: in real time the machine was too slow")
    assert seen == (HERE / folder / VERDICTS).read_text("utf-8"), printed


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_example_is_a_repository_of_forty_lines(folder: str) -> None:
    """Candidates with more lines are not tried."""
    files = [file for file in (HERE / folder).iterdir() if file.is_file() and file.name != VERDICTS]
    assert sum(len(file.read_text("utf-8").splitlines()) for file in files) <= LONGEST


@pytest.mark.parametrize("file", ["asyncio_wait_for/mine.py", "asyncio_wait_for/conftest.py", "node/wrapper.toml"])
def test_the_example_is_the_tutorials(file: str) -> None:
    """One of the two would go stale."""
    page = (ROOT / "docs/tutorials/judge-your-supervisor.md").read_text("utf-8")
    name = (HERE / file).name
    texts = [block.text.removeprefix(f"# {name}\n") for block in find_blocks(page) if block.file == name]
    assert texts[0] == (HERE / file).read_text("utf-8")


@pytest.mark.slow
def test_a_careful_supervisor_with_other_numbers_is_conformant(pytester: pytest.Pytester) -> None:
    """It claims plain text alone, so that is what it is judged by; a false red would cost more than a missed one."""
    subject = "--agentproc-subject=tests.plugin.examples.careful:subject"
    result = pytester.runpytest_subprocess("--agentproc-corpus", "-q", subject, "-o", f"pythonpath={ROOT}")
    [(name, verdict, figures, clock, _, _)] = find_sentences(result)
    assert (name, verdict, clock) == ("careful", "is conformant", "virtual")
    assert figures.startswith("must: 0 failed, ")
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.slow
def test_a_supervisor_whose_limits_are_in_another_order_is_conformant(pytester: pytest.Pytester) -> None:
    """Its longest run is shorter than its silence: files about silence tell another story there, and no fault of it."""
    subject = "--agentproc-subject=tests.plugin.examples.capped:subject"
    result = pytester.runpytest_subprocess("--agentproc-corpus", "-q", subject, "-o", f"pythonpath={ROOT}")
    [(name, verdict, figures, clock, _, _)] = find_sentences(result)
    assert (name, verdict, clock) == ("Capped", "is conformant", "virtual")
    assert figures.startswith("must: 0 failed, ")


@pytest.mark.slow
def test_limits_in_another_order_excuse_no_orphan(pytester: pytest.Pytester) -> None:
    """After any end of the run, the processes that the agent started end with it."""
    subject = "--agentproc-subject=tests.plugin.examples.capped:faulty"
    chosen = "silent-with-a or zombie-of or silent-past or (stopped-child and not session)"
    result = pytester.runpytest_subprocess(
        *("--agentproc-corpus", "-q", "-rs", subject, "-k", chosen, "-o", f"pythonpath={ROOT}")
    )
    result.assert_outcomes(failed=3, skipped=1)
    result.stdout.fnmatch_lines_random(
        [
            "*leaks: failed*",
            "*not applicable: *; with these limits the kit's own supervisor fails this check, too: elapsed 50 s*",
        ]
    )


@pytest.mark.once
@pytest.mark.slow
@pytest.mark.parametrize("name", ["subject", "at_the_end", "pi"])
def test_a_supervisor_that_looks_in_turns_is_conformant(name: str, pytester: pytest.Pytester) -> None:
    """It gets no events, and so is late by up to one poll at each step: that is a style, like any other."""
    subject = f"--agentproc-subject=tests.plugin.examples.polling:{name}"
    result = pytester.runpytest_subprocess("--agentproc-corpus", "-q", subject, "-o", f"pythonpath={ROOT}")
    [(_, verdict, figures, clock, _, _)] = find_sentences(result)
    assert (verdict, clock) == ("is conformant", "virtual")
    assert figures.startswith("must: 0 failed, ")
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.slow
def test_a_supervisor_that_kills_at_once_and_reports_little_is_conformant(pytester: pytest.Pytester) -> None:
    """It states that it gives no grace, and keeps that; TERM, times and exit codes are a matter of style."""
    pytest.importorskip("trio")
    subject = "--agentproc-subject=tests.plugin.examples.at_once:subject"
    chosen = "silent-past or silent-with or ignores-term or leftover or hidden-children or slow-death"
    result = pytester.runpytest_subprocess(
        *("--agentproc-corpus", "-q", subject, "--agentproc-backend=trio", "-k", chosen, "-o", f"pythonpath={ROOT}")
    )
    [(name, verdict, figures, clock, _, _)] = find_sentences(result)
    assert (name, verdict, clock) == ("at-once", "is conformant", "virtual")
    assert figures.startswith("must: 0 failed, ")
    assert result.ret == pytest.ExitCode.OK
