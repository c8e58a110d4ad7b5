"""Suites: what a file may say, what becomes of it, and the boards that are written."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import oodbench
from oodbench.board import Cell, Published
from oodbench.cli import main
from oodbench.errors import UserError
from oodbench.progress import Progress
from oodbench.study import Study
from oodbench.suite import Overrides, Part, expand
from oodbench.suitefile import read_suite, suite_names

Cli = Callable[..., Any]
SUITE = """
title = "A small suite"
about = "For tests."
mode = "usual"
trials = 2
seeds = 2
methods = ["erm", "irm"]
published = "figures.csv"

[[boards]]
name = "regression"
dataset = "selection_bias"
settings = { r1 = [1.5, 1.9], majority = 60, minority = 20, test_rows = 20 }
figures = true

[[boards]]
name = "curve"
title = "A curve"
dataset = "spurious_correlation"
settings = [{ group_rows = 40, test_rows = 30, d = 2 }]
methods = ["fdro"]
metrics = ["train_accuracy", "mean_accuracy"]
trials = 1
[boards.curve]
hyper_parameter = "alpha0"
values = [0.1, 0.5]
mark = 0.17
mark_about = "true share"

[modes.usual]
[modes.short]
about = "Few steps."
trials = 1
[modes.short.methods.irm]
training = { steps = 20 }
fix = { penalty = [1, 5], learning_rate = 0.01, weight_decay = 0, anneal = 0 }
trials = 2
[modes.short.boards.regression.irm]
training = { steps = 30 }
[modes.short.boards.curve.fdro]
model_settings = { width = 4 }
training = { steps = 20 }
"""
FIGURES = """board,setting,method,metric,value,spread
regression,r1=1.5 majority=60 minority=20 test_rows=20,erm,mean_error,0.5,1000
regression,majority=60 minority=20 test_rows=20,erm,mean_error,0.5,0.0001
regression,majority=60 minority=20 test_rows=20,irm,mean_error,0.5,
"""


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    return write_suite(tmp_path)


def write_suite(folder: Path, text: str = SUITE, figures: str = FIGURES) -> Path:
    (folder / "mine.toml").write_text(text)
    (folder / "figures.csv").write_text(figures)
    return folder / "mine.toml"


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """The command line in this process, for what ends before anything starts: exit code and standard error."""

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.argv", ["oodbench", *arguments])
        with pytest.raises(SystemExit) as ending:
            main()
        return int(str(ending.value.code)), capsys.readouterr().err

    return run


# What a file may say -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("mode =", "mode", "mine.toml is not valid TOML: "),
        ("about =", "abuot =", "mine.toml: there is no key 'abuot'. Did you mean 'about'?\nKnown here: "),
        ('title = "A small suite"', "", "mine.toml: title is missing.\nAdd title"),
        ('title = "A small suite"', "title = 3", "mine.toml: title must be a text, not 3"),
        ("trials = 2\nseeds", "trials = 0\nseeds", "mine.toml: trials must be at least 1, not 0"),
        ("seeds = 2", "seeds = true", "mine.toml: seeds must be a whole number, not True"),
        ("seeds = 2", 'seeds = 2\nselector = "best"', "mine.toml: selector: there is no selector 'best'"),
        ("[modes.usual]", '[modes.usual]\nwithout = ["srm"]', "modes.usual.without names 'srm', which no board has"),
        ('mode = "usual"', 'mode = "unusual"', "mine.toml: mode is 'unusual', which is not among modes"),
        ('["erm", "irm"]', '["erm", "irm", "srn"]', "'regression' lists method 'srn', which is not installed. Did you"),
        ('["erm", "irm"]', '["erm", "erm"]', "mine.toml: methods names 'erm' twice"),
        ('["erm", "irm"]', "[1]", "mine.toml: methods must be a list of texts"),
        ('name = "curve"', 'name = "regression"', "boards[1].name is 'regression' a second time"),
        ('name = "curve"', 'name = "../x"', "boards[1].name must be a word that can name a file"),
        ('name = "curve"', 'name = "curve"\ntittle = "x"', "no key 'boards[1].tittle'. Did you mean 'title'?"),
        ('"spurious_correlation"', '"spurious"', "board 'curve' is on dataset 'spurious', which is not installed.\n"),
        ("r1 = [1.5, 1.9]", 'r1 = [1.5, "x"]', "boards.regression, method 'erm': dataset 'selection_bias': r1=x"),
        ("settings = [{", "settings = [3, {", "boards[1].settings must be a table, or a list of tables"),
        ("test_rows = 30,", "rows = 30,", "dataset 'spurious_correlation' has no setting 'rows'"),
        ('"mean_accuracy"]', '"accuracy"]', "boards.curve.metrics: classification has no metric 'accuracy'"),
        ("values = [0.1, 0.5]", "values = [0.1, 0.1]", "boards[1].curve.values must be two or more different"),
        ("values = [0.1, 0.5]", "values = [0.1, 0.9]", "method 'fdro': method 'fdro': alpha0=0.9 is outside"),
        ('= "alpha0"', '= "alpha1"', "there is no hyper-parameter 'alpha1'. Did you mean 'alpha0'?"),
        ("[modes.usual]", '[modes.usual.methods.erm]\npreset = "released"', "no preset of method 'erm' 'released'"),
        ("[modes.usual]", "[modes.usual]\ntrails = 3", "there is no key 'modes.usual.trails'"),
        ("[modes.usual]", "[modes.usual.methods.srm]\ntrials = 3", "modes.usual.methods.srm: the boards it is for"),
        ("[modes.usual]", '[modes.usual.methods.erm]\nmodel = "x"', "modes.usual, method 'erm' on board 'regression'"),
        ("boards.regression.irm]", "boards.regressoin.irm]", "there is no board for modes.short.boards.regressoin"),
        ('published = "figures.csv"', 'published = "none.csv"', "published: none.csv cannot be read"),
        ('published = "figures.csv"', 'published = "mine.toml"', "does not have the columns it needs"),
    ],
)
def test_mistakes_name_the_file_and_the_key(
    call: Callable[..., tuple[int, str]], tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in SUITE
    write_suite(tmp_path, SUITE.replace(old, new, 1))
    code, err = call("run", "--suite", "mine.toml")
    assert expected in err
    assert "mine.toml" in err
    assert code == 2
    assert len(err.strip().splitlines()) <= 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures.csv", "mine.toml"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("regression,r1=7,erm,mean_error,1,1", "line 2: board 'regression' has no setting 'r1=7'"),
        ("regression,r9=1,erm,mean_error,1,1", "line 2: setting has no setting 'r9'"),
        ("regression,r1,erm,mean_error,1,1", "line 2: setting 'r1' cannot be read"),
        ("regression,r1=1.5,srm,mean_error,1,1", "line 2: there is no board 'regression' with method 'srm'"),
        ("regression,r1=1.5,erm,mean_error,one,1", "line 2: value and spread must be numbers"),
    ],
)
def test_published_figures_that_do_not_fit(tmp_path: Path, row: str, expected: str) -> None:
    path = write_suite(tmp_path, figures=f"{FIGURES.splitlines()[0]}\n{row}\n")
    with pytest.raises(UserError, match=expected):
        parts(path)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "--suite", "papper"], "there is no suite 'papper'. Did you mean 'paper'?"),
        (["run", "--suite", "./none.toml"], "suite ./none.toml cannot be read"),
        (["run", "--suite", "paper", "--mode", "fare"], "no mode of suite 'paper' 'fare'. Did you mean 'fair'?"),
        (["run", "--suite", "paper", "--method", "mine"], "no method in suite 'paper' 'mine'"),
        (["run", "--suite", "paper", "--dataset", "mine"], "no dataset in suite 'paper' 'mine'"),
        (["run", "--suite", "paper", "--set", "r1=1.5"], "--set does not go with --suite"),
        (["run", "--suite", "paper", "--fix", "alpha0=0.1"], "--fix does not go with --suite"),
        (["run", "--suite", "paper", "--model", "mlp"], "--model does not go with --suite"),
        (["run", "--suite", "paper", "-m", "erm", "--trials", "0"], "error: --trials must be at least 1"),
        (["run", "-m", "erm", "-d", "selection_bias", "--mode", "fair"], "--mode is for suites"),
        (["leaderboard", "--suite", "paper", "-m", "erm"], "there are no studies of suite 'paper', mode 'fair'"),
        (["leaderboard", "--suite", "paper", "selection_bias"], "does not go with --suite"),
        (["leaderboard", "--suite", "paper", "--format", "md"], "--format md does not go with --suite"),
        (["leaderboard", "selection_bias", "-o", "out"], "--output is for suites"),
        (["leaderboard"], "name a dataset, or a suite with --suite"),
    ],
)
def test_options_that_do_not_fit(
    call: Callable[..., tuple[int, str]], tmp_path: Path, arguments: list[str], expected: str
) -> None:
    code, err = call(*arguments)
    assert expected in err
    assert (code, len(err.strip().splitlines()) <= 2) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_in_a_file_through_a_real_process(cli: Cli, tmp_path: Path) -> None:
    write_suite(tmp_path, SUITE.replace("seeds = 2", "sedes = 2"))
    done = cli("run", "--suite", "mine.toml")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: mine.toml: there is no key 'sedes'. Did you mean 'seeds'?\nKnown here: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures.csv", "mine.toml"]


# What becomes of it ------------------------------------------------------------------------------------------------


def parts(path: Path | str, mode: str | None = None, **overrides: Any) -> list[Part]:
    suite = read_suite(str(path))
    asked, chosen = Overrides(**overrides), suite.find_mode(mode)
    return expand(suite.leave_out(chosen.without).narrow(asked.methods, asked.datasets), chosen, asked)


def test_a_mode_may_leave_methods_out(tmp_path: Path) -> None:
    path = write_suite(tmp_path, SUITE.replace("[modes.usual]", '[modes.usual]\nwithout = ["irm"]'))
    assert {part.method for part in parts(path)} == {"erm", "fdro"}
    assert {part.method for part in parts(path, "short")} == {"erm", "irm", "fdro"}


def test_lists_of_settings_are_varied_and_curves_have_a_study_per_value(suite_file: Path) -> None:
    found = parts(suite_file)
    assert [(part.method, part.settings.get("r1"), part.point) for part in found] == [
        ("erm", 1.5, None), ("irm", 1.5, None), ("erm", 1.9, None), ("irm", 1.9, None),
        ("fdro", None, 0.1), ("fdro", None, 0.5),
    ]  # fmt: skip
    assert [part.request.trials for part in found] == [2, 2, 2, 2, 1, 1]
    assert [part.request.variant for part in found[-3:]] == [[], ["alpha0=0.1"], ["alpha0=0.5"]]
    assert found[-1].request.fix == {"alpha0": 0.5}


def test_a_mode_gives_each_method_its_way_and_the_board_goes_before_the_mode(suite_file: Path) -> None:
    found = {(part.board.name, part.method): part.request for part in parts(suite_file, "short")}
    erm, irm, fdro = found["regression", "erm"], found["regression", "irm"], found["curve", "fdro"]
    assert (erm.trials, irm.trials, fdro.trials) == (1, 2, 1)
    assert irm.training == {"steps": 30}
    assert irm.fix["penalty"] == [1, 5]
    assert (erm.variant, irm.variant, fdro.variant) == (["short"], ["short"], ["short", "alpha0=0.5"])


def test_what_the_user_says_goes_before_the_suite(suite_file: Path) -> None:
    asked = {"methods": ("irm",), "trials": 7, "seeds": 3, "seed": 5, "selector": "mean", "device": "cpu"}
    for part in parts(suite_file, "short", **asked):
        request = part.request
        assert (part.method, request.trials, request.seeds, request.seed) == ("irm", 7, 3, 5)
        assert (request.selector, request.device) == ("mean", "cpu")
    assert {part.board.name for part in parts(suite_file, datasets=("selection_bias",))} == {"regression"}
    with pytest.raises(UserError, match="has these methods on these datasets"):
        parts(suite_file, methods=("erm",), datasets=("spurious_correlation",))


def test_values_are_held_against_the_published_spread() -> None:
    published = Published(2.0, 0.5)
    assert Cell(2.5, 0.1, published=published).within is True
    assert Cell(2.51, 0.1, published=published).within is False
    assert Cell(None, None, published=published).within is None
    assert Cell(2.0, 0.1, published=Published(2.0, None)).within is None
    assert Cell(2.0, 0.1).within is None


@pytest.mark.parametrize("mode", ["fair", "published"])
def test_the_suite_of_the_paper(mode: str) -> None:
    assert "paper" in suite_names()
    suite = read_suite("paper")
    assert {board.name: len(board.published) for board in suite.boards} == {"table1": 54, "table2": 48, "alpha0": 0}
    found = parts("paper", mode, methods=("erm", "fdro", "irm", "eiil"))
    assert len(found) == 3 * 4 + 4 * 4 + 10
    assert {part.request.seeds for part in found} == {10}
    most = {(part.board.name, part.method): part.request.trials for part in found}
    assert most["table1", "irm"] == (20 if mode == "fair" else 8)
    assert most["table1", "erm"] == (20 if mode == "fair" else 1)


def test_suites_are_listed_and_shown(cli: Cli, suite_file: Path) -> None:
    assert {"kind": "suite", "name": "paper"}.items() <= cli("list", "--json").json()[-1].items()
    shown = cli("show", "mine.toml", "--json").json()
    assert [board["name"] for board in shown["boards"]] == ["regression", "curve"]
    assert [mode["name"] for mode in shown["modes"]] == ["usual (default)", "short"]
    assert "Table 2" in cli("show", "paper").out


# Its boards --------------------------------------------------------------------------------------------------------


class Counts(Progress):
    """How many studies and trainings a run has."""

    studies = trainings = finished = 0

    def plan(self, studies: Sequence[Study], record: str) -> None:
        self.studies = len(studies)

    def advance(self, study: Study, trainings: int, failed: int) -> None:
        self.trainings += trainings

    def finish(self) -> None:
        self.finished += 1


@pytest.fixture(scope="module")
def short(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, oodbench.SuiteResult]:
    folder = tmp_path_factory.mktemp("suite")
    path = write_suite(folder)
    counts = Counts()
    result = oodbench.run_suite(str(path), mode="short", directory=folder / "record", progress=counts)
    assert (counts.studies, counts.trainings, counts.finished) == (6, 2 * (2 * 1 + 2 * 2 + 2), 1)
    return path, result


def test_a_suite_is_one_page_with_every_board(short: tuple[Path, oodbench.SuiteResult], tmp_path: Path) -> None:
    path, result = short
    page = result.write_page(tmp_path / "once").read_text()
    assert page.count('class="board"') == 3
    assert "fdro, alpha0=0.5: train accuracy" in page
    assert "true share" in page
    where = {"mode": "short", "directory": result.record.directory}
    again = oodbench.suite_leaderboards(str(path), **where).write_page(tmp_path / "again")
    assert again.read_text() == page


def test_boards_have_the_suites_order_labels_and_published_figures(short: tuple[Path, oodbench.SuiteResult]) -> None:
    regression, curve = short[1].boards
    assert [board.setting for board in regression.leaderboards] == [
        f"selection_bias r1={r1} majority=60 minority=20 test_rows=20" for r1 in (1.5, 1.9)
    ]
    for board in regression.leaderboards:
        assert [row.label for row in board.rows] == ["erm (short)", "irm (short)"]
        assert [(row.trials, row.seeds) for row in board.rows] == [(1, 2), (2, 2)]
        assert board.metrics == ("mean_error", "std_error", "max_error")
    wide, narrow = (board.rows[0].cells["mean_error"] for board in regression.leaderboards)
    assert (wide.within, narrow.within) == (True, False)
    assert [(point.method, point.at) for point in curve.points] == [("fdro", 0.1), ("fdro", 0.5)]
    assert all(set(point.cells) == {"train_accuracy", "mean_accuracy"} for point in curve.points)
    assert all(point.cells["train_accuracy"].value is not None for point in curve.points)


def test_the_record_keeps_the_details_that_the_label_leaves_out(short: tuple[Path, oodbench.SuiteResult]) -> None:
    _, result = short
    study = next(study for part, study in result.parts if part.method == "irm")
    (record,) = result.record.records_of([study])
    run = result.record.client.get_run(record.run_id)
    assert run.data.tags["oodbench.label"] == "irm (short)"
    assert (run.data.params["fixed.penalty"], run.data.params["training.steps"]) == ("1,5", "30")


def test_files_are_written_and_the_same_record_gives_the_same_bytes(
    cli: Cli, short: tuple[Path, oodbench.SuiteResult], tmp_path: Path
) -> None:
    path, result = short
    written = result.write(tmp_path / "one")
    drawn = ["regression/1/distribution.svg", "regression/2/distribution.svg"]
    names = ["regression.md", "regression.csv", "regression_cells.csv", "regression.tex", *drawn]
    names += ["curve.md", "curve.csv", "curve_cells.csv", "curve.svg", "README.md"]
    assert [file.relative_to(tmp_path / "one").as_posix() for file in written] == names
    same = cli("compare", str(tmp_path / "one"), str(tmp_path / "one"), "--json")
    assert same.code == 0, same.err
    compared = [(row["setting"], row["method"], row["verdict"]) for row in same.json()["rows"]]
    assert len(compared) == 6
    assert {verdict for _, _, verdict in compared} == {"identical"}
    again = oodbench.suite_leaderboards(str(path), mode="short", directory=path.parent / "record")
    again.write(tmp_path / "two")
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    texts = {name: (tmp_path / "one" / name).read_text() for name in names}
    assert all(f"]({figure})" in texts["regression.md"] for figure in drawn)
    assert "| 0.500 ± 1000.000 ✓ |" in texts["regression.md"]
    assert "| 0.500 ± 0.000 ✗ |" in texts["regression.md"]
    rows = list(csv.DictReader(texts["regression.csv"].splitlines()))
    assert [row["mean_error_within_published"] for row in rows] == ["True", "", "False", ""]
    points = list(csv.DictReader(texts["curve.csv"].splitlines()))
    assert [(point["method"], point["alpha0"]) for point in points] == [("fdro", "0.1"), ("fdro", "0.5")]
    assert texts["curve.svg"].startswith("<?xml")
    assert "dc:date" not in texts["curve.svg"]
    (record, *_) = result.boards[0].records
    assert record.concluded in texts["README.md"]
    assert f"torch {record.versions['torch']}" in texts["README.md"]
    assert f"oodbench leaderboard --suite {path} --mode short --output FOLDER" in texts["README.md"]


def test_a_finished_suite_trains_nothing_again_and_a_larger_one_only_what_is_new(
    short: tuple[Path, oodbench.SuiteResult], tmp_path: Path
) -> None:
    path, result = short
    record = path.parent / "record"
    counts = Counts()
    again = oodbench.run_suite(str(path), mode="short", directory=record, progress=counts)
    assert (counts.studies, counts.trainings) == (6, 0)
    assert again.as_dict() == result.as_dict()
    larger = write_suite(tmp_path, SUITE.replace("values = [0.1, 0.5]", "values = [0.1, 0.3, 0.5]"))
    oodbench.run_suite(str(larger), mode="short", directory=record, progress=counts)
    assert (counts.studies, counts.trainings) == (7, 2)


def test_studies_that_boards_have_in_common_are_run_once(
    short: tuple[Path, oodbench.SuiteResult], tmp_path: Path
) -> None:
    board = SUITE[SUITE.index("[[boards]]") : SUITE.index('[[boards]]\nname = "curve"')].replace("regression", "twin")
    path = write_suite(tmp_path, SUITE.replace("[modes.usual]", f"{board}[modes.usual]"))
    counts = Counts()
    result = oodbench.run_suite(
        str(path), methods=["erm"], seeds=1, trials=1, directory=short[0].parent / "record", progress=counts
    )
    assert (counts.studies, counts.trainings) == (2, 2)
    first, twin = ([row.label for row in board.leaderboards[0].rows] for board in result.boards)
    assert first == twin == ["erm"]


def test_studies_that_are_missing_are_shown_as_such(short: tuple[Path, oodbench.SuiteResult], tmp_path: Path) -> None:
    path, _ = short
    larger = write_suite(tmp_path, SUITE.replace("values = [0.1, 0.5]", "values = [0.1, 0.2, 0.5]"))
    result = oodbench.suite_leaderboards(str(larger), mode="short", directory=path.parent / "record")
    curve = result.boards[1]
    assert [row.failure for row in curve.leaderboards[0].rows] == ["", "not run", ""]
    assert [point.cells["mean_accuracy"].value is None for point in curve.points] == [False, True, False]
    result.write(tmp_path / "out")
    assert "fdro (short, alpha0=0.2): not run" in (tmp_path / "out" / "curve.md").read_text()
    assert "| 2 of 3 |" in (tmp_path / "out" / "README.md").read_text()


def test_a_suite_of_ones_own_through_the_command_line(
    cli: Cli, tmp_path: Path, suite_file: Path, ray_address: str
) -> None:
    command = ["--suite", "./mine.toml", "--mode", "short", "-m", "erm", "-m", "fdro", "--seeds", "1"]
    done = cli("run", *command, "--address", ray_address, "-o", "boards")
    assert done.code == 0, done.err
    assert "4 trainings in " in done.err
    assert " in all" in done.err
    assert "wrote 9 files" in done.err
    assert "A curve" in done.out
    board = cli("leaderboard", *command, "-o", "again")
    assert board.out == done.out
    for file in (tmp_path / "boards").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    told = cli("leaderboard", *command, "--json").json()
    assert [board["name"] for board in told["boards"]] == ["regression", "curve"]
    assert told["boards"][0]["leaderboards"][0]["rows"][0]["metrics"]["mean_error"]["published"]["within"] is True
