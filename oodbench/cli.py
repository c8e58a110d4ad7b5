"""The command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oodbench.errors import OodbenchError, UserError
from oodbench.settings import split_assignments

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    help="Does this out-of-distribution method really help, on my data, against honestly tuned baselines?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of the dataset; `oodbench show DATASET` lists them."),
]
TrackingOption = Annotated[
    str | None, typer.Option("--tracking-uri", help="MLflow server to use instead of the embedded database.")
]
DirectoryOption = Annotated[
    Path, typer.Option("--directory", help="Where the embedded record and unfinished work live.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

DIRECTORY = Path(".oodbench")


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from oodbench import __version__

        print(__version__)
        raise typer.Exit


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
        progress=ConsoleProgress(_errors()),
    )
    boards = result.leaderboards()
    if as_json:
        print(json.dumps([board.as_dict() for board in boards], indent=2))
    else:
        for board in boards:
            _print_board(board)
        _errors().print(
            f"recorded in {result.record.address}; look at it with `oodbench ui`", highlight=False, soft_wrap=True
        )
    for name, reason in result.failures.items():
        _errors().print(f"[red]failed[/red] {name}: {reason}", highlight=False, soft_wrap=True)
    if result.failures:
        raise typer.Exit(1)


@app.command(name="list")
def list_plugins(as_json: JsonOption = False) -> None:
    """List the methods and datasets that are installed, broken ones with the reason.

    Example: [bold]oodbench list[/bold]
    """
    from oodbench.registry import plugins

    found = [*plugins("method"), *plugins("dataset")]
    if as_json:
        keys = ("kind", "name", "source", "summary", "broken")
        print(json.dumps([{key: getattr(plugin, key) for key in keys} for plugin in found], indent=2))
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("kind", "name", "from", ""):
        table.add_column(title, no_wrap=title != "")
    for plugin in found:
        text = f"[red]broken[/red]: {escape(plugin.broken)}" if plugin.broken else escape(plugin.summary)
        table.add_row(plugin.kind, plugin.name, plugin.source, text)
    _output().print(table)


@app.command()
def show(name: Annotated[str, typer.Argument(help="A method or dataset.")], as_json: JsonOption = False) -> None:
    """Show what a method searches, or what a dataset can be set to.

    Example: [bold]oodbench show selection_bias[/bold]
    """
    from oodbench.report.describe import describe_plugin, print_description

    description = describe_plugin(name)
    if as_json:
        print(json.dumps(description, indent=2, default=str))
    else:
        print_description(description, _output())


@app.command()
def leaderboard(
    dataset: Annotated[str, typer.Argument(help="A dataset.")],
    set_: SetOption = None,
    format: Annotated[str, typer.Option(help="table, md, csv or json.")] = "table",
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    as_json: JsonOption = False,
) -> None:
    """Compile the leaderboard of a dataset setting from the record.

    Example: [bold]oodbench leaderboard selection_bias --set r1=1.5 --format md[/bold]
    """
    from oodbench.benchmark import leaderboard as compile_board
    from oodbench.report.tables import FORMATS, render

    format = "json" if as_json else format
    if format not in FORMATS:
        raise UserError(f"there is no format {format!r}.\nKnown: {', '.join(FORMATS)}.")
    settings = split_assignments(set_ or [], "--set")
    board = compile_board(dataset, settings=settings, tracking_uri=tracking_uri, directory=directory)
    if format == "table":
        _print_board(board)
    else:
        print(render(board, format))


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
    from oodbench.ui import serve

    serve(dataset, split_assignments(set_ or [], "--set"), port, directory, _errors())


@app.command()
def check(
    package: Annotated[str, typer.Argument(help="An installed distribution with plug-ins.")],
    as_json: JsonOption = False,
) -> None:
    """Check that the plug-ins of an installed package satisfy the interface, by using them.

    Example: [bold]oodbench check my-ood-methods[/bold]
    """
    from oodbench.testing import check_package

    console, checked = _output(), []
    for plugin, title, problem in check_package(package):
        checked.append({"kind": plugin.kind, "name": plugin.name, "check": title, "problem": problem})
        if as_json:
            continue
        mark = "[green]ok[/green]    " if problem is None else "[red]failed[/red]"
        tail = "" if problem is None else f": {problem}"
        console.print(f"{mark} {plugin.kind} {plugin.name}: {title}{tail}", highlight=False, soft_wrap=True)
    if as_json:
        print(json.dumps(checked, indent=2))
    if any(entry["problem"] for entry in checked):
        raise typer.Exit(1)


@app.command()
def new(
    kind: Annotated[str, typer.Argument(help="method or dataset.")],
    name: Annotated[str, typer.Argument(help="Its name, in snake case.")],
    directory: Annotated[Path, typer.Option(help="Where to put the new folder.")] = Path(),
) -> None:
    """Write an installable plug-in with one method or dataset and a passing test.

    Example: [bold]oodbench new method my_method && pip install -e my_method && oodbench check my_method[/bold]
    """
    from oodbench.scaffold import write_plugin

    folder = write_plugin(kind, name, directory)
    _output().print(
        f"wrote {folder}. Next:\n  pip install -e {folder}\n  oodbench check {name}\n  pytest {folder}",
        highlight=False,
        soft_wrap=True,
    )


def main() -> None:
    """Run the command line; errors of ours are two lines on standard error and an exit code."""
    gc.set_threshold(100_000)  # start-up makes many objects that all stay
    try:
        app()
    except OodbenchError as error:
        first, _, rest = str(error).partition("\n")
        print(f"error: {first}" + (f"\n{rest}" if rest else ""), file=sys.stderr)
        sys.exit(error.exit_code)
    finally:
        gc.freeze()  # the interpreter's last collections would visit every object of torch and mlflow


def _print_board(board: Any) -> None:
    from oodbench.report.tables import notes, rich_table

    console = _output()
    console.print(rich_table(board))
    for note in notes(board):
        console.print(note, highlight=False, soft_wrap=True)


def _output() -> Console:
    from rich.console import Console

    console = Console()
    # a file or pipe has no width: do not cut tables for it
    return console if console.is_terminal else Console(width=160)


def _errors() -> Console:
    from rich.console import Console

    return Console(stderr=True)
