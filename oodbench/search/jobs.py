"""A pack with all that its worker needs to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from oodbench.engine.checkpoint import Checkpoint, key_of
from oodbench.engine.trial import Setup
from oodbench.plugin.method import Method
from oodbench.search.keeping import KeepAt
from oodbench.study.data import SearchData
from oodbench.study.pack import Pack
from oodbench.study.study import Study

WHOLE = -1  # instead of a position in a pack


@dataclass(frozen=True, eq=False)
class Job:
    """A pack with all that its worker needs to run it."""

    pack: Pack
    method: Method
    setup: Setup
    data: Mapping[int, SearchData]  # by seed
    start: Checkpoint | None = None  # where its trainings go on from
    stop: int | None = None  # after how many steps they pause
    keep_at: KeepAt | None = None  # where they are kept from time to time


def job_of(study: Study, pack: Pack, paused: Callable[[Pack], Checkpoint | None]) -> Job:
    """`paused` says where the trainings of a finished pack stand: on a later rung, trainings go on from there.

    A method that cannot pause is trained anew on each rung, with as many steps as the rung has.
    """
    setup, start, stop = study.setup, None, None
    data = {seed: study.search_data(seed, pack.without) for seed in pack.seeds}
    if pack.rung + 1 < len(study.rungs):
        steps = study.rungs[pack.rung].steps
        if study.method.pauses:
            stop = steps
        else:
            setup = replace(setup, recipe=replace(setup.recipe, steps=steps))
    if pack.rung and study.method.pauses:
        start = _start(study, pack, paused)
    return Job(pack, study.method, setup, data, start, stop)


def _start(study: Study, pack: Pack, paused: Callable[[Pack], Checkpoint | None]) -> Checkpoint:
    """Its trials come out of several packs of the rung before."""
    wanted = set(map(key_of, pack.trials))
    parts = []
    for earlier in study.packs:
        own = [trial for trial in earlier.trials if key_of(trial) in wanted]
        if earlier.rung == pack.rung - 1 and own:
            checkpoint = paused(earlier)
            assert checkpoint is not None
            parts.append(checkpoint.take(own))
    return Checkpoint.join(parts)
