"""oodbench nightly: a suite run again and compared with its baseline."""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from oodbench.cli.terminal import JsonOption, app, errors, output, results_only
from oodbench.errors import UserError

if TYPE_CHECKING:
    from oodbench.nightly.baseline import Night
    from oodbench.nightly.findings import Judgement


@app.command()
def nightly(
    suite: Annotated[str, typer.Argument(help="A suite, by name or by the path of its file.")],
    against: Annotated[
        Path | None,
        typer.Option(help="The folder of the baseline. [dim]\\[default: the folder of the suite's file][/dim]"),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the report, index.html, and tonight's boards.")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Make the results the new baseline.")] = False,
    directory: Annotated[
        Path | None, typer.Option("--directory", help="Where to keep the record of the run, for `oodbench ui`.")
    ] = None,
    address: Annotated[str | None, typer.Option(help="A running Ray cluster, e.g. 127.0.0.1:6379 or auto.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a suite afresh, compare it with its baseline, and report what is worse, slower or different.

    0: nothing to report; 1: findings, two lines each; 2: it cannot be run or compared. docs/nightly.md defines
    findings. The first run, with --accept, writes the baseline: commit its folder.

    Example: [bold]oodbench nightly leaderboards/nightly/suite.toml -o report[/bold]
    """
    from oodbench.nightly.baseline import write_night
    from oodbench.nightly.findings import judge
    from oodbench.nightly.page import write_report
    from oodbench.nightly.run import run_night
    from oodbench.report.console import ConsoleProgress
    from oodbench.suite.suitefile import read_suite

    read_suite(suite)
    if against is None and "/" not in suite and not suite.endswith(".toml"):
        raise UserError(f"suite {suite!r} is built-in and has no folder of its own.\nName a baseline with --against.")
    baseline = against or Path(suite).parent
    before = _read_baseline(baseline, accept)
    command = shlex.join(["oodbench", "nightly", suite, *(["--against", str(against)] if against else []), "--accept"])
    with contextlib.ExitStack() as stack:
        record = directory or Path(stack.enter_context(TemporaryDirectory(prefix="oodbench-nightly-")))
        with results_only():
            now, result = run_night(suite, record, ConsoleProgress(errors()), before, address)
        judgement = judge(before, now, command) if before is not None else None
        if folder is not None:
            write_night(folder / "boards", now, result)
        if accept:
            write_night(baseline, now, result, before.files if before is not None else ())
    if folder is not None and judgement is not None:
        _say(f"wrote {write_report(folder, result.suite.title, judgement)}")
    _show(judgement, accept, as_json)
    if accept:
        _say(f"wrote the baseline into {baseline}: commit it")
    elif judgement is not None and judgement.findings:
        raise typer.Exit(1)


def _read_baseline(folder: Path, accept: bool) -> Night | None:
    """None where there is none yet that can be read: it is going to be written."""
    from oodbench.nightly.baseline import read_night

    try:
        return read_night(folder)
    except UserError:
        if not accept:
            raise
        return None


def _show(judgement: Judgement | None, accept: bool, as_json: bool) -> None:
    from oodbench.report.text import count_text

    if as_json:
        print(json.dumps(judgement.as_dict() if judgement is not None else {"findings": []}, indent=2))
    if judgement is None:
        return
    for notice in judgement.notices:
        _say(f"notice    {notice}")
    if as_json:
        return
    for finding in judgement.findings:
        output().print(str(finding), markup=False, highlight=False, soft_wrap=True)
    if not judgement.findings and not accept:
        studies = count_text(len(judgement.now.studies), "study", "studies")
        text = f"nothing to report: {studies} compared with the baseline of {judgement.before.date}"
        output().print(text, markup=False, highlight=False, soft_wrap=True)


def _say(text: str) -> None:
    errors().print(text, markup=False, highlight=False, soft_wrap=True)
