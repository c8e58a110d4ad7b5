"""Everything oodbench raises on purpose. The message is what the user reads: what was wrong, and what to do.

OodbenchError
├── UserError            exit code 2: the command or the plug-in asked for something impossible
│   ├── UnknownName          no such method, dataset, selector, model ...
│   ├── BrokenPlugin         the plug-in is installed but cannot be used
│   ├── InvalidSetting       a setting or hyper-parameter that does not exist or does not fit its type
│   ├── MissingInformation   a method needs what the dataset does not give
│   ├── UnequalTerms         studies that differ in budget or data are not ranked together
│   ├── UnusableData         data files are missing, damaged, or without what is needed
│   └── Unreachable          no such device, Ray cluster or tracking server
└── WorkError            exit code 1: something failed during the run
    ├── TrainingFailed       one training has no usable result
    ├── SealedError          test data was asked for before the selection was made
    ├── StudyFailed          no configuration of a study finished on every seed
    ├── TrackingFailed       the tracking server does not answer, or answers with an error
    │   └── UnreadableRecord     an entry is damaged, or another version of oodbench wrote it
    ├── Unwritable           the disk is full or read-only
    ├── Unprintable          standard output cannot be written
    └── Interrupted          exit code 130: stopped by the user; the same command continues

`Notice` is a warning: something was left out, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence to put behind a message, with a blank before it; empty where nothing known is near the name."""
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


class OodbenchError(Exception):
    """What oodbench raises on purpose: what was wrong, and what to do, in two lines.

    `oodbench.errors` has the tree below it. Errors of the user have exit code 2 on the command line.
    """

    exit_code = 1


class UserError(OodbenchError):
    exit_code = 2


class UnknownName(UserError):
    def __init__(self, kind: str, name: str, known: Iterable[str], remedy: str = "") -> None:
        names = sorted(known)
        remedy = remedy or f"Known: {', '.join(names) or 'none'}."
        super().__init__(f"there is no {kind} {name!r}.{did_you_mean(name, names)}\n{remedy}")


class BrokenPlugin(UserError):
    pass


class InvalidSetting(UserError):
    pass


class MissingInformation(UserError):
    pass


class UnequalTerms(UserError):
    pass


class UnusableData(UserError):
    pass


class Unreachable(UserError):
    pass


class WorkError(OodbenchError):
    pass


class TrainingFailed(WorkError):
    pass


class SealedError(WorkError):
    pass


class StudyFailed(WorkError):
    pass


class TrackingFailed(WorkError):
    pass


class UnreadableRecord(TrackingFailed):
    pass


class Unwritable(WorkError):
    def __init__(self, directory: object, error: OSError) -> None:
        super().__init__(
            f"cannot write into {directory}: {error.strerror or error}.\n"
            "Free some space or name another --directory. Finished work is kept, and the same command continues."
        )


class Unprintable(WorkError):
    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"standard output cannot be written: {error.strerror or error}.\n"
            "Send it elsewhere; what was recorded is kept."
        )


class Interrupted(WorkError):
    exit_code = 130


class Notice(UserWarning):
    """What was left out, why, and what to do; the command line shows it on standard error."""


def one_line(error: BaseException) -> str:
    """An error as one line for the record. Messages of oodbench are complete; other errors need their type."""
    text = " ".join(str(error).split()) or "no message"
    return text if isinstance(error, OodbenchError) else f"{type(error).__name__}: {text}"
