"""The settings of a table, and what can be said against them before a file is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oodbench import setting
from oodbench.encoder.dates import PARTS
from oodbench_datasets.table.ordinal import parse_ordinals
from oodbench_datasets.table.ranges import parse_bins
from oodbench_datasets.table.read import Reading
from oodbench_datasets.table.rows import parse_conditions
from oodbench_datasets.table.target import parse_bound

SHARE = 0.7  # of a training environment's rows that a seed trains on, unless train_rows says how many


@dataclass(frozen=True)
class TableSettings:
    path: str = setting(
        "", "a file, .csv, .tsv (also with .gz), .data, .txt or .parquet; a folder, or a pattern such as years/*.csv"
    )
    target: str = setting("", "the column to predict")
    environment: tuple[str, ...] = setting((), "the column, or columns, that say which environment a row is from")
    train_in: tuple[str, ...] = setting(
        (), "environments to train on: names, patterns (MA/*), ranges (<2013), or rest; several are the known groups",
        name="train",
    )  # fmt: skip
    test_in: tuple[str, ...] = setting((), "environments to test on; if none is named, all others", name="test")
    problem: Literal["auto", "regression", "classification"] = setting(
        "auto", "auto: regression for numbers with more than two distinct values, else classification", name="task"
    )
    positive: str = setting("", "what makes a row class 1: a bound such as >20 or <=0.5, or a value of the target")
    validation_in: tuple[str, ...] = setting(
        (), "environments to validate on; if none is named, the other rows of the training environments",
        name="validation",
    )  # fmt: skip
    bins: tuple[str, ...] = setting(
        (), "environments by ranges of a column, as year=<2013|2013-2015|>=2016 or income=quantiles 4"
    )
    small: Literal["refuse", "skip", "merge"] = setting(
        "refuse", "what to do with environments of fewer than least_rows rows"
    )
    separator: Literal["auto", "comma", "semicolon", "tab", "pipe"] = setting(
        "auto", "between the fields of a text file; auto: as the file extension says, or as its first line looks"
    )
    header: tuple[str, ...] = setting((), "the names of all columns, for text files without a line of names")
    missing: tuple[str, ...] = setting(
        (), "markers of missing values, such as ? or -999, beside empty fields and NA; age=0 is one in column age alone"
    )
    thousands: Literal["none", "comma", "point", "space", "apostrophe"] = setting(
        "none", "the mark between thousands of a number, as in 1,003.56"
    )
    decimal: Literal["point", "comma"] = setting("point", "the decimal mark of numbers")
    dates: tuple[str, ...] = setting((), "columns that hold dates")
    date_format: str = setting("", "of dates as text, such as %d.%m.%Y; by default, the one known format that fits")
    date_parts: tuple[str, ...] = setting(
        ("number", "month", "weekday"), "what dates become: number (of days), year, month, day, weekday, hour"
    )
    drop: tuple[str, ...] = setting((), "columns to drop")
    categorical: tuple[str, ...] = setting((), "columns whose numbers are codes")
    numeric: tuple[str, ...] = setting((), "columns whose numbers are quantities, even with few distinct values")
    ordinal: tuple[str, ...] = setting((), "columns of ordered levels, as size=small<medium<large: they are numbers")
    where: tuple[str, ...] = setting((), "conditions for rows, such as age>=18 or state=MA|NY; all must hold")
    many_as: Literal["levels", "frequency", "target"] = setting(
        "levels", "a category with many levels: a column a level, their frequency, or the mean of the target in them"
    )
    many: int = setting(20, "more levels than this are many")
    smoothing: float = setting(10.0, "rows with the mean of all that are added to each level, for many_as=target")
    rare: float = setting(0.01, "levels in less than this share of the training environments' rows are merged")
    train_rows: int = setting(0, f"rows of each training environment a seed trains on; 0: {SHARE:.0%} of them")
    validation_rows: int = setting(0, "most validation rows of each environment that is validated on; 0: all")
    test_rows: int = setting(5000, "most rows of each test environment, sampled anew for each seed; 0: all")
    least_rows: int = setting(10, "fewest rows that an environment may have")
    weight: str = setting("", "the column that says how much each row counts, in training and in scores; no feature")

    def __post_init__(self) -> None:
        if min(self.train_rows, self.validation_rows, self.test_rows) < 0 or self.least_rows < 2:
            raise ValueError("train_rows, validation_rows and test_rows must be 0 or more, least_rows 2 or more.")
        if not 0 <= self.rare < 1:
            raise ValueError("rare is a share, from 0 to below 1.")
        if self.many < 2 or self.smoothing < 0:
            raise ValueError("many must be 2 or more, smoothing 0 or more.")
        parse_bound(self.positive)
        parse_conditions(self.where)
        for column in parse_bins(self.bins):
            if column not in self.environment:
                raise ValueError(
                    f"bins has column {column!r}, which is not in environment.\nAdd it there, or remove it."
                )
        if self.positive and self.problem == "regression":
            raise ValueError("positive defines classes, and task=regression has none.\nRemove one of the two settings.")
        self._check_reading()
        self._check_names()

    def _check_reading(self) -> None:
        if self.thousands == self.decimal:
            raise ValueError(f"thousands and decimal are both {self.decimal}.\nA mark cannot be both.")
        parts = ",".join(self.date_parts)
        for part in self.date_parts:
            if part not in PARTS or self.date_parts.count(part) > 1:
                raise ValueError(f"date_parts={parts} is wrong at {part!r}.\nName some of {', '.join(PARTS)}, once.")
        if len(set(self.dates)) < len(self.dates) or set(self.dates) & set(self.drop):
            raise ValueError(f"dates={','.join(self.dates)} names a column twice, or one of drop.\nName it once.")
        if len(set(self.header)) < len(self.header):
            twice = next(name for name in self.header if self.header.count(name) > 1)
            raise ValueError(f"header names column {twice!r} twice.\nGive each column a name of its own.")
        if self.weight and self.weight in self.dates:
            raise ValueError(f"column {self.weight!r} is both in dates and in weight.\nName it once.")

    def _check_names(self) -> None:
        """No column and no environment has two roles."""
        used: dict[str, str] = {}
        columns = {"target": (self.target,), "environment": self.environment, "drop": self.drop}
        columns |= {"weight": (self.weight,)}
        columns |= {"categorical": self.categorical, "numeric": self.numeric}
        columns |= {"ordinal": tuple(parse_ordinals(self.ordinal))}
        environments = {"train": self.train_in, "validation": self.validation_in, "test": self.test_in}
        for names, what in ((columns, "column"), (environments, "environment")):
            for role, listed in names.items():
                for name in filter(None, listed):
                    if used.setdefault(f"{what} {name!r}", role) != role or listed.count(name) > 1:
                        earlier = used[f"{what} {name!r}"]
                        twice = f"twice in {role}" if earlier == role else f"both in {earlier} and in {role}"
                        raise ValueError(f"{what} {name!r} is {twice}.\nName it once.")

    @property
    def reading(self) -> Reading:
        return Reading(
            self.separator, self.header, self.missing, self.thousands, self.decimal,
            self.dates, self.date_format, self.date_parts, self.environment,
        )  # fmt: skip
