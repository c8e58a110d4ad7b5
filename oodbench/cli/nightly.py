"""oodbench nightly: a suite run again and compared with its baseline."""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from oodbench.cli.terminal import JsonOption, app, errors, output, results_only
from oodbench.errors import UserError


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
    from oodbench.nightly.baseline import read_night, write_night
    from oodbench.nightly.findings import judge
    from oodbench.nightly.page import write_report
    from oodbench.nightly.run import run_night
    from oodbench.report.console import ConsoleProgress
    from oodbench.report.text import count_text
    from oodbench.suite.suitefile import read_suite

    read_suite(suite)
    if against is None and "/" not in suite and not suite.endswith(".toml"):
        raise UserError(f"suite {suite!r} is built-in and has no folder of its own.\nName a baseline with --against.")
    baseline = against or Path(suite).parent
    try:
        before = read_night(baseline)
    except UserError:
        if not accept:
            raise
        before = None  # it is written, or written again
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
    page = None
    if folder is not None and judgement is not None:
        page = write_report(folder, result.suite.title, judgement)
    if as_json:
        print(json.dumps(judgement.as_dict() if judgement is not None else {"findings": []}, indent=2))
    elif judgement is not None:
        for finding in judgement.findings:
            output().print(str(finding), markup=False, highlight=False, soft_wrap=True)
    console = errors()
    for notice in judgement.notices if judgement is not None else []:
        console.print(f"notice    {notice}", markup=False, highlight=False, soft_wrap=True)
    if page is not None:
        console.print(f"wrote {page}", markup=False, highlight=False, soft_wrap=True)
    if accept:
        text = f"wrote the baseline into {baseline}: commit it"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    assert judgement is not None
    if judgement.findings:
        raise typer.Exit(1)
    if not as_json:
        studies = count_text(len(now.studies), "study", "studies")
        text = f"nothing to report: {studies} compared with the baseline of {judgement.before.date}"
        output().print(text, markup=False, highlight=False, soft_wrap=True)
