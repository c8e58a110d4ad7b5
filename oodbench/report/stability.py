"""The stability of a study's chosen model as text, for `oodbench stability`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from oodbench.errors import UnknownName, UserError
from oodbench.report.text import number_text

if TYPE_CHECKING:
    from rich.console import Console

    from oodbench.record.tracking import Record

MOST_COLUMNS = 10
OVERVIEW = ("part", "environment", "rows", "stability", "exact", "ods", "failure")


def look_up(record: Record, run: str, seed: int | None, environment: str) -> dict[str, Any]:
    """What the study recorded of one seed: every environment's stability, and the worst sub-populations of one."""
    study = record.study(run)
    stability = study.record.stability
    if stability is None:
        raise UserError(
            f"run {study.run_id} has no stability on record: its study failed, or had --no-stability.\n"
            "Run the study again with --fresh."
        )
    seeds = sorted({assessment.seed for assessment in stability.assessments})
    seed = seeds[0] if seed is None else seed
    if seed not in seeds:
        raise UnknownName("seed", str(seed), map(str, seeds))
    of_seed = [asdict(assessment) for assessment in stability.assessments if assessment.seed == seed]
    asked = [assessment for assessment in of_seed if assessment["environment"] == environment]
    if not asked:
        raise UnknownName("environment", environment, {assessment["environment"] for assessment in of_seed})
    overview = [{name: assessment[name] for name in OVERVIEW} for assessment in of_seed]
    return {
        "run_id": study.run_id,
        "alpha0": stability.alpha0,
        "seed": seed,
        "environments": overview,
        "worst": asked,
    }


def print_assessments(looked_up: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    console.print(
        f"run {looked_up['run_id']}, seed {looked_up['seed']}, alpha0={looked_up['alpha0']:g}", highlight=False
    )
    overview = Table()
    for column in ("part", "environment"):
        overview.add_column(column)
    for column in ("rows", "DS", "exact DS", "ODS"):
        overview.add_column(column, justify="right")
    for seen in looked_up["environments"]:
        numbers = (_number(seen[name]) for name in ("stability", "exact", "ods"))
        overview.add_row(seen["part"], seen["environment"], str(seen["rows"]), *numbers)
    console.print(overview)
    console.print(
        "DS: the largest divergence of a sub-population; exact DS: that of an exact model on so many rows, from noise "
        "alone; ODS: divergence of the environment from training. In nats.",
        soft_wrap=True,
    )
    for seen in looked_up["worst"]:
        title = f"the worst sub-population of {seen['environment']} ({seen['part']})"
        if seen["worst"] is None:
            console.print(f"{title}: {seen['failure']}", markup=False, highlight=False, soft_wrap=True)
            continue
        worst = seen["worst"]
        console.print(
            f"\n{title}: {worst['share']:.1%} of the rows ({worst['rows']:.0f} of {seen['rows']}), "
            f"divergence {worst['divergence']:.3f}",
            highlight=False,
            soft_wrap=True,
        )
        table = Table()
        table.add_column("column")
        for column in ("inside", "outside", "difference in std"):
            table.add_column(column, justify="right")
        table.add_row("error", _number(worst["error_inside"]), _number(worst["error_outside"]), "")
        for row in worst["y"]:
            table.add_row(*_cells(row))
        table.add_section()
        for row in worst["columns"][:MOST_COLUMNS]:
            table.add_row(*_cells(row))
        console.print(table)


def _cells(row: dict[str, Any]) -> tuple[str, str, str, str]:
    inside, outside = (
        f"{row[side]:.1%}" if row["kind"] == "share" else _number(row[side]) for side in ("inside", "outside")
    )
    return row["column"], inside, outside, f"{row['difference']:+.2f}"


def _number(value: float | None) -> str:
    return number_text(value, ".3g" if value is not None and abs(value) >= 1e4 else ".3f")
