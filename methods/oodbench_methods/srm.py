"""Stable risk minimization: two players, one looking for the sub-population whose mechanism differs most, the other
learning a representation on which it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from oodbench import Hparams, Integer, LogUniform, LossMethod, Option, Rows
from oodbench.mechanism import worst_mechanism

if TYPE_CHECKING:
    from torch import Tensor


def released(rows: Rows, worst: Tensor, penalty: Tensor) -> Tensor:
    """Both risks, and the gap between their gradients by the first layer's weights."""
    everyone, part = rows.losses.mean(-1), rows.risk(worst)
    gap = rows.gradient(everyone - part, of=rows.first_layer)
    return (everyone + part) / 2 + penalty * gap.square().mean((1, 2))


def printed(rows: Rows, worst: Tensor, penalty: Tensor) -> Tensor:
    """R + lambda <grad(R - R_Q), grad R_Q>, as the paper prints it."""
    everyone, part = rows.losses.mean(-1), rows.risk(worst)
    gap = rows.gradient(everyone - part, of=rows.parameters)
    return everyone + penalty * (gap * rows.gradient(part, of=rows.parameters)).sum(-1)


def flipped(rows: Rows, worst: Tensor, penalty: Tensor) -> Tensor:
    """The printed equation with the sign of the penalty turned."""
    return printed(rows, worst, -penalty)


OBJECTIVES: dict[str, Callable[[Rows, Tensor, Tensor], Tensor]] = {
    "released": released,
    "printed": printed,
    "flipped": flipped,
}


class SRM(LossMethod):
    """Stable risk minimization (Liu et al., AISTATS 2024).

    `objective` is the form of the stable learner's loss: `released`, that of the authors' code, works; `printed`,
    the paper's equation, has no minimum for larger penalties; `flipped` turns its sign, which works for linear
    models. The variation explorer fits both mechanisms exactly rather than by gradient steps, and leaves out the
    paper's noise scales.
    """

    uses = frozenset({"alpha0"})
    space = {
        "alpha0": LogUniform(0.01, 0.5, default=0.1),
        "penalty": LogUniform(1e-2, 1e1, default=0.1),
        "objective": Option(*OBJECTIVES),
        "explore_from": Integer(0, 100_000, default=0, searched=False),
        "explore_every": Integer(1, 100_000, default=20, searched=False),
        "explore_passes": Integer(0, 100, default=1, searched=False),
    }

    def explores_at(self, step: int, hp: Hparams) -> bool:
        since = step - hp.explore_from
        return bool(since >= 0 and since % hp.explore_every == 0)

    def explore(self, rows: Rows, hp: Hparams) -> Tensor:
        return worst_mechanism(
            rows.representation, rows.y, rows.classes, hp.alpha0, rows.recipe.loss, hp.explore_passes
        )

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        if rows.explored is None:
            return rows.losses.mean(-1)
        return OBJECTIVES[hp.objective](rows, rows.explored, hp.penalty)
