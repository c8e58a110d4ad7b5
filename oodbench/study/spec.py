"""What can be said of a run: every option, declared once.

`Training`, `Budget` and the selector are part of what a study is; `Resources` and `Place` are not: the same study may
go on elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from oodbench.engine.models import Model
from oodbench.errors import UserError
from oodbench.plugin.selector import told_to
from oodbench.settings.option import (
    Options,
    above_zero,
    assignments,
    at_least,
    one_of,
    option,
    seconds,
    seconds_text,
)
from oodbench.study.directory import DIRECTORY
from oodbench.study.selectors import check_selector, find_selector, needs_models

DEVICES = ("auto", "cpu", "cuda")
SEARCHES = ("random", "optuna", "halving")
SCHEDULERS = ("none", "asha")
CHOOSE = ("study", "seed")
MOST_REPEATS = 100
GPU_SHARE = 0.25  # of a GPU for one pack, unless said otherwise


@dataclass(frozen=True, kw_only=True)
class Training(Options):
    """What is trained, where that is not the dataset's usual way."""

    settings: Mapping[str, Any] = assignments("A setting of the dataset; `oodbench show DATASET` lists them.", "--set")
    model: str | Model | None = option(None, "Model family, instead of the dataset's; `oodbench list` has them.")
    model_settings: Mapping[str, Any] = assignments("A setting of the model, e.g. width=64.", "--set-model")
    recipe: Mapping[str, Any] = assignments("A setting of the training recipe, e.g. steps=500.", "--set-training")
    fix: Mapping[str, Any] = assignments(
        "A hyper-parameter not to search: alpha0=0.1 or fdro.alpha0=0.1; or the values to try: alpha0=0.1,0.2; or one "
        "for each configuration: alpha0=0.1;0.2.",
        "--fix",
    )
    space: Mapping[str, Any] = assignments(
        "What to search of a sklearn:PATH estimator: max_depth=int:2:20; also logint, float, log, or values: a,b.",
        "--space",
    )


@dataclass(frozen=True, kw_only=True)
class Budget(Options):
    """What every method of a run gets: so many configurations, each on so many seeds, and how they are found."""

    trials: int = option(20, "Configurations per method; the first is its defaults.", check=at_least(1))
    seeds: int = option(10, "Data seeds on which every configuration is trained.", check=at_least(1))
    seed: int = option(0, "First seed, of the data and of the search.", check=at_least(0))
    search: str = option(
        "random",
        "Who proposes: random, optuna, or halving: many at first, and the best go on.",
        check=one_of("search", SEARCHES),
    )
    scheduler: str = option(
        "none", "Who stops poor trainings early: none, or asha.", check=one_of("scheduler", SCHEDULERS)
    )
    budget: str | float | None = option(
        None, "Time for each method, e.g. 10m; --trials is then the most.", metavar="TIME", check=seconds,
        text=seconds_text,
    )  # fmt: skip
    repeat: int = 0  # another search on the same data: other configurations, other chance in training

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.search == "optuna" and find_spec("optuna") is None:
            raise UserError(
                "--search optuna: optuna is not installed.\nInstall it with `pip install 'oodbench[optuna]'`."
            )
        if self.halves and (self.scheduler != "none" or self.budget is not None):
            raise UserError(
                "--search halving stops trainings itself, and its budget is gradient steps.\n"
                "Leave out --scheduler and --budget."
            )

    @property
    def seconds(self) -> float | None:
        """After which no configuration is begun."""
        return None if self.budget is None else float(self.budget)

    @property
    def halves(self) -> bool:
        """Whether the best of many short trainings go on."""
        return self.search == "halving"

    @property
    def drawn_up_front(self) -> bool:
        """Whether all trials are known before the first one runs, and can be packed as is fastest."""
        return self.halves or not self.deviations

    @property
    def deviations(self) -> list[str]:
        """In what it differs from a random search of all trials."""
        return describe_search(self.search, self.scheduler, self.seconds)

    @property
    def data_seeds(self) -> list[int]:
        return [self.seed + index for index in range(self.seeds)]


def describe_search(search: str, scheduler: str, seconds: float | None) -> list[str]:
    """In what it differs from a random search of all trials."""
    parts = [] if search == "random" else [f"search={search}"]
    parts += [] if scheduler == "none" else [f"scheduler={scheduler}"]
    return parts + ([] if seconds is None else [f"budget={seconds_text(seconds)}"])


@dataclass(frozen=True, kw_only=True)
class Selecting(Options):
    """How a configuration is chosen, and what is done to see how much that choice matters."""

    selector: str = option(
        "worst",
        "How validation scores choose: mean, worst ...; by a metric: worst:auc. `oodbench list` has them.",
        check=lambda value, flag: check_selector(value),
    )
    repeats: int = option(
        1, "Whole searches to do, on the same data: the board shows their spread.", check=at_least(1, MOST_REPEATS)
    )
    choose: str = option(
        "study", "What gets a configuration of its own: the study, or each seed.", check=one_of("way to choose", CHOOSE)
    )
    open_all: bool = option(
        False, "After the choice, score all configurations on test, for diagnosis; nothing is chosen or ranked by it."
    )
    price: bool = option(
        False, "Show what every selector would have chosen, and what it loses against the oracle; opens all."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.opens_all and self.selector == "oracle":
            raise UserError(
                f"--{'price' if self.price else 'open-all'} compares a choice on validation data with the oracle.\n"
                "Leave out --selector oracle."
            )

    @property
    def opens_all(self) -> bool:
        return self.open_all or self.price


@dataclass(frozen=True, kw_only=True)
class StudyOptions(Selecting, Budget, Training):
    """All that decides what the studies of a run are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.selector == "oracle" and (self.search, self.scheduler) != ("random", "none"):
            raise UserError(
                "--selector oracle does not go with --search or --scheduler: validation scores lead them.\n"
                "Use --selector mean or worst."
            )
        selector = find_selector(self.selector)
        if self.deviations and (needs_models(selector) or told_to(selector)):
            why = "needs further trainings" if selector.leaves_out else "looks at all trained models after the search"
            raise UserError(
                f"--selector {self.selector} {why}, and does not go with --search, --scheduler or --budget.\n"
                "Use --selector mean or worst."
            )


@dataclass(frozen=True, kw_only=True)
class Resources(Options):
    """Where a search runs, and what one of its packs may take."""

    device: str = option("auto", "auto, cpu or cuda.", check=one_of("device", DEVICES))
    address: str | None = option(None, "A running Ray cluster, e.g. 127.0.0.1:6379 or auto; otherwise Ray is started.")
    cpus_per_pack: float = option(1.0, "CPUs for one pack; torch gets as many threads.", check=above_zero)
    gpus_per_pack: float | None = option(
        None, "GPUs for one pack, or a share of one.", default_text=f"{GPU_SHARE} on a GPU", check=above_zero
    )
    trial_timeout: str | float | None = option(
        None, "How long one training may take, e.g. 30s or 10m; longer ones fail.", metavar="TIME", check=seconds,
        text=seconds_text,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gpus_per_pack is None:
            return
        if self.gpus_per_pack > 1 and not float(self.gpus_per_pack).is_integer():
            raise UserError(f"--gpus-per-pack above 1 must be a whole number, not {self.gpus_per_pack:g}.")
        if self.device == "cpu":
            raise UserError("--gpus-per-pack does not go with --device cpu.\nLeave one of them out.")

    @property
    def timeout(self) -> float:
        """Seconds for one training."""
        return math.inf if self.trial_timeout is None else float(self.trial_timeout)

    @property
    def threads(self) -> int:
        """Of torch, for one pack."""
        return max(1, math.floor(self.cpus_per_pack))

    def of_a_pack(self, device: str) -> dict[str, float]:
        """What a pack asks Ray for."""
        asked = {"CPU": float(self.cpus_per_pack)}
        if device.startswith("cuda"):
            asked["GPU"] = GPU_SHARE if self.gpus_per_pack is None else float(self.gpus_per_pack)
        return asked


@dataclass(frozen=True, kw_only=True)
class Place(Options):
    """Where the record is."""

    tracking_uri: str | None = option(None, "MLflow server to use instead of the embedded database.")
    directory: str | Path = option(
        DIRECTORY, "Where the embedded record and unfinished work live.", check=lambda value, flag: Path(value)
    )

    @property
    def folder(self) -> Path:
        return Path(self.directory)
