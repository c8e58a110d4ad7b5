"""oodbench submit, verify: results that are handed in as one file, and checked before they are believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oodbench.api.suites import SuiteBoardOptions
from oodbench.cli.options import Given, spelled, with_options
from oodbench.cli.terminal import (
    DirectoryOption,
    JsonOption,
    SetOption,
    SuiteOption,
    TrackingOption,
    app,
    errors,
    output,
    refuse,
    results_only,
)
from oodbench.errors import UserError
from oodbench.settings.fields import split_assignments
from oodbench.study.directory import DIRECTORY

if TYPE_CHECKING:
    from oodbench.study.record import ConcludedStudy
    from oodbench.submission.submission import Submission
    from oodbench.submission.verify import Verdict

ENDING = ".zip"
FOR_SUITES = ("mode", "seed", "device")


@app.command()
@with_options(SuiteBoardOptions, leave_out=("directory", "mixed"))
def submit(
    given: Given,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the run's record.")] = DIRECTORY,
    settings: SetOption = None,
    suite: SuiteOption = None,
    file: Annotated[Path, typer.Option("--output", "-o", help="The file to write, which ends in .zip.")] = Path(
        "submission.zip"
    ),
    as_json: JsonOption = False,
) -> None:
    """Pack recorded studies, or those of a suite, into one file that others can verify.

    It has the records, all result rows, what was tried, versions, fingerprints of the data, and hashes of the source
    code. The plug-ins must be installed and unchanged since the run. All studies of the record are packed, unless
    --method, --dataset or --suite names some.

    Example: [bold]oodbench submit .oodbench --method my_method --dataset selection_bias -o my_method.zip[/bold]
    """
    from oodbench.submission.submission import pack

    if not file.name.endswith(ENDING):
        raise UserError(f"--output {file} does not end in {ENDING}.\nName a file such as my_method{ENDING}.")
    with results_only():
        finished, failed = _find_studies(given, directory, settings or [], suite)
        manifest = pack(finished, file)
    for study in failed:
        _say(f"left out: {study.record.title} failed: {study.record.reason}")
    if as_json:
        studies = [{"method": study.label, "dataset_id": study.record.dataset_id} for study in finished]
        print(json.dumps({"file": str(file), "studies": studies, "files": dict(manifest.files)}, indent=2))
        return
    size = f"{file.stat().st_size:,} bytes"
    text = f"wrote {file}: {_count(len(finished))}, {size}. Next:\n  oodbench verify {file} --rerun 1"
    output().print(text, markup=False, highlight=False, soft_wrap=True)


def _find_studies(
    given: Given, directory: Path, settings: list[str], suite: str | None
) -> tuple[list[ConcludedStudy], list[ConcludedStudy]]:
    from oodbench.api.submissions import chosen_studies, suite_studies

    given["directory"] = directory
    if suite is not None:
        refuse({"--set": settings}, "does not go with --suite", "A suite says this itself; narrow it with --dataset.")
        studies = suite_studies(suite, given)
    else:
        refuse(spelled(SuiteBoardOptions, [name for name in FOR_SUITES if name in given]), "is for suites",
               "Name one with --suite.")  # fmt: skip
        options = SuiteBoardOptions(**given)
        refuse({"--set": settings and not options.datasets}, "is of a dataset", "Name it with --dataset.")
        studies = chosen_studies(options, split_assignments(settings, "--set"))
    finished = [study for study in studies if study.results is not None]
    failed = [study for study in studies if study.results is None]
    if not finished:
        raise UserError(f"all of these studies failed: {failed[0].record.reason}.\nHand in studies that finished.")
    return finished, failed


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A file that `oodbench submit` wrote.")],
    rerun: Annotated[
        int, typer.Option(help="Trainings to run again, drawn by chance, first of the chosen configurations.", min=0)
    ] = 0,
    add: Annotated[
        bool, typer.Option("--add", help="If nothing is wrong, add its studies to the record, labelled as handed in.")
    ] = False,
    tracking_uri: TrackingOption = None,
    directory: DirectoryOption = DIRECTORY,
    as_json: JsonOption = False,
) -> None:
    """Check what was handed in: hashes, source code, data, budget, choice; and run trainings again.

    Trainings are compared bit for bit, or by statistics if this machine or its packages differ; it says which.
    0: nothing is wrong; 1: something is; 2: it cannot be read, or was changed after it was packed.

    Example: [bold]oodbench verify my_method.zip --rerun 5[/bold]
    """
    from oodbench.submission.submission import read_submission
    from oodbench.submission.verify import verify as verify_submission

    with results_only():
        submission = read_submission(file)
        verdict = verify_submission(submission, rerun, _say)
    added = _add(submission, tracking_uri, directory) if add and not verdict.faults else []
    if as_json:
        print(json.dumps({"file": str(file)} | verdict.as_dict() | {"added": added}, indent=2))
    else:
        _show(submission, verdict, added)
    if verdict.faults:
        raise typer.Exit(1)


def _add(submission: Submission, tracking_uri: str | None, directory: Path) -> list[str]:
    from oodbench.record.tracking import Record
    from oodbench.submission.adding import add_to_record

    return add_to_record(submission.studies, Record(tracking_uri, directory))


def _show(submission: Submission, verdict: Verdict, added: list[str]) -> None:
    lines = [f"fault     {fault}" for fault in verdict.faults]
    lines += [f"ran again {again.trainings} trainings of {again.study}: {again.how}" for again in verdict.reruns]
    if any(again.how == "by statistics" for again in verdict.reruns):
        lines.append(f"bits need not agree here: {', '.join(verdict.differing) or 'there is no GPU'}")
    if not verdict.faults:
        studies = _count(len(submission.studies))
        ending = "" if verdict.reruns else "; no training was run again: --rerun N does that"
        lines.append(f"verified  {studies}, {len(verdict.findings)} checks{ending}")
    lines += [f"added     {title}" for title in added]
    output().print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _count(studies: int) -> str:
    from oodbench.report.text import count_text

    return count_text(studies, "study", "studies")


def _say(text: str) -> None:
    errors().print(text, markup=False, highlight=False, soft_wrap=True)
