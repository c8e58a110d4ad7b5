"""oodbench export and predict: take a study's models away, and use them on raw rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oodbench.api.models import ExportOptions, export, load_model
from oodbench.cli.options import Given, with_options
from oodbench.cli.terminal import JsonOption, app, errors, output, results_only
from oodbench.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

WRITERS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")


@app.command(name="export")
@with_options(ExportOptions)
def export_models(
    given: Given,
    run: Annotated[str, typer.Argument(help="The MLflow run id of a study, or a unique prefix of it.")],
    folder: Annotated[Path, typer.Argument(help="A new folder for the models.")],
    as_json: JsonOption = False,
) -> None:
    """Write the chosen models of a study into a folder, with all that they need to predict raw rows.

    Example: [bold]oodbench export 3f2a taken && oodbench predict taken new.csv -o predicted.csv[/bold]
    """
    from oodbench.record.exports import ABOUT

    with results_only():
        export(run, folder, **given)
    if as_json:
        print((folder / ABOUT).read_text().strip())
        return
    text = f"wrote {folder}. Next:\n  oodbench predict {folder} new.csv -o predicted.csv"
    output().print(text, markup=False, highlight=False, soft_wrap=True)


@app.command()
def predict(
    folder: Annotated[Path, typer.Argument(help="A folder that `oodbench export` wrote.")],
    rows: Annotated[Path, typer.Argument(help="Raw rows: a .csv, .tsv (also with .gz) or .parquet file.")],
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv, .tsv or .parquet file for the predictions, or the terminal."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict raw rows with exported models: classes and their probabilities, or values in the target's own units.

    Columns go by their names, and others are passed over. Rows keep their order.

    Example: [bold]oodbench predict taken new.csv -o predicted.csv[/bold]
    """
    from oodbench.plugin.rows_file import read_rows

    if out is not None and not out.name.endswith((*WRITERS, *PARQUET)):
        raise UserError(f"--output {out} has no known file extension.\nKnown: {', '.join((*WRITERS, *PARQUET))}.")
    model = load_model(folder)
    table = read_rows(rows, model.columns)
    frame = model.predict(table)
    strangers = model.count_strangers(table)
    if out is not None:
        _write(frame, out)
    if as_json:
        said = {"rows": len(frame), "unknown_levels": strangers, "output": str(out) if out else None}
        print(json.dumps(said if out else said | {"predictions": frame.to_dict("records")}, indent=2))
        return
    for column, count in strangers.items():
        text = f"notice: column {column!r}: {count} of {len(frame)} rows have a level that training did not have"
        errors().print(text, markup=False, highlight=False, soft_wrap=True)
    if out is None:
        print(frame.to_csv(index=False), end="")
    else:
        text = f"wrote {len(frame)} predictions into {out}"
        output().print(text, markup=False, highlight=False, soft_wrap=True)


def _write(frame: pd.DataFrame, path: Path) -> None:
    from oodbench.plugin.files import replacing

    with replacing(path) as temporary:
        if path.name.endswith(PARQUET):
            frame.to_parquet(temporary, index=False)
        else:
            frame.to_csv(temporary, index=False, sep=WRITERS[path.suffix])
        temporary.chmod(0o644)
