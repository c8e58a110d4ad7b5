"""Boards with made-up results, for tests of pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from oodbench.board.leaderboard import Leaderboard, compile_leaderboard
from oodbench.engine.data import Task
from oodbench.report.states import TILES
from oodbench.study.record import ConcludedStudy, Ledger
from oodbench.study.selectors import select
from studies import changed, failed, made_up

METHODS = ["erm", "fdro", "irm", "eiil", "hrm", "kerhrm", "srm", "srm:released", "boosting", "mixup (mlp width=64)"]
STATES = [state for state in TILES if state not in ("MA", "PR")]
NOTICE = "Synthetic data: these are not people."


def study(
    label: str,
    centre: float,
    environments: Sequence[str] = STATES,
    seeds: int = 10,
    trials: int = 20,
    task: Task = "classification",
) -> ConcludedStudy:
    rng = np.random.default_rng(list(label.encode()))
    worse = np.round(rng.exponential(0.05, trials), 4)
    worse[-1] = 0  # the last trial is the best one
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        rows += [
            _row(trial, seed, "validation", "MA", centre + worse[trial], trial == trials - 1) for trial in range(trials)
        ]
        rows.append(_row(trials - 1, seed, "train", "MA", centre, True))
        noise = rng.normal(0, 0.02)
        rows += [
            _row(trials - 1, seed, "test", name, centre + noise + 0.15 * (place / len(environments)), True)
            for place, name in enumerate(environments)
        ]
    results = pd.DataFrame(rows)
    hparams = {"learning_rate": 0.012345678901, "penalty": 10}
    return made_up(
        label,
        results,
        task,
        trials,
        seeds,
        run_id=f"{label.partition(' ')[0]}-run",
        study_id=label,
        choice=select(results[results["part"] == "validation"], "worst", seeds, [hparams] * trials),
        data__fingerprint="a1b2c3",
        opening__test_fingerprint="d4e5f6",
        ledger=Ledger(
            trials=trials,
            trainings=seeds * trials,
            gradient_steps=400_000,
            row_visits=800_000_000,
            seconds=9 ** (5 * centre),
            device="cpu",
        ),
        provenance__versions={"oodbench": "0.1.0", "torch": "2.13.0"},
        provenance__command=f"oodbench run --method {label.partition(' ')[0]} --dataset acs_travel --trials {trials}",
        provenance__git_commit="0123456789abcdef0123456789abcdef01234567",
    )


def with_all_opened(made: ConcludedStudy) -> ConcludedStudy:
    """As `--open-all` leaves it: on test, each configuration is .001 better than the next; the last is chosen."""
    assert made.results is not None
    chosen = made.results[made.results["part"] == "test"]
    best = int(chosen["configuration"].iloc[0])
    opened = [
        chosen.assign(configuration=trial, part="opened", chosen=False, error=chosen["error"] - 0.001 * (best - trial))
        for trial in range(best)
    ]
    results = pd.concat([made.results, *opened], ignore_index=True)
    return replace(changed(made, opening__opened_all=True), results=results)


def _row(trial: int, seed: int, part: str, environment: str, error: float, chosen: bool) -> dict[str, Any]:
    place = {"configuration": trial, "seed": seed, "part": part, "environment": environment, "rows": 100}
    return place | {
        "error": error,
        "accuracy": 1 - error,
        "f1": 0.9 - error - 0.1 * (len(environment) + ord(environment[-1])) % 0.17,
        "chosen": chosen,
    }


def census_board(methods: Sequence[str] = METHODS) -> Leaderboard:
    """All methods on 50 environments with 10 seeds, and one that failed."""
    studies = [changed(study(label, 0.2 + 0.03 * (place // 2)), notice=NOTICE) for place, label in enumerate(methods)]
    broken = changed(failed(studies[-1], "it diverged"), label="broken", study_id="broken", provenance__command="")
    return compile_leaderboard("acs_travel@synthetic", [*studies, broken], ["forgotten"])
