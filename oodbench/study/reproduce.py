"""The command that does a study again, exactly: the same trainings, the same choice, the same identity."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from oodbench.plugin.registry import names
from oodbench.settings.duration import duration_text
from oodbench.settings.fields import differences
from oodbench.settings.space import fixed_text
from oodbench.study.study import Study


def command_for(study: Study) -> str:
    """Nothing for a method or dataset that was given as a class: no command can name it."""
    if study.method_name not in names("method") or study.dataset_name not in names("dataset"):
        return ""
    dataset, model, budget = study.dataset, study.setup.model, study.budget
    words = ["oodbench", "run", "--method", study.method_name, "--dataset", study.dataset_name]
    words += _assign("--set", differences(dataset, type(dataset)()))
    if model.name != dataset.model.name:
        words += ["--model", model.name]
    usual = dataset.model if model.name == dataset.model.name else type(model)()
    words += _assign("--set-model", differences(model, usual))
    words += _assign("--set-training", differences(study.setup.recipe, dataset.recipe))
    words += _assign("--fix", {name: fixed_text(value) for name, value in study.fixed.items()})
    words += ["--trials", str(budget.trials), "--seeds", str(budget.seeds), "--seed", str(budget.seed)]
    words += ["--selector", study.selector]
    words += ["--search", budget.search] if budget.search != "random" else []
    words += ["--scheduler", budget.scheduler] if budget.scheduler != "none" else []
    words += ["--budget", duration_text(budget.seconds)] if budget.seconds is not None else []
    words += ["--repeats", str(budget.repeat + 1)] if budget.repeat else []
    return shlex.join([*words, "--device", study.setup.device])


def _assign(option: str, values: Mapping[str, str]) -> list[str]:
    return [word for name, value in values.items() for word in (option, f"{name}={value}")]
