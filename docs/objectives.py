"""Objectives as they are named, and as two published comparisons trained them, on the same rows with the same budgets.

python docs/objectives.py

Writes the Markdown table of leaderboards/field/README.md. TableShift gives a batch of single logits to a multi-class
cross entropy, which takes the rows of the batch for classes; it detaches the features that CORAL is to align, and
begins each step of group DRO with equal weights. WhyShift gives chi-square DORO its two shares the other way around.
"""

from __future__ import annotations

from collections.abc import Mapping

import oodbench
from oodbench import Hparams, LossMethod, Rows, Tensor
from oodbench.kit import annealed, base_without_largest, chi_square_share, without_largest, worst_chi_square
from oodbench_methods.chi2_doro import Chi2Doro
from oodbench_methods.group_dro import GroupDRO
from oodbench_methods.irm import IRM
from oodbench_methods.vrex import VREx

DATASETS: Mapping[str, Mapping[str, str]] = {"spurious_correlation": {}, "acs_travel": {"source": "MA,NY"}}
TRIALS, SEEDS = 5, 10


class OneLogit(LossMethod):
    """What TableShift's baselines for several environments train: a softmax over the rows of a batch, not classes."""

    needs = frozenset({"environments"})

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return self.risks(rows).mean(-1)

    @staticmethod
    def risks(rows: Rows) -> Tensor:
        """- sum of y log softmax(logits over the rows) of each environment: [trial, environment]."""
        own, logits = rows.environments > 0, (rows.outputs[:, 1] - rows.outputs[:, 0]).unsqueeze(1)
        total = logits.masked_fill(~own, float("-inf")).logsumexp(-1, keepdim=True)
        return (own * rows.y.unsqueeze(1) * (total - logits)).sum(-1)

    @staticmethod
    def slopes(rows: Rows, part: Tensor) -> Tensor:
        """How the risks of a part of the rows change as the logits are scaled: [trial, environment]."""
        own = (rows.environments > 0) & part
        logits = (rows.outputs[:, 1] - rows.outputs[:, 0]).unsqueeze(1)
        chances = logits.masked_fill(~own, float("-inf")).softmax(-1)
        ones = own * rows.y.unsqueeze(1)
        return ones.sum(-1) * (chances * logits).sum(-1) - (ones * logits).sum(-1)


class CoralAsRun(OneLogit):
    """CORAL of TableShift: with detached features the penalty has no gradient, and the risks alone are left."""


class IrmAsRun(OneLogit):
    """IRM of TableShift."""

    space = IRM.space

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        from torch import arange

        even = arange(rows.y.shape[-1], device=rows.y.device) % 2 == 0
        penalty = (self.slopes(rows, even) * self.slopes(rows, ~even)).mean(-1)
        return self.risks(rows).mean(-1) + annealed(hp.penalty, hp.anneal, rows.step) * penalty


class VrexAsRun(OneLogit):
    """V-REx of TableShift."""

    space = VREx.space

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        risks = self.risks(rows)
        weight = annealed(hp.penalty, hp.anneal, rows.step)
        return risks.mean(-1) + weight * risks.var(-1, correction=0)


class GroupDroAsRun(LossMethod):
    """Group DRO of TableShift: the weights of the environments are never kept."""

    needs = frozenset({"environments"})
    space = GroupDRO.space

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        risks = rows.risk(rows.environments)
        return ((hp.rate.unsqueeze(-1) * risks.detach()).softmax(-1) * risks).sum(-1)


class DoroAsRun(LossMethod):
    """Chi-square DORO of WhyShift: the ball has the size of the outliers' share, and the other share is left out."""

    uses = frozenset({"alpha0"})
    space = Chi2Doro.space

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        share, weights = chi_square_share(hp.outliers), rows.given_weights
        if weights is not None:
            rest = base_without_largest(rows.losses, hp.alpha0, weights)
            return rows.risk(worst_chi_square(rows.losses, share, base=rest))
        return rows.risk(worst_chi_square(rows.losses, share, kept=without_largest(rows.losses, hp.alpha0)))


PAIRS = {"irm": IrmAsRun, "vrex": VrexAsRun, "coral": CoralAsRun, "group_dro": GroupDroAsRun, "chi2_doro": DoroAsRun}


def table() -> str:
    lines = ["| dataset | method | test error | as it was run | validation error | as it was run |", "|---" * 6 + "|"]
    for dataset, settings in DATASETS.items():
        result = oodbench.run(
            ["erm", *PAIRS, *PAIRS.values()], dataset, settings=settings, recipe={"loss": "cross_entropy"},
            trials=TRIALS, seeds=SEEDS, no_stability=True,
        )  # fmt: skip
        errors = result.results().query("chosen").groupby(["part", "method", "seed"])["error"].mean()
        each = errors.groupby(["part", "method"]).agg(["mean", "std"])
        for name, as_run in {"erm": None, **PAIRS}.items():
            labels = [_label(each.loc["test"].index, name), as_run and _label(each.loc["test"].index, as_run.__name__)]
            cells = [each.loc[(part, label)] if label else None for part in ("test", "validation") for label in labels]
            shown = ["–" if cell is None else f"{cell['mean']:.3f} ± {cell['std']:.3f}" for cell in cells]
            lines.append(f"| {result.studies[0].dataset_id} | {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _label(labels: list[str], name: str) -> str:
    """As the board shows a method whose name this is."""
    wanted = name.replace("_", "").lower()
    return next(label for label in labels if label.partition(" ")[0].replace("_", "").lower() == wanted)


if __name__ == "__main__":
    print(table())
