"""oodbench run"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from oodbench.commands.terminal import (
    DIRECTORY,
    DirectoryOption,
    JsonOption,
    SetOption,
    TrackingOption,
    app,
    errors,
    print_board,
)
from oodbench.settings import split_assignments


@app.command()
def run(
    method: Annotated[list[str], typer.Option("--method", "-m", help="A method; give it several times to compare.")],
    dataset: Annotated[list[str], typer.Option("--dataset", "-d", help="A dataset; may be given several times.")],
    set_: SetOption = None,
    model: Annotated[str | None, typer.Option(help="Model family, instead of the dataset's: linear or mlp.")] = None,
    set_model: Annotated[
        list[str] | None,
        typer.Option("--set-model", metavar="NAME=VALUE", help="A setting of the model, e.g. width=64."),
    ] = None,
    set_training: Annotated[
        list[str] | None,
        typer.Option("--set-training", metavar="NAME=VALUE", help="A setting of the training, e.g. steps=500."),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A hyper-parameter not to search: alpha0=0.1 or fdro.alpha0=0.1."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Configurations per method; the first is its defaults.")] = 20,
    seeds: Annotated[int, typer.Option(help="Data seeds on which every configuration is trained.")] = 10,
    seed: Annotated[int, typer.Option(help="First seed, of the data and of the search.")] = 0,
    selector: Annotated[str, typer.Option(help="How validation scores choose: mean, worst, or oracle.")] = "worst",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    address: Annotated[str | None, typer.Option(help="A running Ray cluster, e.g. 127.0.0.1:6379 or auto.")] = None,
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what is finished or half-finished.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tune methods with equal budgets, evaluate the chosen ones on sealed test environments, show the leaderboard.

    The same command continues a run that was stopped.

    Example: [bold]oodbench run --method erm --method fdro --dataset selection_bias --set r1=1.9[/bold]
    """
    from oodbench.benchmark import run as run_benchmark
    from oodbench.report.console import ConsoleProgress

    result = run_benchmark(
        method,
        dataset,
        settings=split_assignments(set_ or [], "--set"),
        model=model,
        model_settings=split_assignments(set_model or [], "--set-model"),
        training=split_assignments(set_training or [], "--set-training"),
        fix=split_assignments(fix or [], "--fix"),
        trials=trials,
        seeds=seeds,
        seed=seed,
        selector=selector,
        device=device,
        address=address,
        tracking_uri=tracking_uri,
        directory=directory,
        fresh=fresh,
        progress=ConsoleProgress(errors()),
    )
    boards = result.leaderboards()
    if as_json:
        print(json.dumps([board.as_dict() for board in boards], indent=2))
    else:
        for board in boards:
            print_board(board)
        errors().print(
            f"recorded in {result.record.address}; look at it with `oodbench ui`", highlight=False, soft_wrap=True
        )
    for name, reason in result.failures.items():
        errors().print(f"[red]failed[/red] {name}: {reason}", highlight=False, soft_wrap=True)
    if result.failures:
        raise typer.Exit(1)
