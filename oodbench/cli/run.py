"""oodbench run"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

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
    SeedOption,
    SeedsOption,
    SelectorOption,
    SetOption,
    SuiteOption,
    TrackingOption,
    TrialsOption,
    app,
    errors,
    print_board,
    refuse,
    results_only,
    show_suite,
    sync_command,
)
from oodbench.settings.fields import split_assignments
from oodbench.study.directory import DIRECTORY


@app.command()
def run(
    method: MethodOption = None,
    dataset: DatasetOption = None,
    suite: SuiteOption = None,
    mode: ModeOption = None,
    folder: OutputOption = None,
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
        typer.Option(
            metavar="NAME=VALUE",
            help="A hyper-parameter not to search: alpha0=0.1 or fdro.alpha0=0.1; or what to try: alpha0=0.1,0.2.",
        ),
    ] = None,
    trials: TrialsOption = None,
    seeds: SeedsOption = None,
    seed: SeedOption = 0,
    selector: SelectorOption = None,
    search: Annotated[
        str | None, typer.Option(help="Who proposes: random, or optuna. [dim]\\[default: random][/dim]")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Who stops poor trainings early: none, or asha. [dim]\\[default: none][/dim]")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time for each method, e.g. 10m; --trials is then the most.")
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", help="Whole searches to do, on the same data: the board shows their spread.")
    ] = 1,
    price: Annotated[
        bool,
        typer.Option("--price", help="Search again with the oracle's choice: what choosing on validation data costs."),
    ] = False,
    device: DeviceOption = "auto",
    mixed: MixedOption = False,
    address: Annotated[str | None, typer.Option(help="A running Ray cluster, e.g. 127.0.0.1:6379 or auto.")] = None,
    cpus_per_pack: Annotated[float, typer.Option(help="CPUs for one pack; torch gets as many threads.")] = 1.0,
    gpus_per_pack: Annotated[
        float | None, typer.Option(help="GPUs for one pack, or a share of one. [dim]\\[default: 0.25 on a GPU][/dim]")
    ] = None,
    trial_timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long one training may take, e.g. 30s or 10m; longer ones fail."),
    ] = None,
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    figures: Annotated[
        Path | None, typer.Option("--figures", help="A folder for figures of the test environments, as SVG.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what is finished or half-finished.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tune methods with equal budgets, evaluate the chosen ones on sealed test environments, show the leaderboard.

    The same command continues a run that was stopped.

    Example: [bold]oodbench run --method erm --method fdro --dataset selection_bias --set r1=1.9[/bold]
    """
    by_hand: dict[str, object] = {
        "--figures": figures,
        "--set": set_,
        "--model": model,
        "--set-model": set_model,
        "--set-training": set_training,
        "--fix": fix,
        "--search": search,
        "--scheduler": scheduler,
        "--budget": budget,
        "--repeats": repeats != 1,
        "--price": price,
    }
    if suite is None:
        refuse({"--mode": mode, "--output": folder}, "is for suites", "Name one with --suite.")
    else:
        refuse(by_hand, "does not go with --suite", "A suite says this itself; write one of your own to change it.")
    from oodbench.report.console import ConsoleProgress

    given = {"trials": trials, "seeds": seeds, "selector": selector}
    common: dict[str, Any] = {name: value for name, value in given.items() if value is not None} | {
        "seed": seed,
        "device": device,
        "address": address,
        "cpus_per_pack": cpus_per_pack,
        "gpus_per_pack": gpus_per_pack,
        "trial_timeout": trial_timeout,
        "tracking_uri": tracking_uri,
        "directory": directory,
        "fresh": fresh,
        "progress": ConsoleProgress(errors()),
    }
    result: Any
    if suite is not None:
        from oodbench.api.suites import run_suite

        with results_only():
            result = run_suite(suite, mode=mode, methods=method or [], datasets=dataset or [], mixed=mixed, **common)
        show_suite(result, folder, as_json)
    else:
        from oodbench.api.runs import run as run_benchmark

        with results_only():
            result = run_benchmark(
                method or [],
                dataset or [],
                settings=split_assignments(set_ or [], "--set"),
                model=model,
                model_settings=split_assignments(set_model or [], "--set-model"),
                recipe=split_assignments(set_training or [], "--set-training"),
                fix=split_assignments(fix or [], "--fix"),
                search=search or "random",
                scheduler=scheduler or "none",
                budget=budget,
                repeats=repeats,
                price=price,
                **common,
            )
        boards = result.leaderboards(mixed)
        if as_json:
            print(json.dumps([board.as_dict() for board in boards], indent=2))
        else:
            for board in boards:
                print_board(board)
    from rich.markup import escape

    if result.undelivered:
        errors().print(
            f"[bold yellow]notice[/bold yellow]    {len(result.undelivered)} studies are not delivered yet to "
            + escape(
                f"{result.record.address}: they are kept in {directory}\n"
                f"`{sync_command(directory, result.record.destination)}` delivers them, and so does the same command"
            ),
            highlight=False,
            soft_wrap=True,
        )
    elif not as_json:
        text = f"recorded in {result.record.address}; look at it with `oodbench ui`"
        errors().print(text, markup=False, highlight=False, soft_wrap=True)
    for name, reason in result.failures.items():
        errors().print(f"[red]failed[/red] {escape(f'{name}: {reason}')}", highlight=False, soft_wrap=True)
    if figures is not None:
        written = result.write_figures(figures)
        text = f"wrote {len(written)} figures into {figures}"
        errors().print(text, markup=False, highlight=False, soft_wrap=True)
    if result.failures or result.undelivered:
        raise typer.Exit(1)
