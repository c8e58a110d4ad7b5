"""Methods that compare environments: their losses against formulas in numpy, and what goes wrong elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from oodbench import Linear, LossMethod, Method, Mlp, Recipe, TrainingRows, check_method
from oodbench.engine.fitted import FittedModel
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench.errors import InvalidSetting
from oodbench.kit import balanced_draw, balanced_weights, mean_kernels, row_groups
from oodbench_methods.anchor import Anchor
from oodbench_methods.coral import CORAL
from oodbench_methods.eqrm import EQRM
from oodbench_methods.erm import ERM
from oodbench_methods.group_dro import GroupDRO
from oodbench_methods.ib_erm import IBERM
from oodbench_methods.ib_irm import IBIRM
from oodbench_methods.iga import IGA
from oodbench_methods.irm import IRM
from oodbench_methods.mmd import MMD
from oodbench_methods.rdm import RDM
from oodbench_methods.reweight import Reweight
from oodbench_methods.subsample import Subsample
from oodbench_methods.vrex import VREx
from step import step_of

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
COMPARING = (GroupDRO, VREx, IRM, IGA, IBERM, IBIRM, CORAL, MMD, EQRM, RDM, Anchor)


@pytest.mark.parametrize("method", [*COMPARING, Reweight, Subsample], ids=lambda method: method.__name__)
def test_conforms(method: type[Method]) -> None:
    check_method(method)


# ---- formulas of a linear model without a constant, its parameters w; x, y and environments e


def parts(x: Array, y: Array, e: Labels) -> list[tuple[Array, Array]]:
    return [(x[e == k], y[e == k]) for k in np.unique(e)]


def risks(w: Array, x: Array, y: Array, e: Labels) -> Array:
    return np.array([np.mean((a @ w - b) ** 2) for a, b in parts(x, y, e)])


def group_dro(w: Array, x: Array, y: Array, e: Labels, q: Array | None = None) -> float:
    """q comes from the risks, and does not take part in the derivative."""
    of = risks(w, x, y, e)
    raised = np.exp(0.5 * of) if q is None else q
    return float(raised / raised.sum() @ of)


def vrex(w: Array, x: Array, y: Array, e: Labels) -> float:
    return float(risks(w, x, y, e).mean() + 7 * risks(w, x, y, e).var())


def slopes(w: Array, x: Array, y: Array, e: Labels) -> Array:
    return np.array([np.mean(2 * (a @ w - b) * (a @ w)) for a, b in parts(x, y, e)])


def irm(w: Array, x: Array, y: Array, e: Labels) -> float:
    return float(risks(w, x, y, e).mean() + 7 * np.mean(slopes(w, x, y, e) ** 2))


def irm_pooled(w: Array, x: Array, y: Array, e: Labels) -> float:
    return float(np.mean((x @ w - y) ** 2) + 7 * np.mean(slopes(w, x, y, e) ** 2))


def iga(w: Array, x: Array, y: Array, e: Labels) -> float:
    gradients = np.array([2 * a.T @ (a @ w - b) / len(b) for a, b in parts(x, y, e)])
    return float(risks(w, x, y, e).mean() + 7 * np.square(gradients - gradients.mean(0)).sum())


def ib_erm(w: Array, x: Array, y: Array, e: Labels) -> float:
    return float(risks(w, x, y, e).mean() + 3 * np.mean([np.var(a @ w, ddof=1) for a, _ in parts(x, y, e)]))


def ib_irm(w: Array, x: Array, y: Array, e: Labels) -> float:
    return ib_erm(w, x, y, e) + irm(w, x, y, e) - float(risks(w, x, y, e).mean())


def coral(w: Array, x: Array, y: Array, e: Labels) -> float:
    of = [(np.mean(a @ w), np.var(a @ w, ddof=1)) for a, _ in parts(x, y, e)]
    gaps = [(p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 for p, q in itertools.combinations(of, 2)]
    return float(risks(w, x, y, e).mean() + 7 * np.mean(gaps))


def discrepancy(p: Array, q: Array, lowest: int) -> float:
    def mean_kernel(a: Array, b: Array) -> float:
        return float(sum(np.exp(-(10.0**k) * (a[:, None] - b) ** 2).mean() for k in range(lowest, 4)))

    return mean_kernel(p, p) + mean_kernel(q, q) - 2 * mean_kernel(p, q)


def mmd(w: Array, x: Array, y: Array, e: Labels) -> float:
    of = [a @ w for a, _ in parts(x, y, e)]
    gaps = [discrepancy(p, q, -3) for p, q in itertools.combinations(of, 2)]
    return float(risks(w, x, y, e).mean() + 7 * np.mean(gaps))


def eqrm(w: Array, x: Array, y: Array, e: Labels) -> float:
    of = risks(w, x, y, e)
    width = 1.06 * of.std(ddof=1) * len(of) ** -0.2
    return float(brentq(lambda t: norm.cdf((t - of) / width).mean() - 0.9, of.min() - 9 * width, of.max() + 9 * width))


def rdm(w: Array, x: Array, y: Array, e: Labels) -> float:
    of = [(a @ w - b) ** 2 for a, b in parts(x, y, e)]  # environments of one size, as in the authors' batches
    worst, everyone = max(of, key=np.mean), np.concatenate(of)
    spread = np.var(worst, ddof=1) + np.var(everyone, ddof=1)
    return float(risks(w, x, y, e).mean() + 7 * discrepancy(worst, everyone, -4) + 3 * spread)


def anchor(w: Array, x: Array, y: Array, e: Labels) -> float:
    """|r|^2 + (gamma - 1) |P r|^2 with the projection on the environments' indicators."""
    r, a = x @ w - y, (e[:, None] == np.unique(e)).astype(float)
    projected = a @ np.linalg.solve(a.T @ a, a.T @ r)
    return float((r @ r + 6 * projected @ projected) / len(r))


PLAIN: dict[Any, tuple[Callable[..., float], dict[str, Any]]] = {
    VREx: (vrex, {"penalty": 7.0}),
    IRM: (irm, {"penalty": 7.0}),
    IGA: (iga, {"penalty": 7.0}),
    IBERM: (ib_erm, {"bottleneck": 3.0}),
    IBIRM: (ib_irm, {"bottleneck": 3.0, "penalty": 7.0}),
    CORAL: (coral, {"penalty": 7.0}),
    MMD: (mmd, {"penalty": 7.0}),
    EQRM: (eqrm, {"alpha": 0.9, "burn_in": 0}),
    RDM: (rdm, {"penalty": 7.0, "variance": 3.0}),
    Anchor: (anchor, {"gamma": 7.0}),
}


def problem(seed: int, equal: bool = False) -> tuple[Array, Array, Labels, Array]:
    """Rows of three environments and the parameters of a model; in single precision, as the engine takes them."""
    rng = np.random.default_rng(seed)
    e = np.repeat([0, 1, 2], [12, 12, 12] if equal else [8, 17, 11])
    x = rng.normal(size=(36, 3)).astype(np.float32).astype(float)
    y = (x @ [1, -1, 0.5] + (1 + e) * rng.normal(size=36)).astype(np.float32).astype(float)
    return x, y, e, rng.normal(size=3)


def assert_descends(method: LossMethod, formula: Callable[..., float], hparams: dict[str, Any], seed: int) -> None:
    x, y, e, w = problem(seed, equal=isinstance(method, RDM))
    train = TrainingRows(x, y, "regression", 2, e)
    step = step_of(method, train, {"anneal": 0, **hparams}, parameters=[w])
    assert step.loss().item() == pytest.approx(formula(w, x, y, e), rel=1e-6)
    gradient = step.direction()[0].detach().numpy()
    numeric = [(formula(w + small, x, y, e) - formula(w - small, x, y, e)) / 2e-5 for small in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5 * np.abs(numeric).max())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", PLAIN, ids=lambda method: method.__name__)
def test_loss_and_gradient_are_those_of_the_formula(method: type[LossMethod], seed: int) -> None:
    formula, hparams = PLAIN[method]
    assert_descends(method(), formula, hparams, seed)


def test_the_pooled_form_of_irm_is_a_preset() -> None:
    assert IRM().search_space()["risk"].default == "averaged"
    assert_descends(IRM(), irm_pooled, {"penalty": 7.0, **IRM.presets["pooled"].fix}, 0)


@pytest.mark.parametrize(("method", "before"), [(IRM, 1.0), (VREx, 1.0), (IBERM, 0.0), (RDM, 0.0)])
def test_before_annealing(method: type[LossMethod], before: float) -> None:
    x, y, e, w = problem(0)
    train = TrainingRows(x, y, "regression", 2, e)
    name = "bottleneck" if method is IBERM else "penalty"
    other = {"variance": 0.0} if method is RDM else {}
    early, weighed = (
        step_of(method(), train, {name: penalty, "anneal": anneal, **other}, parameters=[w], step=99).loss().item()
        for penalty, anneal in ((50.0, 100), (before, 99))
    )
    assert early == pytest.approx(weighed, rel=1e-9)
    late = step_of(method(), train, {name: 50.0, "anneal": 100, **other}, parameters=[w], step=100).loss().item()
    assert late > early + 1e-3


# ---- what goes wrong elsewhere


def test_group_dro_keeps_q_from_step_to_step() -> None:
    x, y, e, w = problem(1)
    step = step_of(GroupDRO(), TrainingRows(x, y, "regression", 2, e), {"rate": 0.5}, parameters=[w])
    assert step.loss().item() == pytest.approx(group_dro(w, x, y, e))
    q = np.exp(0.5 * 2 * risks(w, x, y, e))
    assert step.loss().item() == pytest.approx(group_dro(w, x, y, e, q))  # the second step
    gradient = step.direction()[0].detach().numpy()
    q = np.exp(0.5 * 3 * risks(w, x, y, e))
    numeric = [
        (group_dro(w + small, x, y, e, q) - group_dro(w - small, x, y, e, q)) / 2e-5 for small in 1e-5 * np.eye(3)
    ]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5)


def test_irms_penalty_of_a_batch_is_the_mean_over_all_halves() -> None:
    """The square of the batch's slope would be too large by its variance."""
    x, y, e, w = problem(2)
    train = TrainingRows(x, y, "regression", 2, e)
    pooled = {"risk": "pooled", "anneal": 0}
    step = step_of(IRM(), train, {"penalty": 1.0, **pooled}, parameters=[w], recipe=Recipe(batch=18))
    rows = step.rows
    penalty = (step.loss() - rows.risk()).item()
    of_rows = rows.recipe.row_slopes(rows.outputs, rows.y)[0].detach().numpy()
    environment = rows.environment[0].numpy()
    expected = []
    for k in range(3):
        own = of_rows[environment == k]
        own = own[: len(own) // 2 * 2]
        halves = [
            own[list(half)].mean() * np.delete(own, half).mean()
            for half in itertools.combinations(range(len(own)), len(own) // 2)
        ]
        pairs = [a * b for a, b in itertools.permutations(of_rows[environment == k], 2)]
        if len(own) == np.sum(environment == k):
            assert np.mean(halves) == pytest.approx(np.mean(pairs))
        expected.append(np.mean(pairs))
    assert penalty == pytest.approx(np.mean(expected))


def test_the_kernels_of_a_sample_compare_different_rows() -> None:
    """With each row and itself, a small environment would seem far from all others."""
    x, y, e, w = problem(2)
    step = step_of(MMD(), TrainingRows(x, y, "regression", 2, e), {"sample": 20}, parameters=[w])
    few = step.rows.sample(20)
    means = mean_kernels(few.learned, few, (0.1, 10.0))[0].detach().numpy()
    values, environment = few.learned[0, 0].detach().numpy(), few.environment[0].numpy()
    for a, b in itertools.product(range(3), repeat=2):
        of = np.array(
            [
                sum(np.exp(-p * (values[i] - values[j]) ** 2) for p in (0.1, 10.0))
                for i, j in itertools.product(np.flatnonzero(environment == a), np.flatnonzero(environment == b))
                if i != j
            ]
        )
        assert means[a, b] == pytest.approx(of.mean())


@pytest.mark.parametrize("method", [CORAL, MMD, IBERM], ids=lambda method: method.__name__)
@pytest.mark.parametrize("model", [Linear(), Mlp(width=(4,))], ids=["linear", "mlp"])
def test_the_penalty_moves_every_model(method: type[LossMethod], model: Any) -> None:
    """What the last layer of a linear model sees is x: a penalty on it would be a constant."""
    x, y, e, _ = problem(3)
    name = "bottleneck" if method is IBERM else "penalty"
    labels = (y > 0).astype(np.int64)
    train = TrainingRows(x + e[:, None], labels, "classification", 2, e)
    step = step_of(method(), train, {name: 1.0, "anneal": 0}, {name: 9.0, "anneal": 0}, model=model)
    step = step.at(step.rows.parameters[:1].detach().expand(2, -1).clone().requires_grad_())
    weak, strong = step.direction()
    assert (weak - strong).abs().max() > 1e-3


def test_an_environment_without_rows_in_the_batch_counts_for_nothing() -> None:
    x, y, e, w = problem(4)
    e = np.where(np.arange(36) == 35, 2, e % 2)  # a single row of the third environment
    train = TrainingRows(x, y, "regression", 2, e)
    for number in range(8):
        step = step_of(
            VREx(), train, {"penalty": 7.0, "anneal": 0}, parameters=[w], recipe=Recipe(batch=9), step=number
        )
        present = step.rows.environment[0].numpy()
        inputs, targets = step.rows.x[0].detach().numpy().T, step.rows.y[0].numpy()
        assert step.loss().item() == pytest.approx(vrex(w, inputs, targets, present))


# ---- problems whose answer is known


def fit(method: Method, rows: TrainingRows, steps: int = 400, **hparams: Any) -> FittedModel:
    values = {name: dimension.default for name, dimension in method.search_space().items()} | hparams
    setup = Setup(Linear(), Recipe(steps=steps))
    (fitted,) = method.fit_pack({0: rows}, [Trial(0, {**values, "learning_rate": 0.05}, 0, 1)], Trainer(setup))
    assert isinstance(fitted, FittedModel)
    return fitted


def shifted_rows() -> TrainingRows:
    """y = cause + noise; the spurious feature is y + noise, with the noise of the environment; 3 of them."""
    rng = np.random.default_rng(0)
    e = np.repeat([0, 1, 2], [300, 200, 100])
    cause = rng.normal(size=600)
    y = cause + rng.normal(size=600)
    spurious = y + np.array([0.3, 1.0, 3.0])[e] * rng.normal(size=600)
    return TrainingRows(np.column_stack([cause, spurious]), y, "regression", 2, e)


@pytest.mark.parametrize(
    ("method", "hparams"),
    [(IRM, {}), (VREx, {"penalty": 100.0}), (IGA, {"penalty": 10.0}), (IBIRM, {"bottleneck": 0.1}), (CORAL, {})],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_they_rely_less_on_the_spurious_feature(method: type[LossMethod], hparams: dict[str, Any]) -> None:
    rows = shifted_rows()
    erm, other = (abs(fit(of, rows, **values).parameters[1]) for of, values in ((ERM(), {}), (method(), hparams)))
    assert other < 0.7 * erm


def two_means() -> TrainingRows:
    """A model that is only a constant: y is 0 in 90 rows and 10 in the other 10; nothing else differs."""
    e = np.repeat([0, 1], [90, 10])
    return TrainingRows(np.zeros((100, 1)), 10.0 * e, "regression", 2, e)


@pytest.mark.parametrize(
    ("method", "hparams", "constant"),
    [
        (ERM, {}, 1.0),
        (GroupDRO, {"rate": 0.001}, 5.0),
        (VREx, {"penalty": 1.0, "anneal": 0}, 5.0),
        (EQRM, {"burn_in": 0}, 5.0),
        (Reweight, {}, 5.0),
        (Subsample, {}, 5.0),
        (Anchor, {"gamma": 10.0}, 1.0),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_best_constant(method: type[Method], hparams: dict[str, Any], constant: float) -> None:
    """Where environments count the same it is halfway between their means."""
    assert fit(method(), two_means(), 600, **hparams).predict(np.zeros((1, 1)))[0] == pytest.approx(constant, abs=0.2)


def test_rdm_and_mmd_bring_distributions_together() -> None:
    rows = shifted_rows()
    environment = np.repeat([0, 1, 2], [300, 200, 100])
    shift = np.outer(environment == 2, [0.0, 2.0])
    moved = TrainingRows(rows.x + shift, rows.y, "regression", 2, environment)

    def gap(method: LossMethod, **hparams: Any) -> float:
        values = fit(method, moved, 300, **hparams).predict(moved.x)
        of = (values - moved.y) ** 2 if isinstance(method, RDM) else values
        return discrepancy(of[environment == 2], of[environment == 0], -3)

    for method in (MMD(), RDM()):
        # a kernel of all rows: of few, chance moves the end of a training as far as the penalty does
        with_penalty, without = (gap(method, penalty=weight, anneal=0, sample=600) for weight in (10.0, 0.0))
        assert with_penalty < 0.8 * without


# ---- groups


def test_groups_are_balanced() -> None:
    y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    train = TrainingRows(np.zeros((8, 1)), y, "classification", 2, np.array([0, 0, 0, 0, 0, 1, 1, 1]))
    assert len(np.unique(row_groups(train, "both"))) == 3  # class 0 is missing in the second environment
    for by in ("environment", "class", "both"):
        groups = row_groups(train, by)
        weights, draw = balanced_weights(groups), balanced_draw(groups, 5)
        assert np.ptp(np.bincount(groups, weights)) < 1e-12
        assert set(np.bincount(groups, draw)) == {float(np.bincount(groups).min())}
        assert set(draw) <= {0.0, 1.0}
    uneven = np.repeat([0, 1], [50, 5])
    assert not np.array_equal(balanced_draw(uneven, 1), balanced_draw(uneven, 2))


@pytest.mark.parametrize("method", [Reweight, Subsample])
def test_classes_of_a_regression_are_refused(method: type[Method]) -> None:
    with pytest.raises(InvalidSetting, match="by=class needs classes, and this is a regression.\nUse by=environment."):
        method().check(two_means(), {"by": "class"})


@pytest.mark.parametrize("method", COMPARING, ids=lambda method: method.__name__)
def test_a_single_environment_is_refused(method: type[Method]) -> None:
    rows = TrainingRows(np.zeros((4, 1)), np.zeros(4), "regression", 2, np.zeros(4, np.int64))
    with pytest.raises(InvalidSetting, match="compares training environments, and there is one"):
        method().check(rows, {})


@pytest.mark.parametrize("method", COMPARING, ids=lambda method: method.__name__)
def test_batches_of_three_classes(method: type[LossMethod]) -> None:
    x, y, e, _ = problem(5)
    train = TrainingRows(x, np.digitize(y, [-1, 1]), "classification", 3, e)
    step = step_of(method(), train, {"anneal": 0}, {"anneal": 0}, model=Mlp(width=(4,)), recipe=Recipe(batch=12))
    assert torch.isfinite(step.direction()).all()
