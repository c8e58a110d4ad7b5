"""Estimators as methods by their import path, and methods that compute on the CPU whatever the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oodbench import TrainingRows, check_method
from oodbench.errors import UserError
from oodbench.settings.space import Choice, Integer, LogInteger, LogUniform, parse_dimension
from oodbench.study.estimators import estimator_method
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.reproduce import command_for
from oodbench.study.spec import StudyOptions
from oodbench_datasets.selection_bias import SelectionBias

TREES = "sklearn:sklearn.ensemble.ExtraTreesRegressor"
TINY: dict[str, Any] = {"settings": {"majority": 40, "minority": 20, "test_rows": 20}, "seeds": 1}


def test_conforms_and_searches_what_is_asked_for() -> None:
    method = estimator_method(TREES, {"max_depth": "int:2:20", "n_estimators": "5", "alpha": "log:1:2"})
    assert set(method.space) == {"max_depth", "n_estimators"}  # the other is for another estimator of the run
    assert method.tasks == ("regression",)
    check_method(method)


@pytest.mark.parametrize(
    ("asked", "usual", "expected"),
    [
        ("int:2:20", None, Integer(2, 20, default=11)),
        ("int:2:20", 5, Integer(2, 20, default=5)),
        ("logint:1:64", None, LogInteger(1, 64, default=8)),
        ("log:1e-4:1", None, LogUniform(1e-4, 1, default=1e-2)),
    ],
)
def test_a_range_has_the_usual_default_or_its_middle(asked: str, usual: Any, expected: Any) -> None:
    assert parse_dimension("a", asked, usual) == expected


def test_values_are_numbers_truth_values_or_texts() -> None:
    found = parse_dimension("a", "1,0.5,true,gini", "gini")
    assert isinstance(found, Choice)
    assert found.values == (1, 0.5, True, "gini")
    assert found.default == "gini"
    assert parse_dimension("a", ["x", "y"], None).default == "x"


def test_a_log_integer_is_drawn_from_all_of_its_range() -> None:
    drawn = [LogInteger(1, 4, default=1).draw(np.random.default_rng(seed)) for seed in range(300)]
    assert set(drawn) == {1, 2, 3, 4}
    assert drawn.count(1) > 2 * drawn.count(4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "sklearn:sklearn.ensemble.NoTrees"], "there is no estimator 'sklearn.ensemble.NoTrees'"),
        (["-m", "sklearn:no_such_package.Trees"], "No module named 'no_such_package'"),
        (["-m", "sklearn:Trees"], "there is no estimator 'Trees'"),
        (["-m", "sklearn:"], "there is no estimator ''"),
        (["-m", "sklearn:sklearn.preprocessing.StandardScaler"], "is not a class with fit and predict"),
        (["-m", "sklearn:sklearn.ensemble.StackingRegressor"], "cannot be made without estimators"),
        (["-m", TREES, "--space", "max_dept=int:2:20"], "Did you mean 'max_depth'?"),
        (["-m", TREES, "--space", "max_depth=int:20:2"], "'int:20:2' is no range"),
        (["-m", TREES, "--space", "max_depth=int:2"], "'int:2' is no range"),
        (["-m", "erm", "--space", "max_depth=int:2:20"], "--space max_depth is for estimators"),
    ],
)
def test_bad_input_is_said_in_two_lines(words: list[str], said: str, cli: Callable[..., Any]) -> None:
    done = cli("run", *words, "-d", "selection_bias", "--address", "127.0.0.1:1", "--seeds", "1")
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 2, done.err


def test_the_command_that_repeats_a_study_names_the_estimator_and_its_space() -> None:
    options = StudyOptions(space={"max_depth": "int:2:20"}, **TINY)
    (study,) = plan(resolve(Request([TREES], ["selection_bias"], options)), "cpu")
    assert f"--method {TREES} " in command_for(study)
    assert "--space max_depth=int:2:20" in command_for(study)
    (other,) = plan(
        resolve(Request([TREES], ["selection_bias"], StudyOptions(space={"max_depth": "2,3"}, **TINY))), "cpu"
    )
    assert other.search_id != study.search_id


def test_what_computes_on_the_cpu_gets_no_gpu_and_small_fits_share_a_task() -> None:
    specs = resolve(Request(["erm", "ridge", "hist_gb"], ["selection_bias"], StudyOptions(**{**TINY, "seeds": 4})))
    erm, ridge, trees = plan(specs, "cuda")
    assert [study.setup.device for study in (erm, ridge, trees)] == ["cuda", "cpu", "cpu"]
    assert len(ridge.packs) == 2  # of 80 trainings
    assert len(trees.packs) == 20


@pytest.mark.parametrize("way", ["fix", "preset"])
def test_weights_by_environment_are_told_the_environments_and_nothing_else_is(way: str) -> None:
    fixed: dict[str, Any] = {"weights": "environment"} if way == "fix" else {}
    named = "hist_gb" if way == "fix" else "hist_gb:environment"
    plain, weighted = (
        plan(resolve(Request([method], ["selection_bias"], StudyOptions(fix=fix, **TINY))), "cpu")[0]
        for method, fix in (("hist_gb", {}), (named, fixed))
    )
    assert plain.information == []
    assert plain.search_data(0).train.environment is None
    assert weighted.information == ["environments"]
    assert isinstance(weighted.search_data(0).train, TrainingRows)
    assert weighted.search_data(0).train.environment is not None


def test_one_board_has_trees_that_are_weighted_in_several_ways() -> None:
    methods = ["hist_gb", "hist_gb:class", "hist_gb:jtt"]
    options = StudyOptions(settings={"group_rows": 100}, seeds=1, trials=20)
    studies = plan(resolve(Request(methods, ["spurious_correlation"], options)), "cpu")
    assert [study.label for study in studies] == methods
    assert len({study.search_id for study in studies}) == 3
    upweights = {trial.hparams["upweight"] for pack in studies[2].packs for trial in pack.trials}
    assert upweights == {3.0, 10.0, 30.0, 100.0}


class Untold(SelectionBias):
    invariant = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("method", "dataset", "fix", "said"),
    [
        ("sklearn:sklearn.linear_model.LogisticRegression", SelectionBias, {}, "does not do regression"),
        ("jtt", SelectionBias, {}, "does not do regression"),
        ("hist_gb", SelectionBias, {"weights": "class"}, "weights=class is for classification"),
        ("hist_gb:jtt", SelectionBias, {}, "weights=jtt is for classification"),
        ("oracle", Untold, {}, "needs the invariant columns, and 'untold' does not know them"),
    ],
)
def test_what_cannot_work_on_a_dataset_is_refused(method: str, dataset: Any, fix: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said) as refused:
        plan(resolve(Request([method], [dataset], StudyOptions(fix=fix, **TINY))), "cpu")
    assert str(refused.value).count("\n") == 1
