"""Searches that decide on the way, on a real Ray cluster, and what they say they spent."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import oodbench
from concluding import planned
from oodbench.errors import UserError
from oodbench.search.nodes import check_room, check_software, count_room
from oodbench.search.proposals import BATCH, Clock, Proposals
from oodbench.search.worker import ConfigurationTraining, run_configuration
from oodbench.study.data import SearchData
from oodbench.study.pack import PackResult
from oodbench.study.spec import Resources
from oodbench.study.study import Study
from oodbench_methods.erm import ERM

STEPS = 32
RUN: dict[str, Any] = {
    "settings": {"majority": 100, "minority": 20, "test_rows": 20},
    "recipe": {"steps": STEPS},
    "trials": 10,
    "seeds": 2,
}


def ledger(result: oodbench.Result) -> dict[str, Any]:
    (study,) = result.leaderboard().studies
    return asdict(study.record.ledger)


@pytest.fixture(scope="module")
def asha(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> oodbench.Result:
    """Optuna proposes and ASHA stops."""
    directory = tmp_path_factory.mktemp("asha")
    return oodbench.run("erm", "selection_bias", search="optuna", scheduler="asha", directory=directory, **RUN)


def test_the_label_says_how_it_was_searched(asha: oodbench.Result) -> None:
    (row,) = asha.leaderboard().rows
    assert row.label == f"erm (steps={STEPS}, search=optuna, scheduler=asha)"


def test_only_trainings_that_reached_the_end_are_in_the_results(asha: oodbench.Result) -> None:
    spent = ledger(asha)
    validation = asha.results().query("part == 'validation'")
    assert spent["trials"] == 10
    assert 0 < spent["stopped_trials"] < 10
    assert spent["complete_trials"] + spent["stopped_trials"] == 10
    assert validation["configuration"].nunique() == spent["complete_trials"]
    assert (validation.groupby("configuration")["seed"].nunique() == 2).all()


def test_every_step_of_every_rung_is_counted(asha: oodbench.Result) -> None:
    """Trainings pause after 2 and 8 of 32 steps, and go on from there or are stopped."""
    spent = ledger(asha)
    complete = spent["complete_trials"] * 2 * 32
    least, most = (complete + spent["stopped_trials"] * 2 * steps for steps in (2, 8))
    assert least <= spent["gradient_steps"] <= most
    assert spent["row_visits"] == spent["gradient_steps"] * 120


def test_a_complete_training_is_that_of_all_steps(asha: oodbench.Result) -> None:
    (study,) = asha.studies
    results = asha.results().query("part == 'validation'")
    complete = int(results["configuration"].iloc[0])
    data = {seed: study.search_data(seed) for seed in study.seeds}
    expected = run_configuration(study.method, study.packs[complete], data, study.setup).validation
    found = results[results["configuration"] == complete]["error"]
    assert found.tolist() == pytest.approx([row["error"] for row in expected], rel=1e-5)


@pytest.mark.parametrize(("method", "steps"), [("erm", 32), ("jtt", 2 + 8 + 32)])
def test_what_cannot_pause_begins_anew_at_each_rung(method: str, steps: int) -> None:
    study = planned(
        method, "spurious_correlation", settings={"group_rows": 40}, recipe={"steps": 32}, trials=1, seeds=2
    )
    training = ConfigurationTraining(study.method, study.packs[0], data_of(study), study.setup)
    results = [training.train_to(steps) for steps in (2, 8, 32)]
    expected = run_configuration(study.method, study.packs[0], data_of(study), study.setup)
    assert results[-1].validation == expected.validation
    counted = sum(result.gradient_steps for result in results)
    assert counted / expected.gradient_steps == steps / 32


def data_of(study: Study) -> dict[int, SearchData]:
    return {seed: study.search_data(seed) for seed in study.seeds}


def test_a_method_gets_its_time_and_no_more(asha: oodbench.Result) -> None:
    directory = asha.record.directory
    result = oodbench.run("erm", "selection_bias", budget="1s", directory=directory, **{**RUN, "trials": 5000})
    spent = ledger(result)
    assert spent["stopped_trials"] == 0
    assert result.leaderboard().studies[0].record.budget.seconds == 1.0
    assert 0 < spent["complete_trials"] == spent["trials"] < 5000
    assert result.results().query("part == 'validation'")["configuration"].nunique() == spent["trials"]
    assert result.leaderboard().rows[0].label == f"erm (steps={STEPS}, budget=1s)"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"search": "grid"}, "there is no search 'grid'"),
        ({"scheduler": "median"}, "there is no scheduler 'median'"),
        ({"search": "optuna", "selector": "oracle"}, "--selector oracle does not go with --search"),
        ({"scheduler": "asha", "recipe": {"steps": 8}}, "needs trainings of at least 16 steps, not 8"),
        ({"budget": "soon"}, "--budget soon is not a length of time"),
        ({"cpus_per_pack": 0}, "--cpus-per-pack must be above 0"),
        ({"gpus_per_pack": 0.5, "device": "cpu"}, "--gpus-per-pack does not go with --device cpu"),
        ({"gpus_per_pack": 1.5}, "--gpus-per-pack above 1 must be a whole number"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(UserError, match=expected) as raised:
        oodbench.run("erm", "selection_bias", directory=tmp_path / "new", **{**RUN, **options})
    assert raised.value.exit_code == 2
    assert not (tmp_path / "new").exists()


def test_optuna_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oodbench.study.spec.find_spec", lambda name: None)
    with pytest.raises(UserError, match="optuna is not installed.\nInstall it with `pip install 'oodbench"):
        oodbench.run("erm", "selection_bias", search="optuna", directory=tmp_path, **RUN)


def test_more_than_any_node_has_is_refused_with_what_there_is(ray_address: str) -> None:
    check_room({"CPU": 1.0})
    expected = "no node of the Ray cluster has 99 CPUs and 0.5 GPUs for a pack; it has 1 node with 1 CPU.\nAsk for"
    with pytest.raises(UserError, match=expected):
        check_room(Resources(cpus_per_pack=99, gpus_per_pack=0.5).of_a_pack("cuda"))
    assert [count_room({"CPU": cpus}) for cpus in (0.5, 1, 2, 3)] == [2, 1, 1, 1]
    assert [Resources(cpus_per_pack=cpus).threads for cpus in (0.5, 1, 2.9)] == [1, 1, 2]


def test_nodes_with_other_software_are_named(ray_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_software([ERM()])
    monkeypatch.setattr("importlib.metadata.version", lambda package: {"torch": "9.9"}.get(package, version(package)))
    with pytest.raises(
        UserError, match=r"node \S+ has torch \S+ \(here 9.9\).\nInstall the same versions on every node"
    ):
        check_software([ERM()])


class Searched:
    """Proposals of a planned study, with scores from a formula instead of trainings."""

    def __init__(self, trials: int = 24) -> None:
        from oodbench.study.plan import Request, plan, resolve
        from oodbench.study.spec import StudyOptions

        options = StudyOptions(settings=RUN["settings"], trials=trials, seeds=1, search="optuna")
        (self.study,) = plan(resolve(Request(["erm"], ["selection_bias"], options)), "cpu")

    def result(self, hparams: Any, stopped: bool = False) -> PackResult:
        rows = [{"configuration": 0, "seed": 0, "error": abs(hparams["learning_rate"] - 0.05)}]
        return PackResult([None], rows, hparams=hparams, stopped=stopped)

    def proposed(self, done: dict[int, PackResult], reverse: bool) -> dict[int, Any]:
        """All of them, each batch finishing in the order of its numbers or against it."""
        proposals = Proposals(self.study, done, Clock(None, 0.0))
        found: dict[int, Any] = {}
        while not proposals.over:
            batch = []
            while not proposals.over and (one := proposals.next()) is not None:
                batch.append(one)
            assert len(batch) <= BATCH
            for index, hparams in sorted(batch, reverse=reverse, key=lambda one: one[0]):
                found[index] = hparams
                proposals.learn(index, self.result(hparams))
        return found


def test_what_optuna_proposes_does_not_depend_on_who_is_faster() -> None:
    searched = Searched()
    one, other = (searched.proposed({}, reverse) for reverse in (False, True))
    assert one == other
    assert sorted(one) == list(range(24))
    assert one[0] == searched.study.configurations[0]  # the defaults
    assert len({tuple(hparams.items()) for hparams in one.values()}) > 20


def test_optuna_learns() -> None:
    far = [abs(hparams["learning_rate"] - 0.05) for _, hparams in sorted(Searched(64).proposed({}, False).items())]
    assert statistics.median(far[40:]) < statistics.median(far[:16])


def test_a_search_goes_on_from_what_an_earlier_run_finished() -> None:
    searched = Searched()
    first = searched.proposed({}, False)
    done = {index: searched.result(first[index], stopped=index % 2 == 1) for index in range(10)}
    rest = searched.proposed(done, False)
    assert sorted(rest) == list(range(10, 24))
    assert searched.study.configurations[0] not in rest.values()


def test_time_counts_from_the_first_training_and_what_was_begun_is_finished() -> None:
    searched = Searched()
    assert not Clock(0.0001, 0.0).over
    spent = Clock(10.0, 10.0)
    first = searched.proposed({}, False)
    assert Proposals(searched.study, {0: searched.result(first[0])}, spent).over
    begun = Proposals(searched.study, {0: searched.result(first[0]), 2: searched.result(first[2])}, spent)
    assert not begun.over
    one = begun.next()
    assert one is not None
    assert one[0] == 1
    assert begun.over
