"""The record of a concluded study: built once, stored whole as study.json beside its result rows, and all that is read.

A field that is added, removed or changed makes another `SCHEMA`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from oodbench.engine.data import Task
from oodbench.kit.stability import Description
from oodbench.settings.space import Fixed, Value

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 6
STUDY_FILE = "study.json"
RESULTS_FILE = "results.parquet"
COLUMNS = {
    "configuration": "i",
    "seed": "i",
    "part": "O",
    "environment": "O",
    "rows": "i",
    "loss": "f",
    "error": "f",
    "accuracy": "f",
    "f1": "f",
    "stability": "f",
    "ods": "f",
    "chosen": "b",
}
"""Of result rows, and what they hold: whole numbers, texts, numbers, or true and false. Besides there is a column of
numbers for every metric of the record, with values for test environments, the constant, and where a selector asked."""
CONSTANT = "constant"
"""The part of rows that say how a constant prediction, learned from the training rows, does in a test environment."""
NO_CONFIGURATION = -1
"""Of those rows."""
OPENED = "opened"
"""The part of rows that say how a configuration that was not chosen does in a test environment. They are made after the
choice is written down, for diagnosis: no choice and no rank reads them."""
COEFFICIENTS = "coefficients"
"""The part of rows that say how far the coefficients of the chosen linear models are from the true ones: as their
environments, the causal coefficients and the others."""

Status = Literal["FINISHED", "FAILED"]
Kept = Literal["loadable", "arrays", "nothing"]
"""Of the chosen models: models that MLflow loads, arrays that only their plug-in can use, or nothing."""
Setting = Fixed | None


@dataclass(frozen=True)
class Granted:
    """The budget: so many configurations, each on so many seeds, and how they were found."""

    trials: int
    seeds: int
    seed: int = 0  # of the search; the data's seeds are seed, seed + 1, ...
    repeat: int = 0  # which search on the same data
    search: str = "random"
    scheduler: str = "none"
    seconds: float | None = None  # after which no configuration was begun


@dataclass(frozen=True)
class RungSpent:
    """A rung of a search by halving."""

    steps: int  # to which it trained
    configurations: tuple[int, ...]  # those of no later rung were stopped here
    gradient_steps: int  # of all its trainings, as they were counted
    anew: bool  # whether they began at the first step, since the method cannot pause


@dataclass(frozen=True)
class Ledger:
    """What a study spent, as it was counted."""

    trials: int = 0  # configurations that were tried
    complete_trials: int = 0
    stopped_trials: int = 0  # by the scheduler, before their end
    trainings: int = 0
    failed_trainings: int = 0
    gradient_steps: int = 0
    row_visits: int = 0
    seconds: float = 0.0
    device: str = ""
    rungs: tuple[RungSpent, ...] = ()

    @property
    def stopped_at(self) -> dict[int, int]:
        """Of the configurations that a search by halving stopped, after how many steps."""
        reached = {number: rung.steps for rung in self.rungs for number in rung.configurations}
        return {number: steps for number, steps in reached.items() if steps < self.rungs[-1].steps}


@dataclass(frozen=True)
class Chosen:
    """The chosen configuration and what it was chosen from."""

    selector: str
    configuration: int  # where each seed has its own, that of most seeds
    score: float
    scores: Mapping[int, float]  # configuration -> mean over seeds; only those that finished on every seed
    hparams: Mapping[str, Value] = field(default_factory=dict)
    by_seed: Mapping[int, int] = field(default_factory=dict)  # seed -> configuration, where each seed has its own
    without_seed: Mapping[int, int] = field(default_factory=dict)  # seed -> what the other seeds alone would choose

    def of_seed(self, seed: int) -> int:
        return self.by_seed.get(seed, self.configuration)

    @property
    def used(self) -> set[int]:
        """The configurations that any seed has."""
        return set(self.by_seed.values()) or {self.configuration}


@dataclass(frozen=True)
class Opening:
    """The opening of the test environments: when, for which configurations, and what was found inside."""

    opened_at: datetime
    configurations: tuple[int, ...]
    afterwards: tuple[int, ...]  # configurations that were scored too, after the choice, for diagnosis: on some seeds
    opened_all: bool  # on every seed, all that finished
    before_selection: bool  # true only for the oracle
    test_fingerprint: str
    rows: Mapping[str, int]  # by environment, of the first seed


@dataclass(frozen=True)
class Assessment:
    """How stable the chosen model of a seed is in one environment."""

    seed: int
    part: str  # validation, test, or pooled: the validation environments together
    environment: str
    rows: int  # that were looked at
    stability: float | None = None
    exact: float | None = None  # the stability of an exact model on so many rows, with the first seed's predictions
    ods: float | None = None  # from the training rows; of test environments only
    worst: Description | None = None
    failure: str = ""  # why there are no values


@dataclass(frozen=True)
class Stability:
    """All assessments of a study, at one alpha0."""

    alpha0: float
    assessments: tuple[Assessment, ...]


@dataclass(frozen=True)
class DataUsed:
    """The data of the search; the rows are those of the first seed, by environment."""

    fingerprint: str  # of training and validation data together
    validation_fingerprint: str
    features: int
    columns: tuple[str, ...] | None
    training_rows: Mapping[str, int]
    validation_rows: Mapping[str, int]
    scaled: bool = False  # whether the targets of a regression are standardised, so that errors are not in their units
    left_out: Mapping[str, int] = field(default_factory=dict)  # rows of the data that are not used, by the reason


@dataclass(frozen=True)
class Failure:
    """A training without a result."""

    configuration: int
    seed: int
    reason: str


@dataclass(frozen=True)
class Provenance:
    """With what it was made, when, and how to make it again."""

    versions: Mapping[str, str]  # of packages
    python: str
    git_commit: str  # of the working directory; empty where that is no repository
    command: str  # empty where no command can name the method or the dataset
    started: datetime
    concluded: datetime

    @property
    def day(self) -> str:
        """On which it was concluded, in UTC."""
        return self.concluded.astimezone(UTC).date().isoformat()


@dataclass(frozen=True)
class StudyRecord:
    """All that is known of a concluded study besides its result rows."""

    schema: int
    study_id: str
    search_id: str  # of its trainings; studies that choose otherwise among the same trainings have it, too
    repeat_of: str  # the study whose search this one repeats; empty for others
    label: str
    method: str
    ranked: bool  # whether boards rank it; a reference is only shown
    dataset: str
    dataset_id: str
    settings: Mapping[str, Setting]  # of the dataset
    task: Task
    notice: str  # what a reader must know of the data
    model: str
    model_settings: Mapping[str, Setting]
    recipe: Mapping[str, Setting]
    fixed: Mapping[str, Fixed]  # hyper-parameters, by the user or a preset
    budget: Granted
    selector: str
    choose: str  # for what a configuration is chosen: the study, or each seed
    choice_told: str  # what the choice went by besides validation scores
    information: tuple[str, ...]  # what the method was told besides unlabelled training rows
    status: Status
    reason: str  # why there is no result; empty where there is one
    ledger: Ledger
    configurations: tuple[Mapping[str, Value], ...]
    failures: tuple[Failure, ...]
    choice: Chosen | None
    data: DataUsed
    opening: Opening | None  # of the test environments
    metrics: tuple[str, ...]  # that the chosen models were measured by, besides their scores
    missing: Mapping[str, str]  # by metric, why there are values missing: the first reason
    stability: Stability | None  # of the chosen models
    models: Kept
    provenance: Provenance

    @property
    def title(self) -> str:
        return f"{self.label} on {self.dataset_id}"

    @property
    def told(self) -> str:
        return ", ".join(self.information)

    @property
    def chosen(self) -> Mapping[str, Value]:
        """The chosen hyper-parameters; those in which seeds differ as a text."""
        if not self.choice:
            return {}
        used = [self.configurations[number] for number in sorted(set(self.choice.by_seed.values()))]
        values = {name: [own.get(name, "") for own in used] for name in self.choice.hparams}
        differing = {name: " | ".join(map(_short, own)) for name, own in values.items() if len(set(own)) > 1}
        return {**self.choice.hparams, **differing}

    @property
    def test_fingerprint(self) -> str:
        return self.opening.test_fingerprint if self.opening else ""


def _short(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class ConcludedStudy:
    """A study's record with its result rows: what boards, pages and figures are made of."""

    record: StudyRecord
    results: pd.DataFrame | None  # a row per configuration, seed, part and environment; None where it failed
    run_id: str = ""  # of MLflow; empty until the study is delivered

    @property
    def label(self) -> str:
        return self.record.label
