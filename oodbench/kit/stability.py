"""Distributional stability of a fitted model (Liu et al. 2024): how much Y given its prediction changes between rows.

`distributional_stability` looks at the sub-populations of one environment, `ood_stability` at another environment.

phi is what the model gives for a row: its prediction for regression; for classification its outputs where it can give
them, otherwise the predicted class. (The paper's phi is the last hidden layer. With the prediction the measure is a
property of the fitted model, whatever is inside; it exists for any predictor, and says something of linear ones.)
Y given phi is Gaussian around a linear function of phi, or a multinomial logistic regression on it; the divergence
of two such mechanisms is KL, in nats. Recoding phi by an invertible affine map changes nothing.

Always defined and finite: a noise scale is at least 1 % of that of all rows and 0.1 % of the spread of y; logistic
coefficients are drawn a very little towards those of all rows; a sub-population has at least 10 rows, or half of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.engine.data import Environment
from oodbench.engine.predictor import GivesOutputs, Predictor
from oodbench.errors import InvalidSetting, TrainingFailed

if TYPE_CHECKING:
    from oodbench.kit.likelihood import Mechanisms

ALPHA0 = 0.1
STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # of shares, within a decade
LEAST_ROWS = 10
RANK_TOLERANCE = 1e-6  # of the largest spread: directions with less are rounding

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Subpopulation:
    """A part of an environment's rows whose mechanism differs from that of all of them."""

    divergence: float
    share: float
    inside: Array  # [row], a sub-population: weights on the simplex

    @property
    def outside(self) -> Array:
        """The rest: all rows = share x inside + (1 - share) x outside."""
        rest = np.clip(1 / len(self.inside) - self.share * self.inside, 0, None)
        weights: Array = rest / rest.sum()
        return weights


@dataclass(frozen=True)
class Difference:
    """A column inside and outside: means, or shares of ones; their difference in standard deviations of all rows."""

    column: str
    kind: str  # mean or share
    inside: float
    outside: float
    difference: float


@dataclass(frozen=True)
class Description:
    """A sub-population in the columns' own terms."""

    divergence: float
    share: float
    rows: float
    error_inside: float
    error_outside: float
    y: list[Difference]
    columns: list[Difference]  # those that differ most first


def distributional_stability(predictor: Predictor, environment: Environment, alpha0: float = ALPHA0) -> float:
    """DS: the largest KL(Q(Y | phi) || P(Y | phi)) over sub-populations Q of share alpha0 or more.

    Lower is more stable. Not negative, and no larger for a larger alpha0: it is the maximum over the shares of a
    fixed grid from alpha0, rounded up to the grid, to 1/2. What the search finds is a lower bound of the supremum.

    A sub-population may be chosen by its noise, so that even the true model is not at zero, and is further from it on
    fewer rows: `exact_stability` tells by how much. Compare models on the same rows, rather than one with zero, and do
    not compare environments of different size.

    Args:
        predictor: Anything with `predict`; a classifier's `outputs` are used where it has them.
        environment: The rows. Float y is regression, whole y classes.
        alpha0: The smallest share of the rows that a sub-population may be, in (0, 0.5].

    Examples:
        >>> distributional_stability(model, Environment("mine", x, y), alpha0=0.1)
    """
    return worst_subpopulation(predictor, environment, alpha0).divergence


def exact_stability(predictor: Predictor, environment: Environment, alpha0: float = ALPHA0) -> float:
    """The distributional stability on so many rows of a model that is exact: what noise alone brings.

    The predictions are the same, and y is drawn anew from P(Y | phi), the mechanism of all rows. Arguments are those of
    `distributional_stability`.

    Examples:
        >>> distributional_stability(model, rows) - exact_stability(model, rows)
    """
    shares = shares_from(alpha0, len(environment))
    with _one_thread():
        mechanisms = _pooled_mechanisms(predictor, environment).drawn_anew()
        _, divergences = mechanisms.furthest(mechanisms.phi.new_tensor(shares))
        return float(divergences.max())


def worst_subpopulation(predictor: Predictor, environment: Environment, alpha0: float = ALPHA0) -> Subpopulation:
    """The sub-population at which the distributional stability is attained; arguments are the same.

    Examples:
        >>> worst_subpopulation(model, rows).share
    """
    shares = shares_from(alpha0, len(environment))
    with _one_thread():
        mechanisms = _pooled_mechanisms(predictor, environment)
        weights, divergences = mechanisms.furthest(mechanisms.phi.new_tensor(shares))
        best = int(divergences.argmax())
        share = max(shares[best], 1 / len(environment))
        return Subpopulation(float(divergences[best]), share, weights[best].numpy())


def ood_stability(predictor: Predictor, train: Environment, test: Environment) -> float:
    """ODS: KL(P_test(Y | phi) || P_train(Y | phi)), with the mechanisms of the two environments.

    Examples:
        >>> ood_stability(model, train=Environment("MA", x, y), test=Environment("NY", other_x, other_y))
    """
    with _one_thread():
        both = Environment("both", np.concatenate([train.x, test.x]), np.concatenate([train.y, test.y]))
        of_train = np.concatenate([np.full(len(train), 1 / len(train)), np.zeros(len(test))])
        of_test = np.concatenate([np.zeros(len(train)), np.full(len(test), 1 / len(test))])
        mechanisms = _mechanisms(represent(predictor, both), both.y, of_train)
        return float(mechanisms.divergence(mechanisms.phi.new_tensor(of_test).unsqueeze(0)))


def describe(
    predictor: Predictor, environment: Environment, part: Subpopulation, columns: Sequence[str] | None = None
) -> Description:
    """The sub-population against the rest: rows, errors, y and columns.

    Examples:
        >>> describe(model, rows, worst_subpopulation(model, rows), ["age", "income"]).columns[0]
    """
    names = columns if columns is not None else [f"x{index + 1}" for index in range(environment.x.shape[1])]
    predicted = np.asarray(predictor.predict(environment.x))
    if environment.y.dtype.kind == "f":
        errors = np.square(predicted - environment.y)
        y = [_difference("y", environment.y, part)]
    else:
        errors = (predicted != environment.y).astype(np.float64)
        y = [_difference(f"y={label}", environment.y == label, part) for label in np.unique(environment.y)]
    differences = [_difference(name, column, part) for name, column in zip(names, environment.x.T, strict=True)]
    return Description(
        divergence=part.divergence,
        share=part.share,
        rows=part.share * len(environment),
        error_inside=float(part.inside @ errors),
        error_outside=float(part.outside @ errors),
        y=y,
        columns=sorted(differences, key=lambda column: -abs(column.difference)),
    )


def shares_from(alpha0: float, rows: int) -> list[float]:
    """The grid's shares from alpha0 to 1/2 that have enough rows; 1/2 always."""
    if not 0 < alpha0 <= 0.5:
        raise InvalidSetting(f"alpha0={alpha0:g} cannot be the share of a sub-population.\nIt must be in (0, 0.5].")
    decades = range(int(np.floor(np.log10(alpha0))), 0)
    grid = [float(f"{step:g}e{decade}") for decade in decades for step in STEPS]
    return [share for share in grid if alpha0 <= share < 0.5 and share * rows >= LEAST_ROWS] + [0.5]


def represent(predictor: Predictor, environment: Environment) -> Array:
    """phi, what the model gives for each row: [row, unit]."""
    try:
        if environment.y.dtype.kind == "f":
            said = np.asarray(predictor.predict(environment.x))[:, None]
        elif isinstance(predictor, GivesOutputs):
            said = np.asarray(predictor.outputs(environment.x))
        else:
            predicted = np.asarray(predictor.predict(environment.x))
            said = predicted[:, None] == np.unique(predicted)
        phi = said.astype(np.float64)
    except Exception as error:  # a predictor is anybody's code
        raise TrainingFailed(f"the model cannot predict these rows: {type(error).__name__}: {error}") from error
    if phi.ndim != 2 or len(phi) != len(environment) or not np.isfinite(phi).all():
        raise TrainingFailed(f"the model's outputs must be finite numbers [row, class]; their shape is {phi.shape}")
    return phi


def _pooled_mechanisms(predictor: Predictor, environment: Environment) -> Mechanisms:
    """Those of the rows of one environment; the reference is the mechanism of all of them."""
    reference = np.full(len(environment), 1 / len(environment))
    return _mechanisms(represent(predictor, environment), environment.y, reference)


def _mechanisms(phi: Array, y: NDArray[Any], reference: Array) -> Mechanisms:
    from torch import from_numpy

    from oodbench.kit.likelihood import Mechanisms

    if y.dtype.kind == "f":
        y = (y - y.mean()) / (y.std() or 1)
    classes = 1 if y.dtype.kind == "f" else max(2, int(y.max()) + 1)
    return Mechanisms(from_numpy(_white(phi)), from_numpy(np.array(y)), classes, from_numpy(reference))


def _white(phi: Array) -> Array:
    """phi as uncorrelated units of mean 0 and variance 1 [unit, row], without directions in which it does not vary."""
    centred = phi - phi.mean(0)
    scale = np.abs(phi).max(0) + np.finfo(float).tiny
    centred[:, np.abs(centred).max(0) < RANK_TOLERANCE * scale] = 0
    directions, spreads, _ = np.linalg.svd(centred / (centred.std(0) + np.finfo(float).tiny), full_matrices=False)
    kept = spreads > RANK_TOLERANCE * max(spreads[0], np.finfo(float).tiny)
    white: Array = np.ascontiguousarray(directions[:, kept].T) * np.sqrt(len(phi))
    return white


def _difference(name: str, column: NDArray[Any], part: Subpopulation) -> Difference:
    values = column.astype(np.float64)
    inside, outside, spread = float(part.inside @ values), float(part.outside @ values), float(values.std())
    kind = "share" if np.isin(values, (0, 1)).all() else "mean"
    return Difference(name, kind, inside, outside, (inside - outside) / spread if spread > 0 else 0.0)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Several threads gain nothing at this size, and make the last bits depend on their number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
