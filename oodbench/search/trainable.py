"""What runs in a Tune worker. Imported by workers; the driver imports it only to name it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray
from ray import cloudpickle, tune

from oodbench.search.packs import WHOLE
from oodbench.worker import run_pack

if TYPE_CHECKING:
    from oodbench.search.packs import Job

_fetched: dict[str, list[bytes]] = {}


def ship(jobs: Sequence[Job]) -> dict[str, Any]:
    """Jobs as parameters of the trainable: what several packs share is stored once."""
    parts = {id(part): part for job in jobs for part in job.data.values()}
    places = {one: place for place, one in enumerate(parts)}
    pickled = [
        cloudpickle.dumps(
            (job.pack, job.method, job.setup, {seed: places[id(part)] for seed, part in job.data.items()})
        )
        for job in jobs
    ]
    # in a list, a reference is handed on as it is: Tune would fetch it for every trial
    return {"jobs": [ray.put(pickled)], "data": [ray.put(part) for part in parts.values()]}


def train_pack(config: Mapping[str, Any], jobs: list[Any], data: list[Any], threads: int, timed: bool) -> None:
    """The Tune trainable: one pack, or one trial of it."""
    prepare(threads)
    # every time from its bytes: a method may keep things on itself, and must not find them in the next pack
    pack, method, setup, places = cloudpickle.loads(_fetch(jobs[0])[config["job"]])
    if config["position"] != WHOLE:
        pack = replace(pack, trials=(pack.trials[config["position"]],))
    seen = {seed: ray.get(data[places[seed]]) for seed in pack.seeds}
    if timed:
        tune.report({"training": True})  # from here on, time counts
    tune.report({"pack": run_pack(method, pack, seen, setup)})


def prepare(threads: int) -> None:
    import torch  # takes seconds: the driver, which only names these functions, need not wait for it

    from oodbench.dataset import seal_test_data
    from oodbench.pack import keep_freed_memory

    seal_test_data()
    keep_freed_memory()
    torch.set_num_threads(threads)


def _fetch(reference: Any) -> list[bytes]:
    """Once in a worker's life rather than once a pack."""
    key = reference.hex()
    if key not in _fetched:
        _fetched.clear()
        _fetched[key] = ray.get(reference)
    return _fetched[key]
