"""oodbench run"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oodbench.api.runs import RunOptions
from oodbench.api.suites import SuiteOptions
from oodbench.cli.options import Given, spelled, with_options
from oodbench.cli.terminal import (
    JsonOption,
    OutputOption,
    SuiteOption,
    app,
    errors,
    output,
    print_board,
    refuse,
    results_only,
    show_suite,
    sync_command,
)
from oodbench.report.console import ConsoleProgress
from oodbench.suite.suite import Overrides

if TYPE_CHECKING:
    from oodbench.api.runs import Result
    from oodbench.api.suites import SuiteResult


@app.command()
@with_options(Overrides, SuiteOptions, RunOptions)
def run(
    given: Given,
    suite: SuiteOption = None,
    folder: OutputOption = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", help="A folder for figures of the test environments, as SVG.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Make the data, check everything, show the plan and its memory, and stop.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tune methods with equal budgets, evaluate the chosen ones on sealed test environments, show the leaderboard.

    The same command continues a run that was stopped.

    Example: [bold]oodbench run --method erm --method fdro --dataset selection_bias --set r1=1.9[/bold]
    """
    given["progress"] = ConsoleProgress(errors())
    result: Result | SuiteResult
    if suite is not None:
        refuse({"--figures": figures}, "does not go with --suite", "A suite says this itself: figures = true.")
        refuse({"--dry-run": dry_run}, "does not go with --suite", "Name methods and datasets.")
        result = _run_suite(suite, given, folder, as_json)
    else:
        refuse({"--mode": given.get("mode")}, "is for suites", "Name one with --suite.")
        if dry_run:
            _show_plan(given, as_json)
            return
        result = _run_by_hand(given, as_json)
        if folder is not None:
            _say(f"wrote {len(result.write(folder, given.get('mixed', False)))} files into {folder}")
        if figures is not None:
            _say(f"wrote {len(result.write_figures(figures))} figures into {figures}")
    _say_where(result, RunOptions(**_of(RunOptions, given)).folder, as_json)
    if result.failures or result.undelivered:
        raise typer.Exit(1)


def _run_suite(suite: str, given: Given, folder: Path | None, as_json: bool) -> SuiteResult:
    from oodbench.api.suites import run_suite

    beyond = {name for name in given if name not in _of(SuiteOptions, given)}
    remedy = "A suite says this itself; write one of your own to change it."
    refuse(spelled(RunOptions, beyond), "does not go with --suite", remedy)
    with results_only():
        result = run_suite(suite, **given)
    show_suite(result, folder, as_json)
    return result


def _run_by_hand(given: Given, as_json: bool) -> Result:
    from oodbench.api.runs import run as run_benchmark

    with results_only():
        methods, datasets = given.get("methods", []), given.get("datasets", [])
        result = run_benchmark(methods, datasets, **_of(RunOptions, given))
    boards = result.leaderboards(given.get("mixed", False))
    if as_json:
        print(json.dumps([board.as_dict() for board in boards], indent=2))
    else:
        for board in boards:
            print_board(board)
    return result


def _show_plan(given: Given, as_json: bool) -> None:
    from oodbench.api.runs import plan_run
    from oodbench.report.plan import describe_plan

    with results_only():
        studies, record = plan_run(given.get("methods", []), given.get("datasets", []), **_of(RunOptions, given))
    if as_json:
        print(json.dumps(describe_plan(studies), indent=2))
    else:
        ConsoleProgress(output()).plan(studies, record)


def _of(group: type[RunOptions] | type[SuiteOptions], given: Given) -> Given:
    return {name: value for name, value in given.items() if name in group.__dataclass_fields__}


def _say_where(result: Result | SuiteResult, directory: Path, as_json: bool) -> None:
    """Where the results are, and what is missing."""
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
        _say(f"recorded in {result.record.address}; look at it with `oodbench ui`")
    for name, reason in result.failures.items():
        errors().print(f"[red]failed[/red] {escape(f'{name}: {reason}')}", highlight=False, soft_wrap=True)


def _say(text: str) -> None:
    errors().print(text, markup=False, highlight=False, soft_wrap=True)
