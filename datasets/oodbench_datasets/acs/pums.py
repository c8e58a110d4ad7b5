"""Reading PUMS person files: the few columns a problem needs, in one coding, through a Parquet cache per state.

folktables says what the problem is (features, filter, target); its own loader reads all 286 columns and is not used.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.errors import UnusableData
from oodbench.plugin.files import replacing
from oodbench_datasets.acs.archive import DAMAGED, Refused, opened, read_header
from oodbench_datasets.acs.census import CENSUS, Entry, PersonFile
from oodbench_datasets.acs.codes import NOT_A_VALUE, OTHER_YEARS, SPELLINGS, recode

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1  # of what the cache holds: raise it when codes, columns or rules here change
BLOCK = 8 << 20  # bytes of CSV in memory at once
LABEL, UNANSWERED = "label", "unanswered"

log = logging.getLogger("oodbench")


@dataclass(frozen=True)
class Problem:
    """A prediction problem of folktables, and what its definition does not tell: the columns of its filter."""

    name: str  # in folktables
    filters: tuple[str, ...]
    may_be_missing: tuple[str, ...]  # features that are not asked of everybody who passes the filter

    @property
    def definition(self) -> Any:
        import folktables

        return getattr(folktables, self.name)

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self.definition.features)

    @property
    def needed(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.features, self.definition.target, *self.filters]))


@dataclass(frozen=True, eq=False)
class Persons:
    """The rows of one state that a problem is about. Codes and numbers of PUMS are exact in 32 bits."""

    columns: Mapping[str, NDArray[np.float32]]  # features by name, NaN where missing
    label: NDArray[np.int8]
    unanswered: NDArray[np.bool_]  # the target was not asked; folktables labels such rows 0

    def __len__(self) -> int:
        return len(self.label)


def select(problem: Problem, columns: Mapping[str, NDArray[np.floating]]) -> dict[str, NDArray[Any]]:
    """The rows that pass the problem's filter: features, label and whether the target was asked."""
    import pandas as pd

    definition = problem.definition
    judged = {name: columns[name] for name in (definition.target, *problem.filters)}
    frame = definition._preprocess(pd.DataFrame(judged))  # its public door would turn NaN into 0
    kept = frame.index.to_numpy()
    features = {
        name: columns[name][kept].astype(np.float32, copy=False) for name in problem.features if name in columns
    }
    target = frame[definition.target]
    label = definition.target_transform(target).to_numpy(np.int8)
    return {**features, LABEL: label, UNANSWERED: target.isna().to_numpy(np.int8)}


def persons(selected: Mapping[str, NDArray[Any]]) -> Persons:
    features = {name: values for name, values in selected.items() if name not in (LABEL, UNANSWERED)}
    return Persons(features, selected[LABEL], selected[UNANSWERED].astype(np.bool_))


def load_states(problem: Problem, files: Sequence[PersonFile]) -> dict[str, Persons]:
    """The rows of these files by state; several are read at once."""
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1), "pums") as executor:
        rows = executor.map(lambda file: load(problem, file), files)
        return {file.state: people for file, people in zip(files, rows, strict=True)}


def load(problem: Problem, file: PersonFile) -> Persons:
    path, entry = CENSUS.find(file)
    return _load(problem, file, path, entry)


@functools.lru_cache(maxsize=64)
def _load(problem: Problem, file: PersonFile, path: Path, entry: Entry) -> Persons:
    cache = CENSUS.folder / "cache" / problem.name / str(file.year) / file.horizon / f"{file.state}.parquet"
    key = cache_key(problem, entry)
    table = _from_cache(cache, key, entry.rows)
    if table is None:
        table = _from_source(problem, file, path)
        _to_cache(cache, key, table)
    # to_numpy would import pandas, which takes longer than all the rest
    return persons({name: np.from_dlpack(table[name].combine_chunks()) for name in table.column_names})


def cache_key(problem: Problem, entry: Entry) -> str:
    """Of the source and of everything that decides what becomes of it."""
    parts = (entry.sha256, problem.name, version("folktables"), VERSION)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _from_cache(cache: Path, key: str, most_rows: int) -> pa.Table | None:
    """What the cache has, unless it is of another source or definition, or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(cache, page_checksum_verification=True) as stored:
            other = (stored.schema_arrow.metadata or {}).get(b"oodbench") != key.encode()
            if other or stored.metadata.num_rows > most_rows:
                return None
            return stored.read(use_threads=False)  # states are read at once already
    except (OSError, pa.ArrowException):
        return None


def _to_cache(cache: Path, key: str, table: pa.Table) -> None:
    import pyarrow.parquet as pq

    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        with replacing(cache) as temporary:
            pq.write_table(
                table.replace_schema_metadata({"oodbench": key}),
                temporary,
                compression="zstd",
                write_page_checksum=True,
            )
    except OSError as error:
        _say_once(f"{CENSUS.folder / 'cache'} cannot be written ({error.strerror}): census files are read without it")


@functools.cache
def _say_once(text: str) -> None:
    log.warning(text)


def _from_source(problem: Problem, file: PersonFile, path: Path) -> pa.Table:
    import pyarrow as pa

    try:
        pieces = [select(problem, columns) for columns in _read(problem, file, path)]
    except (pa.ArrowException, Refused, UnicodeDecodeError, *DAMAGED) as error:
        reason = str(error).partition("\n")[0]
        raise UnusableData(f"{path} is damaged: {reason}\nFetch it again: {file.remedy}") from None
    rows = sum(len(piece[LABEL]) for piece in pieces)
    if not rows:
        raise UnusableData(f"{file.key} has no rows for {problem.name}.\nLeave {file.state} out.")
    return pa.table({name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]})


def _read(problem: Problem, file: PersonFile, path: Path) -> Iterator[dict[str, NDArray[np.float32]]]:
    """The needed columns under their canonical names, block by block."""
    import pyarrow as pa
    from pyarrow import csv

    with opened(path, file) as text:
        names = read_header(text)
    spelling = {name.upper(): name for name in names}
    sources = {
        wanted: [spelling[name] for name in SPELLINGS.get(wanted, (wanted,)) if name in spelling]
        for wanted in problem.needed
    }
    vital = {problem.definition.target, *problem.filters}
    lacking = [name for name, columns in sources.items() if not columns and name in vital]
    if lacking:
        raise UnusableData(
            f"{path} lacks the columns {', '.join(lacking)}, which {problem.name} needs.\n"
            f"Fetch the published person file: {file.remedy}"
        )
    included = [name for columns in sources.values() for name in columns]
    with opened(path, file) as text:
        batches = csv.open_csv(
            text,
            read_options=csv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names, skip_rows=1),
            convert_options=csv.ConvertOptions(
                include_columns=included,
                column_types={name: pa.float32() for name in included},
                null_values=NOT_A_VALUE,
                quoted_strings_can_be_null=True,
            ),
        )
        for batch in batches:
            yield {wanted: _merge(batch, columns) for wanted, columns in sources.items() if columns}


def _merge(batch: pa.RecordBatch, names: Sequence[str]) -> NDArray[np.float32]:
    """One column from those that hold it: the first that has a value."""
    candidates = [recode(name.upper(), batch[name].to_numpy(zero_copy_only=False)) for name in names]
    if len(candidates) == 1:
        return candidates[0]
    merged = np.full_like(candidates[0], np.nan)
    for values in candidates:
        np.copyto(merged, values, where=np.isnan(merged) & (values != OTHER_YEARS))
    return merged
