"""Suite files: what they may say, and the studies they become."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oodbench.board.row import Cell, Published
from oodbench.cli.main import main
from oodbench.errors import UserError
from oodbench.plugin.described import write_description
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.spec import StudyOptions
from oodbench.suite.suite import Overrides, Part, expand
from oodbench.suite.suitefile import read_suite, suite_names
from oodbench_datasets.table.table import EXAMPLE
from places import FIGURES, SUITE

Cli = Callable[..., Any]
Write = Callable[..., Path]


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
        (
            '["erm", "irm"]',
            '["erm", "irm", "srn"]',
            "boards.regression, method 'srn': there is no method 'srn'. Did you",
        ),
        (
            '["erm", "irm"]',
            '["erm", "irm", "srm:relesed"]',
            "no preset of method 'srm' 'relesed'. Did you mean 'released'?",
        ),
        ('["erm", "irm"]', '["erm", "irm", "srn:released"]', "there is no method 'srn'. Did you mean 'srm'?\nKnown: "),
        ('["erm", "irm"]', '["erm", "irm", "sklearn:no.Such"]', "there is no estimator 'no.Such'"),
        ('["erm", "irm"]', '["erm", "erm"]', "mine.toml: methods names 'erm' twice"),
        ('["erm", "irm"]', "[1]", "mine.toml: methods must be a list of texts"),
        ('name = "curve"', 'name = "regression"', "boards[1].name is 'regression' a second time"),
        ('name = "curve"', 'name = "../x"', "boards[1].name must be a word that can name a file"),
        ('name = "curve"', 'name = "curve"\ntittle = "x"', "no key 'boards[1].tittle'. Did you mean 'title'?"),
        ('"spurious_correlation"', '"spurious"', "board 'curve' is on dataset 'spurious', which is not installed.\n"),
        ("r1 = [1.5, 1.9]", 'r1 = [1.5, "x"]', "boards.regression, method 'erm': dataset 'selection_bias': r1=x"),
        ("settings = [{", "settings = [3, {", "boards[1].settings must be a table, or a list of tables"),
        ("test_rows = 30,", "rows = 30,", "dataset 'spurious_correlation' has no setting 'rows'"),
        ('"mean_accuracy"]', '"accuracy"]', "boards.curve.metrics: there is no metric 'accuracy'"),
        ("values = [0.1, 0.5]", "values = [0.1, 0.1]", "boards[1].curve.values must be two or more different"),
        ("values = [0.1, 0.5]", "values = [0.1, 0.9]", "method 'fdro': method 'fdro': alpha0=0.9 is outside"),
        ('= "alpha0"', '= "alpha1"', "there is no hyper-parameter 'alpha1'. Did you mean 'alpha0'?"),
        ("[modes.usual]", '[modes.usual.methods.erm]\npreset = "released"', "no preset of method 'erm' 'released'"),
        ("mixed = true", "", "mode 'short' grants unequal trials on board 'regression': erm 1, irm 2.\nGive all the"),
        ("mixed = true", "mixed = 1", "modes.short.mixed must be true or false, not 1"),
        ("mixed = true", 'choose = "run"', "modes.short.choose must be study or seed, not 'run'"),
        ("[modes.usual]", "[modes.usual]\ntrails = 3", "there is no key 'modes.usual.trails'"),
        ("[modes.usual]", "[modes.usual.methods.srm]\ntrials = 3", "modes.usual.methods.srm: the boards it is for"),
        ("[modes.usual]", '[modes.usual.methods.erm]\nmodel = "x"', "modes.usual, method 'erm' on board 'regression'"),
        ("boards.regression.irm]", "boards.regressoin.irm]", "there is no board for modes.short.boards.regressoin"),
        ('published = "figures.csv"', 'published = "none.csv"', "published: none.csv cannot be read"),
        ('published = "figures.csv"', 'published = "mine.toml"', "does not have the right columns"),
    ],
)
def test_mistakes_name_the_file_and_the_key(
    call: Callable[..., tuple[int, str]], tmp_path: Path, old: str, new: str, expected: str, write_suite: Write
) -> None:
    assert old in SUITE
    write_suite(tmp_path, SUITE.replace(old, new, 1))
    code, err = call("run", "--suite", "mine.toml", *(["--mode", "short"] if "mixed" in old else []))
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
def test_published_figures_that_do_not_fit(tmp_path: Path, row: str, expected: str, write_suite: Write) -> None:
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
        (["leaderboard", "--suite", "paper", "--against", "erm"], "--against does not go with --suite"),
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


def test_a_mistake_in_a_file_through_a_real_process(cli: Cli, tmp_path: Path, write_suite: Write) -> None:
    write_suite(tmp_path, SUITE.replace("seeds = 2", "sedes = 2"))
    done = cli("run", "--suite", "mine.toml")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: mine.toml: there is no key 'sedes'. Did you mean 'seeds'?\nKnown here: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figures.csv", "mine.toml"]


def parts(path: Path | str, mode: str | None = None, **overrides: Any) -> list[Part]:
    suite = read_suite(str(path))
    asked, chosen = Overrides(**overrides), suite.find_mode(mode)
    return expand(suite.leave_out(chosen.without).narrow(asked.methods, asked.datasets), chosen, asked)


def test_a_board_may_be_on_a_described_dataset(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(EXAMPLE.read_bytes())
    settings = {"target": "late", "environment": "region", "train": "north,south"}
    write_description("table", str(tmp_path / "data.csv"), settings, tmp_path)
    (tmp_path / "data.toml").rename(tmp_path / "trips.toml")
    text = 'title = "Mine"\nmethods = ["erm"]\n[[boards]]\nname = "one"\ndataset = "trips.toml"\n[modes.fair]\n'
    (tmp_path / "suite.toml").write_text(text)  # the path of a dataset begins in this folder, wherever the user is
    suite = read_suite(str(tmp_path / "suite.toml"))
    (part,) = expand(suite.narrow([], ["trips"]), suite.find_mode(None), Overrides())
    assert part.spec.dataset_name == "trips"
    assert suite.boards[0].dataset_id({}) == "trips"
    assert suite.narrow([], ["./trips.toml"]) == suite
    (tmp_path / "suite.toml").write_text(text.replace("trips.toml", "gone.toml"))
    gone = read_suite(str(tmp_path / "suite.toml"))
    with pytest.raises(UserError, match="gone.toml cannot be read: No such file or directory"):
        expand(gone, gone.find_mode(None), Overrides())


def test_methods_are_what_the_command_line_takes(tmp_path: Path) -> None:
    listed = ["hist_gb", "hist_gb:environment", "sklearn:sklearn.linear_model.Ridge"]
    path = tmp_path / "suite.toml"
    path.write_text(
        f'title = "Mine"\nmethods = {listed}\ntrials = 1\nseeds = 1\n[[boards]]\nname = "one"\n'
        'dataset = "selection_bias"\n'
        "settings = { majority = 40, minority = 10, test_rows = 10 }\n[modes.fair]\n"
        '[modes.quick.methods."hist_gb:environment"]\nfix = { max_leaf_nodes = 2 }\n'
    )
    assert [part.spec.label for part in parts(path)] == listed
    assert [part.spec.label for part in parts(path, "quick")] == [listed[0], f"{listed[1]} (quick)", listed[2]]
    assert [part.method for part in parts(path, methods=("hist_gb:environment",))] == ["hist_gb:environment"]
    tiny = {"majority": 40, "minority": 10, "test_rows": 10}
    by_hand = resolve(Request(listed, ["selection_bias"], StudyOptions(settings=tiny, trials=1, seeds=1)))
    ours, theirs = (
        [study.study_id for study in plan(specs, "cpu")] for specs in ([part.spec for part in parts(path)], by_hand)
    )
    assert ours == theirs
    path.write_text(path.read_text().replace("fix = { max_leaf_nodes = 2 }", 'preset = "class"'))
    with pytest.raises(UserError, match="environment.preset is for methods that are listed without one.\nLeave it out"):
        read_suite(str(path))


def test_a_mode_may_leave_methods_out(tmp_path: Path, write_suite: Write) -> None:
    path = write_suite(tmp_path, SUITE.replace("[modes.usual]", '[modes.usual]\nwithout = ["irm"]'))
    assert {part.method for part in parts(path)} == {"erm", "fdro"}
    assert {part.method for part in parts(path, "short")} == {"erm", "irm", "fdro"}


def test_lists_of_settings_are_varied_and_curves_have_a_study_per_value(suite_file: Path) -> None:
    found = parts(suite_file)
    assert [(part.method, part.settings.get("r1"), part.point) for part in found] == [
        ("erm", 1.5, None), ("irm", 1.5, None), ("erm", 1.9, None), ("irm", 1.9, None),
        ("fdro", None, 0.1), ("fdro", None, 0.5),
    ]  # fmt: skip
    assert [part.spec.budget.trials for part in found] == [2, 2, 2, 2, 1, 1]
    assert [part.spec.label for part in found[-3:]] == ["irm", "fdro (alpha0=0.1)", "fdro (alpha0=0.5)"]
    assert found[-1].spec.fixed == {"alpha0": 0.5}


def test_a_mode_gives_each_method_its_way_and_the_board_goes_before_the_mode(suite_file: Path) -> None:
    found = {(part.board.name, part.method): part.spec for part in parts(suite_file, "short")}
    erm, irm, fdro = found["regression", "erm"], found["regression", "irm"], found["curve", "fdro"]
    assert (erm.budget.trials, irm.budget.trials, fdro.budget.trials) == (1, 2, 1)
    assert irm.setup.recipe.steps == 30
    assert irm.fixed["penalty"] == (1, 5)
    assert (erm.label, irm.label, fdro.label) == ("erm (short)", "irm (short)", "fdro (short, alpha0=0.5)")


def test_a_mode_may_choose_for_each_seed(tmp_path: Path, write_suite: Write) -> None:
    path = write_suite(tmp_path, SUITE.replace("[modes.usual]", '[modes.usual]\nchoose = "seed"'))
    assert {part.spec.selecting.choose for part in parts(path)} == {"seed"}
    assert {part.spec.selecting.choose for part in parts(path, "short")} == {"study"}


def test_what_the_user_says_goes_before_the_suite(suite_file: Path) -> None:
    asked = {"methods": ("irm",), "trials": 7, "seeds": 3, "seed": 5, "selector": "mean", "device": "cpu"}
    for part in parts(suite_file, "short", **asked):
        budget = part.spec.budget
        assert (part.method, budget.trials, budget.seeds, budget.seed) == ("irm", 7, 3, 5)
        assert part.spec.selecting.selector == "mean"
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
    assert {part.spec.budget.seeds for part in found} == {10}
    most = {(part.board.name, part.method): part.spec.budget.trials for part in found}
    assert most["table1", "irm"] == (20 if mode == "fair" else 8)
    assert most["table1", "erm"] == (20 if mode == "fair" else 1)
    risks = {part.spec.fixed.get("risk") for part in found if part.method in ("irm", "eiil")}
    assert risks == ({None} if mode == "fair" else {"pooled"})  # the form behind the published figures


def test_suites_are_listed_and_shown(cli: Cli, suite_file: Path) -> None:
    listed = [row["name"] for row in cli("list", "--json").json() if row["kind"] == "suite"]
    assert listed == ["field", "paper", "sem", "toys", "unit_tests"]
    shown = cli("show", "mine.toml", "--json").json()
    assert [board["name"] for board in shown["boards"]] == ["regression", "curve"]
    assert [mode["name"] for mode in shown["modes"]] == ["usual (default)", "short"]
    assert "Table 2" in cli("show", "paper").out
