"""oodbench nightly: what is a finding and what is not, on made-up nights. tests/proofs/nightly has real ones, with
regressions planted in real methods."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nights import SUITE
from oodbench.board.cells import MethodScores
from oodbench.nightly.baseline import Night, StudyState
from oodbench.nightly.findings import SLOWER, Judgement, judge
from oodbench.nightly.page import render_report
from oodbench.study.machine import Machine

Cli = Callable[..., Any]
METHODS = ("erm", "irm", "srm")
HERE = Machine("Linux x86_64", "one", "AVX2", "3.11", {"numpy": "2.0", "torch": "2.13"})
ELSEWHERE = replace(HERE, cpu="another", packages={"numpy": "2.0", "torch": "2.14"})
NOISE = np.random.default_rng(0).normal(0, 0.01, size=(12, 3))  # [seed, environment]


def table(error: float = 1.0, noise: float = 1.0, seeds: int = 12) -> pd.DataFrame:
    places = [(seed, place) for seed in range(seeds) for place in range(3)]
    errors = [error + noise * NOISE[seed, place] for seed, place in places]
    return pd.DataFrame([(seed, f"e{place}") for seed, place in places], columns=["seed", "environment"]).assign(
        error=errors
    )


def night(
    tables: Mapping[str, pd.DataFrame | None] | None = None,
    machine: Machine = HERE,
    speed: Mapping[str, float] | None = None,
    failed: int = 0,
    faults: Mapping[str, str] | None = None,
) -> Night:
    found = {name: table() for name in METHODS} | dict(tables or {})
    return Night(
        "2026-01-02",
        "0123456789abcdef",
        machine,
        {"erm": 3.0, "irm": 4.0, "srm": 7.0} if speed is None else speed,
        [StudyState("data", name, failed, "" if one is not None else "it diverged") for name, one in found.items()],
        [MethodScores("data", name, "regression", one) for name, one in found.items()],
        faults or {},
    )


def kinds(before: Night, now: Night) -> list[tuple[str, str]]:
    found = judge(before, now, "oodbench nightly x.toml --accept")
    for finding in found.findings:
        lines = str(finding).splitlines()
        assert len(lines) == 2, lines
        assert "oodbench nightly x.toml --accept" in lines[1]
    return [(finding.kind, finding.about.split()[0]) for finding in found.findings]


def test_an_unchanged_night_is_quiet_here_and_elsewhere() -> None:
    assert kinds(night(), night()) == []
    rounded = {name: table().assign(error=lambda one: one["error"] * (1 + 1e-12)) for name in METHODS}
    assert kinds(night(), night(rounded, machine=ELSEWHERE)) == []
    noisy = {name: table(noise=-1.0) for name in METHODS}  # other numbers, on average the same
    assert kinds(night(), night(noisy, machine=ELSEWHERE)) == []


def test_on_the_same_machine_every_bit_counts_and_elsewhere_the_statistics() -> None:
    other_bits = table()
    errors = other_bits["error"].to_numpy(copy=True)
    errors[5] = np.nextafter(errors[5], 2)
    other_bits["error"] = errors
    assert kinds(night(), night({"irm": other_bits})) == [("changed", "irm")]
    assert kinds(night(), night({"irm": other_bits}, machine=ELSEWHERE)) == []
    worse = night({"irm": table(1.05)})
    assert kinds(night(), worse) == [("worse", "irm")]
    (finding,) = judge(night(), replace(worse, machine=ELSEWHERE), "").findings
    assert "→ 1.049 (+5.0%)" in str(finding)
    assert "p = 0 over 12 seeds" in str(finding)  # the same difference on each
    hardly = night({"irm": table(1.0005)})
    assert kinds(night(), hardly) == [("worse", "irm")]
    assert kinds(night(), replace(hardly, machine=ELSEWHERE)) == []  # consistent, and no more than rounding may be
    better = night({"irm": table(0.95)})
    assert kinds(night(), better) == [("changed", "irm")]
    assert kinds(night(), replace(better, machine=ELSEWHERE)) == []


def test_a_new_metric_changes_nothing_and_a_lost_one_does() -> None:
    measured = {"irm": table().assign(mae=0.5)}
    assert kinds(night(), night(measured)) == []
    assert kinds(night(measured), night()) == [("changed", "irm")]


def test_what_fails_is_missing_or_new_is_a_finding() -> None:
    assert kinds(night(), night({"irm": None})) == [("failed", "irm")]
    assert kinds(night({"irm": None}), night({"irm": None})) == []  # as it was
    assert kinds(night(), night(failed=2)) == [("failed trainings", name) for name in METHODS]
    assert kinds(night(failed=2), night(failed=2)) == []
    assert kinds(night({"irm": None}), night()) == [("new", "irm")]
    larger = night({"vrex": table()})
    assert kinds(night(), larger) == [("new", "vrex")]
    assert kinds(larger, night()) == [("missing", "vrex")]
    elsewhere = {"irm": table().replace({"e2": "e3"})}
    assert kinds(night(), night(elsewhere)) == [("not comparable", "irm")]


def test_speed_is_compared_as_a_ratio() -> None:
    almost, twice = 3.0 * SLOWER * 0.99, 6.0
    assert kinds(night(), night(speed={"erm": almost, "irm": 4.0, "srm": 1.0})) == []
    assert kinds(night(), night(speed={"erm": twice, "irm": 4.0, "srm": 7.0})) == [("slower", "erm")]
    broken = night(speed={"erm": 3.0, "irm": 4.0}, faults={"srm": "ValueError: no"})
    assert kinds(night(), broken) == [("no speed", "srm")]


def test_a_suite_with_too_few_seeds_is_told_so() -> None:
    few = night({name: table(seeds=3) for name in METHODS})
    (notice,) = judge(few, few, "").notices
    assert "3 seeds are too few: 2 more are needed before a study" in notice
    (other,) = judge(night(), night(machine=ELSEWHERE), "").notices
    assert "cpu one → another; torch 2.13 → 2.14" in other


def test_the_report_has_findings_first_and_escapes_what_others_wrote() -> None:
    nasty = "<script>alert(1)</script>"
    now = night({"irm": table(1.05), nasty: table()}, machine=ELSEWHERE, speed={"erm": 6.0})
    found: Judgement = judge(night(), now, "accept")
    page = render_report("A suite", found)
    assert "<script>" not in page
    places = [page.index(text) for text in ("3 findings", "<h2>Findings", "(+5.0%)", "<h2>Results", "<h2>Speed")]
    assert places == sorted(places)
    assert page.count('class="marked"') == 5  # irm and the new one; erm's speed; cpu and torch
    assert "Nothing to report" in render_report("A suite", judge(night(), night(), "accept"))
    json.dumps(found.as_dict())


def test_mistakes_are_said_in_two_lines(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SUITE)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "nightly.json").write_text('{"date": ""}')
    for arguments, expected in (
        (("small.toml",), "A first run with --accept writes the baseline into ."),
        (("small.toml", "--against", "broken"), "broken/nightly.json is not a baseline that oodbench wrote: KeyError"),
        (("paper",), "Name a baseline with --against."),
        (("nowhere.toml",), "suite nowhere.toml cannot be read"),
    ):
        done = cli("nightly", *arguments)
        assert (done.code, len(done.err.strip().splitlines())) == (2, 2), done.err
        assert expected in done.err
