"""Bounds of a table of result rows in Parquet that somebody else wrote: a kilobyte of it can hold a gigabyte."""

from __future__ import annotations

import io
from typing import Any

from oodbench.study.document import Damaged

MOST_COLUMNS = 500
MOST_VALUES = 50_000_000  # of a study: rows times columns; of a constant column, a billion take a kilobyte
MOST_TEXT = 256 << 20  # letters of all texts of a table
CODECS = ("SNAPPY", "UNCOMPRESSED")  # what is written; others may become thousands of times as large


def check_table(content: bytes) -> None:
    """Whether Parquet holds no more than result rows do: what it declares, and the texts that it would become."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(io.BytesIO(content))
        about, schema = file.metadata, file.schema_arrow
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        rows = sum(group.num_rows for group in groups)  # what is read, whatever the file says of its rows
        if rows * len(schema) > MOST_VALUES or not len(schema) == about.num_columns <= MOST_COLUMNS:
            raise Damaged("it has more rows or columns than results have")
        if any(group.column(place).compression not in CODECS for group in groups for place in range(len(schema))):
            raise Damaged("it is packed in another way than it was written")
        plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
        texts = [field.name for field in schema if not any(fits(field.type) for fits in plain)]
        if not all(_is_text(schema.field(name).type) for name in texts):
            raise Damaged("it has a column of another type than results have")
        shared = ParquetFile(io.BytesIO(content), read_dictionary=texts).read(columns=texts)
        longest = [len(value or "") for column in shared.columns for part in column.chunks for value in _values(part)]
        if max(longest, default=0) * max(rows, 1) * len(texts) > MOST_TEXT:
            raise Damaged("its texts are longer than those of results")
    except Damaged:
        raise
    except Exception as error:  # of damaged files pyarrow raises whatever its parts raise
        raise Damaged(f"it is not Parquet: {' '.join(str(error).split())[:80]}") from None


def _is_text(kind: object) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _values(part: Any) -> list[str | None]:
    """Each text once."""
    dictionary = getattr(part, "dictionary", part)
    return list(dictionary.to_pylist())
