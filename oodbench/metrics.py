"""How good predictions are: per environment, and over the environments of one seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import TrainingFailed

if TYPE_CHECKING:
    import pandas as pd

    from oodbench.dataset import Environment, Task
    from oodbench.method import Predictor

SUMMARY = {
    "regression": ("mean_error", "std_error", "max_error"),
    "classification": ("mean_error", "std_error", "max_error", "mean_accuracy", "mean_f1", "worst_f1"),
}
BESIDES: dict[str, tuple[str, ...]] = {"regression": (), "classification": ("train_accuracy",)}
"""What `summarize` gives too, shown where it is asked for."""
STABILITY = ("validation_stability", "test_stability", "max_test_stability", "ods", "max_ods")
HIGHER_IS_BETTER = frozenset({"mean_accuracy", "train_accuracy", "mean_f1", "worst_f1"})


def score(predictor: Predictor, environment: Environment, task: Task, classes: int) -> dict[str, float]:
    """Loss and error of a predictor; accuracy and F1 too for classification. The error is the MSE or 1 - accuracy."""
    (found,) = score_together([predictor], environment, task, classes)
    if isinstance(found, BaseException):
        raise found
    return found


def score_together(
    predictors: Sequence[Predictor], environment: Environment, task: Task, classes: int
) -> list[dict[str, float] | BaseException]:
    """The scores of every predictor, or why it has none. Trained models of one shape pass over the rows together."""
    from oodbench.fitted import FittedModel, forward_together

    found: dict[int, dict[str, float] | BaseException] = {}

    def note(position: int, ask: Callable[[], tuple[NDArray[Any], NDArray[np.float64] | None]]) -> None:
        try:
            found[position] = _values(*ask(), environment, task, classes)
        except (Exception, SystemExit) as error:  # one predictor's fault is not the others'
            found[position] = error

    alike: dict[Any, list[tuple[int, FittedModel]]] = {}
    for position, predictor in enumerate(predictors):
        if isinstance(predictor, FittedModel):
            alike.setdefault((predictor.model, predictor.width), []).append((position, predictor))
        else:
            note(position, partial(_ask, predictor, environment))
    for group in alike.values():
        outputs = forward_together([model for _, model in group], environment.x)
        for (position, model), said in zip(group, outputs, strict=True):
            note(position, partial(model.answers, said, environment.y))
    return [found[position] for position in range(len(predictors))]


def _ask(predictor: Predictor, environment: Environment) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Its answers about rows of its own: whatever it does to them, the next predictor is asked about the originals."""
    losses = getattr(predictor, "losses", None)
    predicted = np.asarray(predictor.predict(_copy(environment.x)))
    return predicted, losses and np.asarray(losses(_copy(environment.x), _copy(environment.y)))


def _copy(array: NDArray[Any]) -> NDArray[Any]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _values(
    predicted: NDArray[Any], losses: NDArray[np.float64] | None, environment: Environment, task: Task, classes: int
) -> dict[str, float]:
    if predicted.shape != environment.y.shape:
        raise TrainingFailed(
            f"predict returned shape {predicted.shape} for {len(environment)} rows; it must be ({len(environment)},)"
        )
    if predicted.dtype.kind not in "iufb":
        raise TrainingFailed(f"predict returned values of type {predicted.dtype}, which are not real numbers")
    if not np.isfinite(predicted).all():
        raise TrainingFailed("predict returned values that are not finite numbers: the training diverged")
    if task == "regression":
        with np.errstate(over="ignore"):  # found below
            values = {"error": float(np.mean((predicted - environment.y) ** 2))}
    else:
        odd = predicted[(predicted < 0) | (predicted >= classes) | (predicted != np.floor(predicted))]
        if len(odd):
            raise TrainingFailed(f"predict returned {odd[0]}, which is no class from 0 to {classes - 1}")
        accuracy = float(np.mean(predicted == environment.y))
        values = {"error": 1 - accuracy, "accuracy": accuracy, "f1": f1(environment.y, predicted, classes)}
    values["loss"] = values["error"] if losses is None else float(np.mean(losses))
    if not (np.isfinite(values["loss"]) and np.isfinite(values["error"])):
        raise TrainingFailed("the loss is not finite: the training diverged")
    return values


def f1(y: NDArray[Any], predicted: NDArray[Any], classes: int) -> float:
    """F1 of class 1 for two classes, the mean of the classes' F1 for more. 0 where a class is never right."""
    right = np.array([np.sum((y == label) & (predicted == label)) for label in range(classes)])
    total = np.array([np.sum(y == label) + np.sum(predicted == label) for label in range(classes)])
    scores = 2 * right / np.maximum(total, 1)
    return float(scores[1] if classes == 2 else scores.mean())


def summarize(results: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Per seed, of the chosen configuration: mean, std (ddof 1) and max error, mean and worst F1 over the test
    environments, and the accuracy in training.

    The std over a single environment is not a number, and is left so.
    """
    import pandas as pd

    results = results[results["chosen"]]
    test = results[results["part"] == "test"].groupby("seed")
    summary = pd.DataFrame(
        {
            "mean_error": test["error"].mean(),
            "std_error": test["error"].std(ddof=1),
            "max_error": test["error"].max(),
        }
    )
    if task == "classification":
        summary["mean_accuracy"] = test["accuracy"].mean()
        summary["mean_f1"] = test["f1"].mean()
        summary["worst_f1"] = test["f1"].min()
        train = results[results["part"] == "train"]
        right = (train["accuracy"] * train["rows"]).groupby(train["seed"]).sum()
        summary["train_accuracy"] = right / train.groupby("seed")["rows"].sum()
    return summary


def summarize_stability(results: pd.DataFrame) -> pd.DataFrame:
    """Per seed, of the chosen configuration: distributional stability on the pooled validation rows, its mean and
    maximum over the test environments, and the same of the divergence of test from training (ODS).

    A study from before these were measured has no numbers.
    """
    import pandas as pd

    results = results[results["chosen"]]
    results = results.reindex(columns=results.columns.union(["stability", "ods"]))
    test = results[results["part"] == "test"].groupby("seed")
    return pd.DataFrame(
        {
            "validation_stability": results[results["part"] == "pooled"].groupby("seed")["stability"].mean(),
            "test_stability": test["stability"].mean(),
            "max_test_stability": test["stability"].max(),
            "ods": test["ods"].mean(),
            "max_ods": test["ods"].max(),
        },
        index=results["seed"].unique(),
    )
