"""What a search worker does with a pack: fit, score on validation, and say what failed. It never sees test data."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oodbench.engine.checkpoint import Checkpoint
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
    from oodbench.engine.keeping import Keeper
    from oodbench.engine.trainer import Trainer


def run_pack(
    method: Method,
    pack: Pack,
    data: Mapping[int, SearchData],
    setup: Setup,
    start: Checkpoint | None = None,
    stop: int | None = None,
    keeper: Keeper | None = None,
) -> PackResult:
    """Train and score a pack. Its trainings go on from `start` and pause after `stop` steps. A `keeper` keeps them from
    time to time, and they go on from what it finds."""
    from oodbench.engine.trainer import Trainer  # imports torch, which the driver need not wait for

    started = time.perf_counter()
    train = {seed: seed_data.train for seed, seed_data in data.items()}
    trainer = Trainer(setup, start, stop, keeper)
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
        checkpoint=trainer.paused,
    )
    result.gradient_steps, result.row_visits = trainer.gradient_steps, trainer.row_visits
    result.seconds = time.perf_counter() - started
    return result


class ConfigurationTraining:
    """One configuration on all seeds, in as many packs as that takes."""

    def __init__(self, method: Method, pack: Pack, data: Mapping[int, SearchData], setup: Setup) -> None:
        self.method, self.pack, self.data, self.setup = method, pack, data, setup
        self.parts = divide(pack.study_id, pack.trials, self._alike, self._capacity, self._most_seeds)
        self._paused: list[Checkpoint | None] = [None] * len(self.parts)

    def train_to(self, steps: int) -> PackResult:
        """Go on to so many steps; a method that cannot pause begins anew."""
        setup, stop = self.setup, None
        if steps < setup.recipe.steps:
            if self.method.pauses:
                stop = steps
            else:
                setup = replace(setup, recipe=replace(setup.recipe, steps=steps))
        places = {trial.seed: position for position, trial in enumerate(self.pack.trials)}
        results = []
        for number, part in enumerate(self.parts):
            data = {seed: self.data[seed] for seed in part.seeds}
            result = run_pack(self.method, part, data, setup, self._paused[number], stop)
            self._paused[number] = result.checkpoint
            results.append(([places[trial.seed] for trial in part.trials], replace(result, checkpoint=None)))
        return PackResult.joined(results)

    def _alike(self, trial: Trial) -> tuple[int, ...]:
        return self.data[trial.seed].train.x.shape

    def _capacity(self, trial: Trial) -> int:
        train, recipe = self.data[trial.seed].train, self.setup.recipe
        outputs = recipe.outputs(train.task == "classification", train.classes)
        return self.method.pack_capacity(len(train), outputs, self.setup)

    def _most_seeds(self, trial: Trial) -> int:
        return seeds_that_fit(self.setup, *self.data[trial.seed].train.x.shape)


def run_configuration(method: Method, pack: Pack, data: Mapping[int, SearchData], setup: Setup) -> PackResult:
    """One configuration on all seeds, trained to its end."""
    return ConfigurationTraining(method, pack, data, setup).train_to(setup.recipe.steps)


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
    """Predictors of the trials. Where the pack as a whole raises, its halves are tried, and theirs: there is a trial
    that cannot be trained, or all of them are more than the memory of a GPU holds.

    The method gets rows and hyper-parameters of its own, unless it can share rows: other workers and other trials have
    the originals.
    """
    rows = train if method.shares_rows else {seed: shared.copy() for seed, shared in train.items()}
    own = [replace(trial, hparams=dict(trial.hparams)) for trial in trials]
    paused = trainer.paused
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
        trainer.paused = paused
        if len(trials) == 1:
            return [_Failed(one_line(error))]
    middle = len(trials) // 2
    return [fitted for half in (trials[:middle], trials[middle:]) for fitted in _fit(method, train, half, trainer)]


def _check_sendable(predictors: list[Any]) -> None:
    import cloudpickle

    try:
        cloudpickle.loads(cloudpickle.dumps(predictors))
    except Exception as error:
        raise TrainingFailed(f"the predictor cannot be sent between machines: {one_line(error)}") from None
