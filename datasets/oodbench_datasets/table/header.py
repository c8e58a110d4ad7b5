"""The names of a file's columns: from its first line, from its schema, or as the user gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oodbench.encoder.numbers import is_number
from oodbench.errors import InvalidSetting
from oodbench.plugin.textfiles import PARQUET, count_fields

MOSTLY = 0.5  # of the first line's fields are numbers: then they are values


def column_names(path: str, separator: str, header: Sequence[str]) -> list[str]:
    if path.endswith(PARQUET):
        from pyarrow.parquet import read_schema

        if header:
            raise InvalidSetting(
                f"dataset 'table': header names the columns of text files, and {path} has names.\nRemove header."
            )
        return list(read_schema(path).names)
    if header:
        fields = count_fields(path, separator)
        if fields != len(header):
            raise InvalidSetting(
                f"dataset 'table': header names {len(header)} columns, and the first line of {path} has {fields}.\n"
                "Name all of them, in their order; drop leaves some out."
            )
        return list(header)
    from pyarrow.csv import ParseOptions, open_csv

    with open_csv(path, parse_options=ParseOptions(delimiter=separator)) as reader:
        return list(reader.schema.names)


def check_names(path: str, names: Sequence[str]) -> None:
    """Every name stands once."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        check_for_values(path, names, twice[0])
        raise InvalidSetting(f"dataset 'table': {path} has two columns {twice[0]!r}.\nRename one of them.")


def check_for_values(path: str, names: Sequence[str], strange: str) -> None:
    """A strange name is a value if most are."""
    if are_values(names):
        raise InvalidSetting(
            f"dataset 'table': the first line of {path} has values, such as {strange!r}, instead of names.\n"
            "Name all columns in their order with header=age,sex,..., or add a line of names to the file."
        )


def are_values(names: Sequence[str]) -> bool:
    """Whether these look like a row of data; a table of numbered columns has whole numbers, each once."""
    numbers = [name for name in names if is_number(name)]
    numbered = len(set(numbers)) == len(numbers) and all(name.isdigit() for name in numbers)
    return len(numbers) > MOSTLY * len(names) and not numbered
