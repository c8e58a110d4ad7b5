"""A table with its settings, checked: the target, the features, and the rows of every environment."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting, UnknownName
from oodbench_datasets.table.features import Feature, find_features
from oodbench_datasets.table.file import TableFile
from oodbench_datasets.table.rows import parse_conditions, wanted_rows
from oodbench_datasets.table.settings import TableSettings
from oodbench_datasets.table.target import Target, find_target

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prepared:
    table: TableFile  # the rows that are used
    target: Target
    features: list[Feature]
    train: dict[str, Integers]
    test: dict[str, Integers]
    left_out: dict[str, int]  # rows of the file that are not used, by the reason

    @property
    def pool(self) -> Integers:
        """The rows of the training environments."""
        return np.concatenate(list(self.train.values()))


@functools.lru_cache(maxsize=2)  # a run makes the same dataset more than once
def prepare(settings: TableSettings, table: TableFile) -> Prepared:
    environments = table.levels(settings.environment)
    targeted, placed = table.present(settings.target), table.present(settings.environment)
    chosen = wanted_rows(table, parse_conditions(settings.where))
    present = targeted & placed & chosen
    counts = np.bincount(environments.codes[present], minlength=len(environments.texts))
    code_of = {text: code for code, text in enumerate(environments.texts) if counts[code]}
    if len(code_of) < 2:
        raise InvalidSetting(
            f"dataset 'table': column {settings.environment!r} has fewer than two environments with a target.\n"
            "There must be one to train on and another to test on."
        )
    tested = settings.test_in or tuple(name for name in code_of if name not in settings.train_in)
    for name in (*settings.train_in, *tested):
        if name not in code_of:
            raise UnknownName(f"environment in column {settings.environment!r}", name, list(code_of)[:100])
    if not tested:
        raise InvalidSetting(
            f"dataset 'table': all environments of {settings.environment!r} are in train, and none is left to test on."
            "\nRemove one from train."
        )
    _check_rows(settings, {name: int(counts[code_of[name]]) for name in (*settings.train_in, *tested)})
    wanted = np.isin(environments.codes, [code_of[name] for name in (*settings.train_in, *tested)])
    kept = np.flatnonzero(present & wanted)
    left_out = {
        "not in where": int((~chosen).sum()),
        "no target": int((chosen & ~targeted).sum()),
        "no environment": int((chosen & targeted & ~placed).sum()),
        "environment in no role": int((present & ~wanted).sum()),
    }
    codes, table = environments.codes[kept], table.only(kept)
    rows = {name: np.flatnonzero(codes == code_of[name]) for name in (*settings.train_in, *tested)}
    train = {name: rows[name] for name in settings.train_in}
    pool = np.concatenate(list(train.values()))
    columns = [name for name in table.names if name not in (settings.target, settings.environment, *settings.drop)]
    target = find_target(table, settings.target, pool, settings.problem, settings.positive)
    return Prepared(
        table=table,
        target=target,
        features=find_features(table, columns, pool, settings, target),
        train=train,
        test={name: rows[name] for name in tested},
        left_out={reason: count for reason, count in left_out.items() if count},
    )


def _check_rows(settings: TableSettings, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        if count < settings.least_rows:
            raise InvalidSetting(
                f"dataset 'table': environment {name!r} has {count} rows, fewer than least_rows={settings.least_rows}."
                "\nLeave it out by naming the others in test or train, or lower least_rows."
            )
        if name in settings.train_in and count <= settings.train_rows:
            raise InvalidSetting(
                f"dataset 'table': environment {name!r} has only {count} rows for train_rows={settings.train_rows}.\n"
                "Lower it: some rows must be left to validate on."
            )
