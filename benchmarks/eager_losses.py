"""Losses of the field as one would write them with torch alone: one training, rows first, a loop over environments.

Each takes a training as it is at a step and returns a number. Rows of one environment stand side by side.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

MMD_PRECISIONS = (1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3)
RDM_PRECISIONS = (1e-4, *MMD_PRECISIONS)


@dataclass(eq=False)
class Training:
    """A model, its rows, and what a loss keeps from step to step."""

    net: nn.Sequential
    x: Tensor  # [row, feature]
    y: Tensor  # [row]
    sizes: list[int]  # of the environments
    steps: int
    rate: float
    sample: int = 0  # rows of what costs their square; 0: as the method has it
    step: int = 0
    state: dict[str, Any] = field(default_factory=dict)

    def forward(self) -> tuple[Tensor, Tensor]:
        """What the last layer sees, or a linear model's outputs; and the outputs."""
        z = self.net[:-1](self.x)
        outputs = self.net[-1](z)
        return (z if len(self.net) > 1 else outputs), outputs

    def losses(self) -> Tensor:
        return row_losses(self.net(self.x), self.y)

    def risks(self) -> Tensor:
        return self.of_environments(self.losses())

    def of_environments(self, losses: Tensor) -> Tensor:
        return torch.stack([part.mean() for part in losses.split(self.sizes)])

    def drawn(self, usual: int) -> Tensor | None:
        """Random rows, or None for all."""
        size = self.sample or usual
        return torch.randperm(len(self.y))[:size] if size < len(self.y) else None


def row_losses(outputs: Tensor, y: Tensor) -> Tensor:
    if y.is_floating_point():
        return (outputs.squeeze(1) - y).square()
    return functional.cross_entropy(outputs, y, reduction="none")


def erm(of: Training) -> Tensor:
    return of.losses().mean()


def group_dro(of: Training) -> Tensor:
    risks = of.risks()
    q = of.state.get("q", torch.ones(len(risks))) * (0.01 * risks.detach()).exp()
    of.state["q"] = q / q.sum()
    return of.state["q"] @ risks


def vrex(of: Training) -> Tensor:
    risks = of.risks()
    weight = 10.0 if of.step >= 100 else 1.0
    return risks.mean() + weight * risks.var(correction=0)


def scale_penalty(of: Training, outputs: Tensor) -> Tensor:
    """IRMv1's, with the usual dummy factor of the outputs."""
    squares = []
    for out, y in zip(outputs.split(of.sizes), of.y.split(of.sizes), strict=True):
        scale = torch.ones((), requires_grad=True)
        (slope,) = torch.autograd.grad(row_losses(out * scale, y).mean(), scale, create_graph=True)
        squares.append(slope.square())
    return torch.stack(squares).mean()


def irm(of: Training) -> Tensor:
    outputs = of.net(of.x)
    risk = of.of_environments(row_losses(outputs, of.y)).mean()
    return risk + (100.0 if of.step >= 100 else 1.0) * scale_penalty(of, outputs)


def bottleneck(of: Training, learned: Tensor) -> Tensor:
    variance = torch.stack([part.var(0).mean() for part in learned.split(of.sizes)]).mean()
    return (100.0 if of.step >= 100 else 0.0) * variance


def ib_erm(of: Training) -> Tensor:
    learned, outputs = of.forward()
    return of.of_environments(row_losses(outputs, of.y)).mean() + bottleneck(of, learned)


def ib_irm(of: Training) -> Tensor:
    learned, outputs = of.forward()
    risk = of.of_environments(row_losses(outputs, of.y)).mean()
    penalty = (100.0 if of.step >= 100 else 1.0) * scale_penalty(of, outputs)
    return risk + bottleneck(of, learned) + penalty


def iga(of: Training) -> Tensor:
    risks, parameters = of.risks(), list(of.net.parameters())
    gradients = [torch.autograd.grad(risk, parameters, create_graph=True) for risk in risks]
    spread = torch.zeros(())
    for each in zip(*gradients, strict=True):  # of one parameter, in every environment
        stacked = torch.stack(each)
        spread = spread + (stacked - stacked.mean(0)).square().sum()
    return risks.mean() + 1e3 * spread


def anchor(of: Training) -> Tensor:
    residuals = of.net(of.x).squeeze(1) - of.y
    means = of.of_environments(residuals)
    shares = torch.tensor(of.sizes) / len(of.y)
    return residuals.square().mean() + (10.0 - 1) * (shares * means.square()).sum()


def coral(of: Training) -> Tensor:
    learned, outputs = of.forward()
    parts = learned.split(of.sizes)
    means = [part.mean(0) for part in parts]
    centred = [part - mean for part, mean in zip(parts, means, strict=True)]
    covariances = [part.T @ part / (len(part) - 1) for part in centred]
    gaps = [
        (means[a] - means[b]).square().mean() + (covariances[a] - covariances[b]).square().mean()
        for a, b in itertools.combinations(range(len(parts)), 2)
    ]
    return of.of_environments(row_losses(outputs, of.y)).mean() + torch.stack(gaps).mean()


def kernel(a: Tensor, b: Tensor, precisions: Sequence[float]) -> Tensor:
    squares = a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.T
    squares = squares.clamp(min=0)
    total = torch.exp(-precisions[0] * squares)
    for precision in precisions[1:]:
        total = total + torch.exp(-precision * squares)
    return total


def mmd(of: Training) -> Tensor:
    learned, outputs = of.forward()
    drawn = of.drawn(128)
    parts = list(learned.split(of.sizes))
    if drawn is not None:
        label = torch.repeat_interleave(torch.arange(len(of.sizes)), torch.tensor(of.sizes))[drawn]
        parts = [learned[drawn[label == number]] for number in range(len(of.sizes))]
    own = []
    for part in parts:
        total, rows = kernel(part, part, MMD_PRECISIONS), len(part)
        without = (total.sum() - len(MMD_PRECISIONS) * rows) / (rows * (rows - 1))  # the diagonal
        own.append(total.mean() if drawn is None else without)
    gaps = [
        own[a] + own[b] - 2 * kernel(parts[a], parts[b], MMD_PRECISIONS).mean()
        for a, b in itertools.combinations(range(len(parts)), 2)
    ]
    return of.of_environments(row_losses(outputs, of.y)).mean() + torch.stack(gaps).mean()


def rdm(of: Training) -> Tensor:
    losses, drawn = of.losses(), of.drawn(128)
    parts = losses.split(of.sizes)
    risks = torch.stack([part.mean() for part in parts])
    worst = int(risks.argmax())
    few, of_worst = losses.unsqueeze(1), parts[worst].unsqueeze(1)
    if drawn is not None:
        start = sum(of.sizes[:worst])
        few, of_worst = few[drawn], few[drawn[(drawn >= start) & (drawn < start + of.sizes[worst])]]
    means = [kernel(a, b, RDM_PRECISIONS).mean() for a, b in [(of_worst, of_worst), (few, few), (of_worst, few)]]
    late = float(of.step >= 100)
    spread = parts[worst].var() + losses.var()
    return risks.mean() + late * (5.0 * (means[0] + means[1] - 2 * means[2]) + 0.004 * spread)


class Reverse(torch.autograd.Function):
    """The gradient reversal layer."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return -gradient


def dann(of: Training) -> Tensor:
    learned, outputs = of.forward()
    guesses = of.state["discriminator"](Reverse.apply(learned))
    surprise = functional.cross_entropy(guesses, of.state["environment"], reduction="none")
    return of.of_environments(row_losses(outputs, of.y)).mean() + of.of_environments(surprise).mean()


def fishr(of: Training) -> Tensor:
    z = of.net[:-1](of.x)
    outputs = of.net[-1](z)
    slopes = 2 * (outputs - of.y.unsqueeze(1))
    seen = torch.cat([z, torch.ones(len(z), 1)], 1)
    each = (slopes.unsqueeze(2) * seen.unsqueeze(1)).flatten(1)  # the gradient of every row by the last layer
    now = torch.stack([part.var(0, correction=0) for part in each.split(of.sizes)])
    variances = 0.95 * of.state.get("variances", now.detach()) + 0.05 * now
    of.state["variances"] = variances.detach()
    penalty = (variances - variances.mean(0)).square().sum(1).mean()
    return of.of_environments(row_losses(outputs, of.y)).mean() + 1e3 * float(of.step >= 0.3 * of.steps) * penalty


def eqrm(of: Training) -> Tensor:
    risks = of.risks()
    if of.step < 100:
        return risks.mean()
    bandwidth = 1.06 * (risks.var() + 1e-12).sqrt() * len(risks) ** -0.2
    with torch.no_grad():
        low, high = float(risks.min() - 4 * bandwidth), float(risks.max() + 4 * bandwidth)
        for _ in range(24):
            middle = (low + high) / 2
            below = torch.special.ndtr((middle - risks) / bandwidth).mean() < 0.75
            low, high = (middle, high) if below else (low, middle)
    scaled = (high - risks) / bandwidth
    density = ((-(scaled.detach().square()) / 2).exp() / bandwidth.detach()).mean() / math.sqrt(2 * math.pi)
    return high - (torch.special.ndtr(scaled).mean() - 0.75) / density  # with the derivative of the root


def fdro(of: Training) -> Tensor:
    losses = of.losses()
    return losses.topk(int(0.1 * len(losses))).values.mean()


def cvar_doro(of: Training) -> Tensor:
    losses = of.losses()
    dropped = int(0.2 * len(losses))
    kept = (len(losses) - dropped) // 2
    return losses.topk(dropped + kept).values[dropped:].mean()


@torch.no_grad()
def worst_chi_square(losses: Tensor, share: float, halvings: int = 40) -> Tensor:
    """Weights of the worst mean in a chi-square ball, by bisection."""
    bound, rows = 1 / share, len(losses)
    highest = float(losses.max())
    little = 1e-6 * (1 + abs(highest))
    all_keep = float(losses.mean() - losses.std(correction=0) / math.sqrt(bound - 1))
    low, high = min(all_keep, float(losses.min())) - little, highest - little
    for _ in range(halvings):
        eta = (low + high) / 2
        excess = (losses - eta).clamp(min=0)
        inside = rows * excess.square().sum() <= bound * excess.sum().square()
        low, high = (eta, high) if inside else (low, eta)
    excess = (losses - low).clamp(min=0)
    return excess / excess.sum()


def chi2_dro(of: Training) -> Tensor:
    losses = of.losses()
    return worst_chi_square(losses, 1 / (1 + (1 / 0.1 - 1) ** 2)) @ losses


def chi2_doro(of: Training) -> Tensor:
    losses = of.losses()
    losses = losses.topk(len(losses) - int(0.2 * len(losses)), largest=False, sorted=False).values
    return worst_chi_square(losses, 1 / (1 + (1 / 0.5 - 1) ** 2)) @ losses


def kl_dro(of: Training) -> Tensor:
    losses = of.losses()
    with torch.no_grad():
        tilt = (losses - losses.max()) / losses.std(correction=0)
        low, high = -14.0, 14.0  # of log(spread / lambda)
        for _ in range(36):
            middle = (low + high) / 2
            logits = tilt * math.exp(middle)
            parts = logits.exp()
            total = parts.sum()
            inside = parts @ logits / total - (total / len(tilt)).log() <= 0.1
            low, high = (middle, high) if inside else (low, middle)
        weights = (tilt * math.exp(low)).softmax(0)
    return weights @ losses


def marginal_dro(of: Training) -> Tensor:
    drawn = of.drawn(100)
    x, y = (of.x, of.y) if drawn is None else (of.x[drawn], of.y[drawn])
    losses = row_losses(of.net(x), y)
    rows, share = len(losses), 0.1**2
    costs = 1.0 / 0.1 * torch.cdist(x, x) / rows

    def net_flow(flows: Tensor) -> Tensor:
        return flows.sum(1) - flows.sum(0)

    with torch.no_grad():
        flows = best = torch.zeros_like(costs)
        lowest, stride = math.inf, 0.3 * losses.std(correction=0) * rows**0.5
        for step in range(9):
            left = losses - net_flow(flows)
            worst = worst_chi_square(left, share, 12)
            value = float(worst @ left + (costs * flows).sum())
            if value < lowest:
                lowest, best = value, flows
            gain = worst.unsqueeze(1) - worst - costs
            gain = gain * ((flows > 0) | (gain > 0))
            flows = (flows + stride / (net_flow(gain).norm() + 1e-12) / (step + 1) ** 0.5 * gain).clamp(min=0)
    left = losses - net_flow(best)
    return worst_chi_square(left.detach(), share) @ left + (costs * best).sum()


def wasserstein_dro(of: Training) -> Tensor:
    if len(of.net) == 1:
        return of.losses().mean() + 0.1 * of.net[0].weight.norm()
    x = of.x.clone().requires_grad_()
    (uphill,) = torch.autograd.grad(row_losses(of.net(x), of.y).sum(), x)
    moved = of.x + 0.1 * uphill / uphill.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return row_losses(of.net(moved), of.y).mean()


def mixed(of: Training, partners: Tensor, alpha: float) -> Tensor:
    share = torch.distributions.Beta(alpha, alpha).sample(of.y.shape)
    outputs = of.net(torch.lerp(of.x[partners], of.x, share.unsqueeze(1)))
    return (share * row_losses(outputs, of.y) + (1 - share) * row_losses(outputs, of.y[partners])).mean()


def mixup(of: Training) -> Tensor:
    return mixed(of, torch.randperm(len(of.y)), 0.2)


def lisa(of: Training) -> Tensor:
    """`others` of the state: for every class in an environment its rows, and their two kinds of partners."""
    partners = torch.empty_like(of.y)
    for rows, same_class, same_environment in of.state["others"]:
        first = same_class[torch.randint(len(same_class), (len(rows),))]
        second = same_environment[torch.randint(len(same_environment), (len(rows),))]
        partners[rows] = torch.where(torch.rand(len(rows)) < 0.5, first, second)
    return mixed(of, partners, 2.0)


def srm(of: Training) -> Tensor:
    first = of.step == 0
    if first or (of.step % 20 == 0 and len(of.net) > 1):  # what a linear model sees does not change
        of.state["worst"] = worst_mechanism(of)
    losses = of.losses()
    risk, of_worst = losses.mean(), losses[of.state["worst"]].mean()
    (gap,) = torch.autograd.grad(risk - of_worst, of.net[0].weight, create_graph=True)
    return (risk + of_worst) / 2 + 0.1 * gap.square().mean()


@torch.no_grad()
def worst_mechanism(of: Training) -> Tensor:
    """The rows on which their own least squares differs most from that of all rows."""
    z = of.net[:-1](of.x).double()
    padded, y = torch.cat([z, torch.ones(len(z), 1)], 1), of.y.double()

    def losses(rows: Tensor | slice) -> Tensor:
        fitted = torch.linalg.lstsq(padded[rows], y[rows].unsqueeze(1), driver="gelsd").solution
        return (padded @ fitted).squeeze(1).sub(y).square()

    size = int(0.1 * len(y))
    of_all = losses(slice(None))
    return (of_all - losses(of_all.topk(size).indices)).topk(size).indices


FIRST = (anchor, chi2_doro, chi2_dro, coral, cvar_doro, dann, eqrm, erm, fdro, fishr, group_dro, ib_erm, ib_irm, iga)
NAMED = (*FIRST, irm, kl_dro, lisa, marginal_dro, mixup, mmd, rdm, srm, vrex, wasserstein_dro)
LOSSES: dict[str, Callable[[Training], Tensor]] = {loss.__name__: loss for loss in NAMED}
