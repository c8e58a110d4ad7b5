"""Methods of the field that are more than a loss, as one would write them with torch alone: own steps, or stages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from eager_losses import LOSSES, Training, erm, row_losses
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn import functional


def model(widths: tuple[int, ...], features: int, outputs: int) -> nn.Sequential:
    sizes = [features, *widths]
    layers: list[nn.Module] = []
    for inputs, units in zip(sizes, widths, strict=False):
        layers += [nn.Linear(inputs, units), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs))


def descend(of: Training, loss: Callable[[Training], Tensor], parameters: list[Tensor] | None = None) -> None:
    """The usual loop."""
    optimizer = torch.optim.Adam(parameters or of.net.parameters(), lr=of.rate)
    for step in range(of.steps):
        of.step = step
        optimizer.zero_grad()
        loss(of).backward()
        optimizer.step()


def again(of: Training, rows: Tensor | slice = slice(None), steps: int = 0) -> Training:
    """Another training of the same kind of model, from scratch."""
    linears = [layer for layer in of.net if isinstance(layer, nn.Linear)]
    net = model(tuple(layer.out_features for layer in linears[:-1]), of.x.shape[1], linears[-1].out_features)
    return Training(net, of.x[rows], of.y[rows], of.sizes, steps or of.steps, of.rate)


def weighted(weights: Tensor) -> Callable[[Training], Tensor]:
    share = weights / weights.sum()
    return lambda of: share @ of.losses()


# ---- steps of their own


def gradients(of: Training) -> Tensor:
    """Of the environments' risks: [environment, parameter]."""
    risks, parameters = of.risks(), list(of.net.parameters())
    each = [torch.autograd.grad(risk, parameters, retain_graph=True) for risk in risks]
    return torch.stack([torch.cat([part.flatten() for part in parts]) for parts in each])


def and_mask_direction(of: Training) -> Tensor:
    each = gradients(of)
    mask = (each.sign().mean(0).abs() >= 1.0).float()
    return each.mean(0) * mask / (mask.mean() + 1e-10)


def sand_mask_direction(of: Training) -> Tensor:
    each = gradients(of)
    slope = 10.0 / each.var(0, correction=0).clamp(min=1e-20)
    mask = (slope * (each.sign().mean(0).abs() - 0.5)).tanh().clamp(min=0)
    return each.mean(0) * mask / (mask.mean() + 1e-10)


DIRECTIONS = {"and_mask": and_mask_direction, "sand_mask": sand_mask_direction}


def by_direction(of: Training, direction: Callable[[Training], Tensor]) -> None:
    parameters = list(of.net.parameters())
    optimizer = torch.optim.Adam(parameters, lr=of.rate)
    for step in range(of.steps):
        of.step = step
        parts = direction(of).split([parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)
        optimizer.step()


def fish(of: Training) -> None:
    parameters = list(of.net.parameters())
    optimizer = torch.optim.SGD(parameters, lr=of.rate)
    environments = list(zip(of.x.split(of.sizes), of.y.split(of.sizes), strict=True))
    for step in range(of.steps):
        of.step = step
        before = [parameter.detach().clone() for parameter in parameters]
        for number in torch.randperm(len(environments)).tolist():
            x, y = environments[number]
            optimizer.zero_grad()
            row_losses(of.net(x), y).mean().backward()
            optimizer.step()
        with torch.no_grad():
            for parameter, start in zip(parameters, before, strict=True):
                parameter.lerp_(start, 0.5)


# ---- losses that need something first


def dann(of: Training) -> None:
    units = of.net[-1].in_features if len(of.net) > 1 else of.net[-1].out_features
    of.state["environment"] = torch.repeat_interleave(torch.arange(len(of.sizes)), torch.tensor(of.sizes))
    of.state["discriminator"] = model((64,), units, len(of.sizes))
    descend(of, LOSSES["dann"], [*of.net.parameters(), *of.state["discriminator"].parameters()])


def lisa(of: Training) -> None:
    label = torch.repeat_interleave(torch.arange(len(of.sizes)), torch.tensor(of.sizes))
    of.state["others"] = [
        (
            torch.nonzero((label == here) & (of.y == own)).flatten(),
            torch.nonzero((label != here) & (of.y == own)).flatten(),
            torch.nonzero((label == here) & (of.y != own)).flatten(),
        )
        for here in range(len(of.sizes))
        for own in of.y.unique().tolist()
    ]
    descend(of, LOSSES["lisa"])


# ---- weights first


def reweight(of: Training) -> None:
    sizes = torch.tensor(of.sizes)
    descend(of, weighted(torch.repeat_interleave(1 / sizes, sizes)))


def subsample(of: Training) -> None:
    starts = np.cumsum([0, *of.sizes[:-1]])
    rows = [
        start + torch.randperm(size)[: min(of.sizes)] for start, size in zip(starts.tolist(), of.sizes, strict=True)
    ]
    descend(again(of, torch.cat(rows)), erm)


def dwr(of: Training) -> None:
    scaled = (of.x - of.x.mean(0)) / of.x.std(0, correction=0)
    different = 1 - torch.eye(scaled.shape[1])
    logits = torch.zeros(len(scaled), requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        weights = logits.softmax(0)
        means = weights @ scaled
        covariances = (scaled * weights.unsqueeze(1)).T @ scaled - means.unsqueeze(1) * means
        spread = (len(weights) * weights - 1).square().mean()
        ((covariances.square() * different).sum() / 2 + 1e-3 * spread).backward()
        optimizer.step()
    descend(of, weighted(logits.detach().softmax(0)))


def srdo(of: Training) -> None:
    scaled = (of.x - of.x.mean(0)) / of.x.std(0, correction=0)
    fold, ratios = torch.randperm(len(scaled)) % 3, torch.empty(len(scaled))
    for number in range(3):
        rows = scaled[fold != number]
        permuted = torch.stack([column[torch.randperm(len(rows))] for column in rows.T], 1)
        label = torch.repeat_interleave(torch.tensor([0, 1]), len(rows))
        classifier = model((32,), scaled.shape[1], 2)
        descend(Training(classifier, torch.cat([rows, permuted]), label, [], 150, 1e-2), erm)
        with torch.no_grad():
            outputs = classifier(scaled[fold == number])
        ratios[fold == number] = (outputs[:, 1] - outputs[:, 0]).exp().clamp(1 / 50, 50)
    descend(of, weighted(ratios))


# ---- two trainings


def jtt(of: Training) -> None:
    first = again(of, steps=round(0.5 * of.steps))
    descend(first, erm)
    with torch.no_grad():
        wrong = first.net(of.x).argmax(1) != of.y
    descend(of, weighted(torch.where(wrong, 10.0, 1.0)))


def eiil(of: Training) -> None:
    reference = again(of)
    reference.rate = 1e-2
    descend(reference, erm)
    with torch.no_grad():
        z = reference.net[:-1](of.x)
        residuals = reference.net[-1](z) - of.y.unsqueeze(1)
        slopes = (2 * residuals * z * reference.net[-1].weight).double()  # by a factor of each input of the last layer
        starts = torch.cat([torch.ones(slopes.shape[1], 1), torch.linalg.eigh(slopes.T @ slopes).eigenvectors], 1)
        side = slopes @ starts > 0
        for _ in range(100):
            before, side = side, slopes @ (slopes.T @ (2 * side.double() - 1)) > 0
            if before.equal(side):
                break
        sums = slopes.T @ side.double()
        others = slopes.sum(0).unsqueeze(1) - sums
        second = side[:, (sums.square().sum(0) + others.square().sum(0)).argmax()]
    order = second.long().argsort(stable=True)
    split = again(of, order)
    split.sizes = [int((~second).sum()), int(second.sum())]
    descend(split, LOSSES["irm"])


def held_out(of: Training) -> tuple[Training, Tensor]:
    """A training on four fifths of the rows; and the other rows."""
    order = torch.randperm(len(of.y))
    held, rest = order[: len(order) // 5], order[len(order) // 5 :]
    part = again(of, rest)
    descend(part, erm)
    return part, held


def dfr(of: Training) -> None:
    part, held = held_out(of)
    label = torch.repeat_interleave(torch.arange(len(of.sizes)), torch.tensor(of.sizes))
    with torch.no_grad():
        z, y = part.net[:-1](of.x[held]), of.y[held]
    groups = label[held] * 2 + y
    weights = (1 / torch.bincount(groups))[groups]
    scaled = (z - z.mean(0)) / (z.std(0) + 1e-6)
    LogisticRegression(C=1.0).fit(scaled.numpy(), y.numpy(), (weights / weights.mean()).numpy())


def afr(of: Training) -> None:
    part, held = held_out(of)
    last = part.net[-1]
    with torch.no_grad():
        z, y = part.net[:-1](of.x[held]), of.y[held]
        weights = (-4.0 * last(z).softmax(1)[torch.arange(len(y)), y]).exp() / torch.bincount(y)[y]
        start = [parameter.clone() for parameter in last.parameters()]
    weights = weights / weights.sum()
    optimizer = torch.optim.LBFGS(last.parameters(), max_iter=50, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        pulls = [(now - then).square().sum() for now, then in zip(last.parameters(), start, strict=True)]
        objective = weights @ functional.cross_entropy(last(z), y, reduction="none") + 0.1 * (pulls[0] + pulls[1])
        objective.backward()
        return objective

    optimizer.step(closure)


def irm_matrix(of: Training) -> None:
    matrix = torch.eye(of.x.shape[1], requires_grad=True)
    ones = torch.ones(of.x.shape[1], 1, requires_grad=True)
    optimizer = torch.optim.Adam([matrix], lr=of.rate)
    environments = list(zip(of.x.split(of.sizes), of.y.split(of.sizes), strict=True))
    for step in range(of.steps):
        of.step = step
        risk, gaps = torch.zeros(()), torch.zeros(())
        for x, y in environments:
            own = (x @ matrix @ ones).squeeze(1).sub(y).square().mean()
            gaps = gaps + torch.autograd.grad(own, ones, create_graph=True)[0].square().mean()
            risk = risk + own
        optimizer.zero_grad()
        ((risk + 100.0 * gaps) / 101.0).backward(inputs=[matrix])
        optimizer.step()


WHOLE: dict[str, Callable[[Training], None]] = {
    fit.__name__: fit for fit in (afr, dann, dfr, dwr, eiil, fish, irm_matrix, jtt, lisa, reweight, srdo, subsample)
}
