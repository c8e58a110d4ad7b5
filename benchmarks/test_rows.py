"""What a step costs as rows and columns grow, in packs and in an eager loop over batches; and SRM beside ERM.

All in milliseconds of CPU time for one training and step, both sides in one run; the table is printed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from steps import packed, packed_and_eager

from oodbench.engine.trainer import keep_freed_memory
from oodbench_methods.srm import SRM


@pytest.fixture(autouse=True)
def as_a_worker_does() -> None:
    torch.set_num_threads(1)
    keep_freed_memory()


@pytest.mark.parametrize(("model", "floor"), [("linear", 8), ("20,10", 3), ("256,256", 1)])
def test_packs_against_eager_at_200000_rows(report: Callable[[str], None], model: str, floor: float) -> None:
    ours, theirs = packed_and_eager(model, 200_000)
    report(
        f"{model:8} 200,000 rows: packed {ours:7.3f} ms, eager {theirs:7.3f} ms, {theirs / ours:5.1f}x (floor {floor}x)"
    )
    assert theirs / ours >= floor


@pytest.mark.parametrize("model", ["linear", "20,10"])
def test_a_step_costs_the_same_however_many_rows_there_are(report: Callable[[str], None], model: str) -> None:
    cost = {rows: packed(model, rows) for rows in (20_000, 200_000, 2_000_000)}
    for rows, milliseconds in cost.items():
        report(f"{model:8} {rows:9,} rows: {milliseconds:7.3f} ms a step")
    growth = cost[2_000_000] / cost[20_000]
    report(f"{model:8} 2,000,000 against 20,000 rows: {growth:.2f}x (at most 1.3x)")
    assert growth <= 1.3


@pytest.mark.parametrize(("model", "floor"), [("linear", 8), ("256,256", 1)])
def test_wide_tables(report: Callable[[str], None], model: str, floor: float) -> None:
    ours, theirs = packed_and_eager(model, 20_000, 500)
    ratio = theirs / ours
    report(f"{model:8} 20,000 x 500: packed {ours:.3f} ms, eager {theirs:.3f} ms, {ratio:.1f}x (floor {floor}x)")
    assert ratio >= floor


@pytest.mark.parametrize("rows", [2_000, 20_000, 200_000])
def test_srm_against_erm(report: Callable[[str], None], rows: int) -> None:
    srm, erm = packed("20,10", rows, method=SRM()), packed("20,10", rows)
    report(f"20,10    {rows:9,} rows: srm {srm:.3f} ms, erm {erm:.3f} ms, {srm / erm:.1f}x (at most 4x)")
    assert srm / erm <= 4
