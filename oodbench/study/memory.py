"""The memory that a run takes, from the sizes of its rows and of its packs: it is said before work starts.

What libraries take for their own trees or kernels is not in it, nor what a dataset keeps of its files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from oodbench.engine.arrays import FILED_BYTES
from oodbench.engine.asking import MOST_ROWS
from oodbench.engine.trial import seeds_that_fit
from oodbench.plugin.method import LossMethod

if TYPE_CHECKING:
    from oodbench.study.data import SearchData
    from oodbench.study.pack import Pack
    from oodbench.study.study import Study

WORKER_BYTES = 700_000_000  # Python, Ray, torch, and a library such as scikit-learn, before the first row
LOOSE_BYTES = 4_000_000  # what allocators hold of blocks that are used in part
SINGLE, DOUBLE = 4, 8  # bytes of a number
STEP_COPIES = 10  # of activations and of a batch: forward, backward, products in blocks, and what a loss makes of them
TRAINING_COPIES = 8  # of parameters: moments, gradients, and the models that come back
WEIGHT_BYTES = 16  # of a row and trial of a method in stages: weights in both precisions, and predictions
EXPLORED = 16  # numbers of a row and trial, where all rows are explored at once, besides the activations
OWN_COPIES = 3  # of rows in double precision: the method's own, and as its library or its training takes them


@dataclass(frozen=True)
class Memory:
    """Bytes, at most."""

    worker: int  # of a worker, with the rows that it shares with others
    shared: int  # of these, the rows of its pack in the object store
    store: int  # of Ray's object store on a machine: all rows, once for all of its workers
    files: int  # of the driver's temporary files: all rows, where they are many

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def predict_memory(studies: Sequence[Study]) -> Memory:
    """Of a run of these studies: of its largest worker, and of all its rows."""
    packs = [_of_pack(study, pack) for study in studies for pack in study.packs]
    shipped: dict[tuple[int, bool], int] = {}
    for study in studies:
        for without in (None, *study.left_out):
            for seed in study.seeds:
                shipped |= _shipped(study.search_data(seed, without), study.method.shares_rows)
    data = {id(study.data): study.data for study in studies}.values()
    files = sum(array.nbytes for rows in data for array in rows.arrays if array.nbytes >= FILED_BYTES)
    worker, shared = max(packs)
    return Memory(worker, shared, sum(shipped.values()), files)


def _of_pack(study: Study, pack: Pack) -> tuple[int, int]:
    """The bytes of its worker, and those of them that it shares."""
    data = [study.search_data(seed, pack.without) for seed in pack.seeds]
    shared: dict[tuple[int, bool], int] = {}
    for seed_data in data:
        shared |= _shipped(seed_data, study.method.shares_rows)
    train = data[0].train
    rows, features = train.x.shape
    seeds = min(len(pack.seeds), seeds_that_fit(study.setup, rows, features))
    own = 0
    if not study.method.shares_rows:
        own += OWN_COPIES * DOUBLE * seeds * rows * (features + 1)
        largest = max(len(environment) for seed_data in data for environment in seed_data.validation)
        own += DOUBLE * min(largest, MOST_ROWS) * features
    if isinstance(study.method, LossMethod):
        own += _of_training(study, study.method, len(pack.trials), seeds, rows, features)
    return WORKER_BYTES + LOOSE_BYTES + sum(shared.values()) + own, sum(shared.values())


def _of_training(study: Study, method: LossMethod, trials: int, seeds: int, rows: int, features: int) -> int:
    """What a pack trains with, besides its rows."""
    setup, train = study.setup, study.search_data(study.seeds[0]).train
    outputs = setup.recipe.outputs(train.task == "classification", train.classes)
    trials = min(trials, method.pack_capacity(rows, outputs, setup))
    batch, environments = setup.recipe.batch_rows(rows), study.data.environments if train.environment is not None else 1
    activations = SINGLE * trials * batch * (sum(setup.model.units(outputs)) + outputs + environments + 1)
    columns = SINGLE * seeds * batch * (features + 1)
    orders = 2 * DOUBLE * seeds * rows if batch < rows else 0
    whole = 0
    if type(method).fit_pack is not LossMethod.fit_pack:
        whole += WEIGHT_BYTES * trials * rows
    if type(method).explore is not LossMethod.explore and not method.explores_part:
        whole += SINGLE * trials * rows * (sum(setup.model.units(outputs)) + EXPLORED)
    parameters = SINGLE * trials * setup.model.parameter_count(features, outputs)
    explored = SINGLE * trials * setup.recipe.explored_rows(rows, train.task == "classification", True)
    return STEP_COPIES * (activations + columns + explored) + orders + whole + TRAINING_COPIES * parameters


def _shipped(data: SearchData, single: bool) -> dict[tuple[int, bool], int]:
    """The bytes of the arrays that a worker reads in the object store: each is there once for each precision."""
    tables = {id(table) for table in data.tables} if single else set()
    return {
        (id(array), id(array) in tables): array.size * (SINGLE if id(array) in tables else array.itemsize)
        for array in data.arrays
    }
