"""The command that does a study again, exactly: the same trainings, the same choice, the same identity."""

from __future__ import annotations

import shlex

from oodbench.plugin.registry import Kind, names
from oodbench.settings.fields import changed_from
from oodbench.settings.space import fixed_text
from oodbench.study.estimators import EstimatorMethod
from oodbench.study.spec import Resources, Selecting, Training
from oodbench.study.study import Study


def command_for(study: Study) -> str:
    """Nothing for a method, dataset or model that was given in Python: no command can name it."""
    method, dataset, model = study.method, study.dataset, study.setup.model
    asked: tuple[tuple[Kind, str], ...] = (
        ("method", study.method_name), ("dataset", study.dataset_name), ("model", model.name),
    )  # fmt: skip
    by_path = {"method": isinstance(method, EstimatorMethod), "dataset": bool(dataset.description)}
    if any(name not in names(kind) for kind, name in asked if not by_path.get(kind)):
        return ""
    same_family = model.name == dataset.model.name
    training = Training(
        settings=changed_from(dataset, type(dataset)()),
        model=None if same_family else model.name,
        model_settings=changed_from(model, dataset.model if same_family else type(model)()),
        recipe=changed_from(study.setup.recipe, dataset.recipe),
        fix={name: fixed_text(value) for name, value in study.fixed.items()},
        space=method.asked_space if isinstance(method, EstimatorMethod) else {},
    )
    words = ["oodbench", "run", "--method", study.method_name, "--dataset"]
    words += [dataset.description or study.dataset_name, *training.as_words()]
    words += study.budget.as_words(always=("trials", "seeds", "seed"))
    selecting = Selecting(
        selector=study.selector, repeats=study.budget.repeat + 1, choose=study.choose, open_all=study.open_all
    )
    words += selecting.as_words(always=("selector",))
    return shlex.join([*words, *Resources(device=study.setup.device).as_words(always=("device",))])
