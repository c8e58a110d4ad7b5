"""Stable risk minimization: two players, one looking for the sub-population whose mechanism differs most, the other
learning a representation on which it does not."""

from __future__ import annotations

from collections.abc import Callable

from oodbench import Hparams, Integer, LogUniform, LossMethod, Mlp, Option, Preset, Rows, Tensor
from oodbench.kit import worst_mechanism


def released(rows: Rows, worst: Tensor, penalty: Tensor) -> Tensor:
    """Both risks, and the gap between their gradients by the first layer's weights, its biases left out."""
    everyone, features = 1 / worst.shape[-1], rows.shared_x.shape[1]
    gap = rows.first_layer_gradient(everyone - worst)[:, :, :features]
    return rows.risk((everyone + worst) / 2) + penalty * gap.square().mean((1, 2))


def printed(rows: Rows, worst: Tensor, penalty: Tensor) -> Tensor:
    """R + lambda <grad(R - R_Q), grad R_Q>, as the paper prints it."""
    everyone, part = rows.risk(), rows.risk(worst)
    gap = rows.gradient(everyone - part)
    return everyone + penalty * (gap * rows.gradient(part)).sum(-1)


def flipped(rows: Rows, worst: Tensor, penalty: Tensor) -> Tensor:
    """The printed equation with the sign of the penalty flipped."""
    return printed(rows, worst, -penalty)


OBJECTIVES: dict[str, Callable[[Rows, Tensor, Tensor], Tensor]] = {
    "released": released,
    "printed": printed,
    "flipped": flipped,
}


class SRM(LossMethod):
    """Stable risk minimization (Liu et al., AISTATS 2024).

    `objective` is the form of the stable learner's loss: `released`, that of the authors' code, works; `printed`,
    the paper's equation, is worse than ERM and has no minimum for larger penalties; `flipped` flips its sign, which
    works for linear models and is unstable for MLPs. `noise=scales` divides the explorer's squared errors by the
    paper's noise scales, which finds less of the minority; `none` is the authors' code.
    Differs from the authors' code: the explorer's two mechanisms are linear in what the last layer sees and fitted
    exactly, where theirs are MLPs trained for 300 steps; and the stable learner trains on, where theirs returns early,
    as it is, if the two mechanisms' losses differ by less than 0.8 on the sub-population.
    """

    uses = frozenset({"alpha0"})
    space = {
        "alpha0": LogUniform(0.01, 0.5, default=0.1),
        "penalty": LogUniform(1e-2, 1e1, default=0.1),
        "objective": Option(*OBJECTIVES),
        "noise": Option("none", "scales"),
        "explore_from": Integer(0, 100_000, default=0, searched=False),
        "explore_every": Integer(1, 100_000, default=20, searched=False),
        "explore_passes": Integer(0, 100, default=1, searched=False),
    }
    presets = {
        "released": Preset(
            "the authors' code: MLP 20-10 with small first weights, slow gradient descent, one exploration halfway",
            fix={
                "learning_rate": 1e-3,
                "weight_decay": 0.0,
                "penalty": 0.1,
                "explore_from": 1000,
                "explore_every": 100_000,
            },
            model=Mlp(width=(20, 10), init=0.02),
            recipe={"steps": 2000, "optimizer": "sgd", "loss": "squared", "batch": 0},
        )
    }

    def explores_at(self, step: int, hp: Hparams) -> bool:
        since = step - hp.explore_from
        return bool(since >= 0 and since % hp.explore_every == 0)

    def explore(self, rows: Rows, hp: Hparams) -> Tensor:
        if rows.is_explored and not rows.learns_representation:
            return rows.explored  # a linear model's representation is x itself, and stays
        return worst_mechanism(
            rows.representation,
            rows.y,
            rows.classes,
            hp.alpha0,
            rows.recipe.loss,
            hp.explore_passes,
            scaled=hp.noise == "scales" and rows.is_regression,
        )

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        if not rows.is_explored:
            return rows.risk()
        return OBJECTIVES[hp.objective](rows, rows.explored, hp.penalty)
