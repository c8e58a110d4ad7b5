"""The chosen configuration of a recorded study, trained once more: on all training rows, in this process."""

from __future__ import annotations

import shlex
from dataclasses import replace

from oodbench.encoder.encoder import Encoder
from oodbench.engine.trial import Trial
from oodbench.errors import OodbenchError, TrainingFailed, UserError, one_line
from oodbench.study.again import spec_of
from oodbench.study.data import pool_rows
from oodbench.study.models import StoredModel
from oodbench.study.plan import plan
from oodbench.study.record import StudyRecord
from oodbench.study.study import Study


def refit(record: StudyRecord, seed: int) -> tuple[StoredModel, Encoder | None]:
    """The model, with the chance of that seed in its training, and the encoder of all training rows."""
    from oodbench.engine.trainer import Trainer

    assert record.choice is not None
    study = _plan_again(record)
    environments, encoder = study.dataset.all_train(seed)
    hparams = dict(record.choice.hparams)
    needs = study.method.needs_with(hparams)
    rows = pool_rows(study.dataset, environments, "environments" in needs, "invariant" in needs)
    number = record.choice.configuration
    trial = Trial.of(study.method_name, number, hparams, seed, record.budget.repeat)
    try:
        (model,) = study.method.fit_pack({seed: rows}, [trial], Trainer(study.setup))
    except (Exception, SystemExit) as error:
        if isinstance(error, OodbenchError):
            raise
        raise TrainingFailed(f"the training failed: {one_line(error)}.") from error
    if not isinstance(model, StoredModel):
        raise UserError(f"method {record.method!r} has models that cannot be kept.\nLeave out --refit.")
    return model, encoder


def _plan_again(record: StudyRecord) -> Study:
    """The study with its data, which must be the same."""
    words = shlex.split(record.provenance.command)
    if not words:
        raise UserError(
            f"{record.title}: its method, dataset or model was given in Python, and cannot be found again.\n"
            "Leave out --refit, or run it with plug-ins that are installed."
        )
    # how the configuration was found does not matter any more, and may need what is not installed here
    budget = replace(record.budget, search="random", scheduler="none", seconds=None)
    anyhow = replace(record, fixed={}, selector="mean", budget=budget)
    # a description is known by its path, which the record has nowhere else
    (study,) = plan([spec_of(anyhow, words[words.index("--dataset") + 1])], "cpu")
    if study.data.fingerprint != record.data.fingerprint:
        raise UserError(
            f"the data of {record.dataset_id} are not those of the study: files or code have changed since.\n"
            "Run the study again, and export that; or leave out --refit."
        )
    return study
