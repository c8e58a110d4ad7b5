"""How good predictions are in one environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import TrainingFailed

if TYPE_CHECKING:
    from oodbench.engine.data import Environment, Task
    from oodbench.engine.fitted import FittedModel
    from oodbench.engine.predictor import Predictor

SCORES = {"error": "lower", "accuracy": "higher", "f1": "higher"}
"""What every configuration is scored by, and what of it is better; `metric.py` has what the chosen one gets besides."""

LARGEST = 1e30  # models compute in single precision, which ends at 3e38

Tally = dict[str, NDArray[Any]]
"""Sums over rows that scores are made of, each row as often as its weight says: rows, loss, and squares (regression)
or, of every class, how many rows are right, predicted and actual. With a leading axis for models where there are
several."""


def score(predictor: Predictor, environment: Environment, task: Task, classes: int) -> dict[str, float]:
    """Loss and error of a predictor; accuracy and F1 too for classification. The error is the MSE or 1 - accuracy."""
    (scores,) = score_together([predictor], environment, task, classes)
    if isinstance(scores, BaseException):
        raise scores
    return scores


def score_together(
    predictors: Sequence[Predictor], environment: Environment, task: Task, classes: int, threads: int = 1
) -> list[dict[str, float] | BaseException]:
    """The scores of every predictor, or why it has none. Trained models of one shape pass over the rows together."""
    from oodbench.engine.fitted import FittedModel

    scores: dict[int, dict[str, float] | BaseException] = {}
    alike: dict[Any, dict[int, FittedModel]] = {}
    for position, predictor in enumerate(predictors):
        if isinstance(predictor, FittedModel):
            shape = (predictor.model, predictor.width, predictor.classification, predictor.recipe.loss)
            alike.setdefault(shape, {})[position] = predictor
        else:
            ask = partial(_tally_any, predictor, environment, task, classes)
            scores[position] = _scores_or_fault(ask, environment)
    for group in alike.values():
        tally = _tally_together(list(group.values()), environment, task, classes, threads)
        for number, position in enumerate(group):
            scores[position] = _scores_or_fault(partial(_pick, tally, number), environment)
    return [scores[position] for position in range(len(predictors))]


def f1(y: NDArray[Any], predicted: NDArray[Any], classes: int) -> float:
    """F1 of class 1 for two classes, the mean of the classes' F1 for more. 0 where a class is never right."""
    return _f1(_count(y, predicted, classes, None))


def _tally_any(predictor: Predictor, environment: Environment, task: Task, classes: int) -> Tally:
    """Of any predictor, its answers checked. It is asked about rows of its own: whatever it does to them, the next one
    is asked about the originals."""
    from oodbench.engine.asking import ask

    predicted, rows = np.asarray(ask(predictor, "predict", environment.x)), len(environment)
    if predicted.shape != environment.y.shape:
        raise TrainingFailed(f"predict returned shape {predicted.shape} for {rows} rows; it must be ({rows},)")
    if predicted.dtype.kind not in "iufb":
        raise TrainingFailed(f"predict returned values of type {predicted.dtype}, which are not real numbers")
    if not np.isfinite(predicted).all():
        raise TrainingFailed(f"predict returned values that are not finite numbers: {_cause(environment)}")
    if task == "classification":
        odd = predicted[(predicted < 0) | (predicted >= classes) | (predicted != np.floor(predicted))]
        if len(odd):
            raise TrainingFailed(f"predict returned {odd[0]}, which is not a class from 0 to {classes - 1}")
    losses = getattr(predictor, "losses", None)
    own = losses and np.asarray(ask(predictor, "losses", environment.x, environment.y))
    return _tally(predicted, own, environment.y, environment.weights, task, classes)


def _tally_together(
    models: Sequence[FittedModel], environment: Environment, task: Task, classes: int, threads: int
) -> Tally:
    """Of trained models of one shape, chunk by chunk of the rows, so that nothing large is ever written."""
    from oodbench.engine.fitted import over_chunks

    def tally(outputs: NDArray[np.float32], rows: slice) -> Tally:
        y, weights = environment.y[rows], None if environment.weights is None else environment.weights[rows]
        return _tally(models[0].predict_from(outputs), models[0].losses_from(outputs, y), y, weights, task, classes)

    with np.errstate(over="ignore", invalid="ignore"):  # found by _scores
        chunks = over_chunks(models, environment.x, tally, threads)
    return {name: np.sum([chunk[name] for chunk in chunks], axis=0) for name in chunks[0]}


def _tally(
    predicted: NDArray[Any],
    losses: NDArray[np.float64] | None,
    y: NDArray[Any],
    weights: NDArray[np.float64] | None,
    task: Task,
    classes: int,
) -> Tally:
    """Of predictions and losses [..., row]; without losses, the error is the loss."""
    if task == "regression":
        with np.errstate(over="ignore"):  # found by _scores
            squares = _sum(np.square(predicted - y), weights)
        sums, error = {"squares": squares}, squares
        rows = len(y) if weights is None else weights.sum()
    else:
        sums = _count(y, predicted, classes, weights)
        rows = len(y) if weights is None else sums["actual"].sum(-1)  # added up alike: all right is exactly 1
        error = rows - sums["right"].sum(-1)
    loss = np.asarray(error if losses is None else _sum(losses, weights), np.float64)
    return sums | {"loss": loss, "rows": np.broadcast_to(rows, loss.shape)}


def _sum(values: NDArray[Any], weights: NDArray[np.float64] | None) -> NDArray[Any]:
    """Over rows: [..., row] -> [...]."""
    total: NDArray[Any] = np.asarray((values if weights is None else values * weights).sum(-1))
    return total


def _count(y: NDArray[Any], predicted: NDArray[Any], classes: int, weights: NDArray[np.float64] | None) -> Tally:
    """How many rows, or how much weight, are right, predicted and actual, of every class. [..., class]"""
    said = [predicted == label for label in range(classes)]
    true = [y == label for label in range(classes)]
    right = np.stack([_size(guess & truth, weights) for guess, truth in zip(said, true, strict=True)], -1)
    return {
        "right": right,
        "predicted": np.stack([_size(guess, weights) for guess in said], -1),
        "actual": np.broadcast_to([_size(truth, weights) for truth in true], right.shape),
    }


def _size(chosen: NDArray[np.bool_], weights: NDArray[np.float64] | None) -> NDArray[Any]:
    return np.asarray(np.count_nonzero(chosen, axis=-1) if weights is None else _sum(chosen, weights))


def _pick(tally: Tally, model: int) -> Tally:
    return {name: sums[model] for name, sums in tally.items()}


def _scores_or_fault(ask: Callable[[], Tally], environment: Environment) -> dict[str, float] | BaseException:
    try:
        return _scores(ask(), environment)
    except (Exception, SystemExit) as error:  # one predictor's fault is not the others'
        return error


def _scores(tally: Tally, environment: Environment) -> dict[str, float]:
    rows = tally["rows"]
    if "squares" in tally:
        scores = {"error": float(tally["squares"] / rows)}
    else:
        accuracy = float(tally["right"].sum() / rows)
        scores = {"error": 1 - accuracy, "accuracy": accuracy, "f1": _f1(tally)}
    scores["loss"] = float(tally["loss"] / rows)
    if not np.isfinite([scores["error"], scores["loss"]]).all():
        raise TrainingFailed(f"the loss is not finite: {_cause(environment)}")
    return scores


def _cause(environment: Environment) -> str:
    """Why numbers are not finite: a row that nothing can be computed with, or else the model."""
    for values in (environment.x, environment.y[:, None]):
        rows, columns = np.nonzero(np.abs(values) > LARGEST)
        if len(rows):
            value = values[rows[0], columns[0]]
            return f"row {rows[0] + 1} of environment {environment.name!r} has {value:g}, too large to compute with"
    return "the training diverged"


def _f1(counts: Mapping[str, NDArray[Any]]) -> float:
    concerned = counts["predicted"] + counts["actual"]
    scores = 2 * counts["right"] / np.where(concerned > 0, concerned, 1)
    return float(scores[1] if len(scores) == 2 else scores.mean())
