"""The verdict on a submission: what is right, what is not, and which trainings were run again, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from oodbench.study.machine import this_machine
from oodbench.submission.checks import Finding, check_submission
from oodbench.submission.planning import plan_records
from oodbench.submission.rerun import Rerun, Training, draw_trainings, rerun

if TYPE_CHECKING:
    from oodbench.study.study import Study
    from oodbench.submission.submission import Submission


@dataclass(frozen=True)
class Verdict:
    findings: tuple[Finding, ...]
    reruns: tuple[Rerun, ...]
    differing: tuple[str, ...]  # in what this machine differs from that of the submission

    @property
    def faults(self) -> list[str]:
        """One a line: where, and what is wrong."""
        faults = [f"{finding.study or 'the file'}: {finding.fault}" for finding in self.findings if finding.fault]
        faults += [f"{again.study}: {again.fault}" for again in self.reruns if again.fault]
        return [" ".join(fault.split()) for fault in faults]  # labels are somebody else's texts

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "ok": not self.faults,
            "checks": [finding.as_dict() for finding in self.findings],
            "reruns": [again.as_dict() for again in self.reruns],
            "machine_differs_in": list(self.differing),
        }


def verify(submission: Submission, trainings: int, say: Callable[[str], object] = lambda text: None) -> Verdict:
    """All checks, and then so many trainings of the studies that pass them."""
    planned = plan_records([study.record for study in submission.studies])
    findings = check_submission(submission, planned)
    faulty = {finding.study for finding in findings if finding.fault}
    sound = {study.record.study_id: study for study in submission.studies if study.record.title not in faulty}
    drawn: dict[str, list[Training]] = {}
    for training in draw_trainings(list(sound.values()), trainings):
        drawn.setdefault(training[0], []).append(training)
    here = this_machine()
    differing = submission.manifest.machine.differences(here)
    reruns = []
    for study_id, own in drawn.items():
        say(f"running again {len(own)} trainings of {sound[study_id].record.title}")
        study, other_device = _on_this_device(planned.studies[study_id])
        reruns.append(rerun(study, sound[study_id], own, [*differing, *other_device]))
    return Verdict(tuple(findings), tuple(reruns), tuple(differing))


def _on_this_device(study: Study) -> tuple[Study, list[str]]:
    """Where there is no GPU, on the CPU: then bits need not agree."""
    import torch

    device = study.setup.device
    if device == "cpu" or torch.cuda.is_available():
        return study, []
    return replace(study, setup=replace(study.setup, device="cpu")), [f"device {device} → cpu"]
