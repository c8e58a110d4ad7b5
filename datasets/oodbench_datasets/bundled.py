"""Small real tables that come with installed packages, each with a natural environment: no network, no files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oodbench import Dataset, Environment, Linear, setting
from oodbench.engine.data import Task
from oodbench.errors import InvalidSetting

if TYPE_CHECKING:
    import pandas as pd


class Rows(NamedTuple):
    """A table as it was read."""

    features: pd.DataFrame
    y: NDArray[Any]
    environment: NDArray[Any]  # the name of each row's


class Source(NamedTuple):
    """Where a table comes from, and which of its environments are for training and for test."""

    read: Callable[[], Rows]
    library: str
    task: Task
    train: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True)
class Bundled(Dataset):
    """Small real tables that come with scikit-learn and statsmodels, each with a natural environment.

    diabetes_by_age, diabetes_by_sex: progression of diabetes (Efron et al. 2004); trained below 50 years or on one sex.
    fair_by_religion: extramarital affairs (Fair 1978); trained on women of middling religiosity. grunfeld_by_firm:
    investment of firms (Grunfeld 1958), in logarithms; trained on six firms. randhie_by_plan: visits to a doctor in the
    RAND health insurance experiment; trained on plans with coinsurance. Features, and the target of a regression, are
    standardised by the training rows. The column that names the environment is no feature.
    """

    model = Linear()

    data: Literal["diabetes_by_age", "diabetes_by_sex", "fair_by_religion", "grunfeld_by_firm", "randhie_by_plan"] = (
        setting("diabetes_by_age", "which table; fair, grunfeld and randhie need statsmodels")
    )
    held_out: float = setting(0.3, "share of each training environment's rows that is for validation")

    def __post_init__(self) -> None:
        if not 0.05 <= self.held_out <= 0.95:
            raise ValueError("held_out must be 0.05 to 0.95.")
        library = SOURCES[self.data].library
        if find_spec(library) is None:
            raise InvalidSetting(
                f"data={self.data} needs {library}, which is not installed.\n"
                f"Install it with `pip install 'oodbench[{library}]'`, or choose data=diabetes_by_age."
            )

    @property
    def task(self) -> Task:
        return SOURCES[self.data].task

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(_read(self.data).features.columns)

    @property
    def target_is_scaled(self) -> bool:
        return self.task == "regression"

    def train(self, seed: int) -> Sequence[Environment]:
        return self._make(seed, {name: parts[0] for name, parts in self._parts(seed).items()})

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._make(seed, {name: parts[1] for name, parts in self._parts(seed).items()})

    def test(self, seed: int) -> Sequence[Environment]:
        """The same rows for every seed, standardised by its training rows."""
        return self._make(seed, {name: self._places(name) for name in SOURCES[self.data].test})

    def _parts(self, seed: int) -> dict[str, list[NDArray[np.int64]]]:
        """The places of the training and validation rows of each training environment."""
        rng = self.rng(seed, "held_out")
        parts = {}
        for name in SOURCES[self.data].train:
            places = rng.permutation(self._places(name))
            kept = len(places) - max(1, round(self.held_out * len(places)))
            parts[name] = [np.sort(places[:kept]), np.sort(places[kept:])]
        return parts

    def _places(self, name: str) -> NDArray[np.int64]:
        return np.flatnonzero(_read(self.data).environment == name)

    def _make(self, seed: int, places: dict[str, NDArray[np.int64]]) -> list[Environment]:
        table = _read(self.data)
        train = np.concatenate([parts[0] for parts in self._parts(seed).values()])
        x = _standardised(table.features.to_numpy(np.float64), train)
        y = _standardised(table.y[:, None], train)[:, 0] if self.task == "regression" else table.y
        return [Environment(name, x[rows], y[rows]) for name, rows in places.items()]


def _standardised(values: NDArray[np.float64], train: NDArray[np.int64]) -> NDArray[np.float64]:
    """To mean 0 and variance 1 of the training rows. A column that is constant there is 0 everywhere."""
    std = values[train].std(0)
    scaled: NDArray[np.float64] = np.where(std > 0, (values - values[train].mean(0)) / np.where(std > 0, std, 1), 0.0)
    return scaled


@cache
def _read(data: str) -> Rows:
    return SOURCES[data].read()


def _diabetes() -> pd.DataFrame:
    from sklearn.datasets import load_diabetes

    frame: pd.DataFrame = load_diabetes(as_frame=True, scaled=False).frame
    return frame


def _diabetes_by_age() -> Rows:
    frame = _diabetes()
    bands = np.array(["under 40", "40-49", "50-59", "60 and over"])
    age = frame["age"].to_numpy()
    return Rows(
        frame.drop(columns=["age", "target"]), frame["target"].to_numpy(), bands[np.digitize(age, [40, 50, 60])]
    )


def _diabetes_by_sex() -> Rows:
    frame = _diabetes()
    names = np.array(["sex 1", "sex 2"])  # the table does not say which is which
    environment = names[frame["sex"].to_numpy(int) - 1]
    return Rows(frame.drop(columns=["sex", "target"]), frame["target"].to_numpy(), environment)


def _fair_by_religion() -> Rows:
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    names = np.array(["not", "mildly", "fairly", "strongly"])
    environment = names[frame["religious"].to_numpy(int) - 1]
    y = (frame["affairs"] > 0).to_numpy(np.int64)
    return Rows(frame.drop(columns=["religious", "affairs"]), y, environment)


def _grunfeld_by_firm() -> Rows:
    from statsmodels.datasets import grunfeld

    frame = grunfeld.load_pandas().data
    logarithms = np.log(frame[["value", "capital"]].astype(float))
    return Rows(logarithms, np.log(frame["invest"].to_numpy(float)), frame["firm"].to_numpy(str))


def _randhie_by_plan() -> Rows:
    from statsmodels.datasets import randhie

    frame = randhie.load_pandas().data
    rate = np.expm1(frame["lncoins"].to_numpy(float)).round().astype(int)  # coinsurance, in percent
    plan = np.where(frame["idp"].to_numpy(float) > 0, "individual deductible", np.char.add(rate.astype(str), " %"))
    features = frame.drop(columns=["mdvis", "lncoins", "idp", "fmde"])  # these three say which plan it is
    return Rows(features, frame["mdvis"].to_numpy(float), plan)


FIRMS = (
    ("American Steel", "Atlantic Refining", "Chrysler", "Diamond Match", "General Electric", "General Motors"),
    ("Goodyear", "IBM", "US Steel", "Union Oil", "Westinghouse"),
)
SOURCES = {
    "diabetes_by_age": Source(
        _diabetes_by_age, "sklearn", "regression", ("under 40", "40-49"), ("50-59", "60 and over")
    ),
    "diabetes_by_sex": Source(_diabetes_by_sex, "sklearn", "regression", ("sex 1",), ("sex 2",)),
    "fair_by_religion": Source(
        _fair_by_religion, "statsmodels", "classification", ("mildly", "fairly"), ("not", "strongly")
    ),
    "grunfeld_by_firm": Source(_grunfeld_by_firm, "statsmodels", "regression", *FIRMS),
    "randhie_by_plan": Source(
        _randhie_by_plan, "statsmodels", "regression", ("25 %", "50 %", "95 %"), ("0 %", "individual deductible")
    ),
}
