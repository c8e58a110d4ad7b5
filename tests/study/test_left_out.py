"""Selectors that train without each environment in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from concluding import concluded, outcome_of, planned
from oodbench import Choice, Dataset, Environment, Method, TrainingRows
from oodbench.errors import MissingInformation, TrainingFailed, UserError
from oodbench.search.packstore import PackStore
from oodbench.search.worker import run_pack
from oodbench.study.spec import StudyOptions

SHARES = (1.0, 0.5, 0.0, 0.8)


class Shrunk(Method):
    """A share of the mean of y: what it comes to can be told without training."""

    space = {"share": Choice(*SHARES)}

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> Any:
        return Constant(hparams["share"] * train.y.mean())


@dataclass
class Constant:
    value: float

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.value)


class Fails(Shrunk):
    """Where the environment `c` is missing, half of its mean cannot be had."""

    def fit(self, train: TrainingRows, hparams: Mapping[str, Any], seed: int) -> Any:
        if hparams["share"] == 0.5 and 3.0 not in train.x:
            raise TrainingFailed("no half")
        return super().fit(train, hparams, seed)


@dataclass(frozen=True)
class Levels(Dataset):
    """Environments that differ in the mean of y."""

    task = "regression"
    count: int = 3
    changing: bool = False

    def _rows(self, seed: int, part: str, names: str) -> list[Environment]:
        rng = self.rng(seed, part)
        rows = 10 + rng.permutation(len(names))
        return [
            Environment(name, np.full((rows[place], 1), place + 1.0), place + rng.normal(size=rows[place]))
            for place, name in enumerate(names)
        ]

    def train(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "train", "abcde"[: self.count - (self.changing and seed == 1)])

    def validation(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "validation", "ab")

    def test(self, seed: int) -> Sequence[Environment]:
        return self._rows(seed, "test", "xyz")


def left_out_error(train: Sequence[Environment], place: int, share: float) -> float:
    others = np.concatenate([environment.y for number, environment in enumerate(train) if number != place])
    return float(np.mean((train[place].y - share * others.mean()) ** 2))


@pytest.mark.parametrize(("selector", "over"), [("loeo", np.mean), ("loeo_worst", np.max)])
def test_the_choice_is_that_of_the_formula(selector: str, over: Any) -> None:
    study = planned(Shrunk, Levels, trials=4, seeds=2, selector=selector, open_all=True)
    assert study.label == f"shrunk ({selector}: environments left out)"
    assert (study.trainings, len(study.packs)) == (4 * 2 * (3 + 1), len({pack.index for pack in study.packs}))
    done = concluded(study)
    expected = {}
    for number, hparams in enumerate(study.configurations):
        by_seed = [
            over([left_out_error(study.data.train[seed], place, float(hparams["share"])) for place in range(3)])
            for seed in (0, 1)
        ]
        expected[number] = np.mean(by_seed)
    assert done.record.choice is not None
    assert done.record.choice.scores == pytest.approx(expected)
    assert done.record.choice.configuration == min(expected, key=lambda number: expected[number])
    assert done.record.ledger.trainings == 32
    assert done.record.choice_told == "environments left out"
    assert done.results is not None
    assert done.results["part"].value_counts()["left_out"] == 4 * 2 * 3
    assert (
        not done.results[done.results["part"] == "validation"]
        .duplicated(["configuration", "seed", "environment"])
        .any()
    )


def test_the_kept_models_are_those_of_all_environments(tmp_path: Path) -> None:
    study = planned(Shrunk, Levels, trials=4, seeds=2, selector="loeo")
    store = PackStore(tmp_path, study)
    for pack in study.packs:
        data = {seed: study.search_data(seed, pack.without) for seed in pack.seeds}
        store.save(pack, run_pack(study.method, pack, data, study.setup))
    assert len(store.load()) == len(study.packs)
    kept = store.predictors()
    assert sorted(kept) == [(number, seed) for number in range(4) for seed in (0, 1)]
    for (number, seed), model in kept.items():
        share = float(study.configurations[number]["share"])
        assert model.value == pytest.approx(share * study.search_data(seed).train.y.mean())


def test_a_configuration_that_cannot_be_trained_without_an_environment_is_not_chosen() -> None:
    study = planned(Fails, Levels, trials=4, seeds=2, selector="loeo")
    outcome = outcome_of(study, [])
    half = [hparams["share"] for hparams in study.configurations].index(0.5)
    assert outcome.record.choice is not None
    assert sorted(outcome.record.choice.scores) == [number for number in range(4) if number != half]
    assert {(failure.configuration, failure.reason) for failure in outcome.record.failures} == {
        (half, "without environment 'c': no half")
    }


def test_other_selectors_train_as_before() -> None:
    plain, left_out = (planned(Shrunk, Levels, trials=4, seeds=2, selector=name) for name in ("worst", "loeo"))
    assert plain.trainings * 4 == left_out.trainings
    assert plain.search_id != left_out.search_id
    assert planned(Shrunk, Levels, trials=4, seeds=2, selector="mean").search_id == plain.search_id


@pytest.mark.parametrize(
    ("settings", "has"),
    [({"count": 2}, "'levels' has 2"), ({"count": 4, "changing": True}, "has 3 to 4, depending on")],
)
def test_too_few_environments(settings: dict[str, Any], has: str) -> None:
    with pytest.raises(MissingInformation) as refused:
        planned(Shrunk, Levels, settings=settings, seeds=2, selector="loeo")
    assert has in str(refused.value)
    assert len(str(refused.value).splitlines()) == 2


def test_left_out_trainings_are_drawn_up_front() -> None:
    with pytest.raises(UserError, match="--selector loeo needs further trainings, and does not go with"):
        StudyOptions(selector="loeo", budget="1m")
