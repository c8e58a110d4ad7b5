"""Verifying: what was changed after a run is found, also where the hashes were made to go with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from concluding import concluded, planned
from handing import Edit, forge, same_results, with_cell
from oodbench.errors import UserError
from oodbench.study.record import COEFFICIENTS, CONSTANT, ConcludedStudy, RungSpent
from oodbench.study.study import Study
from oodbench.submission.archive import read_members, write_members
from oodbench.submission.submission import pack, read_submission
from oodbench.submission.verify import Verdict, verify
from oodbench_datasets.selection_bias import SelectionBias
from studies import changed

SMALL = {
    "settings": {"majority": 100, "minority": 30, "test_rows": 40, "test_r": (-1.9, -2.9)},
    "recipe": {"steps": 20},
    "trials": 3,
    "seeds": 5,
}
EVERY = 99  # trainings: more than there are


@pytest.fixture(scope="module")
def study() -> Study:
    return planned("erm", "selection_bias", **SMALL)


@pytest.fixture(scope="module")
def original(study: Study) -> ConcludedStudy:
    return concluded(study)


@pytest.fixture(scope="module")
def packed(original: ConcludedStudy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "erm.zip"
    pack([original], path)
    return path


def verdict_on(path: Path, trainings: int = 0) -> Verdict:
    return verify(read_submission(path), trainings)


def test_what_is_packed_is_read_again(original: ConcludedStudy, packed: Path, tmp_path: Path) -> None:
    submission = read_submission(packed)
    (study,) = submission.studies
    assert study.record == original.record
    assert same_results(study, original)
    assert submission.manifest.packages == {"oodbench": original.record.provenance.versions["oodbench"]}
    pack([original], tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == packed.read_bytes()


def test_an_honest_one_is_verified_to_the_last_bit(packed: Path) -> None:
    verdict = verdict_on(packed, EVERY)
    assert verdict.faults == []
    (again,) = verdict.reruns
    assert (again.how, again.trainings) == ("bit for bit", 15)
    assert [finding.check for finding in verdict.findings][-2:] == ["choice", "test data"]


def test_a_forgery_is_whole(packed: Path, tmp_path: Path) -> None:
    """Otherwise the tests below would find something else than what they are about."""
    assert verdict_on(forge(packed, tmp_path / "same.zip"), EVERY).faults == []


def test_a_cell_that_was_changed_after_packing(packed: Path, original: ConcludedStudy, tmp_path: Path) -> None:
    members = read_members(packed)
    (name,) = (name for name in members if name.endswith("results.parquet"))
    edited = with_cell(original, lambda error: error * 0.9).results
    assert edited is not None
    write_members(tmp_path / "edited.zip", members | {name: edited.to_parquet(index=False)})
    with pytest.raises(UserError, match=r"results.parquet was changed after it was packed: its hash is another\.\n"):
        read_submission(tmp_path / "edited.zip")


def test_a_changed_cell_with_new_hashes_is_found_by_running_it_again(packed: Path, tmp_path: Path) -> None:
    forged = forge(packed, tmp_path / "cell.zip", lambda study: with_cell(study, lambda error: np.nextafter(error, 0)))
    assert verdict_on(forged).faults == []
    (fault,) = verdict_on(forged, EVERY).faults
    assert "test environment" in fault
    assert "and was handed in as" in fault


def test_a_changed_table(packed: Path, tmp_path: Path) -> None:
    forged = forge(packed, tmp_path / "table.zip", tables=lambda table: table.replace(b",erm ", b",srm "))
    assert verdict_on(forged).faults == ["the file: board_cells.csv does not have what its studies have"]


def more_trials(study: ConcludedStudy) -> ConcludedStudy:
    return changed(study, budget__trials=4)


def more_trials_and_their_identity(study: ConcludedStudy) -> ConcludedStudy:
    other = planned("erm", "selection_bias", **(SMALL | {"trials": 4}))
    return changed(study, budget__trials=4, study_id=other.study_id, search_id=other.search_id)


def other_choice(study: ConcludedStudy) -> ConcludedStudy:
    choice, results = study.record.choice, study.results
    assert choice is not None
    assert results is not None
    other = (choice.configuration + 1) % 3
    numbers = results["configuration"].replace({choice.configuration: other, other: choice.configuration})
    return changed(
        study,
        choice=replace(choice, configuration=other, hparams=study.record.configurations[other]),
        results=results.assign(configuration=results["configuration"].where(results["part"] == "validation", numbers))
        .assign(chosen=lambda rows: rows["configuration"] == other),
    )  # fmt: skip


def easy_environment(study: ConcludedStudy) -> ConcludedStudy:
    """One more, in which there is no error."""
    assert study.results is not None
    test = study.results[study.results["part"] == "test"].drop_duplicates(["configuration", "seed"])
    return replace(study, results=pd.concat([study.results, test.assign(environment="easy", error=0.0)]))


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        (more_trials, "its budget, settings, recipe or selector are not those that it was run with"),
        (more_trials_and_their_identity, "its configurations are not those that its budget draws"),
        (lambda study: changed(study, recipe={**study.record.recipe, "steps": 21}), "its identity is another's"),
        (lambda study: changed(study, information=("environments",)), "its information is not what its plug-ins say"),
        (lambda study: changed(study, budget__trials=10**12), "it tried 3 of 1,000,000,000,000 trials"),
        (lambda study: changed(study, label="srm"), "its label is not what its plug-ins say"),
        (lambda study: changed(study, data__scaled=True), "its description of the data is not what its plug-ins say"),
        (lambda study: changed(study, label="erm2"), "its label is not what its plug-ins say"),
        (lambda study: changed(study, label="erm (x)\nverified"), "its label is not what its plug-ins say"),
        (lambda study: changed(study, provenance__versions={"oodbench": "0.0.1"}), "it was made with oodbench 0.0.1"),
        (lambda study: changed(study, method="mine"), "method 'mine' is not an installed plug-in"),
        (lambda study: changed(study, method="sklearn:os.path"), "method 'sklearn:os.path' is not an installed"),
        (lambda study: changed(study, dataset="/dev/zero"), "dataset '/dev/zero' is not an installed plug-in"),
        (lambda study: changed(study, repeat_of="another"), "its repetition is not what its plug-ins say"),
        (easy_environment, "its test environments are not those of the dataset"),
        (other_choice, "its validation scores choose another configuration"),
    ],
)  # fmt: skip
def test_what_was_changed_is_found_without_training(packed: Path, tmp_path: Path, edit: Edit, fault: str) -> None:
    (found,) = verdict_on(forge(packed, tmp_path / "forged.zip", edit)).faults
    assert fault in found
    assert len(found.splitlines()) == 1


@pytest.mark.parametrize("seeds", [10**12, 10**30])
def test_more_seeds_than_fit_into_the_memory(packed: Path, tmp_path: Path, seeds: int) -> None:
    forged = forge(packed, tmp_path / "seeds.zip", lambda study: changed(study, budget__seeds=seeds))
    with pytest.raises(UserError, match="it does not have one row per seed and test environment"):
        read_submission(forged)


def test_a_row_that_is_there_twice(packed: Path, tmp_path: Path) -> None:
    """Boards count both, and the first is right."""

    def twice(study: ConcludedStudy) -> ConcludedStudy:
        assert study.results is not None
        constant = study.results[study.results["part"] == CONSTANT]
        return replace(study, results=pd.concat([study.results, constant[:1].assign(error=99.0)]))

    (fault,) = verdict_on(forge(packed, tmp_path / "twice.zip", twice), EVERY).faults
    assert "has a row too many: constant environment" in fault


def test_an_error_of_coefficients_that_was_changed(tmp_path: Path) -> None:
    pack([concluded(planned("ridge", "irm_sem", settings={"rows": 60}, trials=1, seeds=1))], tmp_path / "sem.zip")

    def better(study: ConcludedStudy) -> ConcludedStudy:
        assert study.results is not None
        own = study.results["part"] == COEFFICIENTS
        assert own.any()
        return replace(study, results=study.results.assign(error=study.results["error"].mask(own, 0.0)))

    (fault,) = verdict_on(forge(tmp_path / "sem.zip", tmp_path / "better.zip", better), 1).faults
    assert "coefficients environment 'causal': error is" in fault


def test_rows_with_weights_are_verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for part in ("train", "validation", "test"):
        monkeypatch.setattr(SelectionBias, part, _with_weights(getattr(SelectionBias, part)))
    study = concluded(planned("erm", "selection_bias", **(SMALL | {"trials": 1, "seeds": 1})))
    assert "weights" in study.record.notice
    pack([study], tmp_path / "weighted.zip")
    assert verdict_on(tmp_path / "weighted.zip", 1).faults == []


@pytest.fixture(scope="module")
def halved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = planned("erm", "selection_bias", **(SMALL | {"recipe": {"steps": 16}, "trials": 4, "search": "halving"}))
    path = tmp_path_factory.mktemp("halved") / "erm.zip"
    pack([concluded(study, look=False)], path)
    return path


def test_a_search_by_halving_is_verified_to_the_last_bit(halved: Path) -> None:
    verdict = verdict_on(halved, 1)
    assert verdict.faults == []
    assert verdict.reruns[0].how == "bit for bit"


def with_rungs(change: Callable[[list[RungSpent]], list[RungSpent]]) -> Edit:
    return lambda study: changed(study, ledger__rungs=tuple(change(list(study.record.ledger.rungs))))


def others_go_on(rungs: list[RungSpent]) -> list[RungSpent]:
    first, second, last = rungs
    others = [number for number in first.configurations if number not in second.configurations]
    return [first, replace(second, configurations=tuple(sorted([*last.configurations, others[0]]))), last]


def all_go_on(rungs: list[RungSpent]) -> list[RungSpent]:
    return [*rungs[:2], replace(rungs[2], configurations=rungs[1].configurations)]


@pytest.mark.parametrize(
    ("change", "trainings", "fault"),
    [
        (lambda rungs: rungs[:2], 0, "its rungs are not those of its budget"),
        (lambda rungs: [rungs[0], rungs[0], rungs[2]], 0, "its rungs are not those of its budget"),
        (all_go_on, 0, "more configurations went on than its budget allows"),
        (others_go_on, 1, "from rung 1, the best configurations here are"),
    ],
)  # fmt: skip
def test_rungs_that_were_changed(
    halved: Path, tmp_path: Path, change: Callable[[list[RungSpent]], list[RungSpent]], trainings: int, fault: str
) -> None:
    (found,) = verdict_on(forge(halved, tmp_path / "rungs.zip", with_rungs(change)), trainings).faults
    assert fault in found


def _with_weights(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, seed: [replace(own, weights=np.ones(len(own))) for own in make(self, seed)]


def test_a_plugin_that_fails_when_it_runs_again(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("no such\ncolumn")

    monkeypatch.setattr("oodbench.submission.rerun.open_test", fail)
    (fault,) = verdict_on(packed, 1).faults
    assert fault.endswith("it cannot be run again here: KeyError: 'no such\\ncolumn'")


@pytest.mark.parametrize(("part", "check"), [("train", "training and validation data"), ("test", "test data")])
def test_another_version_of_the_dataset(packed: Path, monkeypatch: pytest.MonkeyPatch, part: str, check: str) -> None:
    """Its data, not its source code: as where a file that it reads was replaced."""
    make: Callable[..., Any] = getattr(SelectionBias, part)

    def shifted(self: SelectionBias, seed: int) -> Any:
        return [replace(environment, y=environment.y + 1) for environment in make(self, seed)]

    monkeypatch.setattr(SelectionBias, part, shifted)
    verdict = verdict_on(packed, EVERY)
    (fault,) = verdict.faults
    assert "selection_bias here is another version: its data are" in fault
    assert [finding.check for finding in verdict.findings if finding.fault] == [check]
    assert verdict.reruns == ()  # of data that are others nothing can be said


METHOD = """
from oodbench import LossMethod


class Steady(LossMethod):
    def loss(self, rows, hp):
        return rows.losses.mean(-1)
"""


def test_an_edited_method(distribution: Callable[..., Path], tmp_path: Path) -> None:
    folder = distribution("steady-methods", "steady_methods", METHOD, methods="steady = steady_methods:Steady")
    study = concluded(planned("steady", "selection_bias", **SMALL))
    pack([study], tmp_path / "steady.zip")
    assert verdict_on(tmp_path / "steady.zip", 1).faults == []
    assert read_submission(tmp_path / "steady.zip").manifest.packages["steady-methods"] == "1.0"
    with (folder / "steady_methods.py").open("a") as file:
        file.write("# edited\n")
    (fault,) = verdict_on(tmp_path / "steady.zip", 1).faults
    assert fault.endswith("the source code of its method is not what is installed here")
    with pytest.raises(UserError, match="has changed since it was run"):
        pack([study], tmp_path / "edited.zip")


@pytest.mark.parametrize(
    ("change", "rows", "ok"),
    [
        (lambda error: error * (1 + 1e-9), None, True),  # as another processor rounds
        (lambda error: error * 0.5, None, False),
        (lambda error: error + 100, 1, False),
    ],
)
def test_other_machines_are_compared_by_statistics(
    packed: Path, tmp_path: Path, change: Callable[[float], float], rows: int | None, ok: bool
) -> None:
    machine = replace(read_submission(packed).manifest.machine, cpu="another")
    forged = forge(packed, tmp_path / "far.zip", lambda study: with_cell(study, change, rows), machine=machine)
    verdict = verdict_on(forged, EVERY)
    (again,) = verdict.reruns
    assert again.how == "by statistics"
    assert [text.split()[0] for text in verdict.differing] == ["cpu"]
    assert (verdict.faults == []) is ok
