"""oodbench site: all boards of a folder as one static site."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from oodbench.cli.terminal import JsonOption, app, output


@app.command()
def site(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the site.")],
    source: Annotated[
        Path, typer.Option("--from", help="A folder with boards that --output wrote, and folders of such below it.")
    ] = Path("leaderboards"),
    as_json: JsonOption = False,
) -> None:
    """Build a static site of all boards: an index, and pages for each board and method. It needs no network.

    The page of a method shows where it wins and loses, and its chosen hyper-parameters.

    Example: [bold]oodbench site public --from leaderboards[/bold]
    """
    from oodbench.report.site import INDEX, write_site

    written = write_site(folder, source)
    if as_json:
        files = [path.relative_to(folder).as_posix() for path in written]
        print(json.dumps({"folder": str(folder), "files": files}, indent=2))
        return
    pages = sum(path.suffix == ".html" for path in written)
    output().print(f"wrote {pages} pages: {folder / INDEX}", markup=False, highlight=False, soft_wrap=True)
