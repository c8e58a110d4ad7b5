"""Fits of gradient boosting on the workers of a search, against the same fits one after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import ray

from oodbench.driver.work import Work
from oodbench.search.packstore import PackStore
from oodbench.search.upfront import run_jobs
from oodbench.search.worker import run_pack
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.spec import Resources, StudyOptions


def test_trees_on_two_cores(tmp_path: Path, report: Callable[[str], None]) -> None:
    """64 fits at least 1.8 times as fast, from when both workers have done their first: imports are not counted."""
    options = StudyOptions(trials=16, seeds=4)
    (study,) = plan(resolve(Request(["hist_gb"], ["selection_bias"], options)), "cpu")
    jobs = Work(study, PackStore(tmp_path, study)).missing_jobs()
    arrived: dict[int, float] = {}  # pack -> when
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        run_jobs(jobs, Resources(), lambda pack, _: arrived.setdefault(pack.index, time.perf_counter()))
    finally:
        ray.shutdown()
    times = sorted(arrived.values())
    together = times[-1] - times[1]
    later = {index for index, at in arrived.items() if at > times[1]}
    run_pack(jobs[0].method, jobs[0].pack, jobs[0].data, jobs[0].setup)  # imports
    started = time.perf_counter()
    for job in jobs:
        if job.pack.index in later:
            run_pack(job.method, job.pack, job.data, job.setup)
    alone = time.perf_counter() - started
    report(f"fits of hist_gb: {alone:.1f} s one after another, {together:.1f} s on two cores: {alone / together:.2f} x")
    assert len(arrived) == len(jobs)
    assert alone > 1.8 * together
