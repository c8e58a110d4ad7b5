"""Methods: a search space, the information a method needs, and how training rows become predictors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from oodbench.engine.data import TrainingRows
from oodbench.engine.models import Model
from oodbench.engine.networks import Network, Shape
from oodbench.engine.predictor import Predictor
from oodbench.engine.rows import Hparams, Rows
from oodbench.engine.tensor import Tensor
from oodbench.engine.trainer import Trainer
from oodbench.engine.trial import Setup, Trial, trials_that_fit
from oodbench.settings.space import Choice, Dimension, Fixed, LogUniform, Space, Value

if TYPE_CHECKING:
    from oodbench.engine.data import Task

INFORMATION = frozenset({"environments", "invariant"})
"""What a method may need. Test data is never part of it."""


@dataclass(frozen=True)
class Preset:
    """Settings of a method that belong together, used as METHOD:PRESET. The user's settings override them.

    Examples:
        >>> presets = {"released": Preset("The authors' code.", fix={"penalty": 10.0}, recipe={"steps": 300})}
    """

    about: str
    fix: Mapping[str, Fixed] = field(default_factory=dict)
    model: Model | None = None  # instead of the dataset's
    recipe: Mapping[str, Any] = field(default_factory=dict)


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
    """Information without which it cannot train: {"environments"}, or {"invariant"} for the invariant columns."""
    uses: ClassVar[set[str] | frozenset[str]] = frozenset()
    """Hyper-parameters it takes from the dataset's facts, where there are such facts, instead of searching them."""
    tasks: ClassVar[tuple[Task, ...]] = ("regression", "classification")
    """What it can do."""
    space: ClassVar[Mapping[str, Dimension]] = {}
    """Hyper-parameters: each a word, with its range and default."""
    presets: ClassVar[Mapping[str, Preset]] = {}
    """Settings that belong together, by name."""

    trials_per_task: ClassVar[int] = 1
    """How many trainings one task of a worker does: many, where one takes less than the way to a worker."""
    on_gpu: ClassVar[bool] = False
    """Whether it computes on the study's device; if not, it gets no GPU."""
    takes_weights: ClassVar[bool] = False
    """Whether it counts rows by `train.weights`, where a dataset gives them. If not, it is refused on such datasets. A
    loss method takes them through `rows.risk()`; one with a `fit_pack` of its own, or a `fit`, must say so."""
    pauses: ClassVar[bool] = False
    """Whether its trainings can pause and go on: `fit_pack` calls `trainer.fit` once, and all else that it does depends
    on the rows and the trials alone. Loss methods can; one with a `fit_pack` of its own must say so."""
    steps_ahead: ClassVar[bool] = False
    """Whether a pack makes gradient steps ahead of its trainings, however short these are. Many short trainings would
    take more steps than a random search, so it is not searched by halving."""
    shares_rows: ClassVar[bool] = False
    """Whether `fit_pack` gets rows that all workers of a machine share, with `train.x` in single precision, instead of
    a copy of its own in double precision. It must not write into them, not even through torch. Loss methods do; one
    with a `fit_pack` of its own must say so."""
    ranked: ClassVar[bool] = True
    """Whether boards rank it; if not, it is a reference: shown, and compared with nothing."""

    def search_space(self) -> Space:
        """All that is searched or can be fixed."""
        return self.space

    def needs_with(self, hparams: Mapping[str, Value]) -> frozenset[str]:
        """The information it needs with the hyper-parameters that are not searched: `needs`, or more."""
        return frozenset(self.needs)

    def check(self, train: TrainingRows, hparams: Mapping[str, Value]) -> None:
        """Raise InvalidSetting if it cannot train on such rows with the hyper-parameters that are not searched."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Value], seed: int) -> Predictor:
        """Train once, with all randomness from `seed`."""
        raise NotImplementedError(f"{type(self).__name__} defines neither fit nor fit_pack")

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        """What the harness calls: a predictor per trial, from the training rows of every seed.

        A method in several stages overrides this; what `trainer` trains is counted in the ledger.
        """
        return [self.fit(train[trial.seed], trial.hparams, trial.entropy) for trial in trials]

    def pack_capacity(self, rows: int, outputs: int, setup: Setup) -> int:
        """How many trials are worth training together."""
        return self.trials_per_task


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
        ...         return risks.mean(-1) + hp.penalty * risks.var(-1, correction=0)
    """

    common: ClassVar[Mapping[str, Dimension]] = {
        "learning_rate": LogUniform(1e-3, 1e-1, default=1e-2),
        "weight_decay": Choice(0.0, 1e-4, 1e-3, 1e-2),
    }
    """Hyper-parameters of all loss methods."""
    gate_noise: ClassVar[float] = 0.0
    """Above 0, each feature passes a stochastic gate with this noise, trained with the model: `rows.gates`."""
    explores_part: ClassVar[bool] = False
    """Whether `explore` looks at `rows.part()` alone, not at all rows: the memory of a run depends on it."""
    on_gpu = True
    takes_weights = True
    pauses = True
    shares_rows = True
    optimizer: ClassVar[str] = ""
    """adam, sgd, or plain (the direction itself is the step); empty: that of the recipe."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit_pack" in cls.__dict__ and "takes_weights" not in cls.__dict__:
            cls.takes_weights = False  # it may give its rows other weights: the author must say
        if "fit_pack" in cls.__dict__ and "pauses" not in cls.__dict__:
            cls.pauses = False  # it may train in several stages
        if "fit_pack" in cls.__dict__ and "shares_rows" not in cls.__dict__:
            cls.shares_rows = False  # it may compute with them, or write into them: the author must say

    def loss(self, rows: Rows, hp: Hparams) -> Tensor:
        """What a gradient step makes smaller: one number per trial, [trial]."""
        raise NotImplementedError(f"{type(self).__name__} does not define loss")

    def direction(self, rows: Rows, hp: Hparams) -> Tensor:
        """What the optimizer steps against, [trial, parameter]: the gradient of `loss`, unless a method has another."""
        return rows.descent(self.loss(rows, hp), f"{type(self).__name__}.loss")

    def start(self, rows: Rows, hp: Hparams) -> Mapping[str, Tensor]:
        """Tensors [trial, ...] that are kept from step to step as `rows.state`, from the rows of the first step."""
        return {}

    def networks(self, shape: Shape, hp: Hparams) -> Mapping[str, Network]:
        """Networks of its own, trained with the model: `rows.network(name, inputs)`."""
        return {}

    def explores_at(self, step: int, hp: Hparams) -> bool:
        """Whether `explore` is called before this step."""
        return False

    def explore(self, rows: Rows, hp: Hparams) -> Tensor:
        """A sub-population [trial, row] of all training rows, or several [trial, k, row], for `rows.explored`."""
        raise NotImplementedError(f"{type(self).__name__} does not define explore")

    def search_space(self) -> Space:
        return {**self.common, **self.space}

    def fit_pack(self, train: Mapping[int, TrainingRows], trials: Sequence[Trial], trainer: Trainer) -> list[Predictor]:
        return list(trainer.fit(self, train, trials))

    def pack_capacity(self, rows: int, outputs: int, setup: Setup) -> int:
        return trials_that_fit(setup, rows, outputs)
