"""How a table was read, for `oodbench show table --set ...`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from oodbench_datasets.table.prepare import Integers, Prepared
from oodbench_datasets.table.settings import TableSettings

Rows = list[dict[str, object]]


def describe(settings: TableSettings, prepared: Prepared) -> Mapping[str, Sequence[Mapping[str, object]]]:
    return {
        "files": [{"file": file, "rows": rows} for file, rows in prepared.table.files],
        "columns": _columns(settings, prepared),
        "environments": _environments(prepared),
        "rows": _rows(prepared),
    }


def _columns(settings: TableSettings, prepared: Prepared) -> Rows:
    """Every column of the file; levels and missing values are those of the rows that are used."""
    table = prepared.table
    features = {feature.name: feature for feature in prepared.features}
    rows: Rows = []
    for name in table.names:
        feature = features.get(name)
        if name == settings.target:
            kind = f"target, {prepared.target.task}"
        elif name in settings.environment:
            kind = "environment"
        elif name == settings.weight:
            kind = "weight"
        elif feature is not None:
            kind = feature.kind
        elif name in settings.drop:
            kind = "dropped: in drop"
        else:
            kind = _why_dropped(prepared, name)
        rows.append(
            {
                "column": name,
                "read as": kind,
                "levels": table.count_distinct(name),
                "missing": int((~table.present(name)).sum()),
                "features": len(feature.columns) if feature else 0,
            }
        )
    return rows + [
        {"column": name, "read as": "dropped: in drop", "levels": "", "missing": "", "features": 0}
        for name in settings.drop
        if name not in table.names
    ]


def _why_dropped(prepared: Prepared, name: str) -> str:
    table = prepared.table
    present = table.present(name)[prepared.pool]
    if not present.any():
        return "dropped: empty in the training environments"
    if table.holds_dates(name):
        return "dropped: dates, and not in dates"
    if len(np.unique(table.levels(name).codes[prepared.pool])) == 1:
        return "dropped: constant in the training environments"
    return "dropped: all levels are rare"


def _environments(prepared: Prepared) -> Rows:
    trained = "train" if prepared.validation else "train, validation"
    roles = {trained: prepared.train, "validation": prepared.validation, "test": prepared.test}
    rows: Rows = []
    for role, environments in roles.items():
        for name, places in environments.items():
            weight = {} if prepared.weights is None else {"weight": f"{prepared.weights[places].sum():.6g}"}
            counts = {"rows": len(places), **weight}
            rows.append({"environment": name, "role": role, **counts, **_target_of(prepared, places)})
    return rows


def _target_of(prepared: Prepared, rows: Integers) -> dict[str, object]:
    target = prepared.target
    y, weights = target.y[rows], np.ones(len(rows)) if prepared.weights is None else prepared.weights[rows]
    if target.task == "regression":
        mean = np.average(y, weights=weights)
        spread = np.sqrt(np.average(np.square(y - mean), weights=weights))
        return {"mean of target": f"{mean:.4g}", "std of target": f"{spread:.4g}"}
    shares = np.bincount(y, weights, minlength=len(target.classes)) / weights.sum()
    if len(target.classes) == 2:
        return {f"share of {target.classes[1]}": f"{shares[1]:.3f}"}
    common = np.argsort(-shares, kind="stable")[:5]
    return {"most frequent classes": ", ".join(f"{target.classes[place]} {shares[place]:.3f}" for place in common)}


def _rows(prepared: Prepared) -> Rows:
    used = len(prepared.table)
    counts = {"in the file": used + sum(prepared.left_out.values())}
    counts |= {f"left out: {reason}": count for reason, count in prepared.left_out.items()}
    return [{"rows": text, "count": count} for text, count in (counts | {"used": used}).items()]
