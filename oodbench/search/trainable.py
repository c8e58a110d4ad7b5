"""What runs in a Tune worker. Imported by workers; the driver imports it only to name it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray
from ray import cloudpickle, tune

from oodbench.engine.trial import Trial
from oodbench.errors import one_line
from oodbench.search.jobs import WHOLE
from oodbench.search.keeping import FileKeeper
from oodbench.search.own import heed_signals
from oodbench.search.shipping import Shipment, unpack
from oodbench.search.travel import pickled
from oodbench.search.worker import ConfigurationTraining, run_pack, validation_score
from oodbench.study.pack import Pack, PackResult

if TYPE_CHECKING:
    from oodbench.plugin.method import Method
    from oodbench.search.jobs import Job
    from oodbench.study.study import Study

_fetched: dict[str, list[bytes]] = {}


def fault_in_sending(method: Method) -> str | None:
    """Why a method cannot travel to a worker, or None."""
    try:
        pickled(method, type(method))
    except Exception as error:
        return f"the method cannot be sent to a worker: {one_line(error)}"
    return None


def ship(jobs: Sequence[Job]) -> dict[str, Any]:
    """Jobs as parameters of the trainable: what several packs share is stored once."""
    shipment = Shipment()
    parts = {(id(part), job.method.shares_rows): part for job in jobs for part in job.data.values()}
    data = [shipment.add(part, single) for (_, single), part in parts.items()]
    places = {key: place for place, key in enumerate(parts)}
    contents = [
        pickled(
            (
                job.pack,
                job.method,
                job.setup,
                {seed: places[id(part), job.method.shares_rows] for seed, part in job.data.items()},
                job.start,
                job.stop,
                job.keep_at,
            ),
            type(job.method),
            type(job.setup.model),
        )
        for job in jobs
    ]
    # in a list, a reference is handed on as it is: Tune would fetch it for every trial
    return {"jobs": [ray.put(contents)], "data": data, "arrays": shipment.references}


def train_pack(
    config: Mapping[str, Any], jobs: list[Any], data: list[bytes], arrays: list[Any], threads: int, timed: bool
) -> None:
    """The Tune trainable: one pack, or one trial of it."""
    prepare(threads)
    # every time from its bytes: a method may keep things on itself, and must not find them in the next pack
    pack, method, setup, places, start, stop, keep_at = cloudpickle.loads(_fetch(jobs[0])[config["job"]])
    keeper = None if keep_at is None else FileKeeper(keep_at)
    if config["position"] != WHOLE:
        keeper = None  # alone, it is trained anew: what was kept may be what its pack was lost by
        pack = replace(pack, trials=(pack.trials[config["position"]],))
    seen = {seed: unpack(data[places[seed]], arrays) for seed in pack.seeds}
    if timed:
        tune.report({"training": True})  # from here on, time counts
    tune.report({"pack": run_pack(method, pack, seen, setup, start, stop, keeper)})


def ship_study(study: Study) -> dict[str, Any]:
    """A study as parameters of the trainable."""
    trained = (
        study.study_id,
        study.method_name,
        study.method,
        study.setup,
        study.selector,
        study.seeds,
        study.budget.repeat,
    )
    shipment = Shipment()
    return {
        "study": pickled(trained, type(study.method), type(study.setup.model)),
        "data": [shipment.add(study.search_data(seed), study.method.shares_rows) for seed in study.seeds],
        "arrays": shipment.references,
    }


def train_configuration(
    config: Mapping[str, Any],
    study: bytes,
    data: list[bytes],
    arrays: list[Any],
    rungs: Sequence[int],
    threads: int,
    timed: bool,
) -> None:
    """The Tune trainable: one configuration on all seeds, with a report at each rung."""
    prepare(threads)
    study_id, name, method, setup, selector, seeds, repeat = cloudpickle.loads(study)
    index, hparams = config["configuration"], config["hparams"]
    trials = tuple(Trial.of(name, index, hparams, seed, repeat) for seed in seeds)
    seen = {seed: unpack(content, arrays) for seed, content in zip(seeds, data, strict=True)}
    training, spent = ConfigurationTraining(method, Pack(study_id, index, trials), seen, setup), PackResult([], [])
    for rung in rungs:
        if timed:
            tune.report({"training": True, "score": math.nan, "rung": 0})
        result = training.train_to(math.ceil(setup.recipe.steps * rung / rungs[-1]))
        result.gradient_steps += spent.gradient_steps
        result.row_visits += spent.row_visits
        result.seconds += spent.seconds
        spent = result
        score = validation_score(result, selector)
        tune.report({"pack": result, "score": score, "rung": rungs[-1] if result.failures else rung})
        if result.failures:  # more steps would not help, and it cannot be chosen
            return


def prepare(threads: int) -> None:
    import torch  # takes seconds: the driver, which only names these functions, need not wait for it

    from oodbench.engine.trainer import keep_freed_memory
    from oodbench.plugin.dataset import seal_test_data

    heed_signals()
    seal_test_data()
    keep_freed_memory()
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)  # the method of an earlier pack may have changed it


def _fetch(reference: Any) -> list[bytes]:
    """Once in a worker's life rather than once a pack."""
    key = reference.hex()
    if key not in _fetched:
        _fetched.clear()
        _fetched[key] = ray.get(reference)
    return _fetched[key]
