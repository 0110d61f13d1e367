"""Owns the form in which a session's results are kept for other programs. Pure; writes no file."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from pytest_agentproc.verdict._judgement import compute_results_digest, hash_corpus
from pytest_agentproc.verdict._summary import Conformance, count_undecided, judge_conformance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_agentproc.verdict._judgement import JudgedScenario


RESULTS_VERSION = 1
"""It grows whenever a key goes or changes its meaning; new keys come without notice."""


def format_results(judged: Sequence[JudgedScenario], version: str, *, is_whole: bool = True) -> str:
    """Write what came of a session as one JSON object, in an order that depends on no worker.

    Args:
        judged: what was judged.
        version: that of the kit.
        is_whole: whether the session came to its end; if not, nobody is conformant by what was judged.

    Returns:
        `version` (of this form), `kit`, `whole`, `corpus` (the hash of the scenarios), `subjects` (each with `name`,
        `conformant`, `conformance`, `undecided`, `corpus` and `digest`), and `results`: for each scenario, subject,
        clock and backend the verdict and why, the rows (`key`, `level`, `verdict`, `expected`, `seen`, `unstated`),
        `covers`, `digest`, `virtual_s` and `real_s`, and `rerun`, the command for a red one.
    """
    ordered = sorted(judged, key=lambda result: result.sort_key)
    names = dict.fromkeys(result.subject for result in ordered)
    whole: dict[str, Any] = {
        "version": RESULTS_VERSION,
        "kit": version,
        "whole": is_whole,
        "corpus": hash_corpus(ordered),
        "subjects": [
            _summarize_subject(name, [result for result in ordered if result.subject == name], is_whole=is_whole)
            for name in names
        ],
        "results": [dataclasses.asdict(result) for result in ordered],
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _summarize_subject(name: str, judged: Sequence[JudgedScenario], *, is_whole: bool) -> dict[str, Any]:
    conformance = judge_conformance(judged)
    if not is_whole and conformance is not Conformance.NOT_CONFORMANT:
        conformance = Conformance.NOT_JUDGED
    return {
        "name": name,
        "conformant": conformance is Conformance.CONFORMANT,
        "conformance": str(conformance),
        "undecided": count_undecided(judged),
        "corpus": hash_corpus(judged),
        "digest": compute_results_digest(judged),
    }
