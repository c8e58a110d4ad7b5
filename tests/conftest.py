"""Fixtures: a Ray cluster for the session, the command line, and plug-ins made on the spot."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import time
import venv
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import hypothesis
import pytest

import warm_worker
from migrated import share_migrations
from places import FIGURES, SUITE
from warm import WORKERS, WarmProcesses
from warm_worker import SOCKET

# trainings of tests are small: threads that wait for each other, on cores that they share, take ten times as long
os.environ.setdefault("OMP_NUM_THREADS", "1")
hypothesis.settings.register_profile("long", max_examples=2500)
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that need Ray are long ones and go first, so that the last files of a gate on many cores are short."""
    long = {item.path for item in items if "ray_address" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database of MLflow's, once there is one; of all of xdist's processes."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "migrated.db"


@pytest.fixture(scope="session")
def ray_cpus() -> int:
    """Every worker of a run imports torch and Tune, and the gate's own processes share the cores already."""
    return 1


@pytest.fixture(scope="session")
def worker_script(migrated: Path) -> Iterator[str]:
    """What Ray starts a worker with: it becomes a fork of a process that has the libraries imported already."""
    processes = WarmProcesses(migrated, WORKERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SOCKET, str(processes.path))  # Ray's processes inherit it
        yield warm_worker.__file__
    processes.stop()


@pytest.fixture(scope="session")
def ray_address(migrated: Path, ray_cpus: int, worker_script: str) -> Iterator[str]:
    """One real Ray cluster for all tests that search; `oodbench.run` in this process uses it too."""
    import ray
    from ray._private import ray_constants

    share_migrations(migrated)
    ray_constants.SETUP_WORKER_FILENAME = worker_script
    ray.init(
        address="local",
        num_cpus=ray_cpus,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=100_000_000,  # a test reads all of it
    )
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    def json(self) -> object:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def processes(migrated: Path) -> Iterator[WarmProcesses]:
    """Processes that have the libraries imported already."""
    processes = WarmProcesses(migrated)
    yield processes
    processes.stop()


@pytest.fixture
def cold_cli(tmp_path: Path) -> Callable[..., Done]:
    """Run `oodbench ...` as a user would, in an empty directory."""

    def call(*args: str, timeout: float = 120, cwd: Path = tmp_path, environment: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "oodbench", *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def cli(processes: WarmProcesses, tmp_path: Path) -> Callable[..., Done]:
    """The same, in a process that has imported the libraries: without the seconds that this takes."""

    def call(*args: str, timeout: float = 120, cwd: Path = tmp_path, environment: dict[str, str] | None = None) -> Done:
        done = processes.run("oodbench", args, cwd, {**os.environ, **(environment or {})}, timeout)
        return Done(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def make_python(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Virtual environments that see the project and its dependencies through a path file."""

    def make() -> Path:
        folder = tmp_path_factory.mktemp("environment")
        venv.create(folder, with_pip=False, symlinks=True)
        python = folder / "bin" / "python"
        where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        site = subprocess.check_output(where, text=True)
        # addsitedir, not a bare path: it also follows the path files of an editable install
        line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        (Path(site.strip()) / "below.pth").write_text(line)
        return python

    return make


@pytest.fixture(scope="session")
def python(make_python: Callable[[], Path]) -> Path:
    return make_python()


@pytest.fixture(scope="session")
def pip_install(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Build distributions and install them into that environment."""

    def install(*sources: Path) -> None:
        work = tmp_path_factory.mktemp("source")  # the build leaves nothing in the source tree
        copies = [shutil.copytree(source, work / source.name) for source in sources]
        command: list[str | Path] = [
            python,
            "-m",
            "pip",
            "install",
            "--no-deps",
            "--no-index",
            "--no-build-isolation",
            "--quiet",
        ]
        subprocess.run([*command, *copies], check=True, capture_output=True, timeout=300)

    return install


@pytest.fixture(scope="session")
def write_suite() -> Callable[..., Path]:
    """Put a suite and its published figures into a folder: those of these tests, or others."""

    def write(folder: Path, text: str = "", figures: str = "") -> Path:
        (folder / "mine.toml").write_text(text or SUITE)
        (folder / "figures.csv").write_text(figures or FIGURES)
        return folder / "mine.toml"

    return write


@pytest.fixture
def suite_file(tmp_path: Path, write_suite: Callable[..., Path]) -> Path:
    return write_suite(tmp_path)


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a distribution on the path: a module and its entry points, as an installer leaves them."""

    def install(name: str, module: str, source: str, **groups: str) -> Path:
        folder = tmp_path / f"site-{name}"
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"{module}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            "".join(f"[oodbench.{kind}]\n{points}\n" for kind, points in groups.items())
        )
        monkeypatch.syspath_prepend(str(folder))
        return folder

    return install


@dataclass(frozen=True)
class Killed:
    """What a driver left behind that was killed at some moment, and what the same command made of it."""

    stage: str
    packs: int  # that were finished when it died
    repeated: int  # trainings of finished packs that ran again
    numbers: object  # the table
    runs: Counter[tuple[str, str, str]]  # kind, status and stage of life -> how many runs the record has
    left: list[str]  # work that is still on its way


@pytest.fixture
def kill_and_resume(ray_address: str, processes: WarmProcesses, tmp_path: Path) -> Callable[..., Killed]:
    """Start a run, end its driver so many seconds after it came to a stage, and give the same command again."""

    def moment(stage: str, directory: Path, log: Path) -> bool:
        if stage == "begin":
            return True
        if stage == "start":
            return "making the data" in log.read_text()
        if stage == "search":
            return any(directory.glob("studies/*/pack-*.pickle"))
        if stage == "select":
            return any(directory.glob("studies/*/selection.json"))
        if stage == "record":
            return any(directory.glob("outbox/*/parcel.json"))
        return bool(record_runs(directory)[stage.removeprefix("recorded "), "FINISHED", "active"])

    def call(
        stage: str, delay: float, trainings: int, *arguments: str, number: signal.Signals = signal.SIGKILL
    ) -> Killed:
        directory, log = tmp_path / f"{stage}-{delay}", tmp_path / f"{stage}-{delay}.log"
        command = [sys.executable, "-m", "oodbench", "run", *arguments, "--json", "--address", ray_address]
        command += ["--directory", str(directory)]
        deadline = time.monotonic() + 120
        with log.open("w") as errors:
            driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
            while not moment(stage, directory, log):
                assert driver.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.002)
            time.sleep(delay)
            assert driver.poll() is None, f"ended before {delay} s after {stage}: {log.read_text()}"
            driver.send_signal(number)
            code = driver.wait(timeout=60)
        assert code in (-number, *([] if number == signal.SIGKILL else [0, 130])), log.read_text()
        packs = [path.read_bytes() for path in directory.glob("studies/*/pack-*.pickle")]
        concluded = any(directory.glob("outbox/*/parcel.json")) or record_runs(directory)["study", "FINISHED", "active"]
        finished = sum(len(pickle.loads(content[32:]).predictors) for content in packs)
        again = processes.run("oodbench", command[3:], tmp_path, os.environ, timeout=300)
        assert again.returncode == 0, again.stderr
        trained = re.search(r"(\d+) trainings? in ", again.stderr)
        repeated = (int(trained[1]) if trained else 0) - (0 if concluded else trainings - finished)
        numbers = [(row["method"], row["metrics"]) for row in json.loads(again.stdout)[0]["rows"]]
        left = [str(path) for part in ("studies", "outbox") for path in directory.glob(f"{part}/*")]
        return Killed(stage, len(packs), repeated, numbers, record_runs(directory), left)

    return call


@dataclass
class TrackingServer:
    """A real MLflow server on this machine, which a test may stop and start."""

    folder: Path
    port: int
    backend: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "mlflow", "server", "--backend-store-uri", self.backend, "--serve-artifacts",
                "--artifacts-destination", str(self.folder / "artifacts"), "--host", "127.0.0.1",
                "--port", str(self.port), "--workers", "1",
            ],
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError), urlopen(f"{self.address}/health", timeout=5):
                return
            time.sleep(0.2)
        raise TimeoutError(f"no MLflow server at {self.address}")

    def stop(self, with_signal: int = signal.SIGTERM) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, with_signal)
            self.process.wait(timeout=20)
            self.process = None

    def runs(self) -> Counter[tuple[str, str, str]]:
        return record_runs(self.folder, "server.db")


@contextlib.contextmanager
def _tracking_servers(factory: pytest.TempPathFactory) -> Iterator[Callable[..., TrackingServer]]:
    made: list[TrackingServer] = []

    def make(backend: str | None = None) -> TrackingServer:
        folder = factory.mktemp("server")
        made.append(TrackingServer(folder, _free_port(), backend or f"sqlite:///{folder}/server.db"))
        made[-1].start()
        return made[-1]

    try:
        yield make
    finally:
        for server in made:
            server.stop()


@pytest.fixture
def make_tracking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., TrackingServer]]:
    """An MLflow server with its data in a database of the test's, or in sqlite."""
    with _tracking_servers(tmp_path_factory) as make:
        yield make


@pytest.fixture(scope="module")
def tracking_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrackingServer]:
    """One for a module: it takes seconds to start."""
    with _tracking_servers(tmp_path_factory) as make:
        yield make()


@pytest.fixture
def free_port() -> int:
    return _free_port()


@pytest.fixture
def count_runs() -> Callable[..., Counter[tuple[str, str, str]]]:
    return record_runs


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def record_runs(directory: Path, name: str = "mlflow.db") -> Counter[tuple[str, str, str]]:
    """How many runs a record in sqlite has, by kind, status and stage of life: deleted ones, too."""
    if not (directory / name).exists():
        return Counter()
    query = """SELECT value, status, lifecycle_stage FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid
               WHERE tags.key = 'oodbench.kind'"""
    with contextlib.closing(sqlite3.connect(f"file:{directory}/{name}?mode=ro", uri=True, timeout=30)) as database:
        try:
            return Counter(database.execute(query).fetchall())
        except sqlite3.OperationalError:  # no tables yet
            return Counter()
