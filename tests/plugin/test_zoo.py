"""Broken plug-ins, really installed: each is shown with its reason, and spoils nothing for the others."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import oodbench
from places import DISTRIBUTIONS as ZOO

SETTINGS = {"majority": 60, "minority": 20, "test_rows": 25}
BUDGET: dict[str, Any] = {"trials": 2, "seeds": 1}

UNUSABLE = {
    "raises_on_import": "importing oodbench_zoo.raises_on_import:Anything failed: RuntimeError: no licence",
    "exits_on_import": "importing oodbench_zoo.exits_on_import:Anything failed: SystemExit: 4",
    "missing_attribute": "has no attribute 'NoSuchClass'",
    "default_outside": "ValueError: the default 5 is not 0 to 1",
    "a_function": "is not a class",
    "not_a_method": "not a subclass of oodbench.Method",
    "space_is_a_list": "SpaceIsAList.space and SpaceIsAList.presets must be dictionaries",
    "space_of_numbers": "space['penalty'] is not a name with a dimension",
    "wants_test_data": "needs test, but a method can need only environments",
    "unknown_task": "UnknownTask.tasks must be some of regression, classification",
    "exits_when_made": "ExitsWhenMade cannot be inspected: SystemExit: 5",
    "check_raises": "method 'check_raises' cannot be set up on 'selection_bias': KeyError: 'penalty'",
    "no_capacity": "method 'no_capacity' cannot be set up on 'selection_bias': TypeError",
    "twin": "two plug-ins have this name: oodbench_zoo.failing:FitRaises (oodbench-zoo) and oodbench_zoo_twin:Twin",
}
FAILING = {
    "fit_raises": "ValueError: no such luck and more of it",
    "fit_returns_none": "fit returned None, which has no predict",
    "fit_returns_an_object": "which has no predict",
    "too_few_predictors": "fit_pack returned 0 predictors for 1 trials",
    "predicts_nan": "predict returned values that are not finite numbers",
    "predicts_huge": "the loss is not finite",
    "predicts_a_table": "predict returned shape (20, 2) for 20 rows",
    "predicts_text": "predict returned values of type <U3, which are not real numbers",
    "predicts_complex": "predict returned values of type complex128, which are not real numbers",
    "predict_raises_on_test": "KeyError: 'unseen'",
    "writes_training_rows": "ValueError: assignment destination is read-only",
    "exits_in_fit": "SystemExit: 3",
    "exits_in_predict": "SystemExit: 3",
    "cannot_travel": "the method cannot be sent to a worker: TypeError: cannot pickle",
    "predictor_cannot_travel": "the predictor cannot be sent between machines: TypeError: cannot pickle",
    "predictor_does_not_arrive": "the predictor cannot be sent between machines: RuntimeError: opened elsewhere",
    "loss_is_nan": "the loss is not finite: the training diverged",
    "loss_of_the_wrong_shape": "loss must return one number per trial",
    "loss_without_the_model": "loss does not depend on the model",
    "loss_is_a_number": "loss does not depend on the model",
}
RUDE = ("writes_through_torch", "makes_rows_writable", "changes_its_hparams", "prints_megabytes", "changes_torch")
BROKEN_DATA = {
    "has_nan": "environment 'a' has values that are not finite",
    "one_class": "training rows are all of class 0",
    "other_columns": "training environments have different numbers of features: [2, 3]",
    "other_columns_in_validation": "validation environments have different numbers of features: [2, 3]",
    "empty_environment": "environment 'a' has no rows",
    "no_training": "there is no training environment",
    "not_environments": "training must contain only oodbench.Environment objects",
    "validation_changes": "validation data differ from call to call for the same seed",
    "train_raises": "FileNotFoundError: rows.csv",
    "train_exits": "SystemExit: 9",
    "facts_are_text": "FactsAreText.facts must be a dictionary of numbers",
}
BROKEN_TEST_DATA = {
    "no_test": "there is no test environment",
    "nan_in_test": "environment 'a' has values that are not finite",
    "test_raises": "FileNotFoundError: test.csv",
}


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def zoo(python: Path, pip_install: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Commands in the environment with the zoo, one after the other in one process, each as `oodbench ...` does it."""
    pip_install(ZOO / "broken", ZOO / "twin")
    script = """
import contextlib, io, json, sys
from oodbench.cli.main import main
commands = json.load(sys.stdin)
if sys.argv[1] == "ray":
    import ray
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
ended = []
for arguments in commands:
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv = ["oodbench", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ending:
            code = ending.code or 0
    ended.append([code, out.getvalue(), err.getvalue()])
open("ended.json", "w").write(json.dumps(ended))
"""

    def call(*commands: list[str], ray: bool = False) -> list[Ended]:
        folder = tmp_path_factory.mktemp("zoo")
        done = subprocess.run(
            [python, "-c", script, "ray" if ray else ""],
            input=json.dumps(commands), capture_output=True, text=True, cwd=folder, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        ended = [Ended(*one) for one in json.loads((folder / "ended.json").read_text())]
        for one in ended:
            assert "Traceback" not in one.err
        return ended

    return call


def command(*methods: str, dataset: str = "selection_bias") -> list[str]:
    settings = SETTINGS if dataset == "selection_bias" else {}
    several = [part for method in methods for part in ("-m", method)]
    several += [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    budget = [part for name, value in BUDGET.items() for part in (f"--{name}", str(value))]
    return ["run", *several, "-d", dataset, *budget, "--set-training", "steps=20", "--json"]


def test_what_cannot_be_used_is_refused_before_anything_starts(zoo: Callable[..., Any]) -> None:
    listing, *ended = zoo(["list", "--json"], *(command("erm", name) for name in UNUSABLE))
    listed = {entry["name"]: entry["broken"] for entry in json.loads(listing.out)}
    assert listed["erm"] is None
    for (name, reason), one in zip(UNUSABLE.items(), ended, strict=True):
        assert (one.code, one.out) == (2, ""), name
        assert reason in one.err
        assert "error: method" in one.err
        if name not in ("check_raises", "no_capacity"):  # these show only on data
            assert reason in listed[name]


@pytest.fixture(scope="module")
def worked(zoo: Callable[..., Any]) -> list[Ended]:
    """All that must really train, on one Ray: every method beside erm, and erm on data whose test part is broken."""
    data = command("erm", dataset="sound")
    for name in BROKEN_TEST_DATA:
        data += ["-d", name]
    settings = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    board = ["leaderboard", "selection_bias", *settings]
    ended: list[Ended] = zoo(command("erm", *FAILING, *RUDE), data, board, ray=True)
    return ended


def test_what_fails_at_work_is_shown_and_spoils_nothing(worked: list[Ended], ray_address: str, tmp_path: Path) -> None:
    ended = worked[0]
    assert ended.code == 1
    (board,) = json.loads(ended.out)
    rows = {row["method"].partition(" ")[0]: row for row in board["rows"]}
    for name, reason in FAILING.items():
        assert reason in rows[name]["failure"], name
        assert all(metric["value"] is None for metric in rows[name]["metrics"].values())
        assert f"failed {name} (steps=20) on selection_bias" in ended.err
    for name in RUDE:
        assert rows[name]["failure"] == "", name
    assert rows["changes_its_hparams"]["trials"] == 2
    assert len({rows[name]["metrics"]["mean_error"]["value"] for name in RUDE if name != "changes_its_hparams"}) == 1
    alone = oodbench.run("erm", "selection_bias", settings=SETTINGS, **BUDGET, recipe={"steps": 20}, directory=tmp_path)
    (erm,) = json.loads(json.dumps(alone.leaderboard().as_dict()))["rows"]
    for metric, cell in erm["metrics"].items():
        assert rows["erm"]["metrics"][metric]["value"] == cell["value"]
        assert rows["erm"]["metrics"][metric]["spread"] == cell["spread"]
    assert rows["erm"]["failed_trainings"] == 0
    shown = worked[2]
    assert shown.code == 0, shown.err
    assert re.search(r"│ loss_is_nan \(steps=20\) +│.* failed │.* 2 of 2 │", shown.out)
    assert re.search(r"│ erm \(steps=20\) +│.* \d\.\d{3}", shown.out)


def test_broken_data_stop_a_run_with_the_reason(zoo: Callable[..., Any]) -> None:
    ended = zoo(*(command("erm", dataset=name) for name in BROKEN_DATA))
    for (name, reason), one in zip(BROKEN_DATA.items(), ended, strict=True):
        assert one.code in (1, 2), name
        assert one.out == ""
        assert reason in one.err
        assert f"dataset {name!r}" in one.err


def test_broken_test_data_fail_the_studies_on_them(worked: list[Ended]) -> None:
    ended = worked[1]
    assert ended.code == 1
    boards = {board["dataset_id"]: board["rows"][0] for board in json.loads(ended.out)}
    assert boards["sound"]["failure"] == ""
    for name, reason in BROKEN_TEST_DATA.items():
        assert reason in boards[name]["failure"], name


def test_the_conformance_checks_find_them(zoo: Callable[..., Any]) -> None:
    (ended,) = zoo(["check", "oodbench-zoo", "--json"])
    assert ended.code == 1
    problems: dict[str, list[str]] = {}
    for entry in json.loads(ended.out):
        if entry["problem"]:
            problems.setdefault(entry["name"], []).append(entry["problem"])
    by_use = {"predict_raises_on_test", "check_raises", "no_capacity", "cannot_travel"}  # a run shows these
    assert set(UNUSABLE) | set(FAILING) | set(BROKEN_DATA) | set(BROKEN_TEST_DATA) <= set(problems) | by_use
    assert "sound" not in problems
