"""Tables in files: their extensions, what separates the fields of a text file, and what is a missing value there."""

from __future__ import annotations

import csv
import gzip
import zlib
from pathlib import Path

from oodbench.plugin.reading import open_regular

EXTENSIONS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".data": ",", ".txt": ","}
PARQUET = (".parquet", ".pq")
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
EMPTY = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL",
    "NaN", "n/a", "nan", "null",
)  # fmt: skip
"""What pyarrow takes for a missing value in a text file."""
LONGEST_LINE = 1 << 20


def usual_separator(path: str) -> str | None:
    """As the extension of a text file says; None for other files."""
    return next((separator for ending, separator in EXTENSIONS.items() if path.endswith(ending)), None)


def find_separator(path: str, usual: str) -> str:
    """The usual one, unless the first line is one field with it, and several with another."""
    line = _first_line(path)
    try:
        if not line.strip() or len(next(csv.reader([line], delimiter=usual))) > 1:
            return usual
    except csv.Error:  # a field that is too long to be a name
        return usual
    return max(SEPARATORS.values(), key=lambda separator: (line.count(separator), separator == usual))


def count_fields(path: str, separator: str) -> int:
    """Of the first line."""
    try:
        return len(next(csv.reader([_first_line(path)], delimiter=separator), []))
    except csv.Error as error:
        raise OSError(f"its first line has {error}") from None


def _first_line(path: str) -> str:
    """Nothing of a file whose compression is damaged: whoever reads all of it says so."""
    with open_regular(Path(path)) as file:
        try:
            text = gzip.GzipFile(fileobj=file).read(LONGEST_LINE) if path.endswith(".gz") else file.read(LONGEST_LINE)
        except (EOFError, zlib.error):
            return ""
    return next(iter(text.decode("utf-8-sig", errors="replace").splitlines()), "")
