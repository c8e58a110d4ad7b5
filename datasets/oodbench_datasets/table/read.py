"""CSV or Parquet files as a table: only the columns that are needed, each read once."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oodbench.encoder.dates import part_names
from oodbench.encoder.numbers import MARKS
from oodbench.errors import InvalidSetting, UnknownName
from oodbench.plugin.reading import open_regular
from oodbench.plugin.textfiles import EMPTY, EXTENSIONS, PARQUET, SEPARATORS, find_separator, usual_separator
from oodbench_datasets.table.convert import convert_texts
from oodbench_datasets.table.dates import parts_of, replace_dates
from oodbench_datasets.table.file import TableFile
from oodbench_datasets.table.header import are_values, check_for_values, check_names, column_names
from oodbench_datasets.table.many import FILE, file_title, find_files, join_tables
from oodbench_datasets.table.size import check_bytes, check_column_count, check_table_size

SHOWN = 20  # column names in a message
LONGEST_BLOCK = (1 << 31) - 1  # bytes, as pyarrow counts them


@dataclass(frozen=True)
class Reading:
    """How the texts of a file are to be read."""

    separator: str
    header: tuple[str, ...]  # names of the columns, if the files have none
    missing: tuple[str, ...]
    thousands: str
    decimal: str
    dates: tuple[str, ...]
    date_format: str
    date_parts: tuple[str, ...]
    environment: tuple[str, ...]  # columns, and parts of dates, that make environments


@dataclass(frozen=True)
class _Source:
    """A file to read; the time and the size of it make a changed file another one."""

    path: str
    stamp: tuple[int, int]
    separator: str  # of a text file


def open_table(path: str, drop: Sequence[str], needed: Iterable[str], how: Reading) -> TableFile:
    """The file, or files, without the columns to drop; `needed` ones must be there, perhaps as parts of dates."""
    needed = list(needed)
    sources = [_find_source(file, how.separator) for file in find_files(path)]
    names = _check_columns(sources, how.header)
    titled = len(sources) > 1 and FILE not in names and FILE in needed
    listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    dates = [name for name in how.dates if name in names]
    parts = [part for name in dates for part in part_names(name, parts_of(name, how.date_parts, how.environment))]
    parts += [FILE] if titled else []
    marked = [marker.partition("=")[0] for marker in how.missing if "=" in marker]
    for name in (*(name for name in needed if name not in parts), *how.dates, *drop, *marked):
        if name not in names:
            remedy = "Its first line has values: name the columns with header=age,sex,..." if are_values(names) else ""
            raise UnknownName("column", name, [*names, *parts], f"{path} has: {listed}. {remedy}".strip())
    wanted = tuple(name for name in names if name not in drop)
    for source in sources:
        _guard(source.path, check_table_size, source.path, wanted)
    table: TableFile = _guard(path, _read, path, tuple(sources), wanted, titled, how)
    for name in needed:
        if name not in table.names:  # a date, of which only other parts are wanted
            raise UnknownName("column", name, table.names, f"Its parts are: {', '.join(parts)}; date_parts says which.")
    if len(table) == 0:
        raise InvalidSetting(f"dataset 'table': {path} has no rows.\nName a file with rows.")
    return table


def _find_source(path: str, separator: str) -> _Source:
    stat = _stat(path)
    found = "" if path.endswith(PARQUET) else _guard(path, _find_separator, path, separator)
    return _Source(path, (stat.st_mtime_ns, stat.st_size), found)


def _check_columns(sources: Sequence[_Source], header: Sequence[str]) -> list[str]:
    """The columns of the first file; all others must have the same."""
    first: list[str] = []
    for source in sources:
        every = _guard(source.path, column_names, source.path, source.separator, header)
        check_column_count(source.path, every)
        names = [name for name in every if name]  # a line that ends in separators makes columns without one
        check_names(source.path, names)
        first = first or names
        for name in sorted(set(first) ^ set(names)):
            has, lacks = (sources[0], source) if name in first else (source, sources[0])
            check_for_values(has.path, names, name)
            raise InvalidSetting(
                f"dataset 'table': {has.path} has a column {name!r}, and {lacks.path} has not.\n"
                "Files that are read together must have the same columns."
            )
    return first


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


def _find_separator(path: str, wanted: str) -> str:
    usual = usual_separator(path)
    if usual is None:
        raise InvalidSetting(
            f"dataset 'table': path={path} has no known file extension.\n"
            f"Save it as one of {', '.join((*EXTENSIONS, *PARQUET))}; a text file need only be renamed."
        )
    return find_separator(path, usual) if wanted == "auto" else SEPARATORS[wanted]


@functools.lru_cache(maxsize=2)
def _read(path: str, sources: tuple[_Source, ...], columns: tuple[str, ...], titled: bool, how: Reading) -> TableFile:
    import pyarrow as pa

    tables, digests, size = [], [], 0
    for source in sources:
        with Path(source.path).open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
        if source.path.endswith(PARQUET):
            from pyarrow.parquet import read_table

            # ahead of its columns, all of a file would be in memory twice: that helps where files are far away
            tables.append(read_table(source.path, columns=list(columns), pre_buffer=False))
        else:
            tables.append(_read_text(source.path, columns, source.separator, how))
        size += tables[-1].nbytes
        check_bytes(path, size)
    files = tuple((source.path, data.num_rows) for source, data in zip(sources, tables, strict=True))
    data = tables[0] if len(tables) == 1 else join_tables(tables, [file_title(file) for file, _ in files], titled)
    data = convert_texts(data, how.missing, how.thousands, how.decimal)
    data, formats = replace_dates(data, how.dates, how.date_parts, how.date_format, how.environment)
    digest = digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
    by_name = dict(zip(data.column_names, data.columns, strict=True))
    del data, tables  # so that each column is in memory twice only while it is put together
    for name in by_name:
        by_name[name] = _in_one_piece(by_name[name])
    pa.default_memory_pool().release_unused()
    return TableFile(path, digest, pa.table(by_name), files, formats)


def _in_one_piece(column: Any) -> Any:
    """Numbers whose pieces are put together: numpy sees them without a copy."""
    import pyarrow.types as kinds

    return column.combine_chunks() if column.num_chunks > 1 and kinds.is_floating(column.type) else column


def _read_text(path: str, columns: tuple[str, ...], separator: str, how: Reading) -> Any:
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    options = ConvertOptions(
        include_columns=list(columns), strings_can_be_null=True, decimal_point=MARKS[how.decimal],
        null_values=[*EMPTY, *how.missing],
    )  # fmt: skip
    parse = ParseOptions(delimiter=separator)
    named: dict[str, Any] = {"column_names": list(how.header) or None}
    try:
        data = read_csv(path, ReadOptions(**named), parse_options=parse, convert_options=options)
    except pa.ArrowInvalid as error:
        if "conversion error" not in str(error):
            raise
        # a text stands below the block by which the column was taken for numbers: look at all rows
        named["block_size"] = LONGEST_BLOCK
        data = read_csv(path, ReadOptions(**named), parse_options=parse, convert_options=options)
    times = {field.name: pa.string() for field in data.schema if pa.types.is_time(field.type)}
    if times:  # a time of day is a category, by its text in the file
        options.column_types = times
        data = read_csv(path, ReadOptions(**named), parse_options=parse, convert_options=options)
    return data
