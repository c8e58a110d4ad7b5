"""oodbench data fetch, verify, list: the files that datasets need and that are not installed with them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oodbench.cli.terminal import JsonOption, app, errors, output
from oodbench.errors import UserError
from oodbench.plugin.files import VARIABLE

if TYPE_CHECKING:
    from oodbench.plugin.files import DataFiles, Holding

data_app = typer.Typer(help="Fetch, verify and list the files that datasets need.", no_args_is_help=True)
app.add_typer(data_app, name="data")

SomeDataset = Annotated[str | None, typer.Argument(help="A dataset; by default all that need files.")]
FolderOption = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Folder of the data files, instead of OODBENCH_DATA or the user's data folder."),
]


@data_app.command()
def fetch(
    dataset: Annotated[str, typer.Argument(help="A dataset that needs files.")],
    year: Annotated[str | None, typer.Option(help="Year of the files. [dim]\\[default: 2018][/dim]")] = None,
    horizon: Annotated[str | None, typer.Option(help="1-Year or 5-Year. [dim]\\[default: 1-Year][/dim]")] = None,
    states: Annotated[
        str | None,
        typer.Option(metavar="MA,NY,...", help="States by postal code. [dim]\\[default: the 50 states][/dim]"),
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL", help="An address to fetch from instead; if several are given, they are tried in turn."
        ),
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="A folder to copy the zip or CSV files from instead.")
    ] = None,
    renew: Annotated[bool, typer.Option("--renew", help="Accept files that differ from those first fetched.")] = False,
    data_dir: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the files a dataset needs. Complete files are kept, and the same command continues a stopped fetch.

    Example: [bold]oodbench data fetch acs_travel --year 2018 --states MA,NY,PA[/bold]
    """
    from oodbench.plugin.files import Sources
    from oodbench.report.transfer import ConsoleTransfer

    _use(data_dir)
    files = _files_of(dataset)
    if from_ and mirror:
        raise UserError("--from and --mirror cannot be combined.\nGive one of them.")
    which = {"year": year, "horizon": horizon, "states": states}
    sources = Sources(tuple(mirror or ()), from_, renew)
    holdings = files.fetch(
        {key: value for key, value in which.items() if value is not None}, sources, ConsoleTransfer(errors())
    )
    _show(holdings, as_json)
    if data_dir is not None and not as_json:
        text = f"to use these files in runs: export {VARIABLE}={data_dir.absolute()}"
        errors().print(text, markup=False, highlight=False, soft_wrap=True)


@data_app.command()
def verify(dataset: SomeDataset = None, data_dir: FolderOption = None, as_json: JsonOption = False) -> None:
    """Read all data files again, and report which are damaged and how to fix them. Exit code 1 if any is.

    Example: [bold]oodbench data verify acs_travel[/bold]
    """
    _use(data_dir)
    holdings = [holding for files in _all_files(dataset) for holding in files.verify()]
    _show(holdings, as_json)
    if any(holding.fault for holding in holdings):
        raise typer.Exit(1)


@data_app.command(name="list")
def list_files(dataset: SomeDataset = None, data_dir: FolderOption = None, as_json: JsonOption = False) -> None:
    """List the data files that are present.

    Example: [bold]oodbench data list[/bold]
    """
    _use(data_dir)
    _show([holding for files in _all_files(dataset) for holding in files.inventory()], as_json)


def _use(data_dir: Path | None) -> None:
    if data_dir is not None:
        os.environ[VARIABLE] = str(data_dir)


def _files_of(dataset: str) -> DataFiles:
    from oodbench.plugin.registry import find

    files: DataFiles | None = find("dataset", dataset).files
    if files is None:
        raise UserError(f"dataset {dataset!r} needs no files.\nIt can be run without them.")
    return files


def _all_files(dataset: str | None) -> list[DataFiles]:
    from oodbench.plugin.registry import plugins

    if dataset is not None:
        return [_files_of(dataset)]
    needed = [plugin.cls.files for plugin in plugins("dataset") if plugin.cls and plugin.cls.files]
    return list({files.name: files for files in needed}.values())  # datasets share files


def _show(holdings: list[Holding], as_json: bool) -> None:
    from oodbench.plugin.files import data_root

    if as_json:
        rows = [
            {"name": holding.name, **holding.facts, "fault": holding.fault, "remedy": holding.remedy}
            for holding in holdings
        ]
        print(json.dumps({"folder": str(data_root()), "files": rows}, indent=2))
        return
    from rich.table import Table

    from oodbench.report.text import count_text

    console = output()
    if not holdings:
        console.print(f"no data files in {data_root()}", markup=False, highlight=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    for title in holdings[0].facts:
        table.add_column(title, no_wrap=True, justify="right" if title in ("rows", "size") else "left")
    table.add_column("")
    for holding in holdings:
        cells = (f"{value:,}" if title in ("rows", "size") else str(value) for title, value in holding.facts.items())
        table.add_row(*cells, f"[red]{holding.fault}[/red]" if holding.fault else "")
    console.print(table)
    total = sum(int(holding.facts.get("size", 0)) for holding in holdings)
    console.print(
        f"{count_text(len(holdings), 'file')}, {total:,} bytes, in {data_root()}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    for holding in holdings:
        if holding.remedy:
            console.print(f"fix {holding.name}: {holding.remedy}", markup=False, highlight=False, soft_wrap=True)
