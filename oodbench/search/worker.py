"""What a search worker does with a pack: fit, score on validation, and say what failed. It never sees test data."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oodbench.engine.data import TrainingRows
from oodbench.engine.predictor import Predictor
from oodbench.engine.scoring import score_together
from oodbench.engine.trial import Setup, Trial, seeds_that_fit
from oodbench.errors import TrainingFailed, one_line
from oodbench.plugin.method import Method
from oodbench.plugin.selector import LEFT_OUT
from oodbench.study.data import SearchData
from oodbench.study.pack import Pack, PackResult, divide
from oodbench.study.selectors import score_configurations

if TYPE_CHECKING:
    from oodbench.engine.trainer import Trainer


def run_pack(method: Method, pack: Pack, data: Mapping[int, SearchData], setup: Setup) -> PackResult:
    from oodbench.engine.trainer import Trainer  # imports torch, which the driver need not wait for

    started = time.perf_counter()
    train = {seed: seed_data.train for seed, seed_data in data.items()}
    trainer = Trainer(setup)
    fitted = _fit(method, train, pack.trials, trainer)
    predictors = {place: model for place, model in enumerate(fitted) if not isinstance(model, _Failed)}
    failures = {place: failed.reason for place, failed in enumerate(fitted) if isinstance(failed, _Failed)}
    part = "validation" if pack.without is None else LEFT_OUT
    scores: dict[int, list[dict[str, Any]]] = {}
    for seed in pack.seeds:
        of_seed = {place: model for place, model in predictors.items() if pack.trials[place].seed == seed}
        rows = data[seed].train
        for environment in data[seed].validation:
            scored = score_together(list(of_seed.values()), environment, rows.task, rows.classes)
            for position, values in zip(of_seed, scored, strict=True):
                if isinstance(values, BaseException):
                    failures[position] = one_line(values)
                    continue
                where = {"configuration": pack.trials[position].configuration, "seed": seed, "part": part}
                named = {"environment": environment.name, "rows": len(environment)}
                scores.setdefault(position, []).append(where | named | values)
    kept = predictors if pack.without is None else {}  # of the others, only the scores are asked for
    result = PackResult(
        predictors=[None if position in failures else kept.get(position) for position in range(len(fitted))],
        validation=[row for position in sorted(scores) if position not in failures for row in scores[position]],
        failures=failures,
        device=setup.device,
    )
    result.gradient_steps, result.row_visits = trainer.gradient_steps, trainer.row_visits
    result.seconds = time.perf_counter() - started
    return result


def run_configuration(method: Method, pack: Pack, data: Mapping[int, SearchData], setup: Setup) -> PackResult:
    """One configuration on all seeds, in as many packs as that takes."""

    def alike(trial: Trial) -> tuple[int, ...]:
        return data[trial.seed].train.x.shape

    def capacity(trial: Trial) -> int:
        train = data[trial.seed].train
        return method.pack_capacity(
            len(train), setup.recipe.outputs(train.task == "classification", train.classes), setup
        )

    def most_seeds(trial: Trial) -> int:
        return seeds_that_fit(setup, *data[trial.seed].train.x.shape)

    places = {trial.seed: position for position, trial in enumerate(pack.trials)}
    parts = []
    for part in divide(pack.study_id, pack.trials, alike, capacity, most_seeds):
        result = run_pack(method, part, {seed: data[seed] for seed in part.seeds}, setup)
        parts.append(([places[trial.seed] for trial in part.trials], result))
    return PackResult.joined(parts)


def validation_score(result: PackResult, selector: str) -> float:
    """What the selector would say of a configuration; not a number where it failed on a seed."""
    if result.failures:
        return math.nan
    import pandas as pd

    return float(score_configurations(pd.DataFrame(result.validation), selector)["mean"].iloc[0])


@dataclass(frozen=True)
class _Failed:
    reason: str


def _fit(
    method: Method, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer
) -> list[Predictor | _Failed]:
    """Predictors of the trials. Where the pack as a whole raises, each trial is tried alone, to spare the others.

    The method gets rows and hyper-parameters of its own, unless it can share rows: other workers and other trials have
    the originals.
    """
    rows = train if method.shares_rows else {seed: shared.copy() for seed, shared in train.items()}
    own = [replace(trial, hparams=dict(trial.hparams)) for trial in trials]
    try:
        predictors: list[Any] = list(method.fit_pack(rows, own, trainer))
        if len(predictors) != len(trials):
            raise TrainingFailed(f"fit_pack returned {len(predictors)} predictors for {len(trials)} trials")
        for predictor in predictors:
            if not callable(getattr(predictor, "predict", None)):
                raise TrainingFailed(f"fit returned {predictor!r:.60}, which has no predict")
        _check_sendable(predictors)
        return predictors
    except (Exception, SystemExit) as error:
        if len(trials) == 1:
            return [_Failed(one_line(error))]
    return [fitted for trial in trials for fitted in _fit(method, train, [trial], trainer)]


def _check_sendable(predictors: list[Any]) -> None:
    import cloudpickle

    try:
        cloudpickle.loads(cloudpickle.dumps(predictors))
    except Exception as error:
        raise TrainingFailed(f"the predictor cannot be sent between machines: {one_line(error)}") from None
