"""A planned run, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oodbench.study.memory import predict_memory
from oodbench.study.study import Study


def describe_plan(studies: Sequence[Study]) -> dict[str, Any]:
    """What `oodbench run --dry-run --json` prints; memory in bytes, at most."""
    return {
        "studies": [
            {
                "method": study.label,
                "dataset_id": study.dataset_id,
                "device": study.setup.device,
                "trials": study.budget.trials,
                "seeds": study.budget.seeds,
                "trainings": study.trainings,
                "packs": len(study.packs),
                "memory": predict_memory([study]).as_dict(),
            }
            for study in studies
        ],
        "trainings": sum(study.trainings for study in studies),
        "memory": predict_memory(studies).as_dict(),
    }
