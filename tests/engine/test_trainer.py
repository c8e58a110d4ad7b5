"""The engine against torch's own optimizers, closed forms, and itself in other company."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from oodbench import Linear, LossMethod, Mlp, Recipe
from oodbench.engine.data import TrainingRows
from oodbench.engine.models import Layered, Model
from oodbench.engine.rows import Hparams, Rows
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial
from oodbench.errors import TrainingFailed
from oodbench_methods.erm import ERM
from oodbench_methods.fdro import FDRO

Loss = Literal["auto", "squared", "cross_entropy"]

MODELS = [Linear(), Linear(intercept=False), Mlp(width=(7,)), Mlp(width=(6, 5))]


def rows_of(seed: int, rows: int = 120, features: int = 4, classes: int = 0, labelled: bool = False) -> TrainingRows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, features))
    y: NDArray[Any] = x @ np.arange(1, features + 1) / features + 0.3 * rng.normal(size=rows)
    if classes:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, classes + 1)[1:-1]))
    environment = (np.arange(rows) % 2) if labelled else None
    return TrainingRows(x, y, "classification" if classes else "regression", classes or 2, environment)


def trial(
    configuration: int = 0, seed: int = 0, learning_rate: float = 0.01, weight_decay: float = 0.0, **more: Any
) -> Trial:
    hparams = {"learning_rate": learning_rate, "weight_decay": weight_decay, **more}
    return Trial(configuration, hparams, seed, entropy=100 * configuration + seed)


def forward(model: Layered, parameters: torch.Tensor, columns: torch.Tensor, outputs: int) -> torch.Tensor:
    pieces = model.pieces(parameters, columns.shape[1] - model.bias, outputs)
    return model.read_out(pieces, model.represent(pieces, columns), outputs)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_pack_steps_like_torch_does(optimizer: Literal["adam", "sgd"], model: Layered) -> None:
    data = rows_of(0)
    trials = [trial(0, learning_rate=0.01), trial(1, learning_rate=0.002, weight_decay=0.01)]
    recipe = Recipe(steps=25, optimizer=optimizer)
    fitted = Trainer(Setup(model, recipe)).fit(ERM(), {0: data}, trials)
    x, y = torch.tensor(data.x, dtype=torch.float32), torch.tensor(data.y, dtype=torch.float32)
    columns = model.columns(x.T.unsqueeze(0))
    for one, ours in zip(trials, fitted, strict=True):
        count = model.parameter_count(4, 1)
        uniform = torch.rand(count, generator=torch.Generator().manual_seed(one.entropy)).unsqueeze(0)
        parameters = model.initial(uniform, 4, 1).requires_grad_()
        rate, decay = float(one.hparams["learning_rate"]), float(one.hparams["weight_decay"])
        reference = (
            torch.optim.Adam([parameters], lr=rate, weight_decay=decay)
            if optimizer == "adam"
            else torch.optim.SGD([parameters], lr=rate, weight_decay=decay, momentum=0.9)
        )
        for _ in range(recipe.steps):
            reference.zero_grad()
            (forward(model, parameters, columns, 1)[0, 0] - y).square().mean().backward()
            reference.step()
        np.testing.assert_allclose(ours.parameters, parameters.detach()[0].numpy(), atol=2e-5)


@given(st.permutations(range(6)), st.integers(1, 6), st.sampled_from(MODELS), st.sampled_from([0, 3]))
@settings(deadline=None, max_examples=25)
def test_a_trial_gives_the_same_result_alone_or_in_any_pack(
    order: list[int], size: int, model: Model, classes: int
) -> None:
    data = {seed: rows_of(seed, classes=classes) for seed in (0, 1)}
    trials = [
        trial(index, seed, rate, alpha0=0.3, divergence="cvar")
        for seed in (0, 1)
        for index, rate in enumerate((0.01, 0.03, 0.003))
    ]
    mates = [trials[index] for index in order[:size]]
    setup = Setup(model, Recipe(steps=15))
    packed = Trainer(setup).fit(FDRO(), data, mates)
    for one, fitted in zip(mates, packed, strict=True):
        (alone,) = Trainer(setup).fit(FDRO(), data, [one])
        np.testing.assert_allclose(fitted.parameters, alone.parameters, atol=1e-4)


def test_minibatches_do_not_depend_on_the_pack() -> None:
    data = {seed: rows_of(seed, labelled=True) for seed in (0, 1)}
    trials = [trial(index, seed) for seed in (0, 1) for index in range(3)]
    setup = Setup(Linear(), Recipe(steps=40, batch=16))
    packed = Trainer(setup).fit(ERM(), data, trials)
    for one, fitted in zip(trials, packed, strict=True):
        (alone,) = Trainer(setup).fit(ERM(), data, [one])
        np.testing.assert_allclose(fitted.parameters, alone.parameters, atol=1e-5)
    assert not np.allclose(packed[0].parameters, packed[1].parameters)


def test_minibatches_reach_the_least_squares_solution_too() -> None:
    data = rows_of(0, rows=2000)
    (fitted,) = Trainer(Setup(Linear(intercept=False), Recipe(steps=3000, batch=200))).fit(
        ERM(), {0: data}, [trial(learning_rate=0.003)]
    )
    exact = np.linalg.lstsq(data.x, data.y, rcond=None)[0]
    np.testing.assert_allclose(fitted.parameters, exact, atol=0.02)


@pytest.mark.parametrize("rate", [0.003, 0.01, 0.1])
def test_linear_erm_is_least_squares(rate: float) -> None:
    data = rows_of(0)
    (fitted,) = Trainer(Setup(Linear(intercept=False), Recipe(steps=2000))).fit(
        ERM(), {0: data}, [trial(learning_rate=rate)]
    )
    exact = np.linalg.lstsq(data.x, data.y, rcond=None)[0]
    np.testing.assert_allclose(fitted.parameters, exact, atol=1e-3)


def test_weight_decay_is_ridge() -> None:
    data = rows_of(0)
    (fitted,) = Trainer(Setup(Linear(intercept=False), Recipe(steps=3000))).fit(
        ERM(), {0: data}, [trial(weight_decay=0.01)]
    )
    gram = data.x.T @ data.x / len(data) + 0.005 * np.eye(4)  # the loss is not halved, the decay is
    np.testing.assert_allclose(fitted.parameters, np.linalg.solve(gram, data.x.T @ data.y / len(data)), atol=1e-3)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize(("classes", "loss"), [(0, "auto"), (2, "squared"), (3, "cross_entropy")])
def test_fitted_models_compute_what_was_trained(model: Layered, classes: int, loss: Loss) -> None:
    data = rows_of(0, classes=classes)
    recipe = Recipe(steps=10, loss=loss)
    (fitted,) = Trainer(Setup(model, recipe)).fit(ERM(), {0: data}, [trial()])
    columns = model.columns(torch.tensor(data.x.T, dtype=torch.float32).unsqueeze(0))
    outputs = forward(model, torch.tensor(fitted.parameters).unsqueeze(0), columns, fitted.width)
    np.testing.assert_allclose(fitted.forward(data.x), outputs[0].numpy(), atol=1e-5)
    targets = torch.tensor(data.y).unsqueeze(0) if classes else torch.tensor(data.y, dtype=torch.float32).unsqueeze(0)
    np.testing.assert_allclose(fitted.losses(data.x, data.y), recipe.row_losses(outputs, targets)[0].numpy(), atol=1e-4)
    assert fitted.predict(data.x).shape == (len(data),)


def test_first_weights_may_be_normal_with_zero_biases() -> None:
    model = Mlp(width=(50, 40), init=0.02)
    uniform = torch.rand(20, model.parameter_count(10, 1), generator=torch.Generator().manual_seed(0))
    first, second, last = model.pieces(model.initial(uniform, 10, 1), 10, 1)
    first = first.view(20, 50, 11)
    assert not first[:, :, -1].any()
    assert not second[:, 50 * 40 :].any()
    assert not last[:, 40:].any()
    for weights in (first[:, :, :-1], second[:, : 50 * 40], last[:, :40]):
        assert abs(weights.mean()) < 0.002
        assert weights.std().item() == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_gradient_by_the_first_layer_is_that_of_autograd(model: Model) -> None:
    seen = {}

    class Looks(LossMethod):
        def loss(self, rows: Rows, hp: Hparams) -> torch.Tensor:
            weights = torch.linspace(-1, 1, rows.losses.shape[1]).expand_as(rows.losses)
            seen["ours"] = rows.first_layer_gradient(weights)
            seen["autograd"] = rows.gradient(rows.risk(weights), of=rows.first_layer)
            return rows.losses.mean(-1)

    Trainer(Setup(model, Recipe(steps=1))).fit(
        Looks(), {0: rows_of(0), 1: rows_of(1)}, [trial(0, 0), trial(1, 0), trial(0, 1), trial(1, 1)]
    )
    assert torch.allclose(seen["ours"], seen["autograd"], atol=1e-5)


class Gated(LossMethod):
    gate_noise = 0.1

    def loss(self, rows: Rows, hp: Hparams) -> torch.Tensor:
        return rows.losses.mean(-1) + 0.1 * rows.gates.sum(-1)


@pytest.mark.parametrize("model", [Linear(), Mlp(width=(5,))], ids=str)
def test_gates_close_for_features_that_say_nothing(model: Model) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 3))
    data = TrainingRows(x, 2 * x[:, 0], "regression", 2)
    (fitted,) = Trainer(Setup(model, Recipe(steps=800))).fit(Gated(), {0: data}, [trial()])
    first = fitted.parameters[: len(fitted.parameters) if model.name == "linear" else 20].reshape(-1, 4)
    assert np.abs(first[:, 0]).max() > 0.1
    assert np.abs(first[:, 1:3]).max() == 0


def test_gates_are_each_trials_own() -> None:
    data = {0: rows_of(0)}
    setup = Setup(Mlp(width=(5,)), Recipe(steps=120))
    packed = Trainer(setup).fit(Gated(), data, [trial(0), trial(1)])
    (alone,) = Trainer(setup).fit(Gated(), data, [trial(1)])
    np.testing.assert_allclose(packed[1].parameters, alone.parameters, atol=1e-4)


class Explodes(LossMethod):
    """Not a number for large learning rates, fine for small ones."""

    def loss(self, rows: Rows, hp: Hparams) -> torch.Tensor:
        bad = torch.where(hp.learning_rate > 0.05, float("nan"), 1.0)
        return rows.losses.mean(-1) * bad


def test_a_diverging_trial_does_not_touch_its_mates() -> None:
    data = {0: rows_of(0)}
    setup = Setup(Mlp(width=(5,)), Recipe(steps=20))
    good, bad = trial(0, learning_rate=0.01), trial(1, learning_rate=0.09)
    together = Trainer(setup).fit(Explodes(), data, [good, bad])
    (alone,) = Trainer(setup).fit(Explodes(), data, [good])
    assert np.isnan(together[1].parameters).all()
    np.testing.assert_allclose(together[0].parameters, alone.parameters, atol=1e-5)


def test_a_loss_of_the_wrong_shape_is_explained() -> None:
    class Scalar(LossMethod):
        def loss(self, rows: Rows, hp: Hparams) -> torch.Tensor:
            return rows.losses.mean()

    with pytest.raises(TrainingFailed, match=r"one number per trial, shape \(2,\), not \(\)"):
        Trainer(Setup(Linear(), Recipe(steps=1))).fit(Scalar(), {0: rows_of(0)}, [trial(0), trial(1)])


def test_environments_are_sub_populations() -> None:
    seen = {}

    class Looks(LossMethod):
        def loss(self, rows: Rows, hp: Hparams) -> torch.Tensor:
            seen["weights"], seen["risks"], seen["losses"] = (
                rows.environments,
                rows.risk(rows.environments),
                rows.losses,
            )
            return rows.losses.mean(-1)

    data = rows_of(0, labelled=True)
    Trainer(Setup(Linear(), Recipe(steps=1))).fit(Looks(), {0: data}, [trial(0), trial(1)])
    assert torch.allclose(seen["weights"].sum(-1), torch.ones(2, 2))
    groups = torch.tensor(data.environment)
    assert torch.allclose(seen["risks"][1, 0], seen["losses"][1][groups == 0].mean())


def test_environments_must_be_asked_for() -> None:
    class Looks(LossMethod):
        def loss(self, rows: Rows, hp: Hparams) -> torch.Tensor:
            return rows.risk(rows.environments).mean(-1)

    with pytest.raises(AttributeError, match="needs"):
        Trainer(Setup(Linear(), Recipe(steps=1))).fit(Looks(), {0: rows_of(0)}, [trial()])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_gpu_gives_the_same_result() -> None:
    data = {0: rows_of(0, labelled=True)}
    on = {
        device: Trainer(Setup(Mlp(), Recipe(steps=20), device)).fit(ERM(), data, [trial(0), trial(1)])
        for device in ("cpu", "cuda")
    }
    for cpu, cuda in zip(on["cpu"], on["cuda"], strict=True):
        np.testing.assert_allclose(cpu.parameters, cuda.parameters, atol=1e-4)
