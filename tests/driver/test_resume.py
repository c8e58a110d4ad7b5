"""Nothing is lost: drivers that are killed, that meet each other, that cannot write. faults/ has the long forms."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import oodbench
from oodbench.driver.concluder import Concluder
from oodbench.driver.progress import Progress
from oodbench.errors import Unreachable, Unwritable
from oodbench.record.delivery import deliver
from oodbench.record.outbox import Outbox
from oodbench.record.parcel import Parcel
from oodbench.record.tracking import Record
from oodbench.search.packstore import PackStore
from oodbench.study.claim import Claims
from oodbench.study.outcome import Outcome
from oodbench.study.pack import PackResult

TINY = {"majority": 200, "minority": 40, "test_rows": 50}


def run(directory: Path, **more: Any) -> oodbench.Result:
    return oodbench.run("erm", "selection_bias", settings=TINY, trials=3, seeds=2, directory=directory, **more)


@pytest.fixture(scope="module")
def finished(ray_address: str, tmp_path_factory: pytest.TempPathFactory) -> oodbench.Result:
    return run(tmp_path_factory.mktemp("finished"))


class Broken(Exception):
    pass


def test_a_delivery_that_breaks_off_anywhere_is_completed_and_nothing_is_doubled(
    finished: oodbench.Result, tmp_path: Path
) -> None:
    """Broken between any two writes, with the record of half a try still open; then once more when all is there."""
    parcel = concluded(finished, tmp_path)
    record = Record(None, tmp_path)
    for survived in range(5):
        left = iter(range(survived))

        def go_on(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise Broken

        with contextlib.suppress(Broken):
            deliver(record, parcel, go_on)
    deliver(record, parcel)
    deliver(record, parcel)
    runs = all_runs(record)
    assert Counter((run.data.tags["oodbench.kind"], run.info.status) for run in runs) == {
        ("study", "FINISHED"): 1, ("configuration", "FINISHED"): 3,
    }  # fmt: skip
    assert {run.info.lifecycle_stage for run in runs} == {"active"}
    (study,) = (run for run in runs if run.data.tags["oodbench.kind"] == "study")
    assert len(study.inputs.dataset_inputs) == 3
    assert len(record.client.get_metric_history(study.info.run_id, "validation/best_score")) == 3
    (board,) = finished.leaderboards()
    again = oodbench.leaderboard("selection_bias", settings=TINY, directory=tmp_path)
    assert again.rows[0].cells == board.rows[0].cells


def test_a_parcel_that_another_driver_delivered_meanwhile_is_left_alone(
    finished: oodbench.Result, tmp_path: Path
) -> None:
    """Read while the other one was at it, and free when it was done."""
    parcel = concluded(finished, tmp_path)
    record, outbox, claims = Record(None, tmp_path), Outbox(tmp_path), Claims(tmp_path)
    seen = outbox.parcels()
    deliver(record, parcel)
    outbox.remove(parcel)
    concluder = Concluder(outbox, record, Future(), claims, Progress(), fresh=False)
    assert [parcel.id for parcel in seen] == [parcel.id]
    assert concluder.deliver_earlier(seen) == set()
    assert Claims(tmp_path).take(parcel.study_id, wait=False)  # others may have it
    assert len(all_runs(record)) == 4


def test_what_a_lost_directory_left_open_is_removed(finished: oodbench.Result, tmp_path: Path) -> None:
    parcel = concluded(finished, tmp_path)
    record = Record(None, tmp_path)
    experiment = record.ensure_experiment(parcel.record.dataset_id, {})
    record.create_run(experiment, "stray", {"oodbench.kind": "study", "oodbench.study": parcel.study_id}, 0)
    deliver(record, parcel)
    runs = all_runs(record)
    assert sorted(
        (run.info.run_name.removesuffix(" (chosen)"), run.info.status, run.info.lifecycle_stage) for run in runs
    ) == [
        ("erm", "FINISHED", "active"),
        *((f"erm {index}", "FINISHED", "active") for index in range(3)),
        ("stray", "KILLED", "deleted"),
    ]


def test_an_equal_study_in_the_record_is_enough_unless_a_fresh_one_is_wanted(
    finished: oodbench.Result, tmp_path: Path
) -> None:
    parcel = concluded(finished, tmp_path)
    record = Record(None, tmp_path)
    deliver(record, parcel)
    deliver(record, replace(parcel, id="another"))
    parents = [run for run in all_runs(record) if run.data.tags["oodbench.kind"] == "study"]
    assert len(parents) == 1
    deliver(record, replace(parcel, id="wanted", fresh=True))
    assert len([run for run in all_runs(record) if run.data.tags["oodbench.kind"] == "study"]) == 2


def concluded(result: oodbench.Result, directory: Path) -> Parcel:
    """A parcel of a finished study, put together again from its record."""
    (study,) = result.record.records_of(result.studies)
    assert study.results is not None
    return Outbox(directory).put(Outcome(study.record, study.results), "", fresh=False)


def all_runs(record: Record) -> list[Any]:
    experiments = [one.experiment_id for one in record.client.search_experiments()]
    return list(record.client.search_runs(experiments, run_view_type=3))  # deleted ones, too


@pytest.mark.parametrize("damage", [lambda content: content[:-7], lambda content: b"", lambda content: content[::-1]])
def test_a_damaged_pack_is_as_good_as_none(
    finished: oodbench.Result, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    (study,) = finished.studies
    store = PackStore(tmp_path, study)
    (pack,) = study.packs
    store.save(pack, PackResult([None] * 6, [], {}))
    assert list(store.load()) == [0]
    (path,) = store.folder.glob("pack-*")
    path.write_bytes(damage(path.read_bytes()))
    assert store.load() == {}
    assert not path.exists()


def test_one_driver_at_a_time_has_a_study_and_a_dead_one_does_not_block(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [
            sys.executable, "-c",
            "import sys, time; from pathlib import Path; from oodbench.study.claim import Claims\n"
            "claims = Claims(Path(sys.argv[1])); claims.take('abc', wait=True)\n"
            "print('held', flush=True); time.sleep(60)",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None
    holder.stdout.readline()
    claims = Claims(tmp_path)
    assert not claims.take("abc", wait=False)
    assert claims.take("other", wait=False)
    holder.kill()
    holder.wait()
    assert claims.take("abc", wait=False)
    claims.release_all()


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """A disk that takes no more, for anybody: this process may write no file larger than that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_takes_no_more_is_said_in_two_lines_and_a_second_try_works(
    ray_address: str, tmp_path: Path
) -> None:
    with largest_file(1024), pytest.raises(Unwritable, match="File too large.\nFree some space") as raised:
        run(tmp_path / "small")
    assert str(raised.value).count("\n") == 1
    left = [path for path in (tmp_path / "small").rglob("*") if path.is_file()]
    assert not [path for path in left if path.name.startswith(".")]
    assert run(tmp_path / "small").leaderboard().rows[0].cells["mean_error"].value is not None


@pytest.fixture
def fixed(tmp_path: Path) -> Path:
    """A directory that takes no files. Permissions do not bind root; the kernel's own file systems do."""
    if os.geteuid() == 0:
        return Path("/sys/kernel")
    folder = tmp_path / "fixed"
    folder.mkdir(mode=0o555)
    return folder


def test_a_read_only_directory_is_said_in_two_lines(ray_address: str, fixed: Path) -> None:
    with pytest.raises(Unwritable, match=f"cannot write into {fixed}.*: (Permission denied|Operation not)") as raised:
        run(fixed)
    assert str(raised.value).count("\n") == 1


def test_an_embedded_record_that_takes_nothing_keeps_the_study(finished: oodbench.Result, tmp_path: Path) -> None:
    parcel = concluded(finished, tmp_path)
    (tmp_path / "mlflow.db").write_text("this is no database")
    with pytest.raises(Unreachable, match="does not work: .*not a database"):
        deliver(Record(None, tmp_path), parcel)
    (kept,) = Outbox(tmp_path).parcels()
    assert (kept.slip, kept.record, kept.folder) == (parcel.slip, parcel.record, parcel.folder)
    pd.testing.assert_frame_equal(kept.results, parcel.results)
