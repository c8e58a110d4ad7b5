"""Census files made on the spot, a server that misbehaves on purpose, and real census rows where they are."""

from __future__ import annotations

import io
import threading
import time
import types
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oodbench_datasets.acs.census import CODES, PersonFile
from places import CENSUS as REAL

COLUMNS = """AGEP SCHL MAR SEX DIS ESP MIG RELP RAC1P PUMA ST CIT OCCP JWTR POWPUMA POVPIP JWMNP PWGTP ESR
PINCP WKHP COW POBP PUBCOV MIL ANC NATIVITY DEAR DEYE DREM GCL FER""".split()
RANGES = {
    "AGEP": (0, 95), "SCHL": (1, 24), "MAR": (1, 5), "SEX": (1, 2), "DIS": (1, 2), "ESP": (1, 8), "MIG": (1, 3),
    "RELP": (0, 17), "RAC1P": (1, 9), "PUMA": (100, 999), "CIT": (1, 5), "OCCP": (10, 9830), "JWTR": (1, 12),
    "POWPUMA": (100, 999), "POVPIP": (0, 501), "JWMNP": (1, 60), "PWGTP": (0, 300), "ESR": (1, 6),
    "PINCP": (-5000, 150000), "WKHP": (1, 80), "COW": (1, 9), "POBP": (1, 554), "PUBCOV": (1, 2), "MIL": (1, 4),
    "ANC": (1, 4), "NATIVITY": (1, 2), "DEAR": (1, 2), "DEYE": (1, 2), "DREM": (1, 2), "GCL": (1, 2), "FER": (1, 2),
}  # fmt: skip
NULLABLE = ("ESP", "POVPIP", "JWMNP", "MIL", "GCL", "FER", "COW", "WKHP", "MIG", "SCHL", "DREM", "ESR")


@dataclass(frozen=True)
class Made:
    """A person file of nobody: columns by name, NaN where the text is empty."""

    file: PersonFile
    columns: dict[str, np.ndarray]

    def text(self, drop: tuple[str, ...] = (), rename: Mapping[str, str] | None = None) -> bytes:
        names = [name for name in self.columns if name not in drop]
        rows = np.column_stack([self.columns[name] for name in names])
        header = ["RT", "SERIALNO", *((rename or {}).get(name, name) for name in names), "pwgtp1"]
        lines = [",".join(header)]
        for index, row in enumerate(rows):
            values = ["" if np.isnan(value) else f"{value:.0f}".zfill(2 * (value >= 0)) for value in row]
            lines.append(",".join(["P", f"2018GQ{index:07}", *values, "1"]))
        return "\n".join([*lines, ""]).encode()

    def zipped(self, **changes: Any) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(self.file.csv_name, self.text(**changes))
            archive.writestr("ACS2018_PUMS_README.pdf", b"%PDF")
        return buffer.getvalue()


def make(state: str, rows: int = 400, year: int = 2018, horizon: str = "1-Year", **fixed: float) -> Made:
    rng = np.random.default_rng([year, *state.encode()])
    columns = {}
    for name in COLUMNS:
        low, high = RANGES.get(name, (CODES[state], CODES[state]))
        columns[name] = rng.integers(low, high, rows, endpoint=True).astype(float)
        if name in NULLABLE:
            columns[name][rng.random(rows) < 0.1] = np.nan
    columns["ESR"][rng.random(rows) < 0.5] = 1
    for name, value in fixed.items():
        columns[name] = np.full(rows, float(value))
    return Made(PersonFile(year, horizon, state), columns)


@pytest.fixture
def made() -> Callable[..., Made]:
    return make


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder of the test's own."""
    from oodbench_datasets.acs import pums

    pums._load.cache_clear()
    pums._say_once.cache_clear()
    folder = tmp_path / "data"
    monkeypatch.setenv("OODBENCH_DATA", str(folder))
    return folder


@pytest.fixture
def keep(data_dir: Path, tmp_path: Path) -> Callable[..., None]:
    """Put files into the data folder through the front door."""
    from oodbench.plugin.files import Sources, Transfer
    from oodbench_datasets.acs.files import CensusFiles

    def take(*files: Made, renew: bool = False, **changes: Any) -> None:
        folder = tmp_path / "incoming"
        for one in files:
            place = folder / str(one.file.year) / one.file.horizon
            place.mkdir(parents=True, exist_ok=True)
            (place / one.file.zip_name).write_bytes(one.zipped(**changes))
            which = {"year": str(one.file.year), "horizon": one.file.horizon, "states": one.file.state}
            CensusFiles().fetch(which, Sources(folder=folder, renew=renew), Transfer())

    return take


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the synthetic rows, few and quick ones."""
    from oodbench_datasets.acs import datasets as acs

    module = types.ModuleType("acs_synthetic")
    module.ROWS = dict.fromkeys(CODES, 1200)  # type: ignore[attr-defined]

    def draw_state(state: str, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        columns = make(state, rows, AGEP=40, ESR=1, PWGTP=1).columns
        columns["AGEP"] = rng.integers(17, 90, rows).astype(float)
        return columns

    module.draw_state = draw_state  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "oodbench_datasets.acs.synthetic", module)
    monkeypatch.setattr("oodbench_datasets.acs.synthetic", module, raising=False)
    acs._draw.cache_clear()


@dataclass
class Server:
    """Serves files from memory. `faults` says how the next requests of a path go wrong, one after the other."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    ranges: bool = True
    requests: list[tuple[str, str, int]] = field(default_factory=list)  # path, Range, status

    def offer(self, *files: Made, **changes: Any) -> None:
        for one in files:
            self.files[one.file.url("")] = one.zipped(**changes)

    def fail(self, one: Made, *faults: str) -> None:
        self.faults[one.file.url("")] = list(faults)

    def next_fault(self, path: str) -> str:
        faults = self.faults.get(path) or [""]
        return (faults[0] if faults[0].startswith("always ") else faults.pop(0)).removeprefix("always ")


class Handler(BaseHTTPRequestHandler):
    """Gives the files of its server, with the faults that are due."""

    protocol_version = "HTTP/1.1"
    served: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        content, fault = self.served.files.get(self.path), self.served.next_fault(self.path)
        asked = self.headers.get("Range", "")
        if content is None or fault.isdigit():
            self._answer(int(fault or 404), b"no", asked)
        elif fault == "page":
            self._answer(200, b"<!DOCTYPE html><html><body>Please enable cookies</body></html>", asked)
        else:
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.served.ranges else 0
            self._send(content, start, fault, asked)

    def _send(self, content: bytes, start: int, fault: str, asked: str) -> None:
        if start and start >= len(content):
            return self._answer(416, b"", asked, {"Content-Range": f"bytes */{len(content)}"})
        extra = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        body = content[start:]
        half = body[: max(1, len(body) // 2)]
        if fault == "shorter":  # a whole answer with half a file
            return self._answer(200, half, asked)
        self._head(206 if start else 200, len(body), asked, extra)
        if fault not in ("truncate", "stall"):
            self.wfile.write(body)
            return None
        self.wfile.write(half)
        self.wfile.flush()
        if fault == "stall":
            time.sleep(3)
        self.close_connection = True
        return None

    def _head(self, status: int, length: int, asked: str, extra: Mapping[str, str] | None = None) -> None:
        self.served.requests.append((self.path, asked, status))
        self.send_response(status)
        for name, value in {"Content-Length": str(length), **(extra or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def _answer(self, status: int, body: bytes, asked: str, extra: Mapping[str, str] | None = None) -> None:
        self._head(status, len(body), asked, extra)
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    handler: type[Handler] = type("OwnHandler", (Handler,), {})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.daemon_threads = True
    handler.served = served = Server(f"http://127.0.0.1:{http.server_address[1]}")
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield served
    http.shutdown()
    http.server_close()


@pytest.fixture(scope="session")
def real_source() -> Path:
    """Real rows of 2024 as others prepared them, where they are."""
    if not (REAL / "travel_time.parquet").exists():
        pytest.skip(f"the real census rows are not there: {REAL}")
    return REAL


@pytest.fixture(scope="session")
def real_folder(real_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """They, written out in the layout of the Census Bureau's files."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    incoming = tmp_path_factory.mktemp("incoming")
    table = pq.read_table(real_source / "travel_time.parquet")
    # householder, another member of the household, in group quarters: the rows know no more of RELSHIPP
    relations = np.array([0, 20, 21, 38], np.int8)[table["RELP3"].to_numpy()]
    table = table.drop_columns(["RELP3"]).append_column("RELSHIPP", pa.array(relations))
    ones = pa.array(np.ones(len(table), np.int8))
    serial = pa.array(np.arange(len(table))).cast(pa.string())
    for name, column in {"SERIALNO": serial, "PWGTP": ones, "ESR": ones, "FPARC": ones, "NAICSP": serial}.items():
        table = table.append_column(name, column)
    table = table.rename_columns(["STATE" if name == "ST" else name for name in table.column_names])  # as in 2024
    codes = table["STATE"].to_numpy()
    for state, code in CODES.items():
        if not (codes == code).any():
            continue
        file = PersonFile(2024, "1-Year", state)
        buffer = io.BytesIO()
        csv.write_csv(table.filter(pa.array(codes == code)), buffer)
        with zipfile.ZipFile(incoming / file.zip_name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(file.csv_name, buffer.getbuffer())
    return incoming
