"""Stable risk minimization: an explorer finds the sub-population whose mechanism differs most, a learner resists it."""

from __future__ import annotations

from oodbench import Hparams, Integer, LogUniform, LossMethod, Mlp, Option, Preset, Rows, Tensor
from oodbench.kit import explore_mechanisms, first_layer_gap, gap_along_gradient

OBJECTIVES = ("released", "printed", "flipped")
ONCE_HALFWAY = {"explore_from": 1000, "explore_every": 100_000}  # through the 2,000 steps of the authors' code


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
    explores_part = True
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
            fix={"learning_rate": 1e-3, "weight_decay": 0.0, "penalty": 0.1, **ONCE_HALFWAY},
            model=Mlp(width=(20, 10), init=0.02),
            recipe={"steps": 2000, "optimizer": "sgd", "loss": "squared", "batch": 0},
        )
    }

    def explores_at(self, step: int, hp: Hparams) -> bool:
        since = step - hp.explore_from
        return bool(since >= 0 and since % hp.explore_every == 0)

    def explore(self, rows: Rows, hp: Hparams) -> Tensor:
        return explore_mechanisms(rows, hp.alpha0, hp.explore_passes, scaled=hp.noise == "scales")

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        if not rows.is_explored:
            return rows.risk()
        worst = rows.explored  # [trial, row]
        penalty: Tensor = hp.penalty
        if hp.objective == "released":  # (R + R_Q) / 2 + penalty |grad R - grad R_Q|^2
            return rows.risk((rows.weights + worst) / 2) + penalty * first_layer_gap(rows, worst)
        sign = 1 if hp.objective == "printed" else -1  # R + penalty <grad(R - R_Q), grad R_Q>
        return rows.risk() + sign * penalty * gap_along_gradient(rows, worst)
