"""Several files as one table: a folder, or a pattern such as years/*.csv."""

from __future__ import annotations

from collections.abc import Sequence
from glob import has_magic
from pathlib import Path
from typing import Any

from oodbench.errors import InvalidSetting
from oodbench.plugin.textfiles import EXTENSIONS, PARQUET

FILE = "file"  # the column that says which file a row is from, if an environment or a condition asks for it
MOST_FILES = 10_000
IN_FOLDERS = (*(ending for ending in EXTENSIONS if ending != ".txt"), *PARQUET)  # a .txt file may be a note


def find_files(path: str) -> list[str]:
    """One file as it is named; the files of a folder or a pattern in the order of their names."""
    place = Path(path)
    try:
        if place.is_dir():
            files = [str(file) for file in place.iterdir() if file.name.endswith(IN_FOLDERS)]
        elif has_magic(path) and not place.exists():
            root = Path(place.anchor)
            files = [str(file) for file in root.glob(str(place.relative_to(root))) if not file.is_dir()]
        else:
            return [path]
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InvalidSetting(f"dataset 'table': path={path} cannot be read: {reason}.\nCheck the path.") from None
    if not files or len(files) > MOST_FILES:
        what = "has no table" if not files else f"has more than {MOST_FILES:,} files"
        raise InvalidSetting(
            f"dataset 'table': path={path} {what}.\n"
            f"Name a file, a folder with files of {', '.join(IN_FOLDERS)}, or a pattern such as years/*.csv."
        )
    return sorted(files)


def file_title(path: str) -> str:
    """The name of the file without its folder and extension."""
    name = Path(path).name
    endings = sorted((*EXTENSIONS, *PARQUET), key=len, reverse=True)  # .csv.gz before .gz
    return next((name.removesuffix(ending) for ending in endings if name.endswith(ending)), name)


def join_tables(tables: Sequence[Any], titles: Sequence[str], titled: bool) -> Any:
    """One pyarrow.Table below the other. A column that is text in one file is text in all."""
    import pyarrow as pa
    import pyarrow.types as kinds

    tables = [table.select(tables[0].column_names) for table in tables]
    for place, name in enumerate(tables[0].column_names):
        found = {table.schema.field(name).type for table in tables}
        if len(found) > 1 and any(kinds.is_string(kind) or kinds.is_dictionary(kind) for kind in found):
            tables = [table.set_column(place, name, table.column(name).cast(pa.string())) for table in tables]
    if titled:
        tables = [
            table.append_column(FILE, pa.array([title] * len(table), pa.string()))
            for table, title in zip(tables, titles, strict=True)
        ]
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()
