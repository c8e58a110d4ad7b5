"""Census files into memory: folktables' loader against ours, on the same CSVs in the layout of the real ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oodbench.plugin.files import Sources, Transfer
from oodbench_datasets.acs.census import STATES, PersonFile
from oodbench_datasets.acs.files import CensusFiles

PERSONS, COLUMNS = 1_200_000, 286
NEEDED = """ST PUMA AGEP SCHL MAR SEX DIS ESP MIG RELP RAC1P CIT OCCP JWTR POWPUMA POVPIP JWMNP PWGTP ESR""".split()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """1.2 million persons in files of 286 columns, one a state: in folktables' folder and in ours."""
    folder = tmp_path_factory.mktemp("census")
    place = folder / "csv" / "2018" / "1-Year"
    place.mkdir(parents=True)
    (folder / "states.json").write_text(json.dumps(list(STATES)))
    for state in STATES:
        _write_wide(place / PersonFile(2018, "1-Year", state).csv_name, STATES[state], PERSONS // len(STATES))
    before = os.environ.get("OODBENCH_DATA")
    os.environ["OODBENCH_DATA"] = str(folder / "data")
    CensusFiles().fetch({}, Sources(folder=folder / "csv"), Transfer())
    yield folder
    os.environ.pop("OODBENCH_DATA")
    if before is not None:
        os.environ["OODBENCH_DATA"] = before
    shutil.rmtree(folder)


def _write_wide(path: Path, state: int, rows: int) -> None:
    """Widths as in the real files: weights of three digits, codes of one, many empty."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(state)
    ones = np.ones(rows, int)
    columns: dict[str, Any] = {"RT": np.full(rows, "P"), "SERIALNO": np.char.add("2018HU", ones.astype(str))}
    ranges = {"AGEP": 95, "ESR": 2, "OCCP": 9830, "PUMA": 5000, "POWPUMA": 5000, "POVPIP": 501, "JWMNP": 60}
    for name in NEEDED:
        columns[name] = state * ones if name == "ST" else rng.integers(1, ranges.get(name, 2), rows, endpoint=True)
    for index in range(COLUMNS - len(columns)):
        values = rng.integers(1, 300 if index < 80 else 9, rows)
        columns[f"X{index}"] = pa.array(values, mask=rng.random(rows) < 0.5) if index > 200 else values
    csv.write_csv(pa.table(columns), path, csv.WriteOptions(quoting_style="none"))


def measured(way: str, root: Path) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__).parent / "census_loaders.py"), way, str(root)]
    found: dict[str, float] = json.loads(subprocess.check_output(command, text=True))
    return found


def test_building_the_cache_against_folktables(root: Path, report: Callable[[str], None]) -> None:
    before = measured("build", root)
    theirs = measured("folktables", root)
    ours = sorted([before, measured("build", root), measured("build", root)], key=lambda way: way["seconds"])[1]
    faster, smaller = theirs["seconds"] / ours["seconds"], theirs["megabytes"] / ours["megabytes"]
    for name, way in (("folktables", theirs), ("cache built", ours)):
        report(f"{name}: {way['seconds']:.1f} s ({way['cpu']:.1f} s CPU), peak {way['megabytes']:.0f} MB")
    report(f"{faster:.1f}x faster (floor 8x), {smaller:.1f}x less memory (floor 10x)")
    assert ours["rows"] == theirs["rows"]
    assert faster >= 8
    assert smaller >= 10


def test_loading_all_states_from_the_cache(root: Path, report: Callable[[str], None]) -> None:
    measured("build", root)
    found = measured("cached", root)
    report(f"from the cache: {found['seconds']:.2f} s (at most 1 s), peak {found['megabytes']:.0f} MB (at most 600 MB)")
    assert found["seconds"] < 1
    assert found["megabytes"] < 600
