"""A table with its settings, checked: the target, the features, and the rows of every environment."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting
from oodbench_datasets.table.environments import assign_roles, find_places, group_small
from oodbench_datasets.table.features import Feature, find_features
from oodbench_datasets.table.file import TableFile
from oodbench_datasets.table.ranges import parse_bins
from oodbench_datasets.table.rows import parse_conditions, wanted_rows
from oodbench_datasets.table.settings import TableSettings
from oodbench_datasets.table.target import Target, find_target
from oodbench_datasets.table.weights import find_weights

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prepared:
    table: TableFile  # the rows that are used
    target: Target
    features: list[Feature]
    train: dict[str, Integers]
    validation: dict[str, Integers]  # none: the training environments' other rows
    test: dict[str, Integers]
    left_out: dict[str, int]  # rows of the file that are not used, by the reason
    weights: NDArray[np.float64] | None = None  # [row]

    @property
    def pool(self) -> Integers:
        """The rows of the training environments."""
        return np.concatenate(list(self.train.values()))


@functools.lru_cache(maxsize=2)  # a run makes the same dataset more than once
def prepare(settings: TableSettings, table: TableFile) -> Prepared:
    shown = ",".join(settings.environment)
    targeted = table.present(settings.target)
    chosen = wanted_rows(table, parse_conditions(settings.where))
    weights = find_weights(table, settings.weight, chosen) if settings.weight else None
    counted = np.ones(len(table), dtype=bool) if weights is None else weights > 0
    unweighted = int((chosen & ~counted).sum())
    chosen = chosen & counted
    places = find_places(table, settings.environment, parse_bins(settings.bins), targeted & chosen)
    placed = places.codes >= 0
    present = targeted & placed & chosen
    counts = np.bincount(places.codes[present], minlength=len(places.names))
    code_of = {name: code for code, name in enumerate(places.names) if counts[code]}
    if len(code_of) < 2:
        raise InvalidSetting(
            f"dataset 'table': column {shown!r} has fewer than two environments with a target.\n"
            "There must be one to train on and another to test on."
        )
    asked = {"train": settings.train_in, "validation": settings.validation_in, "test": settings.test_in}
    roles = assign_roles(places, list(code_of), asked, shown)
    if not roles["test"]:
        raise InvalidSetting(
            f"dataset 'table': all environments of {shown!r} are in train or validation, and none is left to test on.\n"
            "Remove one from train."
        )
    sizes = {name: int(counts[code]) for name, code in code_of.items()}
    small = [name for names in roles.values() for name in names if sizes[name] < settings.least_rows]
    groups = {role: group_small(names, small, settings.small) for role, names in roles.items()}
    _check_rows(settings, groups, sizes)
    codes_used = [code_of[name] for group in groups.values() for names in group.values() for name in names]
    wanted = places.in_one_of(codes_used)
    kept = np.flatnonzero(present & wanted)
    in_role = places.in_one_of([code_of[name] for names in roles.values() for name in names])
    left_out = {
        "not in where": int((~chosen).sum()) - unweighted,
        f"{settings.weight} is 0": unweighted,
        "no target": int((chosen & ~targeted).sum()),
        "in no range of bins": int((chosen & targeted & places.unbinned).sum()),
        "no environment": int((chosen & targeted & ~placed & ~places.unbinned).sum()),
        "environment in no role": int((present & ~in_role).sum()),
        "environment too small": int((present & in_role & ~wanted).sum()),
    }
    table = table.only(kept)
    rows = {
        role: {
            title: np.flatnonzero(places.in_one_of([code_of[name] for name in names])[kept])
            for title, names in group.items()
        }
        for role, group in groups.items()
    }
    pool = np.concatenate(list(rows["train"].values()))
    not_features = (settings.target, *settings.environment, *settings.drop, settings.weight)
    columns = [name for name in table.names if name not in not_features]
    target = find_target(table, settings.target, pool, settings.problem, settings.positive)
    return Prepared(
        table=table,
        target=target,
        features=find_features(table, columns, pool, settings, target),
        train=rows["train"],
        validation=rows["validation"],
        test=rows["test"],
        left_out={reason: count for reason, count in left_out.items() if count},
        weights=None if weights is None else weights[kept],
    )


def _check_rows(
    settings: TableSettings, groups: Mapping[str, Mapping[str, Sequence[str]]], sizes: Mapping[str, int]
) -> None:
    least, wanted = settings.least_rows, settings.train_rows
    for role, group in groups.items():
        if not group and getattr(settings, f"{role}_in"):
            raise InvalidSetting(
                f"dataset 'table': no environment of {role} has least_rows={least} rows.\n"
                "Lower least_rows, or set small=merge."
            )
        for name, members in group.items():
            count = sum(sizes[member] for member in members)
            if count < least:
                raise InvalidSetting(
                    f"dataset 'table': environment {name!r} has {count} rows, fewer than least_rows={least}.\n"
                    "Lower least_rows, set small=skip or small=merge, or name the other environments in train and test."
                )
            if role == "train" and count <= wanted - bool(groups["validation"]):
                raise InvalidSetting(
                    f"dataset 'table': environment {name!r} has only {count} rows for train_rows={wanted}.\n"
                    "Lower it: some rows must be left to validate on."
                )
