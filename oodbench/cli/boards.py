"""oodbench leaderboard, ui: what the record has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oodbench.cli.terminal import (
    DatasetOption,
    DeviceOption,
    DirectoryOption,
    JsonOption,
    MethodOption,
    MixedOption,
    ModeOption,
    OutputOption,
    OverOption,
    SeedOption,
    SeedsOption,
    SelectorOption,
    SetOption,
    SuiteOption,
    TrackingOption,
    TrialsOption,
    app,
    check_over,
    errors,
    output,
    print_board,
    refuse,
    show_suite,
)
from oodbench.errors import UserError
from oodbench.settings.fields import split_assignments
from oodbench.study.directory import DIRECTORY


@app.command()
def leaderboard(
    dataset: Annotated[str | None, typer.Argument(help="A dataset, unless --suite is given.")] = None,
    set_: SetOption = None,
    stability: Annotated[
        bool, typer.Option("--stability", help="Add how stable the chosen models are among sub-populations.")
    ] = False,
    ledger: Annotated[
        bool, typer.Option("--ledger", help="Add what each study spent: trainings, gradient steps, rows, seconds.")
    ] = False,
    over: OverOption = "seeds",
    format: Annotated[str, typer.Option(help="table, md, csv, json, latex, or html: a page.")] = "table",
    cells: Annotated[
        Path | None, typer.Option("--cells", help="A CSV file for every seed and environment, for `oodbench compare`.")
    ] = None,
    mixed: MixedOption = False,
    suite: SuiteOption = None,
    mode: ModeOption = None,
    folder: OutputOption = None,
    methods: MethodOption = None,
    datasets: DatasetOption = None,
    trials: TrialsOption = None,
    seeds: SeedsOption = None,
    seed: SeedOption = 0,
    selector: SelectorOption = None,
    device: DeviceOption = "auto",
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    as_json: JsonOption = False,
) -> None:
    """Compile the leaderboard of a dataset setting, or the boards of a suite, from the record.

    Of each method the newest study counts, or the newest with so many --trials and --seeds. Studies with unequal
    budgets or data are not ranked together, unless --mixed.

    A suite's studies are found by what they are: give the --trials, --seeds and so on of the run, if it had any.

    Example: [bold]oodbench leaderboard selection_bias --set r1=1.5 --format html -o page[/bold]
    """
    from oodbench.report.formats import FORMATS, render

    format = "json" if as_json else format
    claim = check_over(over)
    if format not in (*FORMATS, "html"):
        raise UserError(f"there is no format {format!r}.\nKnown: {', '.join(FORMATS)}, html.")
    if format == "html" and folder is None:
        raise UserError("--format html writes a page into a folder.\nName one with --output.")
    if suite is not None:
        refuse({"--ledger": ledger}, "does not go with --suite", "Use --json, which has it.")
        refuse(
            {"--set": set_, "--cells": cells, "a dataset as argument": dataset},
            "does not go with --suite",
            "Narrow with --dataset.",
        )
        refuse(
            {f"--format {format}": format in ("md", "csv", "latex"), "--over": over != "seeds"},
            "does not go with --suite",
            "Write files with --output.",
        )
        from oodbench.api.suites import suite_leaderboards

        result = suite_leaderboards(
            suite,
            mode=mode,
            methods=methods or [],
            datasets=datasets or [],
            trials=trials,
            seeds=seeds,
            seed=seed,
            selector=selector,
            device=device,
            mixed=mixed,
            tracking_uri=tracking_uri,
            directory=directory,
        )
        if format == "html" and folder is not None:
            _say_written(result.write_page(folder))
        else:
            show_suite(result, folder, format == "json")
        return
    for_suites: dict[str, object] = {"--mode": mode, "--method": methods, "--dataset": datasets}
    for_suites |= {"--output": folder if format != "html" else None, "--seed": seed, "--selector": selector}
    refuse(for_suites, "is for suites", "Name one with --suite.")
    if dataset is None:
        raise UserError("name a dataset, or a suite with --suite.\n`oodbench list` shows what there is.")
    from oodbench.api.boards import leaderboard as compile_board
    from oodbench.api.boards import write_page

    settings = split_assignments(set_ or [], "--set")
    board = compile_board(
        dataset,
        settings=settings,
        stability=stability,
        over=claim,
        trials=trials,
        seeds=seeds,
        mixed=mixed,
        tracking_uri=tracking_uri,
        directory=directory,
    )
    if cells is not None:
        from oodbench.board.cells import scores_of, write_cells

        try:
            cells.write_text(write_cells(scores_of([board])), encoding="utf-8")
        except OSError as error:
            raise UserError(f"{cells} cannot be written: {error.strerror}.\nName a file in a folder.") from None
    if format == "html" and folder is not None:
        _say_written(write_page(board, folder))
    elif format == "table":
        print_board(board, ledger)
    else:
        print(render(board, format, ledger))


def _say_written(path: Path) -> None:
    output().print(f"wrote {path}", highlight=False, soft_wrap=True)


@app.command()
def ui(
    dataset: Annotated[str | None, typer.Argument(help="Open at this dataset's runs.")] = None,
    set_: SetOption = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.")] = 5000,
    directory: DirectoryOption = DIRECTORY,
) -> None:
    """Start the MLflow page of the embedded record on 127.0.0.1, and print the address of the runs.

    Example: [bold]oodbench ui selection_bias[/bold]
    """
    from oodbench.record.server import serve

    serve(dataset, split_assignments(set_ or [], "--set"), port, directory, errors())
