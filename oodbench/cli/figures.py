"""oodbench figures: figures of the results in the test environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from oodbench.cli.terminal import (
    DirectoryOption,
    FigureFormatOption,
    JsonOption,
    SetOption,
    TrackingOption,
    app,
    output,
)
from oodbench.settings.fields import split_assignments
from oodbench.study.directory import DIRECTORY


@app.command()
def figures(
    dataset: Annotated[str, typer.Argument(help="A dataset.")],
    folder: Annotated[Path, typer.Option("--output", "-o", help="A folder for the files.")],
    set_: SetOption = None,
    format: FigureFormatOption = "svg",
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    as_json: JsonOption = False,
) -> None:
    """Draw the recorded results of a dataset setting in each test environment.

    The distribution over test environments; for classification, accuracy against F1; for US states, a map; for
    studies of run --open-all, test against validation error.

    Example: [bold]oodbench figures selection_bias --set r1=1.5 -o figures --format png[/bold]
    """
    from oodbench.api.boards import BoardOptions, recorded_studies
    from oodbench.report.figures import write_figures

    options = BoardOptions(
        settings=split_assignments(set_ or [], "--set"), tracking_uri=tracking_uri, directory=directory
    )
    dataset_id, records = recorded_studies(dataset, options)
    written = [str(path) for path in write_figures(dataset_id, records, folder, format)]
    if as_json:
        print(json.dumps(written, indent=2))
    else:
        output().print("\n".join(f"wrote {path}" for path in written), markup=False, highlight=False, soft_wrap=True)
