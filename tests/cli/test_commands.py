"""The command line as a user meets it: real processes, real exit codes."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import typer

import oodbench.cli.main  # registers the commands
from family import family
from oodbench.cli.terminal import app

Cli = Callable[..., Any]
TINY = [
    "--set", "majority=200", "--set", "minority=40", "--set", "test_rows=50", "--trials", "3", "--seeds", "2",
]  # fmt: skip
RUN = ["run", "--method", "erm", "--dataset", "selection_bias"]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A host that accepts connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(5)
        yield listener.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "--method", "erm2", "--dataset", "selection_bias"], "there is no method 'erm2'. Did you mean 'erm'?"),
        (["run", "--method", "erm", "--dataset", "selection_bais"], "Did you mean 'selection_bias'?"),
        ([*RUN, "--set", "r9=1"], "has no setting 'r9'.\nIt has: r1=1.9"),
        ([*RUN, "--set", "r1=abc"], "r1=abc is not a number.\nIt has: r1=1.9"),
        ([*RUN, "--set", "r1"], "cannot be read.\nWrite it as NAME=VALUE"),
        ([*RUN, "--set", "r1=0.5"], "need an absolute value above 1"),
        ([*RUN, "--trials", "0"], "--trials must be at least 1"),
        ([*RUN, "--seeds", "-2"], "--seeds must be at least 1"),
        ([*RUN, "--selector", "best"], "there is no selector 'best'"),
        ([*RUN, "--device", "tpu"], "there is no device 'tpu'"),
        ([*RUN, "--trial-timeout", "soon"], "--trial-timeout soon is not a length of time.\nWrite it as 30s"),
        ([*RUN, "--search", "optuna", "--selector", "oracle"], "--selector oracle does not go with --search"),
        (["run", "--suite", "paper", "--budget", "10m"], "--budget does not go with --suite"),
        (["run", "--suite", "paper", "--dry-run"], "--dry-run does not go with --suite"),
        ([*RUN, "--model", "forest"], "there is no model 'forest'"),
        ([*RUN, "--set-model", "width=3"], "model 'linear' has no setting 'width'"),
        ([*RUN, "--set-training", "steps=0"], "steps must be at least 1"),
        ([*RUN, "--set-training", "loss=cross_entropy"], "is for classification"),
        ([*RUN, "--fix", "alpha0=0.1"], "there is no hyper-parameter 'alpha0'"),
        ([*RUN, "--fix", "learning_rate=9"], "learning_rate=9 is outside its range"),
        ([*RUN, "--fix", "fdro.alpha0=0.1"], "--fix fdro.alpha0: this run has no method 'fdro'"),
        ([*RUN, "--method", "srm", "--fix", "alpha0=0.7"], "alpha0=0.7 is outside its range.\nIt may be 0.01 to 0.5"),
        ([*RUN, "--method", "fdro", "--fix", "alpha0=0"], "alpha0=0 is outside its range"),
        ([*RUN, "--address", "127.0.0.1:1"], "no Ray cluster answers"),
        ([*RUN, "--address", "nonsense"], "no Ray cluster answers"),
        ([*RUN, "--tracking-uri", "http://127.0.0.1:1"], "no tracking server answers"),
        ([*RUN, "--tracking-uri", "nonsense://x"], "does not work"),
        (["show", "ermm"], "Did you mean 'erm'?"),
        (["leaderboard", "selection_bias"], "there are no studies"),
        (["leaderboard", "selection_bias", "--format", "pdf"], "there is no format 'pdf'"),
        (["leaderboard", "nothing"], "there is no dataset 'nothing'"),
        (["ui"], "there is no record"),
        (["stability", "3f2a"], "no studies in"),
        (["submit"], "there are no such studies in"),
        (["submit", "-o", "mine.tar"], "does not end in .zip"),
        (["submit", "--mode", "fair"], "--mode is for suites"),
        (["verify", "nothing.zip"], "nothing.zip cannot be read: No such file or directory"),
        (["site", "public"], "leaderboards is not a folder"),
        ([*RUN, "--baselines", "nothing.zip"], "nothing.zip cannot be read"),
        (["check", "no-such-package"], "is installed"),
        (["check", "numpy"], "has no entry points"),
        (["new", "thing", "x"], "there is no kind of plug-in 'thing'"),
        (["new", "method", "Not Snake"], "not a name in snake case"),
    ],
)
def test_mistakes_get_two_lines_and_exit_code_2(cli: Cli, tmp_path: Path, arguments: list[str], expected: str) -> None:
    started = time.monotonic()
    done = cli(*arguments)
    assert expected in done.err
    assert done.code == 2
    assert len(done.err.strip().splitlines()) <= 2
    assert "Traceback" not in done.err + done.out
    assert list(tmp_path.iterdir()) == []  # nothing half-written
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("arguments", [["run"], ["run", "--trials", "many"], ["fly"], ["run", "--wings"]])
def test_misused_options_get_exit_code_2(cli: Cli, arguments: list[str]) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_a_dry_run_shows_the_plan_and_begins_nothing(cli: Cli, tmp_path: Path) -> None:
    shown, said = cli(*RUN, *TINY, "--dry-run"), cli(*RUN, *TINY, "--dry-run", "--json")
    assert (shown.code, said.code) == (0, 0)
    assert "memory    at most " in shown.out
    plan = json.loads(said.out)
    assert plan["trainings"] == 6
    assert plan["memory"]["shared"] < plan["memory"]["worker"]
    assert list(tmp_path.iterdir()) == []


def test_a_gpu_that_is_not_there(cli: Cli) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA GPU")
    done = cli(*RUN, "--device", "cuda")
    assert (done.code, done.err) == (
        2, "error: --device cuda: there is no CUDA GPU here.\nUse --device auto or --device cpu.\n",
    )  # fmt: skip


@pytest.mark.parametrize("option", ["--address=127.0.0.1:{}", "--tracking-uri=http://127.0.0.1:{}"])
def test_hosts_that_never_answer(cli: Cli, silent_port: int, option: str) -> None:
    started = time.monotonic()
    done = cli(*RUN, option.format(silent_port))
    assert done.code == 2
    assert "answers at" in done.err
    assert time.monotonic() - started < 30


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All that the application has, those of groups too."""
    for name, command in group.commands.items():
        yield from commands(command, (*path, name)) if hasattr(command, "commands") else [(*path, name)]


@pytest.mark.parametrize("command", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_every_command_has_help_with_an_example(cli: Cli, command: tuple[str, ...]) -> None:
    done = cli(*command, "--help")
    assert done.code == 0
    assert "Example: oodbench" in done.out


def test_version(cold_cli: Cli) -> None:
    assert cold_cli("--version").out.strip() == oodbench.__version__


def test_list_and_show(cli: Cli, cold_cli: Cli) -> None:
    listed = cold_cli("list")
    assert listed.code == 0
    assert re.search(r"method +fdro +oodbench", listed.out)
    names = {entry["name"] for entry in cli("list", "--json").json()}
    assert {"erm", "fdro", "selection_bias", "spurious_correlation"} <= names
    shown = cli("show", "selection_bias")
    assert "selection of the majority group" in shown.out
    assert cli("show", "fdro", "--json").json()["uses_if_the_dataset_tells"] == ["alpha0"]


def test_a_run_from_cold_to_the_leaderboard_and_the_page(cli: Cli, cold_cli: Cli, tmp_path: Path) -> None:
    done = cold_cli("run", "--method", "erm", "--method", "fdro", "--dataset", "selection_bias", *TINY)
    assert done.code == 0, done.err
    assert "12 of 12 trainings" in done.err
    assert re.search(r"│ fdro +│", done.out)
    assert not family(tmp_path)
    board = cold_cli("leaderboard", "selection_bias", *TINY[:6])
    assert board.out == done.out
    markdown = cli("leaderboard", "selection_bias", *TINY[:6], "--format", "md").out
    assert markdown.startswith("**selection_bias majority=200 minority=40 test_rows=50**")
    rows = cli("leaderboard", "selection_bias", *TINY[:6], "--json").json()["rows"]
    assert {row["method"] for row in rows} == {"erm", "fdro"}
    _look_at_the_stability(cli, rows)
    _look_at_the_page(tmp_path)


def _look_at_the_stability(cli: Cli, rows: list[dict[str, Any]]) -> None:
    board = ["leaderboard", "selection_bias", *TINY[:6], "--stability"]
    assert re.search(r"validation DS .* test DS .* ODS ", cli(*board).out)
    markdown = cli(*board, "--format", "md").out
    assert "lower is more stable" in markdown
    value = r" \| [^|]*\d\.\d{3} ± \d\.\d{3}[^|]*"
    seed_left_out = r" \| \d\.\d{3}"
    assert re.search(rf"\| erm \| 3 more seeds{value}{seed_left_out}({value}){{8}} \| 3 × 2", markdown)
    assert "validation_stability,validation_stability_spread" in cli(*board, "--format", "csv").out.splitlines()[0]
    run_id = rows[0]["run_id"]
    found = cli("stability", run_id[:12], "--environment", "r=-2.9", "--seed", "1", "--json").json()
    assert (found["run_id"], found["seed"], found["alpha0"]) == (run_id, 1, 0.1)
    assert [one["part"] for one in found["environments"]] == ["pooled", *["validation"] * 2, *["test"] * 6]
    (worst,) = found["worst"]
    shown = cli("stability", run_id)
    assert shown.code == 0
    assert "the worst sub-population of validation (pooled)" in shown.out
    assert re.search(rf"│ {worst['worst']['columns'][0]['column']} +│ +-?\d", shown.out)
    for mistake, expected in (
        (["--seed", "7"], "there is no seed '7'"),
        (["--environment", "r=-3"], "there is no environment 'r=-3'"),
    ):
        done = cli("stability", run_id, *mistake)
        assert (done.code, expected in done.err) == (2, True)


def _look_at_the_page(directory: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    page = subprocess.Popen(
        [sys.executable, "-m", "oodbench", "ui", "--port", str(port)], cwd=directory, stderr=subprocess.PIPE, text=True
    )
    try:
        assert page.stderr is not None
        address = page.stderr.readline().strip()
        assert re.fullmatch(
            rf"http://127.0.0.1:{port}/#/experiments/\d+/runs\?workflowType=.*&viewStateShareKey=methods", address
        )
        with urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
            assert b"MLflow" in answer.read()
    finally:
        page.send_signal(signal.SIGINT)
        assert page.wait(timeout=20) == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_new_plugins_are_installable_in_name_and_form(cli: Cli, tmp_path: Path) -> None:
    for kind in ("method", "dataset"):
        done = cli("new", kind, f"my_{kind}")
        assert done.code == 0
        source = (tmp_path / f"my_{kind}" / "src" / f"my_{kind}" / "__init__.py").read_text()
        assert f"class My{kind.capitalize()}(" in source
        assert (
            f'my_{kind} = "my_{kind}:My{kind.capitalize()}"' in (tmp_path / f"my_{kind}" / "pyproject.toml").read_text()
        )
    assert cli("new", "method", "my_method").code == 2
