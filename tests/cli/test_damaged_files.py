"""Every file that oodbench reads, damaged in many ways: a message of two lines, or something to show; no traceback.

The files are those of a real run. `--hypothesis-profile long` tries many more (tests/proofs/faults).
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings

import oodbench
from damage import (
    Damage,
    damage_bytes,
    damage_csv,
    damage_json,
    damage_lines,
    damage_parquet,
    damage_safetensors,
)
from oodbench.board.cells import parse_scores, write_cells
from oodbench.board.cells import scores_of as scores_of_boards
from oodbench.board.comparison import compare
from oodbench.board.leaderboard import compile_leaderboard
from oodbench.engine.fitted import linear_model
from oodbench.errors import Notice, OodbenchError, UserError
from oodbench.kit.tangent import TangentModel
from oodbench.record.entries import entries_of
from oodbench.record.model_files import ENCODER, StoredEnsemble, StoredPredictor, _load_pyfunc, write_model
from oodbench.record.outbox import Outbox
from oodbench.record.parcel import SCHEMA, SLIP_FILE, Slip
from oodbench.report.formats import FORMATS, render
from oodbench.report.stability import look_up, print_assessments
from oodbench.settings.fields import configure
from oodbench.study.document import Damaged, OtherSchema, write_document
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.reading import parse_record, read_results
from oodbench.study.record import ConcludedStudy
from oodbench.study.spec import StudyOptions
from oodbench.suite.suite import Overrides, expand
from oodbench.suite.suitefile import read_suite
from oodbench_datasets.acs.census import CENSUS, person_file
from oodbench_datasets.table.table import EXAMPLE, Table
from places import FIGURES, SUITE

LONG = (settings.default or settings()).max_examples > 100
TIMES = 2000 if LONG else 25
TINY = {"group_rows": 40, "test_rows": 30, "d": 2}
FEATURES = 4  # of these rows


@dataclass(frozen=True)
class Files:
    """What a run left behind."""

    directory: Path
    artifacts: Path  # of one study
    whole: ConcludedStudy  # another


@pytest.fixture(scope="module")
def files(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> Files:
    directory = tmp_path_factory.mktemp("run") / "record"
    result = oodbench.run(
        ["erm", "irm"], "spurious_correlation", settings=TINY, trials=2, seeds=2, recipe={"steps": 20},
        directory=directory,
    )  # fmt: skip
    studies = {study.label.partition(" ")[0]: study for study in result.leaderboard().studies}
    found = oodbench.leaderboard("spurious_correlation", settings=TINY, directory=directory)
    run_id = next(row.run_id for row in found.rows if row.label.startswith("irm"))
    return Files(directory, directory / "artifacts" / run_id / "artifacts", studies["erm"])


def try_all(
    what: str, content: bytes, damages: Sequence[Damage], use: Callable[[bytes, random.Random], object]
) -> None:
    """Each damaged file is used: the end is something to show, or a refusal."""
    ends: Counter[str] = Counter()
    started = time.monotonic()
    for number in range(TIMES):
        draw = random.Random(number)
        damaged = damages[number % len(damages)](content, draw)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Notice)
                warnings.filterwarnings("ignore", "overflow|invalid value", RuntimeWarning)  # of absurd numbers
                shown = use(damaged, draw)
        except (OodbenchError, Damaged, OtherSchema) as error:
            lines, shown = len(str(error).splitlines()), str(error)
            ends["refused" if 1 <= lines <= 2 else f"refused in {lines} lines: {shown}"] += 1
        except Exception as error:
            error.add_note(f"mutation {number}: {damaged[:3000]!r}")
            raise
        else:
            ends["used" if shown else f"nothing done: mutation {number}"] += 1
    assert set(ends) <= {"used", "refused"}
    print(f"\n{TIMES} mutations of {what}: {dict(ends)}, {time.monotonic() - started:.0f} s")


def test_suite_files(tmp_path: Path) -> None:
    def use(content: bytes, draw: random.Random) -> object:
        (tmp_path / "mine.toml").write_bytes(content)
        suite = read_suite(str(tmp_path / "mine.toml"))
        return [part for mode in suite.modes.values() for part in expand(suite, mode, Overrides())]

    (tmp_path / "figures.csv").write_text(FIGURES)
    try_all("a suite file", SUITE.encode(), [damage_bytes, damage_lines], use)


def test_published_figures(tmp_path: Path) -> None:
    def use(content: bytes, draw: random.Random) -> object:
        (tmp_path / "figures.csv").write_bytes(content)
        suite = read_suite(str(tmp_path / "mine.toml"))
        return expand(suite, suite.modes["usual"], Overrides())

    (tmp_path / "mine.toml").write_text(SUITE)
    try_all("published figures", FIGURES.encode(), [damage_bytes, damage_csv], use)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables(tmp_path: Path, kind: str) -> None:
    import pandas as pd

    path = tmp_path / f"table.{kind}"

    def use(content: bytes, draw: random.Random) -> object:
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        options = StudyOptions(
            settings={"path": str(path), "target": "late", "environment": "region", "train": ("north", "south")},
            trials=1, seeds=1,
        )  # fmt: skip
        return plan(resolve(Request(["erm"], ["table"], options)), "cpu")

    if kind == "csv":
        try_all("a CSV table", EXAMPLE.read_bytes(), [damage_bytes, damage_csv], use)
        return
    pd.read_csv(EXAMPLE).to_parquet(path, index=False)
    try_all("a Parquet table", path.read_bytes(), [damage_bytes, damage_parquet], use)


TABLE_SUITE = f"""title = "A table"
trials = 1
seeds = 1
methods = ["erm"]
[[boards]]
name = "mine"
dataset = "table"
[boards.settings]
path = "{EXAMPLE}"
target = "late"
environment = "region"
train = [["north", "south"]]
test = [["east"]]
task = "auto"
positive = "yes"
drop = [["rain"]]
categorical = [["stops"]]
numeric = [["distance"]]
rare = 0.01
train_rows = 0
validation_rows = 0
test_rows = 5000
least_rows = 10
[modes.fair]
"""


def test_descriptions_of_tables(tmp_path: Path) -> None:
    def use(content: bytes, draw: random.Random) -> object:
        (tmp_path / "mine.toml").write_bytes(content)
        suite = read_suite(str(tmp_path / "mine.toml"))
        parts = [part for mode in suite.modes.values() for part in expand(suite, mode, Overrides(trials=1, seeds=1))]
        return plan([part.spec for part in parts[:1]], "cpu")

    try_all("a table's description", TABLE_SUITE.encode(), [damage_bytes, damage_lines, damage_lines], use)


class Shelf:
    """As much of a record as a study is looked up in."""

    def __init__(self, study: ConcludedStudy) -> None:
        self.found = study

    def study(self, prefix: str) -> ConcludedStudy:
        return self.found


def show(study: ConcludedStudy, whole: ConcludedStudy, folder: Path, draw: random.Random) -> object:
    """In one of the ways that the commands have."""
    from rich.console import Console

    way = draw.choice((*FORMATS, *FORMATS, "stability", "stability", "page", "cells", "figures"))
    board = compile_leaderboard(whole.record.dataset_id, [study, whole], stability=draw.random() < 0.3, mixed=True)
    if way == "stability":
        looked_up = look_up(Shelf(study), "irm", None, "validation")  # type: ignore[arg-type]
        print_assessments(looked_up, Console(file=io.StringIO(), width=160))
        return json.dumps(looked_up)
    if way == "page":
        return oodbench.write_page(board, folder)
    if way == "cells":
        return write_cells(scores_of_boards([board]))
    if way == "figures":
        from oodbench.report.figures import write_figures

        return write_figures(board.dataset_id, [study, whole], folder, "svg")
    if way == "table":
        from oodbench.cli.terminal import print_board

        with contextlib.redirect_stdout(io.StringIO()) as text:
            print_board(board, True)
        return text.getvalue()
    return render(board, way, ledger=True)


def test_studies(files: Files, tmp_path: Path) -> None:
    def use(content: bytes, draw: random.Random) -> object:
        record = parse_record(content)
        results = read_results(files.artifacts / "results.parquet", record) if record.choice else None
        return show(ConcludedStudy(record, results, "its-run"), files.whole, tmp_path, draw)

    try_all("study.json", (files.artifacts / "study.json").read_bytes(), [damage_bytes, damage_json, damage_json], use)


def test_results(files: Files, tmp_path: Path) -> None:
    record = parse_record((files.artifacts / "study.json").read_bytes())

    def use(content: bytes, draw: random.Random) -> object:
        (tmp_path / "results.parquet").write_bytes(content)
        results = read_results(tmp_path / "results.parquet", record)
        return show(ConcludedStudy(record, results, "its-run"), files.whole, tmp_path, draw)

    try_all("results.parquet", (files.artifacts / "results.parquet").read_bytes(), [damage_bytes, damage_parquet], use)


@pytest.mark.parametrize(
    ("name", "damages"),
    [
        ("parcel.json", [damage_bytes, damage_json]),
        ("artifacts/study.json", [damage_bytes, damage_json, damage_json]),
        ("artifacts/results.parquet", [damage_bytes, damage_parquet]),
    ],
)
def test_parcels(files: Files, tmp_path: Path, name: str, damages: Sequence[Damage]) -> None:
    """Whatever is left out is named; whatever is not is delivered, and that begins with its entries."""
    study_id = parse_record((files.artifacts / "study.json").read_bytes()).study_id
    parcel = tmp_path / "outbox" / f"{study_id}-1"
    shutil.copytree(files.artifacts, parcel / "artifacts", ignore=shutil.ignore_patterns("models"))
    (parcel / SLIP_FILE).write_bytes(write_document(Slip(SCHEMA, parcel.name, "", False)))
    content = (parcel / name).read_bytes()
    aside = tmp_path / "damaged" / parcel.name

    def use(damaged: bytes, draw: random.Random) -> object:
        if aside.exists():
            (aside / "reason.txt").unlink()
            aside.rename(parcel)
        (parcel / name).write_bytes(damaged)
        left: list[str] = []
        parcels = Outbox(tmp_path).parcels(lambda id, reason: left.append(reason))
        assert len(parcels) + len(left) == 1
        for reason in left:
            raise UserError(reason)
        return [entries_of(parcel.record, parcel.results, parcel.id) for parcel in parcels]

    try_all(f"{name} of a parcel", content, damages, use)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OODBENCH_DATA", str(tmp_path))
    folder = tmp_path / "census"
    (folder / "2018").mkdir(parents=True)
    entries = {}
    for state in ("MA", "NY"):
        (folder / f"2018/{state}.csv").write_text("SERIALNO,AGEP\n1,2\n")
        values = {"path": f"2018/{state}.csv", "sha256": "0" * 64, "size": 18, "rows": 1, "source": "https://x/y"}
        entries[f"2018/1-Year/{state}"] = values
    (folder / "registry.json").write_text(json.dumps(entries, indent=1))
    return folder / "registry.json"


def test_registries(registry: Path) -> None:
    wanted = [person_file("2018/1-Year/MA"), person_file("2018/1-Year/NY")]

    def use(content: bytes, draw: random.Random) -> object:
        registry.write_bytes(content)
        listed, verified = CENSUS.inventory(), CENSUS.verify()
        assert len(listed) == len(verified)
        for holding in listed:
            f"{holding.facts['rows']:,} {holding.facts['size']:,}"
        return listed or CENSUS.missing(wanted) or [CENSUS.find(file) for file in wanted]

    try_all("registry.json", registry.read_bytes(), [damage_bytes, damage_json, damage_json], use)


@pytest.mark.parametrize("family", ["linear or mlp", "tangent"])
def test_models(files: Files, tmp_path: Path, family: str) -> None:
    record = files.whole.record
    path = next((files.artifacts / "models").rglob("model.safetensors"))
    features = record.data.features
    if family == "tangent":
        draw, width = np.random.default_rng(0), 3
        shapes = {
            "hidden": (width, features + 1), "read_out": (width,), "hidden_change": (1, width, features + 1),
            "read_out_change": (1, width), "constant": (1,),
        }  # fmt: skip
        arrays = {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        model = TangentModel.restore(arrays, {"classification": "True", "megabytes": "100"})
        write_model(model, tmp_path / "model", "classification", None, features)
        path = tmp_path / "model" / "model.safetensors"
    rows = np.random.default_rng(0).normal(size=(FEATURES, features))

    def use(content: bytes, draw: random.Random) -> object:
        (tmp_path / "model.safetensors").write_bytes(content)
        predictor = _load_pyfunc(str(tmp_path / "model.safetensors"))
        assert isinstance(predictor, StoredPredictor)
        return len(predictor.predict(rows)) == len(predictor.predict(rows, {"scores": True})) == len(rows)

    try_all(f"a model ({family})", path.read_bytes(), [damage_bytes, damage_safetensors], use)


def test_encoders(tmp_path: Path) -> None:
    """What a model is kept with, inside its file."""
    from safetensors.numpy import save_file

    data = configure(Table, Table.tiny, "dataset 'table'")
    encoder = data.encoder(0)
    model = linear_model(np.random.default_rng(0).normal(size=(2, len(encoder.names) + 1)), classification=True)
    rows = pd.read_csv(EXAMPLE)

    def use(content: bytes, draw: random.Random) -> object:
        about = model.about() | {ENCODER: content.decode(errors="replace")}
        save_file(model.arrays(), tmp_path / "model.safetensors", metadata=about)
        predictor = _load_pyfunc(str(tmp_path / "model.safetensors"))
        assert isinstance(predictor, StoredEnsemble)
        return len(predictor.predict(rows)) == len(rows)

    try_all("an encoder", write_document(encoder), [damage_bytes, damage_json, damage_json], use)


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_scores_to_compare(files: Files, kind: str) -> None:
    board = compile_leaderboard(files.whole.record.dataset_id, [files.whole])
    text = json.dumps(board.as_dict()) if kind == "json" else write_cells(scores_of_boards([board]))
    whole = parse_scores(f"whole.{kind}", text.encode())

    def use(content: bytes, draw: random.Random) -> object:
        comparison = compare(whole, parse_scores(f"scores.{kind}", content))
        return json.dumps(comparison.as_dict())

    try_all(f"scores.{kind}", text.encode(), [damage_bytes, damage_json if kind == "json" else damage_csv], use)


def test_commands_on_damaged_files(files: Files, tmp_path: Path, cli: Callable[..., Any], registry: Path) -> None:
    """Some of each again, through the command line."""
    where = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
    board = ["leaderboard", "spurious_correlation", *where, "--directory", str(files.directory)]
    nobody = ["--tracking-uri", "http://127.0.0.1:1", "--address", "127.0.0.1:1"]
    table = ["path=table.csv", "target=late", "environment=region", "train=north,south"]
    described = [word for setting in table for word in ("--set", setting)]
    parcel = tmp_path / "waiting" / "outbox" / f"{files.whole.record.study_id}-1"
    shutil.copytree(files.artifacts, parcel / "artifacts", ignore=shutil.ignore_patterns("models"))
    (parcel / SLIP_FILE).write_bytes(write_document(Slip(SCHEMA, parcel.name, "", False)))
    (tmp_path / "mine.toml").write_text(SUITE)
    (tmp_path / "figures.csv").write_text(FIGURES)
    shutil.copy(EXAMPLE, tmp_path / "table.csv")
    commands: list[tuple[Path, Damage, list[str]]] = [
        (files.artifacts / "study.json", damage_json, board),
        (files.artifacts / "results.parquet", damage_parquet, board),
        (tmp_path / "mine.toml", damage_lines, ["run", "--suite", "./mine.toml", *nobody]),
        (tmp_path / "table.csv", damage_csv, ["run", "-m", "erm", "-d", "table", *described, *nobody]),
        (registry, damage_json, ["data", "list"]),
        (parcel / SLIP_FILE, damage_json, ["sync", "--directory", str(tmp_path / "waiting")]),
    ]
    for path, damage, command in commands:
        content = path.read_bytes()
        for number in range(5 if LONG else 1):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(damage(content, random.Random(number)))
            done = cli(*command)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            assert done.code in (0, 1, 2), done.err
            assert "Traceback" not in done.err
            assert done.out.strip() if done.code == 0 else (done.err + done.out).strip()
