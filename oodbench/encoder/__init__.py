"""From raw columns to features: what a dataset learnt of its training rows, as plain values that a model can keep.

A dataset encodes its own rows with an `Encoder` and hands it out by `Dataset.encoder(seed)`. The model that is kept has
it, and takes raw rows.
"""

from oodbench.encoder.columns import Column, Levels, as_levels
from oodbench.encoder.encoder import Encoder
from oodbench.encoder.reading import RawColumn
from oodbench.encoder.steps import CodeGroups, Indicators, Lookup, Marked, Scaled, Step

__all__ = [
    "CodeGroups",
    "Column",
    "Encoder",
    "Indicators",
    "Levels",
    "Lookup",
    "Marked",
    "RawColumn",
    "Scaled",
    "Step",
    "as_levels",
]
