"""Rows of a file, to be predicted: the texts of a CSV file as they stand, for an encoder to read; or Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oodbench.encoder.reading import check_columns
from oodbench.errors import UnusableData
from oodbench.plugin.reading import open_regular
from oodbench.plugin.textfiles import EMPTY, EXTENSIONS, PARQUET, find_separator, usual_separator


def read_rows(path: Path, columns: Sequence[str]) -> Any:
    """These columns as a pyarrow.Table; they must be there."""
    import pyarrow as pa

    usual = usual_separator(path.name)
    if usual is None and not path.name.endswith(PARQUET):
        known = ", ".join((*EXTENSIONS, *PARQUET))
        raise UnusableData(f"{path} has no known file extension.\nKnown: {known}.")
    try:
        open_regular(path).close()
        if usual is not None:
            return _read_texts(path, columns, find_separator(str(path), usual))
        from pyarrow.parquet import read_schema, read_table

        check_columns(columns, read_schema(path).names)
        return read_table(path, columns=list(columns))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200].rstrip(".")
        raise UnusableData(
            f"{path} cannot be read: {reason}.\nGive a whole CSV file in UTF-8, or a Parquet file."
        ) from None


def _read_texts(path: Path, columns: Sequence[str], separator: str) -> Any:
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions, open_csv, read_csv

    parse = ParseOptions(delimiter=separator)
    with open_csv(path, parse_options=parse) as reader:
        check_columns(columns, reader.schema.names)
    options = ConvertOptions(
        include_columns=list(columns), column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=True,
        null_values=list(EMPTY),
    )  # fmt: skip
    return read_csv(path, parse_options=parse, convert_options=options)
