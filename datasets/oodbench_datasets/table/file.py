"""Columns of a CSV or Parquet file: only those that are needed, each read once."""

from __future__ import annotations

import functools
import hashlib
import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import InvalidSetting, UnknownName
from oodbench.plugin.reading import open_regular
from oodbench_datasets.table.size import PARQUET, check_column_count, check_table_size

SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
SHOWN = 20  # column names in a message


@dataclass(frozen=True, eq=False)
class Levels:
    """A column as a number for each distinct value, and the values as text, in their own order."""

    codes: NDArray[np.int64]  # [row], -1 where missing
    texts: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TableFile:
    path: str
    digest: str  # of the file's bytes
    data: Any  # a pyarrow.Table

    def __len__(self) -> int:
        return int(self.data.num_rows)

    @property
    def names(self) -> list[str]:
        return list(self.data.column_names)

    def only(self, rows: NDArray[np.int64]) -> TableFile:
        return TableFile(self.path, self.digest, self.data.take(rows))

    def holds_numbers(self, name: str) -> bool:
        import pyarrow.types as kinds

        kind = self.data.schema.field(name).type
        return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))

    def holds_text(self, name: str) -> bool:
        import pyarrow.types as kinds

        kind = self._kind(name)
        return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))

    def check_is_feature(self, name: str) -> None:
        import pyarrow.types as kinds

        kind = self._kind(name)
        if not (self.holds_numbers(name) or self.holds_text(name) or kinds.is_boolean(kind) or kinds.is_null(kind)):
            raise InvalidSetting(
                f"dataset 'table': column {name!r} holds {kind} values, which are neither numbers nor text.\n"
                f"Leave it out with drop={name}, or turn it into numbers or text in the file."
            )

    def numbers(self, name: str, purpose: str) -> NDArray[np.float64]:
        """The column as numbers, NaN where missing; text is read as numbers if all of it can be."""
        import pyarrow as pa

        try:
            column = self._plain(name).cast(pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InvalidSetting(
                f"dataset 'table': {purpose} {name!r} must hold numbers, but contains {self._not_a_number(name)!r}.\n"
                "Correct it in the file, or name another column."
            ) from None
        values: NDArray[np.float64] = column.to_numpy().astype(np.float64)
        infinite = int(np.isinf(values).sum())
        if infinite:
            raise InvalidSetting(
                f"dataset 'table': column {name!r} has {infinite} infinite values.\n"
                "Correct them in the file, or leave them empty: an empty field is a missing value."
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
        encoded = self._plain(name).combine_chunks().dictionary_encode()
        values = encoded.dictionary.to_pylist()
        codes = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
        levels = [place for place, value in enumerate(values) if not _is_missing(value)]
        levels.sort(key=values.__getitem__)
        rank = np.full(len(values) + 1, -1, dtype=np.int64)  # the last is for missing values, at -1
        rank[levels] = np.arange(len(levels))
        return Levels(rank[codes], tuple(_as_text(values[place]) for place in levels))

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


def open_table(path: str, drop: Sequence[str], needed: Iterable[str]) -> TableFile:
    """The file without the columns to drop; `needed` ones must be there."""
    stat = _stat(path)
    names = _guard(path, _column_names, path)
    check_column_count(path, names)
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InvalidSetting(f"dataset 'table': {path} has two columns {twice[0]!r}.\nRename one of them.")
    listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    for name in (*needed, *drop):
        if name not in names:
            raise UnknownName("column", name, names, f"{path} has: {listed}.")
    wanted = tuple(name for name in names if name not in drop)
    _guard(path, check_table_size, path, wanted)
    table: TableFile = _guard(path, _read, path, (stat.st_mtime_ns, stat.st_size), wanted)
    if len(table) == 0:
        raise InvalidSetting(f"dataset 'table': {path} has no rows.\nName a file with rows.")
    return table


def _stat(path: str) -> os.stat_result:
    try:
        with open_regular(Path(path)) as file:
            return os.fstat(file.fileno())
    except OSError as error:
        raise InvalidSetting(
            f"dataset 'table': path={path} cannot be read: {error.strerror}.\n"
            "Check the path: it is relative to the folder where the command runs."
        ) from None


def _guard(path: str, function: Any, *arguments: Any) -> Any:
    import pyarrow as pa

    try:
        return function(*arguments)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise InvalidSetting(
            f"dataset 'table': {path} cannot be read: {reason}.\nGive a whole CSV file in UTF-8, or a Parquet file."
        ) from None


def _column_names(path: str) -> list[str]:
    if path.endswith(PARQUET):
        from pyarrow.parquet import read_schema

        return list(read_schema(path).names)
    from pyarrow.csv import open_csv

    with open_csv(path, parse_options=_parse_options(path)) as reader:
        return list(reader.schema.names)


@functools.lru_cache(maxsize=2)
def _read(path: str, stamp: tuple[int, int], columns: tuple[str, ...]) -> TableFile:
    """`stamp`, the time and size of the file, makes a changed file another one."""
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if path.endswith(PARQUET):
        from pyarrow.parquet import read_table

        return TableFile(path, digest, read_table(path, columns=list(columns)))
    from pyarrow.csv import ConvertOptions, read_csv

    options = ConvertOptions(include_columns=list(columns), strings_can_be_null=True)
    return TableFile(path, digest, read_csv(path, parse_options=_parse_options(path), convert_options=options))


def _parse_options(path: str) -> Any:
    from pyarrow.csv import ParseOptions

    for ending, separator in SEPARATORS.items():
        if path.endswith(ending):
            return ParseOptions(delimiter=separator)
    raise InvalidSetting(
        f"dataset 'table': path={path} has no known file extension.\nKnown: {', '.join((*SEPARATORS, *PARQUET))}."
    )


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
