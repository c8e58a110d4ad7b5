"""The columns of a table, as numbers or as levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.columns import Levels, as_levels, is_text
from oodbench.encoder.dates import is_date
from oodbench.engine.scoring import LARGEST
from oodbench.errors import InvalidSetting


@dataclass(frozen=True, eq=False)
class TableFile:
    path: str
    digest: str  # of the bytes of the file, or files
    data: Any  # a pyarrow.Table
    files: tuple[tuple[str, int], ...] = ()  # with the rows of each
    date_formats: Mapping[str, str] = field(default_factory=dict)  # by column of dates; none where they are no text

    def __len__(self) -> int:
        return int(self.data.num_rows)

    @property
    def names(self) -> list[str]:
        return list(self.data.column_names)

    def only(self, rows: NDArray[np.int64]) -> TableFile:
        """In ascending order. Arrow copies what it takes: all rows are the table itself."""
        return self if len(rows) == len(self) else replace(self, data=self.data.take(rows))

    def holds_numbers(self, name: str) -> bool:
        import pyarrow.types as kinds

        kind = self.data.schema.field(name).type
        return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))

    def holds_text(self, name: str) -> bool:
        return is_text(self._kind(name))

    def holds_dates(self, name: str) -> bool:
        return is_date(self._kind(name))

    def holds_truths(self, name: str) -> bool:
        import pyarrow.types as kinds

        return bool(kinds.is_boolean(self._kind(name)))

    def check_is_feature(self, name: str) -> None:
        import pyarrow.types as kinds

        kind = self._kind(name)
        known = self.holds_numbers(name) or self.holds_text(name) or self.holds_truths(name) or self.holds_dates(name)
        if not (known or kinds.is_time(kind) or kinds.is_null(kind)):
            raise InvalidSetting(
                f"dataset 'table': column {name!r} holds {kind} values, which are neither numbers nor text.\n"
                f"Leave it out with drop={name}, or turn it into numbers or text."
            )

    def numbers(self, name: str, purpose: str) -> NDArray[np.float64]:
        """The column as numbers, NaN where missing; text is read as numbers if all of it can be."""
        import pyarrow as pa

        try:
            column = self._plain(name).cast(pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InvalidSetting(
                f"dataset 'table': {purpose} {name!r} must hold numbers, but contains {self._not_a_number(name)!r}.\n"
                "Correct it in the file, list it in missing if it stands for a missing value, or name another column."
            ) from None
        values: NDArray[np.float64] = column.to_numpy().astype(np.float64, copy=False)
        infinite = int(np.isinf(values).sum())
        if infinite:
            raise InvalidSetting(
                f"dataset 'table': column {name!r} has {infinite} infinite values.\n"
                "Correct them in the file, or leave them empty: an empty field is a missing value."
            )
        large = values[np.abs(values) > LARGEST]
        if len(large):
            raise InvalidSetting(
                f"dataset 'table': column {name!r} has {large[0]:g}, too large a number to compute with.\n"
                "Correct it in the file, leave the row out with where, or list it in missing."
            )
        return values

    def present(self, name: str) -> NDArray[np.bool_]:
        """Which rows have a value there."""
        values: NDArray[np.bool_] = ~self.data.column(name).is_null(nan_is_null=True).to_numpy()
        return values

    def count_distinct(self, name: str) -> int:
        from pyarrow.compute import count_distinct

        return int(count_distinct(self._plain(name)).as_py())

    def levels(self, name: str) -> Levels:
        return as_levels(self._plain(name).combine_chunks())

    def _kind(self, name: str) -> Any:
        import pyarrow.types as kinds

        kind = self.data.schema.field(name).type
        return kind.value_type if kinds.is_dictionary(kind) else kind

    def _plain(self, name: str) -> Any:
        import pyarrow.types as kinds

        column = self.data.column(name)
        return column.cast(column.type.value_type) if kinds.is_dictionary(column.type) else column

    def _not_a_number(self, name: str) -> str:
        for text in self.levels(name).texts:
            try:
                float(text)
            except ValueError:
                return text
        return str(self.data.schema.field(name).type)
