"""Searches by halving on a real Ray cluster: what they keep, what they spend, and how they go on after a stop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import oodbench
from concluding import concluded, planned
from handing import same_results
from oodbench.driver import driver
from oodbench.errors import Interrupted, UserError
from oodbench.search import run_jobs
from oodbench.search.worker import run_pack

STEPS = 32
RUN: dict[str, Any] = {
    "settings": {"majority": 100, "minority": 20, "test_rows": 20},
    "recipe": {"steps": STEPS},
    "trials": 4,
    "seeds": 2,
    "search": "halving",
    "no_stability": True,
}
SETTINGS = "--set majority=100 --set minority=20 --set test_rows=20".split()
METHODS = ["erm", "eiil", "ridge"]


@pytest.fixture(scope="module")
def halved(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> oodbench.Result:
    return oodbench.run(METHODS, "selection_bias", directory=tmp_path_factory.mktemp("halved"), **RUN)


def ledger(result: oodbench.Result, method: str) -> Any:
    (study,) = [study for study in result.leaderboard().studies if study.record.method == method]
    return study.record.ledger


def test_four_times_the_configurations_for_the_same_steps(halved: oodbench.Result) -> None:
    spent = ledger(halved, "erm")
    assert [(rung.steps, len(rung.configurations), rung.anew) for rung in spent.rungs] == [
        (2, 16, True),
        (8, 4, False),
        (32, 3, False),
    ]
    assert [rung.gradient_steps for rung in spent.rungs] == [16 * 2 * 2, 4 * 2 * 6, 3 * 2 * 24]
    assert spent.gradient_steps == 4 * 2 * STEPS  # of a random search with as many trials
    assert (spent.trials, spent.complete_trials, spent.stopped_trials) == (16, 3, 13)
    assert sorted(spent.stopped_at.values()) == [2] * 12 + [8]


def test_what_cannot_pause_is_trained_anew_and_the_ledger_says_so(halved: oodbench.Result) -> None:
    spent = ledger(halved, "eiil")
    assert [(rung.steps, len(rung.configurations), rung.anew) for rung in spent.rungs] == [
        (2, 16, True),
        (8, 4, True),
        (32, 2, True),
    ]
    assert ledger(halved, "ridge").rungs[0].configurations == (0, 1, 2, 3)  # it makes no steps: there is one rung
    assert ledger(halved, "ridge").complete_trials == 4


@pytest.mark.parametrize(("method", "rungs"), [("dwr", 1), ("srdo", 1), ("erm", 3), ("jtt", 3)])
def test_what_makes_steps_ahead_of_every_training_is_not_halved(method: str, rungs: int) -> None:
    study = planned(method, "spurious_correlation", settings={"group_rows": 40}, trials=4, seeds=2, search="halving")
    assert len(study.rungs) == rungs


def test_only_the_last_rung_is_in_the_results(halved: oodbench.Result) -> None:
    (study,) = [study for study in halved.leaderboard().studies if study.record.method == "erm"]
    assert study.results is not None
    scored = study.results.query("part == 'validation'")["configuration"].unique()
    assert tuple(scored) == study.record.ledger.rungs[-1].configurations
    assert [row.label for row in halved.leaderboard().rows if "erm" in row.label] == [
        f"erm (steps={STEPS}, search=halving)"
    ]


def test_what_reached_the_end_was_trained_like_one_that_never_stopped(halved: oodbench.Result) -> None:
    (study,) = [study for study in halved.studies if study.method_name == "erm"]
    last = [pack for pack in study.packs if pack.rung == 2]
    (concluded,) = [study for study in halved.leaderboard().studies if study.record.method == "erm"]
    assert concluded.results is not None
    found = concluded.results.query("part == 'validation'").set_index(["configuration", "seed", "environment"])["error"]
    for pack in last:
        data = {seed: study.search_data(seed) for seed in pack.seeds}
        for row in run_pack(study.method, pack, data, study.setup).validation:
            assert found[row["configuration"], row["seed"], row["environment"]] == pytest.approx(row["error"], rel=1e-5)


def test_no_worker_decides_on_anything(halved: oodbench.Result) -> None:
    """The same search in this process, pack by pack, comes to the same bits."""
    options = {name: value for name, value in RUN.items() if name != "no_stability"}
    for method in ("erm", "eiil"):
        alone = concluded(planned(method, "selection_bias", **options), look=False)
        (on_ray,) = [study for study in halved.leaderboard().studies if study.record.method == method]
        assert same_results(alone, on_ray)
        assert alone.record.ledger.rungs == on_ray.record.ledger.rungs


def test_a_stopped_search_goes_on_and_ends_in_the_same_bits(
    halved: oodbench.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rungs: list[set[int]] = []

    def stop_after_one_rung(jobs: Any, *rest: Any) -> None:
        rungs.append({job.pack.rung for job in jobs})
        if len(rungs) == 2:
            raise Interrupted("stopped.")
        run_jobs(jobs, *rest)

    monkeypatch.setattr(driver, "run_jobs", stop_after_one_rung)
    with pytest.raises(Interrupted):
        oodbench.run("erm", "selection_bias", directory=tmp_path, **RUN)
    again = oodbench.run("erm", "selection_bias", directory=tmp_path, **RUN)
    assert rungs == [{0}, {1}, {1}, {2}]
    before = [study.results for study in halved.leaderboard().studies if study.record.method == "erm"]
    after = [study.results for study in again.leaderboard().studies]
    assert before[0] is not None
    assert after[0] is not None
    pd.testing.assert_frame_equal(before[0], after[0])
    assert ledger(again, "erm").rungs == ledger(halved, "erm").rungs


def test_boards_say_what_was_begun_and_what_reached_the_end(halved: oodbench.Result, cli: Callable[..., Any]) -> None:
    board = ("leaderboard", "selection_bias", *SETTINGS, "--directory", str(halved.record.directory))
    done = cli(*board)
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "16 → 3 × 2" in text
    assert "16 → 2 × 2" in text
    assert "halving began n configurations and trained m to the end, for the gradient steps of 4 trials" in text
    told = cli(*board, "--json").json()
    (row,) = [row for row in told["rows"] if row["method"].startswith("erm")]
    assert [rung["steps"] for rung in row["ledger"]["rungs"]] == [2, 8, 32]


def test_the_command_says_its_rungs_and_writes_the_sweep(
    ray_address: str, cli: Callable[..., Any], tmp_path: Path
) -> None:
    budget = "--set-training steps=32 --trials 4 --seeds 2".split()
    done = cli(
        "run", "-m", "erm", "-m", "eiil", "-d", "selection_bias", *SETTINGS, *budget, "--search", "halving",
        "--no-stability", "--address", ray_address, "-o", "boards",
    )  # fmt: skip
    assert done.code == 0, done.err
    said = " ".join(done.err.split())
    assert "erm: 16 configurations to 2 steps, 4 of them to 8, 3 of them to 32" in said
    assert "eiil: 16 configurations to 2 steps, 4 of them to 8, 2 of them to 32" in said
    sweep = pd.read_csv(tmp_path / "boards" / "board_sweep.csv")
    own = sweep[sweep["method"].str.startswith("erm")]
    assert own["stopped_at"].value_counts().to_dict() == {2.0: 12, 8.0: 1}
    assert own["chosen"].sum() == 1
    assert own["stopped_at"].isna().tolist() == own["score"].notna().tolist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"scheduler": "asha"}, "--search halving stops trainings itself"),
        ({"budget": "10m"}, "Leave out --scheduler and --budget"),
        ({"recipe": {"steps": 8}}, "--search halving needs trainings of at least 16 steps, not 8"),
        ({"selector": "oracle"}, "--selector oracle does not go with --search"),
        ({"selector": "stability"}, "does not go with --search"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        oodbench.run("erm", "selection_bias", directory=tmp_path / "new", **{**RUN, **options})
