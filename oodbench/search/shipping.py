"""How rows travel to workers: every array once, in Ray's object store, whichever packs and methods have it in common.

A worker reads the arrays of its node's store where they are, without a copy. Methods that share rows get them in single
precision, as models train on them: they are converted here, once.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray import cloudpickle

from oodbench.engine.arrays import make_room
from oodbench.study.data import SearchData


class Shipment:
    """Arrays that were put into the store, for as long as their originals live."""

    def __init__(self) -> None:
        self.references: list[Any] = []
        self._places: dict[tuple[int, bool], int] = {}  # by the original array, and whether in single precision

    def add(self, data: SearchData, single: bool) -> bytes:
        """What a worker makes the data of, beside the references."""
        content = io.BytesIO()
        tables = {id(table) for table in data.tables} if single else set()
        _Packer(content, self, tables).dump(data)  # type: ignore[no-untyped-call]
        return content.getvalue()

    def place(self, array: NDArray[Any], single: bool) -> int:
        key = (id(array), single)
        if key not in self._places:
            self._places[key] = len(self.references)
            self.references.append(ray.put(in_single(array) if single else array))
        return self._places[key]


def unpack(content: bytes, references: Sequence[Any]) -> SearchData:
    """In a worker: the data, on the arrays of the store."""
    data: SearchData = _Unpacker(content, references).load()
    return data


def in_single(table: NDArray[np.float64]) -> NDArray[Any]:
    """As models take it; unless it has numbers that are too large for that, which are then said of it as they are."""
    single = make_room(table.shape, np.float32)
    with np.errstate(over="ignore"):
        single[...] = table
    return single if np.isfinite([single.min(), single.max()]).all() else table


class _Packer(cloudpickle.CloudPickler):
    """Leaves arrays out, which go their own way."""

    def __init__(self, file: io.BytesIO, shipment: Shipment, tables: set[int]) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self.shipment, self.tables = shipment, tables

    def persistent_id(self, value: Any) -> int | None:
        return self.shipment.place(value, id(value) in self.tables) if isinstance(value, np.ndarray) else None


class _Unpacker(pickle.Unpickler):
    def __init__(self, content: bytes, references: Sequence[Any]) -> None:
        super().__init__(io.BytesIO(content))
        self.references = references

    def persistent_load(self, place: int) -> Any:
        return ray.get(self.references[place])
