"""Reading person files: against folktables' own loader on the same files, through the cache, and past bad input."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oodbench.errors import UnusableData
from oodbench_datasets.acs import pums
from oodbench_datasets.acs.census import CENSUS, PersonFile
from oodbench_datasets.acs.codes import RECODED, recode
from oodbench_datasets.acs.datasets import AcsEmployment, AcsIncome, AcsMobility, AcsPublicCoverage, AcsTravel
from oodbench_datasets.acs.files import CensusFiles

Make = Callable[..., Any]
TRAVEL = AcsTravel.problem
PROBLEMS = [one.problem for one in (AcsTravel, AcsIncome, AcsPublicCoverage, AcsMobility, AcsEmployment)]


def reload(problem: pums.Problem, file: PersonFile) -> pums.Persons:
    pums._load.cache_clear()
    return pums.load(problem, file)


def cache_of(file: PersonFile, problem: pums.Problem = TRAVEL) -> Path:
    return CENSUS.folder / "cache" / problem.name / str(file.year) / file.horizon / f"{file.state}.parquet"


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
@pytest.mark.parametrize("year", [2016, 2018])
def test_the_same_rows_as_folktables(
    problem: pums.Problem, year: int, made: Make, keep: Callable[..., None], tmp_path: Path
) -> None:
    import folktables

    one = made("MA", year=year)
    keep(one)
    place = tmp_path / "theirs" / str(year) / "1-Year"
    place.mkdir(parents=True)
    (place / one.file.csv_name).write_bytes(one.text())
    source = folktables.ACSDataSource(
        survey_year=str(year), horizon="1-Year", survey="person", root_dir=tmp_path / "theirs"
    )
    x, y, _ = problem.definition.df_to_numpy(source.get_data(states=["MA"]))
    ours = pums.load(problem, one.file)
    assert tuple(ours.columns) == problem.features
    assert np.array_equal(np.nan_to_num(np.column_stack(list(ours.columns.values()))), x)
    assert np.array_equal(ours.label, y.astype(int))
    missing = {name for name, values in ours.columns.items() if np.isnan(values).any()}
    assert missing  # else nothing was shown about them


def test_target_that_was_not_asked(made: Make, keep: Callable[..., None]) -> None:
    one = made("MA", AGEP=40, ESR=1, PWGTP=1)
    keep(one)
    rows = pums.load(TRAVEL, one.file)
    minutes = one.columns["JWMNP"]
    assert np.array_equal(rows.unanswered, np.isnan(minutes))
    assert np.array_equal(rows.label, np.nan_to_num(minutes) > 20)


RELP = """reference person|spouse|biological child|adopted child|stepchild|sibling|parent|grandchild|parent-in-law|
child-in-law|other relative|roomer|roommate|unmarried partner|foster child|other nonrelative|institution|
other group quarters""".replace("\n", "").split("|")
RELSHIPP = """reference person|spouse|unmarried partner|spouse|unmarried partner|biological child|adopted child|
stepchild|sibling|parent|grandchild|parent-in-law|child-in-law|other relative|roommate|foster child|
other nonrelative|institution|other group quarters""".replace("\n", "").split("|")
JWTR = "car|bus|streetcar|subway|railroad|ferry|taxi|motorcycle|bicycle|walked|home|other".split("|")
JWTRNS = "car|bus|subway|railroad|streetcar|ferry|taxi|motorcycle|bicycle|walked|home|other".split("|")


def test_renamed_codes_mean_the_same() -> None:
    """The words of the dictionaries, old and new."""
    assert {code: RELP[old] for code, old in RECODED["RELSHIPP"].items()} == dict(enumerate(RELSHIPP, 20))
    assert {code: JWTR[old - 1] for code, old in RECODED["JWTRNS"].items()} == dict(enumerate(JWTRNS, 1))


def test_recoding_leaves_missing_and_unknown_codes_missing() -> None:
    values = np.array([20, np.nan, 38, 99, -1, 3], dtype=np.float32)
    assert np.array_equal(recode("RELSHIPP", values), [0, np.nan, 17, np.nan, np.nan, np.nan], equal_nan=True)
    assert recode("AGEP", values) is values


def test_a_file_of_2021_reads_like_one_of_2018(made: Make, keep: Callable[..., None]) -> None:
    old = made("MA", AGEP=40, ESR=1, PWGTP=1)
    back = {name: {old: new for new, old in table.items()} for name, table in RECODED.items()}
    old.columns["RELP"][old.columns["RELP"] == 11] = 12  # not asked any more
    new = made("MA", year=2021)
    new.columns.update(old.columns)
    new.columns["RELP"] = np.array([back["RELSHIPP"][int(code)] for code in old.columns["RELP"]], float)
    new.columns["JWTR"] = np.array([back["JWTRNS"][int(code)] for code in old.columns["JWTR"]], float)
    keep(old)
    keep(new, rename={"RELP": "RELSHIPP", "JWTR": "JWTRNS", "ST": "STATE"})
    before, after = pums.load(TRAVEL, old.file), pums.load(TRAVEL, new.file)
    for name in TRAVEL.features:
        assert np.array_equal(before.columns[name], after.columns[name], equal_nan=True), name


def test_five_year_files_with_two_geographies(made: Make, keep: Callable[..., None]) -> None:
    one = made("MA", year=2022, horizon="5-Year", AGEP=40, ESR=1, PWGTP=1)
    puma = one.columns.pop("PUMA")
    late = np.arange(len(puma)) % 2 == 0
    one.columns["PUMA10"] = np.where(late, -9, puma)
    one.columns["PUMA20"] = np.where(late, puma, -9)
    keep(one, rename={"RELP": "RELSHIPP", "JWTR": "JWTRNS"})
    assert np.array_equal(pums.load(TRAVEL, one.file).columns["PUMA"], puma)


def test_spaces_in_early_files(made: Make, data_dir: Path, tmp_path: Path) -> None:
    from oodbench.plugin.files import Sources, Transfer

    one = made("MA", year=2014, AGEP=40, ESR=1, PWGTP=1)
    header, *lines = one.text().decode().splitlines()
    spaced = [",".join(f" {value}" if value else value for value in line.split(",")) for line in lines]
    (tmp_path / one.file.csv_name).write_text("\n".join([header, *spaced]))  # and no line end at the end
    (found,) = CensusFiles().fetch({"year": "2014"}, Sources(folder=tmp_path), Transfer())
    assert found.facts["rows"] == 400
    rows = pums.load(TRAVEL, one.file)
    for name in TRAVEL.features:
        assert np.array_equal(rows.columns[name], one.columns[name], equal_nan=True), name


def test_the_cache_is_used_and_rebuilt_when_stale_or_damaged(
    made: Make, keep: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made("MA")
    keep(one)
    sources_read: list[PersonFile] = []
    read = pums._read

    def read_and_tell(problem: Any, file: PersonFile, path: Path) -> Any:
        sources_read.append(file)
        return read(problem, file, path)

    monkeypatch.setattr(pums, "_read", read_and_tell)
    first = reload(TRAVEL, one.file)
    again = reload(TRAVEL, one.file)
    assert len(sources_read) == 1
    for name in TRAVEL.features:
        assert np.array_equal(first.columns[name], again.columns[name], equal_nan=True)
    assert np.array_equal(first.label, again.label)
    cache = cache_of(one.file)
    whole = cache.read_bytes()

    damaged = bytearray(whole)
    damaged[200] ^= 0xFF  # inside a page
    for content in (b"", b"PAR1", whole[: len(whole) // 2], bytes(damaged)):
        cache.write_bytes(content)
        count = len(sources_read)
        assert np.array_equal(reload(TRAVEL, one.file).label, first.label)
        assert len(sources_read) == count + 1
        assert cache.read_bytes() == whole

    monkeypatch.setattr(pums, "VERSION", pums.VERSION + 1)  # another definition
    count = len(sources_read)
    reload(TRAVEL, one.file)
    assert len(sources_read) == count + 1
    keep(made("MA", rows=700), renew=True)  # another source
    assert len(reload(TRAVEL, one.file)) > len(first)
    assert [path.name for path in cache.parent.iterdir()] == ["MA.parquet"]


READ_ONLY = """
import encodings.cp437, encodings.utf_8_sig, os, folktables, pandas, pyarrow.csv, pyarrow.parquet
from importlib.metadata import version
from oodbench_datasets.acs import pums
from oodbench_datasets.acs.datasets import AcsTravel
from oodbench_datasets.acs.census import CENSUS, person_file
from oodbench_datasets.acs.files import CensusFiles
installed = version("folktables")
pums.version = lambda _: installed  # nobody may be unable to read the installation
if os.geteuid() == 0:
    os.seteuid(65534)
for key in CENSUS.entries():
    print(len(pums.load(AcsTravel.problem, person_file(key))))
"""


def test_a_read_only_folder(made: Make, data_dir: Path, keep: Make) -> None:
    """Root may write everywhere, so the reader becomes nobody."""
    keep(made("MA"), made("RI"))
    expected = [str(len(pums.load(TRAVEL, made(state).file))) for state in ("MA", "RI")]
    with tempfile.TemporaryDirectory() as other:  # pytest's own folders are closed to nobody
        folder = Path(other) / "data"
        shutil.copytree(data_dir, folder)
        shutil.rmtree(folder / "census/cache")
        everything = [Path(other), *Path(other).rglob("*")]
        for path in everything:
            path.chmod(0o555 if path.is_dir() else 0o444)
        environment = {**os.environ, "OODBENCH_DATA": str(folder)}
        command = [sys.executable, "-c", READ_ONLY]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        for path in everything:
            path.chmod(0o755)
        assert done.stdout.splitlines() == expected, done.stderr
        assert done.stderr.count("cannot be written (Permission denied): census files are read without it") == 1
        assert not list(folder.rglob("*.parquet"))


def test_a_cache_without_space(
    made: Make, keep: Callable[..., None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import pyarrow.parquet as pq

    def full(table: Any, path: Path, **_: Any) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    keep(made("MA"))
    monkeypatch.setattr(pq, "write_table", full)
    with caplog.at_level(logging.WARNING):
        assert len(pums.load(TRAVEL, made("MA").file)) > 0
    assert "No space left on device" in caplog.text
    assert list(cache_of(made("MA").file).parent.iterdir()) == []


@pytest.mark.parametrize("column", ["AGEP", "ESR", "PWGTP", "JWMNP"])
def test_columns_nothing_goes_without(made: Make, keep: Callable[..., None], column: str) -> None:
    if column == "AGEP":  # such a file is refused when it comes
        with pytest.raises(UnusableData, match="not a PUMS person file"):
            keep(made("MA"), drop=(column,))
        return
    keep(made("MA"), drop=(column,))
    with pytest.raises(UnusableData, match=f"lacks the columns {column}, which ACSTravelTime needs"):
        pums.load(TRAVEL, made("MA").file)


def test_a_state_without_rows_of_the_problem(made: Make, keep: Callable[..., None]) -> None:
    keep(made("MA", ESR=6))
    with pytest.raises(UnusableData, match="2018/1-Year/MA has no rows for ACSTravelTime.\nLeave MA out."):
        pums.load(TRAVEL, made("MA").file)


def test_text_in_the_place_of_numbers(made: Make, data_dir: Path, tmp_path: Path) -> None:
    from oodbench.plugin.files import Sources, Transfer

    text = made("MA").text().decode().splitlines()
    for bad in ([*text[:5], text[5].replace(",", ",x", 3)], [*text[:5], text[5] + ",1,2,3"]):
        (tmp_path / "psam_p25.csv").write_text("\n".join([*bad, *text[6:], ""]))
        CensusFiles().fetch({}, Sources(folder=tmp_path, renew=True), Transfer())
        with pytest.raises(UnusableData, match="psam_p25.csv is damaged: .*\nFetch it again: oodbench data fetch"):
            reload(TRAVEL, made("MA").file)


def test_a_source_that_changed_or_went(made: Make, keep: Callable[..., None], data_dir: Path) -> None:
    keep(made("MA"))
    path = data_dir / "census/2018/1-Year/csv_pma.zip"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(UnusableData, match="has changed since it was fetched"):
        pums.load(TRAVEL, made("MA").file)
    path.unlink()
    with pytest.raises(UnusableData, match="there is no census file 2018/1-Year/MA"):
        pums.load(TRAVEL, made("MA").file)
