"""Rows in Ray's object store: each array once, read there by workers without a copy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from oodbench import Environment, Linear, LossMethod, Method, Recipe
from oodbench.engine.batches import StackedRows
from oodbench.engine.fitted import FittedModel
from oodbench.engine.trial import Setup
from oodbench.search.shipping import Shipment, in_single, unpack
from oodbench.search.worker import run_pack
from oodbench.study.plan import Request, plan, resolve
from oodbench.study.spec import StudyOptions
from oodbench.study.study import Study
from oodbench_methods.erm import ERM
from oodbench_methods.jtt import JTT
from oodbench_methods.ridge import Ridge

OPTIONS = StudyOptions(
    settings={"majority": 100, "minority": 20, "test_rows": 20, "more_r": (1.5,)},
    recipe={"steps": 20},
    trials=3,
    seeds=1,
)


@pytest.fixture(scope="module")
def studies() -> dict[str, Study]:
    methods = ("erm", "irm", "eiil", "group_dro", "ridge")
    planned = plan(resolve(Request(methods, ["selection_bias"], OPTIONS)), "cpu")
    return {study.method_name: study for study in planned}


def test_studies_share_the_rows_of_a_seed(studies: dict[str, Study]) -> None:
    plain, labelled = (studies[name].search_data(0) for name in ("erm", "irm"))
    assert plain.train.environment is None
    assert labelled.train.environment is not None
    assert plain.train.x is labelled.train.x
    assert all(np.shares_memory(plain.train.x, part.x) for part in studies["erm"].data.train[0])


def test_an_array_goes_to_the_store_once_for_each_precision(ray_address: str, studies: dict[str, Study]) -> None:
    shipment = Shipment()
    shipment.add(studies["erm"].search_data(0), True)
    of_erm = len(shipment.references)  # x and y of training, and of two validation environments
    shipment.add(studies["irm"].search_data(0), True)
    assert len(shipment.references) == of_erm + 1  # and the labels
    shipment.add(studies["ridge"].search_data(0), False)
    assert len(shipment.references) == of_erm + 1 + (of_erm // 2)  # x in double precision


def test_what_a_worker_reads_is_no_copy(ray_address: str, studies: dict[str, Study]) -> None:
    original, shipment = studies["irm"].search_data(0), Shipment()
    content = shipment.add(original, True)
    data, again = unpack(content, shipment.references), unpack(content, shipment.references)
    assert isinstance(data.validation[0], Environment)
    for table, same, before in zip(data.tables, again.tables, original.tables, strict=True):
        assert np.shares_memory(table, same)  # of the store
        assert np.array_equal(table, before.astype(np.float32))
        with pytest.raises(ValueError, match="WRITEABLE"):
            table.flags.writeable = True
    assert np.array_equal(data.train.y, original.train.y)
    stacked = StackedRows({0: data.train}, list(studies["irm"].packs[0].trials), Setup(Linear(), Recipe(batch=50)))
    for column, array in ((stacked.x, data.train.x), (stacked.environment, data.train.environment)):
        assert column is not None
        assert array is not None
        ((tensor, _),) = column.distinct
        assert tensor.data_ptr() == array.__array_interface__["data"][0]


@pytest.mark.parametrize("name", ["erm", "irm", "eiil", "group_dro"])
def test_single_precision_changes_no_bit(ray_address: str, studies: dict[str, Study], name: str) -> None:
    study, shipment = studies[name], Shipment()
    assert study.method.shares_rows
    double = study.search_data(0)
    single = unpack(shipment.add(double, True), shipment.references)
    assert single.train.x.dtype == np.float32
    for pack in study.packs:
        ours, theirs = (run_pack(study.method, pack, {0: data}, study.setup) for data in (single, double))
        assert ours.validation == theirs.validation
        for own, other in zip(ours.predictors, theirs.predictors, strict=True):
            assert isinstance(own, FittedModel)
            assert np.array_equal(own.parameters, other.parameters)


def test_numbers_too_large_for_single_precision_stay_as_they_are() -> None:
    assert in_single(np.array([[1e300]])).dtype == np.float64
    assert in_single(np.array([[1e30]])).dtype == np.float32


def test_who_shares_rows() -> None:
    class Own(ERM):
        def fit_pack(self, train: Any, trials: Any, trainer: Any) -> Any:
            return super().fit_pack(train, trials, trainer)

    assert (Method.shares_rows, LossMethod.shares_rows, ERM.shares_rows, JTT.shares_rows) == (False, True, True, True)
    assert (Own.shares_rows, Ridge.shares_rows) == (False, False)


def test_a_method_may_write_into_its_batch_and_not_into_the_rows(studies: dict[str, Study]) -> None:
    """One feature and no constant: then a batch of all rows could be the rows themselves."""
    rows = studies["erm"].search_data(0).train
    narrow = replace(rows, x=np.ascontiguousarray(rows.x[:, :1], np.float32))
    before = narrow.x.copy()
    stacked = StackedRows({0: narrow}, [studies["erm"].packs[0].trials[0]], Setup(Linear(intercept=False), Recipe()))
    stacked.whole.columns.zero_()
    assert torch.count_nonzero(stacked.whole.columns) == 0
    assert np.array_equal(narrow.x, before)
