"""Random search against successive halving with the same gradient steps: the validation score of what they choose.

Every built-in method that trains by gradient steps, on every built-in dataset that it can work on, in pairs: the same
rows, seeds and first configurations. Rows and steps are few, so that all of it takes minutes.

What is asserted is the comparison in pairs, by signs and by signed ranks. The mean of relative changes is only shown:
one search whose trainings all diverge late, as fishr's on selection_bias, counts more in it than all others together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import rankdata, wilcoxon

from oodbench import LossMethod
from oodbench.engine.trainer import keep_freed_memory
from oodbench.plugin.registry import find, names
from oodbench.search.jobs import job_of
from oodbench.search.worker import run_pack
from oodbench.study.pack import PackResult
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.selectors import select
from oodbench.study.spec import StudyOptions
from oodbench.study.study import Study

TRIALS, SEEDS, STEPS = 8, 3, 256
DATASETS = {
    "selection_bias": {"majority": "200", "minority": "40"},
    "spurious_correlation": {"group_rows": "100"},
    "acs_travel": {"data": "synthetic", "source": "MA,NY", "train_rows": "150", "validation_rows": "200"},
}  # two states, for methods that need environments
METHODS = [name for name in names("method") if issubclass(find("method", name), LossMethod)]
ALIKE = 1e-9  # relative: the same choice


@dataclass(frozen=True)
class Found:
    score: float
    steps: int
    configurations: int


def plan_pairs(dataset: str) -> dict[str, tuple[Study, Study]]:
    """By method, where it does the dataset's task and the dataset knows what it needs."""
    cls = find("dataset", dataset)
    suited = [name for name in METHODS if cls.task in find("method", name).tasks]
    suited = [name for name in suited if "invariant" not in find("method", name).needs or cls().invariant is not None]
    specs = []
    for kind in ("random", "halving"):
        options = StudyOptions(
            settings=DATASETS[dataset], recipe={"steps": STEPS}, trials=TRIALS, seeds=SEEDS, search=kind
        )
        specs += resolve(Request(suited, [dataset], options))
    studies = plan(specs, "cpu")  # on the same data
    return dict(zip(suited, zip(studies[: len(suited)], studies[len(suited) :], strict=True), strict=True))


def search(study: Study) -> Found:
    results: dict[int, PackResult] = {}
    while True:
        for pack in study.packs:
            if pack.index not in results:
                job = job_of(study, pack, lambda earlier: results[earlier.index].checkpoint)
                results[pack.index] = run_pack(job.method, pack, job.data, job.setup, job.start, job.stop)
        if study.at_top:
            break
        study = study.climb(results)
    last = max(pack.rung for pack in study.packs)
    rows = [row for pack in study.packs if pack.rung == last for row in results[pack.index].validation]
    choice = select(pd.DataFrame(rows), study.selector, SEEDS, study.configurations)
    steps = sum(result.gradient_steps for result in results.values())
    return Found(choice.score, steps, len(study.configurations))


@pytest.fixture(autouse=True)
def as_a_worker_does() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()


def test_halving_chooses_as_well_as_a_random_search(report: Callable[[str], None]) -> None:
    pairs: dict[tuple[str, str], tuple[Found, Found]] = {}
    for dataset in DATASETS:
        for method, (random, halving) in plan_pairs(dataset).items():
            if len(halving.rungs) > 1:  # otherwise it is a random search
                pairs[method, dataset] = (search(random), search(halving))
    report(f"chosen validation score, random → halving; {TRIALS} trials × {SEEDS} seeds × {STEPS} steps")
    report(f"{'method':16}" + "".join(f"{dataset:>24}" for dataset in DATASETS))
    for method in METHODS:
        cells = [pairs.get((method, dataset)) for dataset in DATASETS]
        texts = ["–" if cell is None else f"{cell[0].score:.4f} → {cell[1].score:.4f}" for cell in cells]
        report(f"{method:16}" + "".join(f"{text:>24}" for text in texts))
    gains = np.array([(halving.score - random.score) / random.score for random, halving in pairs.values()])
    better, worse = int(np.sum(gains < -ALIKE)), int(np.sum(gains > ALIKE))
    begun = np.mean([halving.configurations / random.configurations for random, halving in pairs.values()])
    spent = [sum(found[which].steps for found in pairs.values()) for which in (0, 1)]
    differing = gains[abs(gains) > ALIKE]
    ranks = rankdata(abs(differing))
    in_favour, in_favour_of_random = ranks[differing < 0].sum(), ranks[differing > 0].sum()
    chance = wilcoxon(differing).pvalue
    report(
        f"{len(pairs)} pairs: halving is better in {better}, equal in {len(pairs) - better - worse}, worse in {worse}; "
        f"mean change {gains.mean():+.2%}, median {np.median(gains):+.2%}, worst {gains.max():+.2%}, "
        f"Wilcoxon p = {chance:.2g}"
    )
    report(f"{begun:.1f} times the configurations for {spent[1] / spent[0]:.3f} times the gradient steps")
    assert better >= worse
    assert in_favour_of_random <= in_favour
