"""Fetching census files: from a server that fails, stalls and truncates on purpose, and from folders."""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oodbench.errors import Unreachable, UnusableData, UserError, WorkError
from oodbench.plugin.files import Sources, Transfer
from oodbench_datasets.acs import fetch as census_fetch
from oodbench_datasets.acs.census import ADDRESS, CODES, STATES, PersonFile
from oodbench_datasets.acs.files import CensusFiles

CENSUS = CensusFiles()

Make = Callable[..., Any]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census_fetch, "BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr(census_fetch, "READ_SECONDS", 0.5)
    monkeypatch.setattr(census_fetch, "CHUNK", 1000)  # the files are small


def fetch(server: Any, states: str = "MA", *, more_mirrors: tuple[str, ...] = (), renew: bool = False) -> Any:
    sources = Sources(mirrors=(*more_mirrors, server.address), renew=renew)
    return CENSUS.fetch({"states": states}, sources, Transfer())


def parts(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".*"))


@pytest.mark.parametrize("year", [2014, 2016, 2017, 2018, 2024])
@pytest.mark.parametrize("horizon", ["1-Year", "5-Year"])
def test_names_and_addresses_are_those_of_folktables(monkeypatch: pytest.MonkeyPatch, year: int, horizon: str) -> None:
    """Its loader is asked for files that are not there, and would download them from there."""
    loader = importlib.import_module("folktables.load_acs")
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(loader, "download_and_extract", lambda *args, **_: calls.append(args))
    files = [PersonFile(year, horizon, state) for state in loader.state_list]
    for file in files:
        loader.initialize_and_download("/nowhere", file.state, year, horizon, "person", download=True)
    assert calls == [(file.url(ADDRESS), "/nowhere", file.zip_name, file.csv_name) for file in files]


def test_the_fifty_states() -> None:
    assert len(STATES) == 50
    assert len(CODES) == 52
    assert len(set(CODES.values())) == 52


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ({"states": "MA,XX"}, "there is no state 'XX'"),
        ({"year": "2013"}, "no census files for 2013.\nYears: 2014 to 2024"),
        ({"year": "now"}, "not a year"),
        ({"year": "2020"}, "no standard 1-year files for 2020"),
        ({"horizon": "3-Year"}, "there is no horizon '3-Year'"),
        ({"county": "Suffolk"}, "cannot be chosen by county"),
    ],
)
def test_files_that_are_not_published(data_dir: Path, which: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        CENSUS.fetch(which, Sources(), Transfer())
    assert not data_dir.exists()


def test_a_fetch_records_what_came_and_does_not_fetch_again(server: Any, made: Make, data_dir: Path) -> None:
    server.offer(made("MA"), made("RI", rows=30))
    found = fetch(server, "MA,RI")
    assert [(one.facts["state"], one.facts["rows"], one.fault) for one in found] == [("MA", 400, ""), ("RI", 30, "")]
    assert (data_dir / "census/2018/1-Year/csv_pma.zip").read_bytes() == server.files["/2018/1-Year/csv_pma.zip"]
    registry = json.loads((data_dir / "census/registry.json").read_text())
    assert len(registry["2018/1-Year/MA"]["sha256"]) == 64
    asked = len(server.requests)
    assert fetch(server, "MA,RI") == found
    assert len(server.requests) == asked
    assert all(not one.fault for one in CENSUS.verify())
    assert parts(data_dir) == []


@pytest.mark.parametrize("fault", ["503", "429", "truncate", "stall"])
def test_faults_that_pass_are_retried(server: Any, made: Make, data_dir: Path, fault: str) -> None:
    server.offer(made("MA"))
    server.fail(made("MA"), fault, fault)
    fetch(server)
    assert len(server.requests) == 3
    assert all(not one.fault for one in CENSUS.verify())
    assert parts(data_dir) == []


def test_a_broken_download_is_continued_where_it_ended(server: Any, made: Make, data_dir: Path) -> None:
    server.offer(made("MA"))
    server.fail(made("MA"), "truncate")
    fetch(server)
    size = len(server.files["/2018/1-Year/csv_pma.zip"])
    whole_chunks = size // 2 // 1000 * 1000
    assert [(asked, status) for _, asked, status in server.requests] == [("", 200), (f"bytes={whole_chunks}-", 206)]
    assert (data_dir / "census/2018/1-Year/csv_pma.zip").stat().st_size == size


def test_a_server_without_ranges_starts_again(server: Any, made: Make, data_dir: Path) -> None:
    server.offer(made("MA"))
    server.ranges = False
    server.fail(made("MA"), "truncate")
    fetch(server)
    assert [status for _, _, status in server.requests] == [200, 200]
    assert all(not one.fault for one in CENSUS.verify())


def test_a_whole_partial_file_is_not_fetched_again(server: Any, made: Make, data_dir: Path) -> None:
    server.offer(made("MA"))
    place = data_dir / "census/2018/1-Year"
    place.mkdir(parents=True)
    (place / ".part-csv_pma.zip").write_bytes(server.files["/2018/1-Year/csv_pma.zip"])
    fetch(server)
    assert [status for _, _, status in server.requests] == [416]
    assert all(not one.fault for one in CENSUS.verify())


def test_a_partial_file_of_another_file_is_thrown_away(server: Any, made: Make, data_dir: Path) -> None:
    server.offer(made("MA"))
    place = data_dir / "census/2018/1-Year"
    place.mkdir(parents=True)
    (place / ".part-csv_pma.zip").write_bytes(b"half of something else")
    fetch(server)
    assert [status for _, _, status in server.requests] == [206, 200]
    assert all(not one.fault for one in CENSUS.verify())


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("always 403", "HTTP 403 Forbidden"),
        ("always 404", "HTTP 404 Not Found"),
        ("always 500", "HTTP 500"),
        ("always page", "not a complete zip file but a web page"),
        ("always shorter", "not a complete zip file"),
        ("always stall", "time"),
    ],
)
def test_faults_that_stay(server: Any, made: Make, data_dir: Path, fault: str, reason: str) -> None:
    server.offer(made("MA"))
    server.fail(made("MA"), fault)
    with pytest.raises(Unreachable, match=rf"2018/1-Year/MA could not be fetched. .*{reason}.*\nRun the same command"):
        fetch(server)
    assert CENSUS.inventory() == []
    assert not list(data_dir.rglob("csv_pma.zip"))
    server.faults.clear()
    fetch(server)  # a second try works
    assert all(not one.fault for one in CENSUS.verify())


def test_one_bad_file_does_not_stop_the_others_and_mirrors_are_tried_in_turn(
    server: Any, made: Make, data_dir: Path
) -> None:
    server.offer(made("MA"), made("RI"), made("VT"))
    server.fail(made("RI"), "always 403")
    with pytest.raises(Unreachable, match="2018/1-Year/RI"):
        fetch(server, "MA,RI,VT")
    assert {one.facts["state"] for one in CENSUS.inventory()} == {"MA", "VT"}
    server.fail(made("RI"), "404")
    fetch(server, "RI", more_mirrors=(f"{server.address}/", "http://127.0.0.1:1"))
    assert {one.facts["state"] for one in CENSUS.inventory()} == {"MA", "RI", "VT"}


def test_nobody_answers(data_dir: Path) -> None:
    with pytest.raises(Unreachable, match="Connection refused"):
        CENSUS.fetch({"states": "MA"}, Sources(mirrors=("http://127.0.0.1:1",)), Transfer())


def test_passwords_of_mirrors_are_neither_said_nor_stored(server: Any, made: Make, data_dir: Path) -> None:
    class Notes(Transfer):
        def note(self, text: str) -> None:
            said.append(text)

    said: list[str] = []
    server.offer(made("MA"))
    secret, host = "hunter2", server.address.removeprefix("http://")
    bad = (f"http://me:{secret}@[::1", f"http://me:{secret}@127.0.0.1:1", f"http://127.0.0.1:1/?api_key={secret}")
    sources = Sources(mirrors=(*bad, f"http://me:{secret}@{host}"))
    found = CENSUS.fetch({"states": "MA"}, sources, Notes())
    assert json.loads((data_dir / "census/registry.json").read_text())["2018/1-Year/MA"]["source"].startswith(
        f"{server.address}/2018"
    )
    with pytest.raises(Unreachable) as raised:
        CENSUS.fetch({"states": "RI"}, Sources(mirrors=bad), Notes())
    assert "http://***@127.0.0.1:1/2018" in "\n".join(said)
    assert str(raised.value).count("\n") == 1
    assert secret not in "\n".join([*said, str(raised.value), repr(found)])
    files = [path for path in data_dir.rglob("*") if path.is_file()]
    assert not [path for path in files if secret.encode() in path.read_bytes()]


def test_damage_is_found_and_mended(server: Any, made: Make, data_dir: Path) -> None:
    server.offer(made("MA"), made("RI"))
    fetch(server, "MA,RI")
    path = data_dir / "census/2018/1-Year/csv_pma.zip"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    (data_dir / "census/2018/1-Year/csv_pri.zip").unlink()
    faults = {one.facts["state"]: (one.fault, one.remedy) for one in CENSUS.verify()}
    assert faults["MA"] == (
        "the file has changed since it was fetched (its SHA-256 differs)",
        "oodbench data fetch acs_travel --year 2018 --horizon 1-Year --states MA",
    )
    assert faults["RI"][0] == "the file is missing"
    fetch(server, "MA,RI")
    assert all(not one.fault for one in CENSUS.verify())


def test_a_revised_file_is_taken_only_on_purpose(server: Any, made: Make, data_dir: Path) -> None:
    server.offer(made("MA"))
    fetch(server)
    (data_dir / "census/2018/1-Year/csv_pma.zip").unlink()
    server.offer(made("MA", rows=500))
    with pytest.raises(UnusableData, match="differs from the file that was first fetched .*\n.*--renew"):
        fetch(server)
    assert fetch(server, renew=True)[0].facts["rows"] == 500


@pytest.mark.parametrize("kind", ["zip", "csv", "below"])
def test_files_from_a_folder(made: Make, data_dir: Path, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "usb"
    place = folder / "2018/1-Year" if kind == "below" else folder
    place.mkdir(parents=True)
    one = made("MA")
    if kind == "csv":
        (place / "psam_p25.csv").write_bytes(one.text())
    else:
        (place / "csv_pma.zip").write_bytes(one.zipped())
    found = CENSUS.fetch({}, Sources(folder=folder), Transfer())
    assert [(holding.name, holding.facts["rows"]) for holding in found] == [("2018/1-Year/MA", 400)]
    assert all(not holding.fault for holding in CENSUS.verify())
    with pytest.raises(UnusableData, match="has no csv_pri.zip or psam_p44.csv"):
        CENSUS.fetch({"states": "MA,RI"}, Sources(folder=folder), Transfer())
    with pytest.raises(UserError, match="there is no folder"):
        CENSUS.fetch({}, Sources(folder=tmp_path / "nothing"), Transfer())


def test_a_csv_that_is_there_is_not_downloaded(server: Any, made: Make, data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "psam_p25.csv").write_bytes(made("MA").text())
    CENSUS.fetch({}, Sources(folder=tmp_path), Transfer())
    server.offer(made("MA"))
    assert fetch(server)[0].facts["path"] == "2018/1-Year/psam_p25.csv"
    assert server.requests == []
    assert fetch(server, renew=True)[0].facts["path"] == "2018/1-Year/csv_pma.zip"


def test_a_fetch_that_is_stopped_continues(server: Any, made: Make, data_dir: Path) -> None:
    one = made("MA", rows=8000)  # more than a chunk comes before it stalls
    server.offer(one)
    server.fail(one, "stall")
    command = [sys.executable, "-m", "oodbench", "data", "fetch", "acs_travel", "--states", "MA"]
    running = subprocess.Popen([*command, "--mirror", server.address], stderr=subprocess.PIPE, text=True)
    part = data_dir / "census/2018/1-Year/.part-csv_pma.zip"
    deadline = time.monotonic() + 30
    while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130, said
    assert "error: stopped.\nThe same command continues from there." in said
    assert CENSUS.inventory() == []
    fetch(server)
    assert server.requests[-1][2] == 206
    assert all(not holding.fault for holding in CENSUS.verify())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (lambda one: b"<html>sorry</html>", "not a complete zip file but a web page"),
        (lambda one: one.zipped()[:-200], "not a complete zip file"),
        (lambda one: b"", "not a complete zip file"),
        (lambda one: one.zipped(drop=("AGEP",)), "not a PUMS person file"),
    ],
)  # fmt: skip
def test_bad_files_from_a_folder(
    made: Make, data_dir: Path, tmp_path: Path, content: Callable[[Any], bytes], reason: str
) -> None:
    (tmp_path / "csv_pma.zip").write_bytes(content(made("MA")))
    with pytest.raises(UnusableData, match=reason):
        CENSUS.fetch({}, Sources(folder=tmp_path), Transfer())
    assert CENSUS.inventory() == []
    assert not [path for path in data_dir.rglob("*") if path.is_file() and path.name != "registry.lock"]
    (tmp_path / "csv_pma.zip").write_bytes(made("MA").zipped())
    assert len(CENSUS.fetch({}, Sources(folder=tmp_path), Transfer())) == 1


def test_a_file_of_another_state_or_without_rows(made: Make, data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "psam_p25.csv").write_bytes(made("RI").text())
    with pytest.raises(UnusableData, match="its rows are from state 44, not 25 .MA."):
        CENSUS.fetch({}, Sources(folder=tmp_path), Transfer())
    (tmp_path / "psam_p25.csv").write_bytes(made("MA", rows=0).text())
    with pytest.raises(UnusableData, match="it has no rows"):
        CENSUS.fetch({}, Sources(folder=tmp_path), Transfer())


NO_SPACE = """
import resource, sys
from oodbench.plugin.files import Sources, Transfer
from oodbench.errors import WorkError
from oodbench_datasets.acs.files import CensusFiles

CENSUS = CensusFiles()
sources = Sources(mirrors=(sys.argv[1],))
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, hard))
try:
    CENSUS.fetch({"states": "MA"}, sources, Transfer())
except WorkError as error:
    print(error)
print([path.name for path in CENSUS.folder.rglob("*") if path.is_file()])
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(len(CENSUS.fetch({"states": "MA"}, sources, Transfer())))
"""


def test_no_space_left(server: Any, made: Make, data_dir: Path) -> None:
    """A limit on the size of files stands in for a full disk."""
    server.offer(made("MA"))
    assert len(server.files["/2018/1-Year/csv_pma.zip"]) > 5000
    done = subprocess.run(
        [sys.executable, "-c", NO_SPACE, server.address], capture_output=True, text=True, check=True, timeout=60
    )
    first, second, left, again = done.stdout.splitlines()
    assert first.startswith("there is no space left for 2018/1-Year/MA in ")
    assert second == "Free some space, or choose another folder with --data-dir."
    assert (left, again) == ("[]", "1")


@pytest.mark.parametrize("renew", [False, True])
def test_a_folder_that_is_none(server: Any, made: Make, data_dir: Path, renew: bool) -> None:
    data_dir.write_text("a file")
    server.offer(made("MA"))
    with pytest.raises(WorkError, match="2018/1-Year/MA could not be written"):
        fetch(server, renew=renew)
    assert CENSUS.inventory() == []


def test_a_registry_that_cannot_be_read(data_dir: Path) -> None:
    (data_dir / "census/registry.json").mkdir(parents=True)
    with pytest.raises(UnusableData, match="cannot be read: Is a directory"):
        CENSUS.inventory()
    (data_dir / "census/registry.json").rmdir()
    (data_dir / "census/registry.json").write_text('{"2018/1-Year/MA": ')
    with pytest.raises(UnusableData, match="registry.json cannot be read.\nDelete it and fetch the files again."):
        CENSUS.inventory()


def test_the_commands(cli: Callable[..., Any], server: Any, made: Make, data_dir: Path, tmp_path: Path) -> None:
    server.offer(made("MA"), made("RI"))
    fetched = cli("data", "fetch", "acs_travel", "--states", "MA,ri", "--mirror", server.address)
    assert fetched.code == 0, fetched.err
    assert "2 of 2 files: 2018/1-Year/" in fetched.err
    listed = cli("data", "list", "--json").json()
    assert listed["folder"] == str(data_dir)
    assert [(file["year"], file["state"], file["rows"]) for file in listed["files"]] == [
        (2018, "MA", 400), (2018, "RI", 400),
    ]  # fmt: skip
    assert cli("data", "verify", "acs_travel").code == 0
    (data_dir / "census/2018/1-Year/csv_pri.zip").write_bytes(b"x")
    damaged = cli("data", "verify")
    assert damaged.code == 1
    assert "fix 2018/1-Year/RI: oodbench data fetch acs_travel --year 2018 --horizon 1-Year --states RI" in damaged.out
    refused = cli("data", "fetch", "acs_income", "--states", "VT", "--mirror", server.address)
    assert (refused.code, len(refused.err.strip().splitlines())) == (2, 3)  # a note, and the two lines
    assert "VT could not be fetched" in refused.err
    assert cli("data", "list", "--data-dir", str(tmp_path / "other")).out.startswith("no data files in ")
    for command in ("fetch", "verify", "list"):
        assert "Example: oodbench data" in cli("data", command, "--help").out
    assert cli("data", "fetch", "selection_bias").err.startswith("error: dataset 'selection_bias' needs no files.")
