"""The encoder: from raw columns to the features of a model, and from its outputs back to the target's own values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.columns import Column
from oodbench.encoder.dates import part_names
from oodbench.encoder.reading import Marks, RawColumn, read_columns
from oodbench.encoder.steps import Scaled, Step, feature_names, strangers

SCHEMA = 1


@dataclass(frozen=True)
class Encoder:
    """What a dataset learnt of a seed's training rows: how raw columns become features, and what outputs stand for.

    Examples:
        >>> age = Scaled("scaled", "age", ("age",), fill=40.0, center=41.2, scale=9.8)
        >>> encoder = Encoder(raw=(RawColumn("age", "number"),), steps=(age,), classes=("no", "yes"))
        >>> encoder.encode({"age": np.array([30.0, np.nan])})
    """

    raw: tuple[RawColumn, ...]
    steps: tuple[Step, ...]
    classes: tuple[str, ...] = ()  # the names of the classes; none for a regression
    center: float = 0.0  # of the target of a regression: a value is center + scale * output
    scale: float = 1.0
    marks: Marks = field(default_factory=Marks)
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError("an encoder needs at least one step")
        if not (math.isfinite(self.center) and math.isfinite(self.scale)):
            raise ValueError("the scale of the target is not finite")
        numbers, levels = set(), set()
        for raw in self.raw:
            if raw.kind == "date":
                for name in part_names(raw.name, raw.parts):
                    numbers.add(name)
                    levels.add(name)
            else:
                (numbers if raw.kind in ("number", "rank") else levels).add(raw.name)
        for step in self.steps:
            if step.column not in (numbers if step.takes_numbers else levels):
                raise ValueError(f"no raw column gives what the step of {step.column!r} takes")

    @classmethod
    def plain(cls, names: Sequence[str], classes: Sequence[str] = ()) -> Encoder:
        """Numbers as they are: what a model takes whose dataset has no encoder."""
        steps = tuple(Scaled("scaled", name, (name,), None, 0.0, 1.0) for name in names)
        return cls(tuple(RawColumn(name, "number") for name in names), steps, tuple(classes))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features."""
        return feature_names(self.steps)

    def encode(  # [row, feature]
        self, columns: Mapping[str, Column], into: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Features of columns that are read already; they are written `into` an array, where one is given."""
        x = np.empty((len(columns[self.steps[0].column]), len(self.names))) if into is None else into
        start = 0
        for step in self.steps:
            x[:, start : start + len(step.names)] = step.encode(columns[step.column])
            start += len(step.names)
        return x

    def read(self, rows: Any) -> dict[str, Column]:
        """The columns of a pandas.DataFrame or a pyarrow.Table, in any order, with others or without.

        Raises UserError, in two lines, for a column that is not there or a value that cannot be read.
        """
        return read_columns(self.raw, self.marks, rows, {step.column for step in self.steps if step.takes_numbers})

    def encode_rows(self, rows: Any) -> NDArray[np.float64]:
        """Features of raw rows."""
        return self.encode(self.read(rows))

    def count_strangers(self, columns: Mapping[str, Column]) -> dict[str, int]:
        """By column, the rows with a level that training did not have, if there are any and the encoder can tell."""
        counts = {step.column: len(strangers(step, columns[step.column])) for step in self.steps}
        return {name: count for name, count in counts.items() if count}

    def values(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of a regression, in the target's own units."""
        return self.center + self.scale * outputs
