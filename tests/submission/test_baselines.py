"""Baselines: shown beside a run that has the same data and terms, and refused beside any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import oodbench
from concluding import concluded, planned
from oodbench.api import runs
from oodbench.errors import Notice, UnequalTerms, UserError
from oodbench.record.tracking import Reading
from oodbench.study.plan import StudySpec, plan
from oodbench.study.record import ConcludedStudy
from oodbench.study.study import Study
from oodbench.submission.baselines import beside, read_baselines
from oodbench.submission.submission import pack
from studies import changed

SMALL: dict[str, Any] = {
    "settings": {"majority": 100, "minority": 30, "test_rows": 40, "test_r": (-1.9, -2.9)},
    "recipe": {"steps": 20},
    "trials": 2,
    "seeds": 2,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a submission of two studies in a folder below."""
    folder = tmp_path_factory.mktemp("baselines")
    (folder / "fair").mkdir()
    pack([concluded(planned(method, "selection_bias", **SMALL)) for method in ("erm", "ridge")], folder / "fair/a.zip")
    return folder


class Stub:
    """A driver whose studies are trained in this process."""

    failures: dict[str, str] = {}
    undelivered: list[str] = []

    def __init__(self, *_: object) -> None:
        self.record = self

    def drive(self, specs: Sequence[StudySpec]) -> list[Study]:
        return plan(specs, "cpu")

    def read_boards(self, boards: Sequence[Sequence[Study]]) -> list[Reading]:
        return [Reading([concluded(study) for study in studies], {}) for studies in boards]


def test_baselines_stand_beside_a_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "Driver", Stub)
    board = oodbench.run("ridge", "selection_bias", baselines=folder, **SMALL).leaderboard()
    errors = {row.label: row.cells["mean_error"].value for row in board.rows}
    assert set(errors) == {"ridge (steps=20)", "erm (steps=20) [baseline]", "ridge (steps=20) [baseline]"}
    assert errors["ridge (steps=20)"] == errors["ridge (steps=20) [baseline]"]
    assert not any(row.unequal for row in board.rows)


def other(**changes: Any) -> Study:
    return planned("irm", "selection_bias", **(SMALL | changes))


@pytest.mark.parametrize(
    ("study", "reason"),
    [
        (lambda: other(trials=3), "have other terms: 2 trials × 2 seeds; this run: 3 trials × 2 seeds"),
        (lambda: other(seeds=3), "have other terms: 2 trials × 2 seeds; this run: 2 trials × 3 seeds"),
        (lambda: other(seed=7), r"have other terms: training data [0-9a-f]{6}; this run: training data [0-9a-f]{6}"),
        (lambda: other(choose="seed"), "a configuration for each study; this run: a configuration for each seed"),
        (lambda: other(search="optuna"), "search=random; this run: search=optuna"),
        (lambda: other(settings={"r1": 1.5}), "the baselines have no study on 'selection_bias r1=1.5'"),
    ],
)
def test_other_terms_are_refused_in_two_lines(folder: Path, study: Callable[[], Study], reason: str) -> None:
    with pytest.raises(UnequalTerms, match=reason) as refused:
        beside([study()], read_baselines(folder))
    assert len(str(refused.value).splitlines()) == 2


def test_other_test_data_are_refused_when_they_are_known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "Driver", Stub)
    monkeypatch.setattr(
        Stub,
        "read_boards",
        lambda self, boards: [Reading([_with_other_test(studies[0])], {}) for studies in boards],
    )
    result = oodbench.run("ridge", "selection_bias", baselines=folder, **SMALL)
    with pytest.raises(UnequalTerms, match=r"test data others; erm .*: test data [0-9a-f]{6}\."):
        result.leaderboards()


def _with_other_test(study: Study) -> ConcludedStudy:
    return changed(concluded(study), opening__test_fingerprint="others")


def test_of_several_terms_those_of_the_run_are_taken(folder: Path, tmp_path: Path) -> None:
    (one,) = (study for study in read_baselines(folder) if study.record.method == "erm")
    known = [one, changed(one, budget__trials=50), changed(one, provenance__versions={"oodbench": "0.0.1"})]
    with pytest.warns(Notice) as notices:
        taken = beside([other()], known)
    assert [study.label for study in taken] == ["erm (steps=20) [baseline]"] * 2
    assert [str(notice.message).partition(":")[0].partition(",")[0] for notice in notices] == [
        "baselines on 'selection_bias test_r=-1.9",
        "the baselines were made with oodbench 0.0.1",
    ]


def test_a_folder_without_submissions(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no submissions\.\nWrite one into it: `oodbench submit -o"):
        read_baselines(tmp_path)
