"""Datasets: environments for training, validation and test, for a seed and named settings."""

from __future__ import annotations

import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.encoder import Encoder
from oodbench.engine.data import Environment, Task
from oodbench.engine.models import Linear, Model
from oodbench.engine.recipe import Recipe
from oodbench.errors import SealedError
from oodbench.plugin.files import DataFiles


class Dataset(ABC):
    """What an author writes: a frozen dataclass whose fields are the settings, and three lists of environments.

    The training environments are the known groups of the training rows; a dataset without group labels returns
    one environment. Validation environments are what selectors look at. Test environments stay sealed until a
    selection has been written down.

    `task` and `classes` are plain values of the class, or properties where they depend on the settings.

    Examples:
        >>> @dataclass(frozen=True)
        ... class Noise(Dataset):
        ...     task = "regression"
        ...     rows: int = setting(100, "rows of each environment")
        ...
        ...     def train(self, seed):
        ...         return [self._draw(self.rng(seed, "train"))]
        ...
        ...     def validation(self, seed):
        ...         return [self._draw(self.rng(seed, "validation"))]
        ...
        ...     def test(self, seed):
        ...         return [self._draw(self.rng(seed, "test"))]
        ...
        ...     def _draw(self, rng):
        ...         return Environment("noise", rng.normal(size=(self.rows, 3)), rng.normal(size=self.rows))
    """

    model: ClassVar[Model] = Linear()
    """The model family of methods here, unless the user says otherwise."""
    recipe: ClassVar[Recipe] = Recipe()
    """How they train."""
    tiny: ClassVar[Mapping[str, Any]] = {}
    """Settings that make the dataset small enough for a test."""
    essential: ClassVar[tuple[str, ...]] = ()
    """Settings that a dataset of a user's file needs, the path first: `oodbench new NAME FILE` writes a description."""
    description: ClassVar[str] = ""
    """The file that describes it, if it was made from one."""
    files: ClassVar[DataFiles | None] = None
    """What `oodbench data` fetches and verifies for it."""

    @property
    @abstractmethod
    def task(self) -> Task:
        """`"regression"` or `"classification"`."""

    @property
    def classes(self) -> int:
        """How many, for classification; y is 0, 1, ..."""
        return 2

    @property
    def file_hash(self) -> str:
        """The hash of files that the rows come from, if any; a different hash makes a different study."""
        return ""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the features, if they have any."""
        return None

    @property
    def categories(self) -> tuple[range, ...]:
        """The places of the columns of each categorical variable, in their order: in a row one of them is 1, or none.

        The model `mlp` can embed them.
        """
        return ()

    @property
    def variant(self) -> str:
        """A suffix that separates results on other rows under the same settings: NAME@variant."""
        return ""

    @property
    def notice(self) -> str:
        """What a reader of its results must know. It is shown with all of them."""
        return ""

    def describe_data(self) -> Mapping[str, Sequence[Mapping[str, object]]]:
        """How the data was read, as tables by their titles: `oodbench show NAME --set ...` prints them.

        The rows of a table have the same keys, in the same order.
        """
        return {}

    @property
    def warnings(self) -> Sequence[str]:
        """What in the data looks like a mistake, one sentence or two each. `oodbench show` and `run` print them."""
        return ()

    @property
    def target_is_scaled(self) -> bool:
        """Whether the targets of a regression are standardised: boards then label errors as scaled."""
        return False

    @property
    def rows_left_out(self) -> Mapping[str, int]:
        """Rows of the data that are in no environment, by the reason. The plan of a run and its boards show them."""
        return {}

    @property
    def facts(self) -> Mapping[str, float | int]:
        """What the author knows of the data and gives to methods that `uses` it, such as alpha0."""
        return {}

    def encoder(self, seed: int) -> Encoder | None:
        """How raw rows become this seed's features, and what outputs stand for, if the dataset encodes raw rows.

        The dataset encodes its own rows with it. Models that are kept have it, and so take raw rows.
        """
        return None

    @property
    def invariant(self) -> tuple[int, ...] | None:
        """The places of the columns whose relation to y is the same in every environment, where the author knows."""
        return None

    def coefficients(self, seed: int) -> NDArray[np.float64] | None:
        """The true coefficients of the columns in a regression, where the author knows them: causal ones are not 0.

        Methods never see them. Boards show how far those of linear models are from them, as `causal_error` and
        `noncausal_error`.
        """
        return None

    @abstractmethod
    def train(self, seed: int) -> Sequence[Environment]:
        """The known groups of the training rows, or one environment."""

    @abstractmethod
    def validation(self, seed: int) -> Sequence[Environment]:
        """What configurations are chosen by."""

    @abstractmethod
    def test(self, seed: int) -> Sequence[Environment]:
        """What the chosen configuration is evaluated on, once. In a search worker this raises."""

    def all_train(self, seed: int) -> tuple[Sequence[Environment], Encoder | None]:
        """All training rows, for a model that is fitted again to more than a seed's part of them, and their encoder.

        Unless a dataset says otherwise, those of the seed and the validation rows of environments of the same names.
        """
        others = {environment.name: environment for environment in self.validation(seed)}
        together = [
            Environment.pooled(own.name, [own, others[own.name]] if own.name in others else [own])
            for own in self.train(seed)
        ]
        return together, self.encoder(seed)

    def rng(self, seed: int, part: str) -> np.random.Generator:
        """A generator for one part of the data; parts do not share a stream."""
        return np.random.default_rng([seed, *type(self).__name__.encode(), 0, *part.encode()])

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "test" in cls.__dict__:
            cls.test = _refuse_when_sealed(cls.test)  # type: ignore[method-assign]


def fault_in(
    part: str, environments: Sequence[Environment], dataset: Dataset, features: int | None = None
) -> str | None:
    """Why these environments cannot be a part of the dataset, or None. Other parts have so many `features`."""
    if not environments:
        return f"there is no {part} environment"
    if not all(isinstance(environment, Environment) for environment in environments):
        return f"{part} must contain only oodbench.Environment objects"
    names = [environment.name for environment in environments]
    if len(set(names)) < len(names):
        return f"{part} environments share a name: {', '.join(names)}"
    widths = {environment.x.shape[1] for environment in environments} | ({features} if features else set())
    if len(widths) > 1:
        return f"{part} environments have different numbers of features: {sorted(widths)}"
    if dataset.columns is not None and len(dataset.columns) not in widths:
        return f"there are {len(dataset.columns)} column names for {widths.pop()} features"
    if len({environment.weights is None for environment in environments}) > 1:
        return f"some {part} environments have weights of rows and others have none"
    if not _are_apart(dataset.categories, max(widths)):
        return f"categories must be ranges of the {max(widths)} columns, in their order and apart"
    return _fault_in_classes(part, environments, dataset, features) if dataset.task == "classification" else None


def _are_apart(categories: Sequence[range], columns: int) -> bool:
    places = [place for category in categories for place in category]
    return places == sorted(set(places) & set(range(columns))) and all(category.step == 1 for category in categories)


def _fault_in_classes(
    part: str, environments: Sequence[Environment], dataset: Dataset, features: int | None
) -> str | None:
    for environment in environments:
        labels = np.unique(environment.y)
        if environment.y.dtype.kind != "i" or labels[0] < 0 or labels[-1] >= dataset.classes:
            return f"{part} {environment.name} has classes {labels.tolist()}, not 0 to {dataset.classes - 1}"
    seen = np.unique(np.concatenate([environment.y for environment in environments]))
    if len(seen) < 2 and features is None:  # the training rows; elsewhere it may be so
        return f"{part} rows are all of class {seen[0]}"
    return None


def fault_in_encoder(encoder: Encoder | None, dataset: Dataset) -> str | None:
    """Why it cannot be the dataset's, or None."""
    if encoder is None:
        return None
    if dataset.columns is not None and encoder.names != tuple(dataset.columns):
        return f"the encoder gives the features {', '.join(encoder.names[:5])} ..., which are not the dataset's columns"
    classes = dataset.classes if dataset.task == "classification" else 0
    if len(encoder.classes) != classes:
        return f"the encoder names {len(encoder.classes)} classes, and the dataset has {classes}"
    return None


_sealed = False


def seal_test_data() -> None:
    """Make every `Dataset.test` in this process raise: search workers call this before anything else."""
    global _sealed
    _sealed = True


def _refuse_when_sealed(test: Callable[..., Sequence[Environment]]) -> Callable[..., Sequence[Environment]]:
    @functools.wraps(test)
    def guarded(self: Dataset, seed: int) -> Sequence[Environment]:
        if _sealed:
            raise SealedError(
                "test environments are sealed while a search runs: a method sees training rows only.\n"
                "Remove the call to Dataset.test from the method."
            )
        return test(self, seed)

    return guarded


def fingerprint(environments: Iterable[Environment]) -> str:
    """A short hash of names and values: equal data, equal fingerprint, on any machine."""
    digest = hashlib.sha256()
    for environment in environments:
        digest.update(f"{environment.name}|{environment.x.shape}|{environment.y.dtype.str}|".encode())
        digest.update(environment.x.astype("<f8", copy=False).data)  # as they lie in memory: no copy of them is made
        digest.update(environment.y.data)
        if environment.weights is not None:
            digest.update(environment.weights.astype("<f8", copy=False).data)
    return digest.hexdigest()[:16]
