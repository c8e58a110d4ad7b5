"""What a loss sees of a gradient step: the rows and hyper-parameters of all trials of a pack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from oodbench.engine.coding import signed_targets
from oodbench.engine.gates import Gates, open_share
from oodbench.engine.models import Layered
from oodbench.engine.networks import Networks, Shape
from oodbench.engine.products import multiply_by_seed
from oodbench.engine.recipe import Recipe
from oodbench.engine.state import State
from oodbench.engine.tensor import Tensor
from oodbench.engine.trial import Setup
from oodbench.errors import TrainingFailed

if TYPE_CHECKING:
    from oodbench.engine.batches import Batch
    from oodbench.engine.chance import Chance


class Hparams:
    """Hyper-parameters of a pack: `hp.alpha0` is a tensor [trial]; texts and options are plain values.

    Examples:
        >>> penalty = hp.penalty * risks.var(-1) if hp.variant == "squared" else hp.penalty * risks.std(-1)
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no hyper-parameter {name!r}; the search space has {', '.join(self.__dict__)}")


Rule = Callable[["Rows"], Tensor]


@dataclass(eq=False)
class Program:
    """What stays the same from step to step of a pack's training; `state` is made before the first.

    `rule` is there once a method explored a part of the rows: it says what that means for others.
    """

    setup: Setup
    shape: Shape
    gates: Gates
    networks: Networks
    chance: Chance
    state: State
    rule: Rule | None = None

    def forward(self, parameters: Tensor, batch: Batch, step: int) -> Rows:
        """The rows of a step as the method sees them, at parameters [trial, parameter]."""
        pieces, first_layer = self.pieces(parameters, step)
        outputs, represented = self.apply(pieces, batch.columns, training=parameters.requires_grad)
        losses = self.setup.recipe.row_losses(outputs, batch.y)
        return Rows(losses, outputs, batch.y, step, parameters, self, batch, pieces, represented, first_layer)

    def pieces(self, parameters: Tensor, step: int) -> tuple[tuple[Tensor, ...], Tensor | None]:
        """The parameters as the model takes them, and the first layer before its gates, where there is one."""
        model = self.setup.model
        of_model, _ = self.networks.split(parameters)
        weights, centers = self.gates.split(of_model)
        pieces = model.pieces(weights, self.shape.features, self.shape.outputs)
        if not isinstance(model, Layered):
            return pieces, None
        first_layer = pieces[0].view(len(parameters), -1, self.shape.features + model.bias)
        return (self.gates.close(first_layer, centers, step), *pieces[1:]), first_layer

    def apply(self, pieces: Sequence[Tensor], columns: Tensor, training: bool) -> tuple[Tensor, Tensor]:
        """Outputs and representation of the model."""
        chance = self.chance if training else None
        return self.setup.model.forward(pieces, columns, self.shape.outputs, chance)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of one gradient step, for all trials of a pack.

    Examples:
        >>> worst = rows.risk(rows.environments).amax(-1)  # [trial]
    """

    losses: Tensor  # [trial, row]
    outputs: Tensor  # [trial, output, row]
    y: Tensor  # [trial, row]
    step: int
    parameters: Tensor  # [trial, parameter]
    _program: Program
    _batch: Batch
    _pieces: tuple[Tensor, ...]
    _represented: Tensor  # [seed or trial, unit, row]
    _first_layer: Tensor | None

    # ---- what is known of the rows

    @cached_property
    def x(self) -> Tensor:
        """The features: [trial, feature, row]."""
        return per_trial(self._batch.columns[:, : self._program.shape.features], len(self.y))

    @property
    def shared_x(self) -> Tensor:
        """The features, once for all trials of a seed where they share them: [seed or trial, feature, row]."""
        return self._batch.columns[:, : self._program.shape.features]

    def x_at(self, places: Tensor) -> Tensor:
        """The features of each trial's own choice [trial, row] of these rows: [trial, feature, row]."""
        from oodbench.engine.batches import take_columns

        return take_columns(self.shared_x, places)

    @property
    def classes(self) -> int:
        """How many classes there are, for classification."""
        return max(2, self.outputs.shape[1])

    @property
    def is_regression(self) -> bool:
        return self.y.is_floating_point()

    @property
    def recipe(self) -> Recipe:
        return self._program.setup.recipe

    @property
    def is_part(self) -> bool:
        """Whether these are some of the training rows, not all of them."""
        return self.losses.shape[-1] < self._program.shape.rows

    @cached_property
    def weights(self) -> Tensor:
        """All rows as a sub-population, [trial, row], summing to one: equal weights, or those of the training rows."""
        if self._batch.weights is None:
            return self.losses.detach().new_full(self.losses.shape, 1 / self.losses.shape[-1])
        return self._batch.weights

    @property
    def given_weights(self) -> Tensor | None:
        """`weights` where the training rows have some; None where all count the same, for shorter formulas."""
        return self._batch.weights

    @property
    def environments(self) -> Tensor:
        """The known groups as sub-populations: weights [trial, environment, row], each summing to one."""
        return _told(self._batch.environments)

    @property
    def environment(self) -> Tensor:
        """The number of each row's environment: [trial, row]."""
        return _told(self._batch.environment)

    @property
    def is_explored(self) -> bool:
        """Whether `explore` was called before this step."""
        return self._batch.explored is not None or self._program.rule is not None

    @cached_property
    def explored(self) -> Tensor:
        """What `explore` found last: [trial, row] or [trial, k, row], each summing to one."""
        if self._program.rule is not None:
            weights = self._program.rule(self)
            return weights / weights.sum(-1, keepdim=True).clamp(min=1e-12)
        if self._batch.explored is None:
            raise AttributeError("nothing is explored yet: explores_at must be true at step 0, or ask rows.is_explored")
        return self._batch.explored

    def part(self) -> Rows:
        """For `explore`: a fixed part of the rows if there are too many to fit all, the same in all trials of a seed.

        How many these are is a setting of the recipe, `explore`.
        """
        return self

    def explore_by(self, rule: Rule) -> None:
        """For `explore`, if it fitted a part: how further rows get their weights [trial, row] or [trial, k, row].

        They need not sum to one. What `explore` returns does not count then.
        """
        self._program.rule = rule

    @property
    def gates(self) -> Tensor:
        """How far the gates are open, without their noise: [trial, feature]."""
        of_model, _ = self._program.networks.split(self.parameters)
        _, centers = self._program.gates.split(of_model)
        if centers is None:
            raise AttributeError("there are no gates: add gate_noise = 0.1 to the method")
        return open_share(centers)

    @property
    def state(self) -> State:
        """What the method keeps for each trial from step to step; `start` makes it."""
        return self._program.state

    def signed_targets(self) -> Tensor:
        """What a least squares fits: [trial, output, row]."""
        return signed_targets(self.y, self.classes)

    # ---- what the model makes of them

    @property
    def learns_representation(self) -> bool:
        """Whether what the last layer sees depends on the model; for a linear model it is x itself."""
        return self._program.setup.model.learns_representation

    @property
    def first_layer(self) -> Tensor:
        """The first layer's weights: [trial, unit, feature (+ 1 for a bias)]."""
        if self._first_layer is None:
            raise TrainingFailed("the method looks at the first layer: use the model linear or mlp.")
        return self._first_layer

    @cached_property
    def representation(self) -> Tensor:
        """What the last layer sees of each row: [trial, unit, row]."""
        return per_trial(self._represented, len(self.y))

    @property
    def learned(self) -> Tensor:
        """The representation, or a linear model's outputs, whose representation is constant: [trial, unit, row]."""
        return self.representation if self.learns_representation else self.outputs

    @property
    def output_slopes(self) -> Tensor:
        """The derivative of each row's loss by its outputs: [trial, output, row]."""
        return self.recipe.output_slopes(self.outputs, self.y)

    def losses_for(self, y: Tensor) -> Tensor:
        """The losses of the same outputs for other targets: [trial, row]."""
        return self.recipe.row_losses(self.outputs, y)

    def forward(self, x: Tensor) -> Rows:
        """The same model on other inputs [trial, feature, row], with the targets of these rows."""
        if x.shape[:2] != self.x.shape[:2]:
            raise TrainingFailed(f"rows.forward takes x [trial, feature, row] like rows.x, not {tuple(x.shape)}.")
        batch = replace(self._batch, columns=self._program.setup.model.columns(x))
        outputs, represented = self._program.apply(self._pieces, batch.columns, self.parameters.requires_grad)
        losses = self.recipe.row_losses(outputs, self.y)
        return replace(self, losses=losses, outputs=outputs, _batch=batch, _represented=represented)

    def with_outputs(self, outputs: Tensor) -> Rows:
        """These rows with other outputs [trial, output, row], and their losses."""
        return replace(self, losses=self.recipe.row_losses(outputs, self.y), outputs=outputs)

    def at(self, parameters: Tensor) -> Rows:
        """The same rows under other parameters [trial, parameter]."""
        return self._program.forward(parameters, self._batch, self.step)

    def represented_at(self, parameters: Tensor) -> Tensor:
        """What the last layer sees of each row under other parameters [trial, parameter]: [trial, unit, row]."""
        pieces, _ = self._program.pieces(parameters, self.step)
        return per_trial(self._program.setup.model.represent(pieces, self._batch.columns), len(self.y))

    def network(self, name: str, inputs: Tensor) -> Tensor:
        """Outputs [trial, output, row] of a network of the method's own."""
        if not (self.learns_representation or inputs.requires_grad):
            raise TrainingFailed(
                f"network {name!r} is given inputs that a linear model cannot change: use rows.learned, or an MLP."
            )
        _, of_networks = self._program.networks.split(self.parameters)
        return self._program.networks.apply(name, of_networks, inputs)

    def take(self, places: Tensor) -> Rows:
        """Each trial's own choice [trial, row] of these rows; sub-populations are scaled to sum to one again."""
        across = places.unsqueeze(1)
        return replace(
            self,
            losses=self.losses.gather(1, places),
            outputs=self.outputs.gather(2, across.expand(-1, self.outputs.shape[1], -1)),
            y=self.y.gather(1, places),
            _batch=self._batch.take(places),
            _represented=self.representation.gather(2, across.expand(-1, self._represented.shape[1], -1)),
        )

    def sample(self, size: int) -> Rows:
        """At most so many of these rows, drawn by each trial: what costs the square of the rows needs few."""
        if size >= self.losses.shape[-1]:
            return self
        return self.take(self.permutation()[:, :size])

    # ---- risks and gradients

    def risk(self, weights: Tensor | None = None) -> Tensor:
        """Mean loss, of all rows or under sub-populations: [trial, row] -> [trial], [trial, k, row] -> [trial, k]."""
        if weights is None:
            return self.losses.mean(-1) if self._batch.weights is None else _weighted(self.losses, self.weights)
        return _weighted(self.losses, weights)

    def scale_gradient(self, weights: Tensor) -> Tensor:
        """How the risks change as the outputs are scaled, at scale 1: shapes as for `risk`."""
        return _weighted(self.recipe.row_slopes(self.outputs, self.y), weights)

    def first_layer_gradient(self, weights: Tensor) -> Tensor:
        """The gradient of the risk under weights [trial, row], which may be signed, by the first layer: differentiable.

        [trial, unit, feature]. Where the first layer is the only one, this is a product rather than a backward pass.
        """
        if self.learns_representation or self._program.gates.noise or self._first_layer is None:
            return self.gradient(self.risk(weights), of=self.first_layer)
        columns = self._batch.columns
        slopes = self.output_slopes * weights.unsqueeze(1)  # [trial, output, row]
        product = multiply_by_seed(slopes, columns.transpose(1, 2))
        return product.view(len(slopes), -1, columns.shape[1])

    def gradient(self, risk: Tensor, of: Tensor | None = None) -> Tensor:
        """The gradient of a risk [trial] by `rows.parameters`, or by `rows.first_layer`: itself differentiable."""
        from torch.autograd import grad

        (gradient,) = grad(risk.sum(), self.parameters if of is None else of, create_graph=True)
        return gradient

    def gradients(self, risks: Tensor, differentiable: bool = False) -> Tensor:
        """The gradients of several risks [trial, k] by `rows.parameters`: [trial, k, parameter]."""
        import torch

        each = [
            torch.autograd.grad(risk.sum(), self.parameters, retain_graph=True, create_graph=differentiable)[0]
            for risk in risks.unbind(1)
        ]
        return torch.stack(each, 1)

    def descent(self, objective: Tensor, name: str) -> Tensor:
        """The gradient of an objective [trial] by the parameters, for a step; `name` is what returned it."""
        from torch import Tensor as TorchTensor
        from torch.autograd import grad

        if not isinstance(objective, TorchTensor) or not objective.requires_grad:
            raise TrainingFailed(f"{name} does not depend on the model: use rows.losses or outputs")
        if objective.shape != (len(self.y),):
            raise TrainingFailed(
                f"{name} must return one number per trial, shape ({len(self.y)},), "
                f"not {tuple(objective.shape)}; reduce over the last dimension with mean(-1) or rows.risk"
            )
        (gradient,) = grad(objective.sum(), self.parameters)
        return gradient

    # ---- chance, every trial's from a generator of its own

    def uniform(self, *shape: int) -> Tensor:
        """Numbers in [0, 1): [trial, *shape]."""
        return self._program.chance.uniform(*shape)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers: [trial, *shape]."""
        return self._program.chance.normal(*shape)

    def beta(self, alpha: Tensor, *shape: int) -> Tensor:
        """Numbers from Beta(alpha, alpha), alpha [trial]: [trial, *shape]."""
        return self._program.chance.beta(alpha, *shape)

    def permutation(self) -> Tensor:
        """The numbers of the rows in random order: [trial, row]."""
        return self._program.chance.permutation(self.losses.shape[-1])


class ManyRows(Rows):
    """All training rows of `explore` where they are many: what a method does not ask for is not computed."""

    _make: Callable[[], Rows]
    _part: Rows

    def __init__(self, make: Callable[[], Rows], part: Rows) -> None:
        self.__dict__.update(_make=make, _part=part, _program=part._program)

    def part(self) -> Rows:
        return self._part

    def __getattr__(self, name: str) -> Any:
        if name not in Rows.__dataclass_fields__:
            raise AttributeError(name)
        self.__dict__.update(vars(self._make()))
        return self.__dict__[name]


def _told(labels: Tensor | None) -> Tensor:
    if labels is None:
        raise AttributeError('environment labels are not given: add needs = {"environments"} to the method')
    return labels


def _weighted(values: Tensor, weights: Tensor) -> Tensor:
    return ((values if weights.dim() == 2 else values.unsqueeze(1)) * weights).sum(-1)


def per_trial(by_seed: Tensor, trials: int) -> Tensor:
    """[seed, ...] -> [trial, ...], without a copy where one seed serves all trials."""
    repeats = trials // len(by_seed)
    expanded = by_seed.unsqueeze(1).expand(-1, repeats, *by_seed.shape[1:])
    return expanded.reshape(-1, *by_seed.shape[1:])
