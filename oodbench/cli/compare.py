"""oodbench compare: what is better or worse in one set of results than in another."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from oodbench.cli.terminal import (
    DirectoryOption,
    JsonOption,
    OverOption,
    TrackingOption,
    app,
    check_over,
    output,
)
from oodbench.study.directory import DIRECTORY


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="A file or folder of results, REVISION:PATH in git, a label, or a run id.")],
    b: Annotated[str, typer.Argument(help="The results to compare with A, named in the same ways.")],
    metric: Annotated[str, typer.Option(help="mean_error, max_error, mean_auc, worst_log_loss, ...")] = "mean_error",
    over: OverOption = "seeds",
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    as_json: JsonOption = False,
) -> None:
    """Compare results B with results A, with significance tests. The exit code is for scripts.

    0: nothing is significantly worse in B; 1: something is, or failed only in B; 2: they cannot be compared.
    Files are written by `oodbench leaderboard` with --format json, --cells, or --suite NAME --output FOLDER.

    Example: [bold]oodbench compare HEAD~1:leaderboards/paper/fair leaderboards/paper/fair[/bold]
    """
    from functools import cache
    from pathlib import Path

    from oodbench.board.comparison import compare as compare_scores
    from oodbench.record.sources import read_scores
    from oodbench.record.tracking import Record

    claim = check_over(over)

    @cache
    def open_record() -> Record:
        return Record(tracking_uri, Path(directory))

    comparison = compare_scores(read_scores(a, open_record), read_scores(b, open_record), metric, claim)
    if as_json:
        print(json.dumps({"a": a, "b": b} | comparison.as_dict(), indent=2))
    else:
        from oodbench.report.comparison import comparison_table

        output().print(comparison_table(comparison, a, b))
    if comparison.worsened:
        raise typer.Exit(1)
