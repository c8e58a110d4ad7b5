"""Methods: a search space, what the method must be told, and how training rows become predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from oodbench.models import Model
from oodbench.recipe import Recipe
from oodbench.space import Choice, Dimension, Fixed, LogUniform, Space, Value
from oodbench.trial import Setup, Trial, trials_that_fit

if TYPE_CHECKING:
    from torch import Tensor

    from oodbench.dataset import Environment, Task

INFORMATION = frozenset({"environments"})
"""What a method may need. Test data is not among it, whatever the name."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The training rows of one seed, as a method sees them: read-only, and its own.

    Examples:
        >>> mean = train.x[train.environment == 0].mean(0)
    """

    x: NDArray[np.float64]  # [row, feature]
    y: NDArray[Any]  # [row]
    task: Task
    classes: int
    environment: NDArray[np.int64] | None = None  # [row], only for methods that need environments
    columns: tuple[str, ...] | None = None

    @classmethod
    def pooled(
        cls,
        environments: Sequence[Environment],
        task: Task,
        classes: int,
        labelled: bool,
        columns: tuple[str, ...] | None,
    ) -> TrainingRows:
        rows = cls(
            x=np.concatenate([environment.x for environment in environments]),
            y=np.concatenate([environment.y for environment in environments]),
            task=task,
            classes=classes,
            environment=np.repeat(np.arange(len(environments)), [len(e) for e in environments]) if labelled else None,
            columns=columns,
        )
        return rows.copy()

    def copy(self) -> TrainingRows:
        """The same rows in memory of their own, read-only: whatever a method does to them, others keep theirs."""
        copied = replace(
            self,
            x=self.x.copy(),
            y=self.y.copy(),
            environment=None if self.environment is None else self.environment.copy(),
        )
        for array in (copied.x, copied.y, copied.environment):
            if array is not None:
                array.flags.writeable = False
        return copied

    def __len__(self) -> int:
        return len(self.y)


class Predictor(Protocol):
    """Anything with `predict`: values for regression, class numbers for classification. [row] -> [row]

    A predictor that also has `losses(x, y)` reports its own loss; for the others the loss is the error. A classifier
    may have `outputs(x)` too: a logit, score or probability per class, [row, class].

    Examples:
        >>> class Mean:
        ...     def predict(self, x):
        ...         return np.zeros(len(x))
    """

    def predict(self, x: NDArray[np.float64]) -> NDArray[Any]:
        """What it says of each row."""
        ...


@runtime_checkable
class GivesOutputs(Protocol):
    """What a classifier may have besides `predict`: a logit, score or probability per class. [row] -> [row, class]"""

    def outputs(self, x: NDArray[np.float64]) -> NDArray[Any]: ...


@runtime_checkable
class Storable(Protocol):
    """A predictor that the record can keep: as plain arrays, since nothing else is safe to load."""

    def arrays(self) -> dict[str, NDArray[Any]]: ...

    def about(self) -> dict[str, str]:
        """What must be known to use the arrays."""
        ...


@dataclass(frozen=True)
class Preset:
    """Settings of a method that belong together, used as METHOD:PRESET. What the user sets wins over them.

    Examples:
        >>> presets = {"released": Preset("The authors' code.", fix={"penalty": 10.0}, training={"steps": 300})}
    """

    about: str
    fix: Mapping[str, Fixed] = field(default_factory=dict)
    model: Model | None = None  # instead of the dataset's
    training: Mapping[str, Any] = field(default_factory=dict)


class Method:
    """A method with `fit`: anything that turns training rows into a predictor, trees and foreign estimators alike.

    Examples:
        >>> class Boosting(Method):
        ...     tasks = ("classification",)
        ...     space = {"max_depth": Integer(2, 8, default=4)}
        ...
        ...     def fit(self, train, hparams, seed):
        ...         return HistGradientBoostingClassifier(random_state=seed % 2**32, **hparams).fit(train.x, train.y)
    """

    needs: ClassVar[set[str] | frozenset[str]] = frozenset()
    """Information without which it cannot train: {"environments"}."""
    uses: ClassVar[set[str] | frozenset[str]] = frozenset()
    """Hyper-parameters it takes from the dataset's facts where those tell them, rather than search."""
    tasks: ClassVar[tuple[Task, ...]] = ("regression", "classification")
    """What it can do."""
    space: ClassVar[Mapping[str, Dimension]] = {}
    """Hyper-parameters: each a word, with its range and default."""
    presets: ClassVar[Mapping[str, Preset]] = {}
    """Settings that belong together, by name."""

    def search_space(self) -> Space:
        """All that is searched or can be fixed."""
        return self.space

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        """Raise InvalidSetting if it cannot train on such rows with the hyper-parameters that are not searched."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        """Train once, with all chance from `seed`."""
        raise NotImplementedError(f"{type(self).__name__} defines neither fit nor fit_pack")

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], setup: Setup) -> list[Predictor]:
        """The one door for the harness: a predictor per trial, from the training rows of every seed."""
        return [self.fit(train[trial.seed], trial.hparams, trial.entropy) for trial in trials]

    def pack_capacity(self, rows: int, outputs: int, setup: Setup) -> int:
        """How many trials are worth training together."""
        return 1

    def gradient_steps(self, setup: Setup) -> int:
        """Gradient steps of one training, for the ledger."""
        return 0


class LossMethod(Method):
    """A method given by its loss: no loop, no optimizer, no device, no logging.

    `loss` sees all trials of a pack at once and returns one number per trial.

    Examples:
        >>> class VREx(LossMethod):
        ...     needs = {"environments"}
        ...     space = {"penalty": LogUniform(1e-1, 1e3, default=10.0)}
        ...
        ...     def loss(self, rows, hp):
        ...         risks = rows.risk(rows.environments)  # [trial, environment]
        ...         return risks.mean(-1) + hp.penalty * risks.var(-1)
    """

    common: ClassVar[Mapping[str, Dimension]] = {
        "learning_rate": LogUniform(1e-3, 1e-1, default=1e-2),
        "weight_decay": Choice(0.0, 1e-4, 1e-3, 1e-2),
    }
    """Hyper-parameters of all loss methods."""
    gate_noise: ClassVar[float] = 0.0
    """Above 0, each feature passes a stochastic gate of so much noise, trained along: `rows.gates`."""

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        """What a gradient step makes smaller: one number per trial, [trial]."""
        raise NotImplementedError(f"{type(self).__name__} does not define loss")

    def explores_at(self, step: int, hp: Hparams) -> bool:
        """Whether `explore` is asked before this step."""
        return False

    def explore(self, rows: Rows, hp: Hparams) -> Tensor:
        """A sub-population [trial, row] of all training rows, or several [trial, k, row], for `rows.explored`."""
        raise NotImplementedError(f"{type(self).__name__} does not define explore")

    def search_space(self) -> Space:
        return {**self.common, **self.space}

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], setup: Setup) -> list[Predictor]:
        from oodbench.pack import train_pack

        return list(train_pack(self, train, trials, setup))

    def pack_capacity(self, rows: int, outputs: int, setup: Setup) -> int:
        return trials_that_fit(setup, rows, outputs)

    def gradient_steps(self, setup: Setup) -> int:
        return setup.recipe.steps


class Hparams:
    """Hyper-parameters of a pack: `hp.alpha0` is a tensor [trial]; texts and options are plain values.

    Examples:
        >>> penalty = hp.penalty * risks.var(-1) if hp.variant == "squared" else hp.penalty * risks.std(-1)
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no hyper-parameter {name!r}; the search space has {', '.join(self.__dict__)}")


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
    recipe: Recipe = field(default_factory=Recipe)
    explored: Tensor | None = None  # [trial, row] or [trial, k, row]: what `explore` found last, if asked yet
    environments_or_none: Tensor | None = None  # [trial, environment, row]
    gates: Tensor | None = None  # [trial, feature]: how far the gates are open, without their noise
    columns: Tensor | None = None  # [seed or trial, feature (+ 1 for a bias), row]: what the first layer is applied to
    random: Tensor | None = None  # [trial, row]: numbers in [0, 1), each trial's own; only while exploring
    represented: Tensor | None = None  # [seed or trial, unit, row]: what the last layer is applied to
    parameters: Tensor | None = None  # [trial, parameter]
    first_layer: Tensor | None = None  # [trial, unit, feature]

    @property
    def environments(self) -> Tensor:
        """The known groups as sub-populations: weights [trial, environment, row], each summing to one."""
        if self.environments_or_none is None:
            raise AttributeError('environment labels are not given: add needs = {"environments"} to the method')
        return self.environments_or_none

    @property
    def classes(self) -> int:
        """How many classes there are, for classification."""
        return max(2, self.outputs.shape[1])

    @property
    def representation(self) -> Tensor:
        """What the last layer sees of each row: [trial, unit, row]."""
        assert self.represented is not None
        return per_trial(self.represented, len(self.losses) // len(self.represented))

    def signed_targets(self) -> Tensor:
        """What a least squares fits: [trial, output, row]."""
        return signed_targets(self.y, self.classes)

    def risk(self, weights: Tensor) -> Tensor:
        """Mean loss under sub-populations: [trial, row] -> [trial], [trial, k, row] -> [trial, k]."""
        return _weighted(self.losses, weights)

    def scale_gradient(self, weights: Tensor) -> Tensor:
        """How the risks change as the outputs are scaled, at scale 1: shapes as for `risk`."""
        return _weighted(self.recipe.row_slopes(self.outputs, self.y), weights)

    def first_layer_gradient(self, weights: Tensor) -> Tensor:
        """The gradient of the risk under weights [trial, row], which may be signed, by the first layer: differentiable.

        [trial, unit, feature]. Where the first layer is the only one, this is a product rather than a backward pass.
        """
        if self.columns is None or self.represented is not self.columns or self.gates is not None:
            return self.gradient(self.risk(weights), of=self.first_layer)
        slopes = self.recipe.output_slopes(self.outputs, self.y) * weights.unsqueeze(1)  # [trial, output, row]
        seeds, width, _ = self.columns.shape
        product = slopes.view(seeds, -1, slopes.shape[2]).bmm(self.columns.transpose(1, 2))
        return product.view(len(slopes), -1, width)

    def gradient(self, risk: Tensor, of: Tensor | None) -> Tensor:
        """The gradient of a risk [trial] by `rows.parameters` or `rows.first_layer`, itself differentiable."""
        from torch.autograd import grad

        assert of is not None
        (gradient,) = grad(risk.sum(), of, create_graph=True)
        return gradient


def signed_targets(y: Tensor, classes: int) -> Tensor:
    """What a least squares fits: y, or for classes -1 and +1 (two of them with one output). [trial, output, row]"""
    if y.is_floating_point():
        return y.float().unsqueeze(1)
    of_class = y.new_tensor([1] if classes == 2 else range(classes))
    return 2 * (y.unsqueeze(1) == of_class.view(1, -1, 1)).float() - 1


def _weighted(values: Tensor, weights: Tensor) -> Tensor:
    return ((values if weights.dim() == 2 else values.unsqueeze(1)) * weights).sum(-1)


def per_trial(by_seed: Tensor, repeats: int) -> Tensor:
    """[seed, ...] -> [trial, ...], without a copy where one seed serves all trials."""
    expanded = by_seed.unsqueeze(1).expand(-1, repeats, *by_seed.shape[1:])
    return expanded.reshape(-1, *by_seed.shape[1:])
