"""The encoder of a table, fitted to training rows, and environments that are encoded by it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from oodbench import Environment
from oodbench.encoder import Encoder, Levels, RawColumn
from oodbench.encoder.dates import part_names
from oodbench.encoder.reading import Marks
from oodbench.engine.arrays import make_room
from oodbench.plugin.textfiles import EMPTY, PARQUET
from oodbench_datasets.table.columns import ColumnsOnDemand
from oodbench_datasets.table.features import Feature
from oodbench_datasets.table.ordinal import parse_ordinals
from oodbench_datasets.table.prepare import Prepared
from oodbench_datasets.table.settings import TableSettings

Integers = NDArray[np.int64]


def fit_encoder(settings: TableSettings, prepared: Prepared, train: Integers) -> Encoder:
    """All that is learnt comes from these rows."""
    target = prepared.target
    center, scale = _scale(prepared, train) if target.task == "regression" else (0.0, 1.0)
    in_texts = not all(path.endswith(PARQUET) for path, _ in prepared.table.files)
    return Encoder(
        raw=_raw_columns(settings, prepared),
        steps=tuple(step for feature in prepared.features for step in feature.fit(train)),
        classes=target.classes,
        center=center,
        scale=scale,
        marks=Marks((*settings.missing, *(EMPTY if in_texts else ())), settings.thousands, settings.decimal),
    )


def encode(prepared: Prepared, parts: Mapping[str, Integers], train: Integers, encoder: Encoder) -> list[Environment]:
    """Environments by their rows. Training rows may have values of their own."""
    rows = np.concatenate(list(parts.values()))
    features = {feature.name: feature for feature in prepared.features}
    columns = ColumnsOnDemand(list(features), lambda name: features[name].column[rows])
    x = encoder.encode(columns, into=make_room((len(rows), len(encoder.names)), np.float64))
    place = np.full(len(prepared.table), -1)
    place[train] = np.arange(len(train))
    trained = place[rows] >= 0
    start = 0
    for feature in prepared.features if trained.any() else ():
        own = feature.of_training_rows(train)
        if own is not None:
            x[trained, start : start + len(feature.columns)] = own[place[rows][trained]]
        start += len(feature.columns)
    y = prepared.target.y[rows]
    if prepared.target.task == "regression":
        y = (y - encoder.center) / encoder.scale
    ends = np.cumsum([len(part) for part in parts.values()])[:-1]
    weights = np.split(prepared.weights[rows], ends) if prepared.weights is not None else [None] * len(parts)
    split = zip(parts, np.split(x, ends), np.split(y, ends), weights, strict=True)
    return [Environment(*part) for part in split]


def _scale(prepared: Prepared, rows: Integers) -> tuple[float, float]:
    """Mean and standard deviation of the target, as errors count its rows: the mean has error 1."""
    y = prepared.target.y[rows]
    if prepared.weights is None:
        return float(y.mean()), float(y.std()) or 1.0
    center = float(np.average(y, weights=prepared.weights[rows]))
    return center, float(np.sqrt(np.average(np.square(y - center), weights=prepared.weights[rows]))) or 1.0


def _raw_columns(settings: TableSettings, prepared: Prepared) -> tuple[RawColumn, ...]:
    """Those that features come from, in the order of the features."""
    dates = {part: name for name in settings.dates for part in part_names(name, settings.date_parts)}
    orders = parse_ordinals(settings.ordinal)
    raws: dict[str, RawColumn] = {}
    for feature in prepared.features:
        name = dates.get(feature.name, feature.name)
        if feature.name in dates:
            raws[name] = RawColumn(name, "date", format=prepared.table.date_formats[name], parts=settings.date_parts)
        elif name in orders:
            raws[name] = RawColumn(name, "rank", order=orders[name])
        else:
            raws[name] = _raw_column(prepared, feature)
    return tuple(raws.values())


def _raw_column(prepared: Prepared, feature: Feature) -> RawColumn:
    if not isinstance(feature.column, Levels):
        return RawColumn(feature.name, "number")
    if prepared.table.holds_numbers(feature.name):
        return RawColumn(feature.name, "code")
    return RawColumn(feature.name, "truth" if prepared.table.holds_truths(feature.name) else "text")
