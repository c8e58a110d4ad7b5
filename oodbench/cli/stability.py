"""oodbench stability: in which sub-population a study's chosen model is least stable."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from oodbench.cli.terminal import DirectoryOption, JsonOption, TrackingOption, app, output
from oodbench.study.directory import DIRECTORY


@app.command()
def stability(
    run: Annotated[str, typer.Argument(help="The MLflow run id of a study, or a unique prefix of it.")],
    seed: Annotated[int | None, typer.Option(help="Data seed; by default the study's first.")] = None,
    environment: Annotated[
        str, typer.Option(help="An environment; `validation` is all validation rows together.")
    ] = "validation",
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    as_json: JsonOption = False,
) -> None:
    """Show how stable a study's chosen model is, and the sub-population whose mechanism differs most.

    Example: [bold]oodbench stability 3f2a --environment r=-2.9[/bold]
    """
    from oodbench.record.tracking import Record
    from oodbench.report.stability import look_up, print_assessments

    looked_up = look_up(Record(tracking_uri, directory), run, seed, environment)
    if as_json:
        print(json.dumps(looked_up, indent=2))
    else:
        print_assessments(looked_up, output())
