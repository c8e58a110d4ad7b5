"""What selectors ask of every trained model besides its scores: a metric in the validation environments, its stability.

The driver does this after the search and before the selection, so that no other search pays for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oodbench.engine.scoring import SCORES
from oodbench.errors import StudyFailed, one_line
from oodbench.kit.stability import worst_subpopulation
from oodbench.plugin.registry import find
from oodbench.plugin.selector import ESTIMATED
from oodbench.study.assess import alpha0_of
from oodbench.study.looks import some_rows
from oodbench.study.meter import Meter
from oodbench.study.sealed import hand_out

if TYPE_CHECKING:
    from oodbench.engine.predictor import Predictor
    from oodbench.plugin.selector import Selector
    from oodbench.study.study import Study


def estimate(
    study: Study,
    selector: Selector,
    rows: Sequence[dict[str, Any]],
    predictors: Mapping[tuple[int, int], Predictor],
) -> list[dict[str, Any]]:
    """What a selector that sees test rows says of every model in every test environment. It is given what it declares,
    and a model that it cannot judge has no row."""
    made: list[dict[str, Any]] = []
    reason = ""
    for seed in study.seeds:
        targets = hand_out(study, selector, seed)
        judges = {name: selector.estimator(target) for name, target in targets.items()}
        numbers = dict.fromkeys(row["configuration"] for row in rows if row["seed"] == seed)
        for configuration in numbers:
            model = predictors[configuration, seed]
            where = {"configuration": configuration, "seed": seed, "part": ESTIMATED}
            for name, judge in judges.items():
                try:
                    error = float(judge(model))
                except (Exception, SystemExit) as fault:
                    reason = reason or one_line(fault)
                    continue
                made.append(where | {"environment": name, "rows": len(targets[name].x), "error": error})
    if not made:
        raise StudyFailed(f"no model can be selected by {study.selector}: {reason}")
    return made


def look_closer(
    study: Study,
    selector: Selector,
    rows: Sequence[dict[str, Any]],
    predictors: Mapping[tuple[int, int], Predictor],
) -> list[dict[str, Any]]:
    """The validation rows with what the selector needs, or all metrics, where all selectors are to be compared; NaN
    where a metric has no value."""
    wanted = {} if selector.metric in SCORES else {selector.metric: find("metric", selector.metric)}
    meter = Meter(wanted, study.dataset.classes)
    if study.open_all:
        meter = Meter.of_task(study.dataset.task, study.dataset.classes)
    environments = {
        (seed, environment.name): environment for seed in study.seeds for environment in study.data.validation[seed]
    }
    pooled = {seed: some_rows(study.dataset, study.data.pooled_validation[seed]) for seed in study.seeds}
    models: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in rows:
        models.setdefault((row["configuration"], row["seed"]), []).append(row)
    looked: list[dict[str, Any]] = []
    for (configuration, seed), own in models.items():
        predictor = predictors[configuration, seed]
        stability = {}
        if selector.needs_stability:
            stability["stability"] = worst_subpopulation(predictor, pooled[seed], alpha0_of(study)).divergence
        seen = [row | meter.measure(predictor, environments[seed, row["environment"]]) for row in own]
        looked += [row | stability for row in seen]
    if looked and all(math.isnan(row[selector.metric]) for row in looked):
        raise StudyFailed(f"no model can be selected by {selector.metric}: {meter.missing[selector.metric]}")
    return looked
