"""What `check` finds in methods that pass a glance: each stops at its cause and names the remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from oodbench import Hparams, LossMethod, Rows, Tensor, check_method


class ChangesTargets(LossMethod):
    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        rows.y.mul_(0.9)
        return rows.risk()


class ChangesInputs(LossMethod):
    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        rows.x.add_(1e-3)
        return rows.risk()


class ChangesEnvironments(LossMethod):
    needs = frozenset({"environments"})

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        rows.environments.mul_(0.5)
        return rows.risk(rows.environments).mean(-1)


class KeepsOnSelf(LossMethod):
    kept: Tensor | None = None

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        risk = rows.risk()
        before = risk.detach() if self.kept is None or len(self.kept) != len(risk) else self.kept
        self.kept = 0.9 * before + 0.1 * risk.detach()
        return risk * (1 + self.kept)


class KeepsRows(LossMethod):
    """State per row: in batches the rows of a step are others."""

    def start(self, rows: Rows, hp: Hparams) -> Mapping[str, Tensor]:
        return {"losses": torch.zeros(len(rows.y), 180)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        smooth = 0.9 * rows.state.losses + 0.1 * rows.losses
        rows.state.losses = smooth
        return smooth.mean(-1)


class OnTheCpu(LossMethod):
    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return (rows.losses * torch.ones(rows.losses.shape[1])).mean(-1)


class FetchesValues(LossMethod):
    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return rows.risk() * (1 + float(np.mean(rows.losses.detach().numpy() < 0)))


class MixesTrials(LossMethod):
    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return rows.risk() * (1 + rows.losses.detach().mean())


class DrawsForAll(LossMethod):
    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        return (rows.losses * torch.rand(rows.losses.shape, device=rows.losses.device)).mean(-1)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (ChangesTargets, r"loss changes rows.y in place: work on a copy, rows.y.clone\(\)"),
        (ChangesInputs, "loss changes rows.x in place"),
        (ChangesEnvironments, "loss changes rows.environments in place"),
        (KeepsOnSelf, "keep nothing on self; return what is kept from step to step from start"),
        (KeepsRows, "must match the size of tensor"),
        (OnTheCpu, "on a GPU it fails: it mixes tensors of the GPU and the CPU in mul"),
        (FetchesValues, r"takes the values of a tensor on the GPU: fetch them first, with .cpu\(\)"),
        (MixesTrials, "alone and in a pack differ by .* reduce over rows and units only"),
        (DrawsForAll, "draw chance with rows.uniform|use the seed"),
    ],
)
def test_what_is_wrong_is_found(method: type[LossMethod], words: str) -> None:
    with pytest.raises((AssertionError, RuntimeError), match=words):
        check_method(method)


def test_a_method_of_a_notebook_that_imports_torch_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    """cloudpickle takes an attribute `classes` for the module torch.classes, which cannot be pickled."""
    from ray import cloudpickle

    from oodbench.search.travel import pickled

    notebook: dict[str, Any] = {"__name__": "__main__"}
    exec(  # as a notebook's cell runs
        "import torch\nfrom oodbench import LossMethod\n"
        "class Cell(LossMethod):\n"
        "    def loss(self, rows, hp):\n"
        "        return rows.risk() * torch.ones(len(rows.y)) / rows.classes\n",
        notebook,
    )
    assert torch.classes is not None  # imported, as in any notebook with torch
    method = cloudpickle.loads(pickled(notebook["Cell"](), notebook["Cell"]))
    assert type(method).__name__ == "Cell"
