"""oodbench data fetch, verify, list: the files that datasets need and that do not come with them."""

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

data_app = typer.Typer(help="The files that datasets need: fetch, verify, list.", no_args_is_help=True)
app.add_typer(data_app, name="data")

SomeDataset = Annotated[str | None, typer.Argument(help="A dataset; without one, all that need files.")]
FolderOption = Annotated[
    Path | None, typer.Option("--data-dir", help="Where data files are, instead of OODBENCH_DATA or the user's folder.")
]


@data_app.command()
def fetch(
    dataset: Annotated[str, typer.Argument(help="A dataset that needs files.")],
    year: Annotated[str | None, typer.Option(help="Year of the files; 2018 if not said.")] = None,
    horizon: Annotated[str | None, typer.Option(help="1-Year or 5-Year; 1-Year if not said.")] = None,
    states: Annotated[
        str | None, typer.Option(metavar="MA,NY,...", help="States by postal code; the 50 states if not said.")
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="An address to fetch from instead; several are tried in turn."),
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="A folder to take the zips or CSVs from instead.")
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Take files even if they differ from those first fetched.")
    ] = False,
    data_dir: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the files a dataset needs. Files that are there and whole stay; the same command continues a stopped one.

    Example: [bold]oodbench data fetch acs_travel --year 2018 --states MA,NY,PA[/bold]
    """
    from oodbench.plugin.files import Sources
    from oodbench.report.transfer import ConsoleTransfer

    _use(data_dir)
    files = _files_of(dataset)
    if from_ and mirror:
        raise UserError("files come from a folder or from a mirror.\nGive --from or --mirror, not both.")
    which = {"year": year, "horizon": horizon, "states": states}
    sources = Sources(tuple(mirror or ()), from_, renew)
    found = files.fetch(
        {key: value for key, value in which.items() if value is not None}, sources, ConsoleTransfer(errors())
    )
    _show(found, as_json)
    if data_dir is not None and not as_json:
        text = f"for runs to find them: export {VARIABLE}={data_dir.absolute()}"
        errors().print(text, markup=False, highlight=False, soft_wrap=True)


@data_app.command()
def verify(dataset: SomeDataset = None, data_dir: FolderOption = None, as_json: JsonOption = False) -> None:
    """Read all data files again, and say which are damaged and how to mend them. Exit code 1 if any is.

    Example: [bold]oodbench data verify acs_travel[/bold]
    """
    _use(data_dir)
    found = [holding for files in _all_files(dataset) for holding in files.verify()]
    _show(found, as_json)
    if any(holding.fault for holding in found):
        raise typer.Exit(1)


@data_app.command(name="list")
def list_files(dataset: SomeDataset = None, data_dir: FolderOption = None, as_json: JsonOption = False) -> None:
    """List the data files that are there.

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
        raise UserError(f"dataset {dataset!r} needs no files.\nIt can be run as it is.")
    return files


def _all_files(dataset: str | None) -> list[DataFiles]:
    from oodbench.plugin.registry import plugins

    if dataset is not None:
        return [_files_of(dataset)]
    found = [plugin.cls.files for plugin in plugins("dataset") if plugin.cls and plugin.cls.files]
    return list({files.name: files for files in found}.values())  # datasets share files


def _show(holdings: list[Holding], as_json: bool) -> None:
    from oodbench.plugin.files import data_root

    if as_json:
        rows = [{"name": one.name, **one.facts, "fault": one.fault, "remedy": one.remedy} for one in holdings]
        print(json.dumps({"folder": str(data_root()), "files": rows}, indent=2))
        return
    from rich.table import Table

    console = output()
    if not holdings:
        console.print(f"no data files in {data_root()}", markup=False, highlight=False, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    for title in holdings[0].facts:
        table.add_column(title, no_wrap=True, justify="right" if title in ("rows", "size") else "left")
    table.add_column("")
    for one in holdings:
        cells = (f"{value:,}" if title in ("rows", "size") else str(value) for title, value in one.facts.items())
        table.add_row(*cells, f"[red]{one.fault}[/red]" if one.fault else "")
    console.print(table)
    total = sum(int(one.facts.get("size", 0)) for one in holdings)
    console.print(
        f"{len(holdings)} files, {total:,} bytes, in {data_root()}", markup=False, highlight=False, soft_wrap=True
    )
    for one in holdings:
        if one.remedy:
            console.print(f"mend {one.name}: {one.remedy}", markup=False, highlight=False, soft_wrap=True)
