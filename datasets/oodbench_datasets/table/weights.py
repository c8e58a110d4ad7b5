"""How much each row of a table counts: a column of numbers, 0 or more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting
from oodbench_datasets.table.file import TableFile


def find_weights(table: TableFile, name: str, wanted: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The weights [row]; those of the rows that are `wanted` must be there, and not be negative."""
    weights = table.numbers(name, "as weight, column")
    for odd, what in ((np.isnan(weights), "is missing"), (weights < 0, "is negative")):
        places = np.flatnonzero(odd & wanted)
        if len(places):
            raise InvalidSetting(
                f"dataset 'table': the weight {name!r} {what} in {len(places)} rows, first in row {places[0] + 1}.\n"
                "Correct the file, or leave such rows out with where; a row of weight 0 is left out."
            )
    if not (weights[wanted] > 0).any():
        raise InvalidSetting(f"dataset 'table': the weight {name!r} is 0 in all rows.\nName another column.")
    return weights
