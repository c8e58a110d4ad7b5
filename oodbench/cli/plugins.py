"""oodbench list, show, check, new: the installed plug-ins and suites, and how to add one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from oodbench.cli.terminal import JsonOption, SetOption, app, output, refuse, results_only
from oodbench.settings.fields import split_assignments


@app.command(name="list")
def list_plugins(as_json: JsonOption = False) -> None:
    """List the installed methods, datasets, models, metrics, selectors and suites; the broken with the reason.

    Example: [bold]oodbench list[/bold]
    """
    from oodbench.plugin.registry import KINDS, plugins
    from oodbench.suite.suitefile import list_suites

    keys = ("kind", "name", "source", "summary", "broken")
    listed = [{key: getattr(plugin, key) for key in keys} for kind in KINDS for plugin in plugins(kind)] + list_suites()
    if as_json:
        print(json.dumps(listed, indent=2))
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in ("kind", "name", "from", ""):
        table.add_column(title, no_wrap=title != "")
    for plugin in listed:
        broken = plugin["broken"]
        text = f"[red]broken[/red]: {escape(broken)}" if broken else escape(plugin["summary"])
        table.add_row(plugin["kind"], plugin["name"], plugin["source"], text)
    output().print(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A method, dataset, model family, metric, selector or suite.")],
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the search space of a method, the settings of a dataset, or the boards of a suite.

    With --set, a dataset is read with these settings, and says how: what a run would use, and what looks wrong.

    Example: [bold]oodbench show selection_bias[/bold]
    """
    from oodbench.report.describe import describe_plugin, print_description

    with results_only():
        description = describe_plugin(name, split_assignments(settings or [], "--set"))
    if as_json:
        print(json.dumps(description, indent=2, default=str))
    else:
        print_description(description, output())


@app.command()
def check(
    package: Annotated[str, typer.Argument(help="An installed distribution with plug-ins.")],
    as_json: JsonOption = False,
) -> None:
    """Check the plug-ins of an installed package by using them as a run does.

    Example: [bold]oodbench check my-ood-methods[/bold]
    """
    from rich.markup import escape

    from oodbench.plugin.testing import check_package

    console, checked = output(), []
    for plugin, title, problem in check_package(package):
        checked.append({"kind": plugin.kind, "name": plugin.name, "check": title, "problem": problem})
        if as_json:
            continue
        mark = "[green]ok[/green]    " if problem is None else "[red]failed[/red]"
        tail = "" if problem is None else escape(f": {problem}")
        console.print(f"{mark} {plugin.kind} {plugin.name}: {title}{tail}", highlight=False, soft_wrap=True)
    if as_json:
        print(json.dumps(checked, indent=2))
    if any(entry["problem"] for entry in checked):
        raise typer.Exit(1)


@app.command()
def new(
    plugin: Annotated[str, typer.Argument(help="method or dataset, or a dataset that reads files, such as table.")],
    name: Annotated[str, typer.Argument(help="Its name, in snake case; of such a dataset, the file with the data.")],
    kind: Annotated[
        str | None, typer.Option(help="How the method is written: loss (the default), fit, or stages.")
    ] = None,
    directory: Annotated[Path, typer.Option(help="Where to put the new folder or description.")] = Path(),
    settings: SetOption = None,
) -> None:
    """Write a new plug-in package with one method or dataset and a passing test.

    With the name of a dataset that reads files, write a description of your file: `oodbench new table FILE`.

    Example: [bold]oodbench new method my_method && pip install -e my_method && oodbench check my_method[/bold]
    """
    from oodbench.plugin.described import write_description
    from oodbench.plugin.registry import names
    from oodbench.plugin.scaffold import write_plugin

    if plugin in names("dataset"):
        refuse({"--kind": kind}, "is for methods", "Leave it out for a description.")
        written = write_description(plugin, name, split_assignments(settings or [], "--set"), directory)
        following = f"wrote {written}. Next:\n  oodbench show {written}\n  oodbench run -m erm -d {written}"
        output().print(following, markup=False, highlight=False, soft_wrap=True)
        return
    refuse({"--set": settings}, "is for descriptions", "For example: oodbench new table FILE --set target=COLUMN.")
    folder = write_plugin(plugin, name, directory, kind)
    output().print(
        f"wrote {folder}. Next:\n  pip install -e {folder}\n  oodbench check {name}\n  pytest {folder}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
