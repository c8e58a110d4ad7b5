"""Wasserstein DRO: every row may move a little, in the direction that harms most."""

from __future__ import annotations

from oodbench import Hparams, LogUniform, LossMethod, Rows, Tensor


class WassersteinDro(LossMethod):
    """Wasserstein DRO on the features, with the Euclidean distance.

    Linear models: the mean loss + radius x the dual norm of the coefficients (Mohajerin Esfahani & Kuhn 2018), which is
    exact for logistic losses; with several classes, the largest norm of a difference of two classes' coefficients.
    MLPs: the mean loss after one attack on each row, of length radius along its gradient (Sinha et al. 2018).
    Columns that are 0 or 1 move as well.
    """

    space = {"radius": LogUniform(1e-3, 1e0, default=0.1)}

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        if rows.learns_representation:
            return rows.forward(attacked(rows, hp.radius)).risk()
        penalty: Tensor = hp.radius * coefficient_norm(rows)
        return rows.risk() + penalty


def attacked(rows: Rows, radius: Tensor) -> Tensor:
    """The features [trial, feature, row], each row moved by radius [trial] where its loss grows fastest."""
    from torch.autograd import grad

    x = rows.x.detach().clone().requires_grad_()
    (uphill,) = grad(rows.forward(x).losses.sum(), x)
    length = uphill.square().sum(1).sqrt()  # [trial, row]; a norm of columns is slower than their squares
    step = radius.unsqueeze(-1) / length.clamp(min=1e-12)
    return uphill.mul_(step.unsqueeze(1)).add_(x.detach())


def coefficient_norm(rows: Rows) -> Tensor:
    """The norm of a linear model's coefficients, without the constant: [trial]."""
    from torch.linalg import vector_norm

    coefficients = rows.first_layer[:, :, : rows.shared_x.shape[1]]  # [trial, output, feature]
    if coefficients.shape[1] > 1:
        coefficients = (coefficients.unsqueeze(2) - coefficients.unsqueeze(1)).flatten(1, 2)
    norms: Tensor = vector_norm(coefficients, dim=-1)  # [trial, output or pair of outputs]
    return norms.amax(-1)
