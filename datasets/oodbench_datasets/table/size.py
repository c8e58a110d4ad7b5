"""How much a table takes in memory, found out before it is read: a small file can hold a very large table."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oodbench.errors import InvalidSetting
from oodbench.plugin.reading import open_regular
from oodbench.plugin.textfiles import PARQUET

MOST_ROWS = 50_000_000
MOST_BYTES = 4 << 30  # of the columns that are used
MOST_COLUMNS = 20_000
BATCH_ROWS = 1 << 16
BLOCK = 1 << 20
REMEDY = "Take a sample of its rows, or leave columns out with drop=..."


def check_column_count(path: str, columns: Sequence[str]) -> None:
    if len(columns) > MOST_COLUMNS:
        _refuse(path, f"{len(columns):,} columns, more than {MOST_COLUMNS:,}")


def check_table_size(path: str, columns: Sequence[str]) -> None:
    """Raises InvalidSetting if these columns of the file would not fit."""
    if path.endswith(PARQUET):
        _check_parquet(path, columns)
    else:
        _check_text(path)


def _check_parquet(path: str, columns: Sequence[str]) -> None:
    """Rows and sizes as declared; then texts, for one text of a dictionary may stand in every row."""
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        rows = file.metadata.num_rows
        if rows > MOST_ROWS:
            _refuse(path, f"{rows:,} rows, more than {MOST_ROWS:,}")
        fields = [field for field in file.schema_arrow if field.name in columns]
        fixed = rows * sum(_width(field.type) for field in fields)
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        check_bytes(path, max(fixed, sum(group.total_byte_size for group in groups)))
        varied = [field for field in fields if not _width(field.type)]
    if varied:
        check_bytes(path, fixed + _varied_bytes(path, varied, MOST_BYTES - fixed))


def _width(kind: Any) -> int:
    """Bytes of a value in memory; none of values that differ in length, or that a dictionary stands for."""
    import pyarrow.types as kinds

    if kinds.is_dictionary(kind):
        return 0
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:
        return 0


def _varied_bytes(path: str, fields: Sequence[Any], most: int) -> int:
    """What these columns take, or the first sum above `most`; their dictionaries are not multiplied out for it."""
    import pyarrow.types as kinds
    from pyarrow.parquet import ParquetFile

    total = 0
    texts = [field.name for field in fields if not kinds.is_nested(field.type)]
    with ParquetFile(path, read_dictionary=texts) as file:
        names = [field.name for field in fields]
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=names, use_threads=False):
            for column in batch.columns:
                total += _plain_bytes(column)
            if total > most:
                break
    return total


def _plain_bytes(column: Any) -> int:
    import pyarrow.types as kinds
    from pyarrow import compute

    if not kinds.is_dictionary(column.type):
        return int(column.nbytes)
    if _width(column.type.value_type):
        return len(column) * _width(column.type.value_type)
    lengths = compute.binary_length(column.dictionary).cast("int64")
    return int(compute.sum(lengths.take(column.indices)).as_py() or 0)


def _check_text(path: str) -> None:
    size = 0
    with open_regular(Path(path)) as file:
        if not path.endswith(".gz"):
            return check_bytes(path, file.seek(0, 2))
        try:
            with gzip.GzipFile(fileobj=file) as text:
                while block := text.read(BLOCK):
                    size += len(block)
                    check_bytes(path, size)
        except (EOFError, zlib.error) as error:
            raise OSError(f"its compression is damaged: {error}") from None
    return None


def check_bytes(path: str, size: int) -> None:
    if size > MOST_BYTES:
        _refuse(path, f"more than {MOST_BYTES >> 30} GB of values")


def _refuse(path: str, content: str) -> None:
    raise InvalidSetting(f"dataset 'table': {path} has {content}.\n{REMEDY}")
