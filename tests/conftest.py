"""Fixtures: a Ray cluster for the session, the command line, and plug-ins made on the spot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("long", max_examples=2500)
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")


@pytest.fixture(scope="session")
def ray_address() -> Iterator[str]:
    """One real Ray cluster for all tests that search; `oodbench.run` in this process uses it too."""
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
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


@pytest.fixture
def cli(tmp_path: Path) -> Callable[..., Done]:
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


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that sees the project and its dependencies through a path file."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    site = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
    # addsitedir, not a bare path: it also follows the path files of an editable install
    line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (Path(site.strip()) / "below.pth").write_text(line)
    return python


@pytest.fixture(scope="session")
def pip_install(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Build distributions and install them into that environment."""

    def install(*sources: Path) -> None:
        work = tmp_path_factory.mktemp("source")  # the build leaves nothing in the source tree
        copies = [shutil.copytree(source, work / source.name) for source in sources]
        command = [python, "-m", "pip", "install", "--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
        subprocess.run([*command, *copies], check=True, capture_output=True, timeout=120)

    return install


@pytest.fixture(scope="session")
def write_suite() -> Callable[..., Path]:
    """Put a suite and its published figures into a folder: those of these tests, or others."""
    here = Path(__file__).parent

    def write(folder: Path, text: str = "", figures: str = "") -> Path:
        (folder / "mine.toml").write_text(text or (here / "suite.toml").read_text())
        (folder / "figures.csv").write_text(figures or (here / "figures.csv").read_text())
        return folder / "mine.toml"

    return write


@pytest.fixture
def suite_file(tmp_path: Path, write_suite: Callable[..., Path]) -> Path:
    return write_suite(tmp_path)


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a distribution on the path: a module and its entry points, as an installer leaves them."""

    def install(name: str, module: str, source: str, methods: str = "", datasets: str = "") -> Path:
        folder = tmp_path / f"site-{name}"
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (folder / f"{module}.py").write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[oodbench.methods]\n{methods}\n[oodbench.datasets]\n{datasets}\n")
        monkeypatch.syspath_prepend(str(folder))
        return folder

    return install
