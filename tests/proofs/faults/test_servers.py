"""A team's server on PostgreSQL: eight drivers write at once, and it is stopped while they do."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DRIVERS = 8
TRIALS = 12
RUN = [
    sys.executable, "-m", "oodbench", "run", "-m", "erm", "-d", "selection_bias", "--trials", str(TRIALS),
    "--seeds", "2", "--set", "majority=200", "--set", "minority=40", "--set", "test_rows=50",
]  # fmt: skip


def postgres_program(name: str) -> str | None:
    found = shutil.which(name) or next(iter(sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)
    return str(found) if found else None


@pytest.fixture
def postgres(tmp_path_factory: pytest.TempPathFactory, free_port: int) -> Iterator[str]:
    """A database server of its own, with its data in a temporary folder, on 127.0.0.1."""
    initdb, server = postgres_program("initdb"), postgres_program("postgres")
    if initdb is None or server is None:
        pytest.skip("PostgreSQL is not installed")
    user: dict[str, Any] = {}
    folder = tmp_path_factory.mktemp("postgres")
    if os.geteuid() == 0:  # which PostgreSQL refuses to run as
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        folder = Path("/tmp") / f"oodbench-postgres-{os.getpid()}"
        folder.mkdir(mode=0o700)
        os.chown(folder, account.pw_uid, account.pw_gid)
        user = {"user": "postgres", "group": "postgres", "extra_groups": []}
    data = folder / "data"
    subprocess.run(
        [initdb, "-D", str(data), "-U", "team", "--auth=trust", "-E", "UTF8"],
        check=True, stdout=subprocess.DEVNULL, cwd="/", **user,
    )  # fmt: skip
    process = subprocess.Popen(
        [server, "-D", str(data), "-h", "127.0.0.1", "-p", str(free_port), "-k", str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **user,
    )  # fmt: skip
    uri = f"postgresql://team@127.0.0.1:{free_port}/postgres"
    try:
        _wait_for(uri)
        yield uri
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(uri: str) -> None:
    import psycopg2

    for _ in range(300):
        try:
            psycopg2.connect(uri).close()
            return
        except psycopg2.OperationalError:
            time.sleep(0.2)
    raise TimeoutError(uri)


def runs_in(uri: str) -> Counter[tuple[str, str, str]]:
    """How many runs the database has, by kind, status and stage of life: deleted ones, too."""
    import psycopg2

    connection = psycopg2.connect(uri)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT value, status, lifecycle_stage FROM runs JOIN tags ON tags.run_uuid = runs.run_uuid "
            "WHERE tags.key = 'oodbench.kind'"
        )
        found = Counter(cursor.fetchall())
    connection.close()
    return found


def test_eight_drivers_write_at_once_and_the_server_is_killed_meanwhile(
    postgres: str, make_tracking_server: Any, ray_address: str, tmp_path: Path
) -> None:
    server = make_tracking_server(postgres.replace("postgresql:", "postgresql+psycopg2:"))
    started = time.monotonic()
    drivers = [
        subprocess.Popen(
            [*RUN, "--seed", str(100 * number), "--tracking-uri", server.address, "--address", ray_address],
            cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for number in range(DRIVERS)
    ]  # fmt: skip
    while sum(runs_in(postgres).values()) < 3 * TRIALS:  # in the midst of it
        assert time.monotonic() - started < 600
        time.sleep(0.05)
    before = runs_in(postgres)
    server.stop(signal.SIGKILL)
    time.sleep(5)
    server.start()
    said = [driver.communicate(timeout=600)[1] for driver in drivers]
    codes = Counter(driver.returncode for driver in drivers)
    waiting = len(list(tmp_path.glob(".oodbench/outbox/*")))
    print(f"server killed with {sum(before.values())} runs written, {before}; exit codes {dict(codes)}")
    synced = subprocess.run(
        [sys.executable, "-m", "oodbench", "sync"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    print(f"{waiting} of {DRIVERS} studies waited in the outbox; oodbench sync: exit code {synced.returncode}")
    assert synced.returncode == 0, synced.stderr
    assert set(codes) <= {0, 1}, "\n".join(said)
    assert codes[1] == waiting
    found = runs_in(postgres)
    print(f"{DRIVERS} drivers, {time.monotonic() - started:.0f} s: {dict(found)}")
    alive = {key: count for key, count in found.items() if key[2] == "active"}
    assert alive == {
        ("study", "FINISHED", "active"): DRIVERS,
        ("configuration", "FINISHED", "active"): DRIVERS * TRIALS,
    }
    assert not [key for key in found if key[1] == "RUNNING"]
    assert len(list((server.folder / "artifacts").rglob("results.parquet"))) == DRIVERS


def test_two_drivers_on_one_study_and_others_beside_them_in_one_embedded_record(
    ray_address: str, tmp_path: Path, count_runs: Any
) -> None:
    seeds = [0, 0, 100, 200]
    drivers = [
        subprocess.Popen(
            [*RUN, "--seed", str(seed), "--address", ray_address],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for seed in seeds
    ]  # fmt: skip
    said = [driver.communicate(timeout=600) for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0] * len(seeds), "\n".join(err for _, err in said)
    assert said[0][0] == said[1][0]
    waited = sum("another run works on erm" in err for _, err in said)
    found = count_runs(tmp_path / ".oodbench")
    print(f"{len(seeds)} drivers, 2 of them on one study: {waited} waited; {dict(found)}")
    assert waited == 1
    assert found == {("study", "FINISHED", "active"): 3, ("configuration", "FINISHED", "active"): 3 * TRIALS}
