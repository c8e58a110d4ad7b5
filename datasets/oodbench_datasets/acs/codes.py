"""PUMS columns and codes over the years, mapped to one coding: that of 2018, the year of the paper.

By the PUMS data dictionaries of 2014 to 2024. `datasets/README.md` shows the tables in words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SPELLINGS = {
    "RELP": ("RELP", "RELSHIPP"),  # RELSHIPP from 2019 on
    "JWTR": ("JWTR", "JWTRNS"),  # JWTRNS from 2019 on
    "ST": ("ST", "STATE"),  # STATE from 2023 on
    "PUMA": ("PUMA", "PUMA20", "PUMA10", "PUMA00"),
    "POWPUMA": ("POWPUMA", "POWPUMA20", "POWPUMA10", "POWPUMA00"),
    "OCCP": ("OCCP", "OCCP12", "OCCP10", "OCCP02"),
}
"""Where a column may be found. 5-year files that span two geographies or code lists have a column for each of them,
filled for the rows of its years: the first one that has a value counts."""

RECODED: dict[str, dict[int, int]] = {
    "RELSHIPP": {
        20: 0,  # reference person
        21: 1, 23: 1,  # spouse, of the opposite or the same sex
        22: 13, 24: 13,  # unmarried partner, likewise
        25: 2, 26: 3, 27: 4,  # biological, adopted, step child
        28: 5, 29: 6, 30: 7, 31: 8, 32: 9, 33: 10,  # sibling, parent, grandchild, in-laws, other relative
        34: 12,  # roommate or housemate; "roomer or boarder" (11) is not asked any more
        35: 14, 36: 15,  # foster child, other nonrelative
        37: 16, 38: 17,  # group quarters, institutional or not
    },
    "JWTRNS": {
        1: 1, 2: 2,  # car, bus
        3: 4, 4: 5, 5: 3,  # subway, railroad, streetcar: another order than in JWTR
        6: 6, 7: 7, 8: 8, 9: 9, 10: 10,  # ferryboat, taxicab, motorcycle, bicycle, walked
        11: 11, 12: 12,  # worked from home, other
    },
}  # fmt: skip
"""Codes of renamed columns, as codes of the column they stand for."""

NOT_A_VALUE = ["", "N.A.", "N.A.//", "NA"]
"""Texts that stand for a missing value."""
OTHER_YEARS = -9
"""What 5-year files write into a column for the rows of years that have another one."""


def recode(name: str, values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The codes of a column as it is called in the file, in the canonical coding; unknown codes are missing."""
    table = RECODED.get(name)
    if table is None:
        return values
    lookup = np.full(max(table) + 1, np.nan, dtype=values.dtype)
    for code, canonical in table.items():
        lookup[code] = canonical
    in_table = np.isfinite(values) & (values >= 0) & (values <= max(table))
    return np.where(in_table, lookup[np.where(in_table, values, 0).astype(np.int64)], np.nan).astype(values.dtype)
