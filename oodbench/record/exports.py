"""Models taken away: a folder with the chosen models of a study and their encoders, which also MLflow loads."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from oodbench.encoder.encoder import Encoder
from oodbench.errors import UnknownName, UnusableData, UserError
from oodbench.plugin.files import filling
from oodbench.record.model_files import (
    ARRAYS,
    MODELS,
    load_ensemble,
    raw_signature,
    read_model,
    write_arrays,
    write_description,
)
from oodbench.record.schema import MODEL_FOLDER
from oodbench.record.tracking import Record
from oodbench.settings.space import Value
from oodbench.study.document import write_document
from oodbench.study.ensemble import Ensemble, Member
from oodbench.study.models import StoredModel, count_classes
from oodbench.study.onnx_graph import build_onnx
from oodbench.study.record import ConcludedStudy, StudyRecord
from oodbench.version import __version__

ABOUT = "export.json"
ONNX = "model.onnx"
SCHEMA = 1


@dataclass(frozen=True)
class About:
    """What export.json says, for people: what these models are, and where they come from."""

    schema: int
    run_id: str
    label: str  # on boards
    dataset: str
    method: str
    configuration: int
    hparams: Mapping[str, Value]
    models: Sequence[str]
    refit: bool  # on all training rows
    columns: Mapping[str, str]  # the kind of each raw column
    classes: Sequence[str]
    data_fingerprint: str
    oodbench: str
    exported: datetime


def find_exportable(record: Record, run: str, seed: int | None) -> tuple[ConcludedStudy, list[int]]:
    """The study, and the seeds whose models are asked for."""
    study = record.study(run)
    budget = study.record.budget
    seeds = [budget.seed + number for number in range(budget.seeds)]
    if study.record.choice is None:
        raise UserError(f"{study.record.title} has no models: {study.record.reason}.\nExport another study.")
    if seed is not None and seed not in seeds:
        raise UnknownName("seed of the study", str(seed), map(str, seeds))
    return study, seeds if seed is None else [seed]


def fetch_members(record: Record, study: ConcludedStudy, seeds: Sequence[int]) -> dict[str, Member]:
    """The recorded models of these seeds."""
    if study.record.models != "loadable":
        raise UserError(
            f"the models of {study.record.title} are not kept in a form that can be loaded.\n"
            "Export a study of another method."
        )
    members = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            path = f"{MODEL_FOLDER}{seed}/{ARRAYS}"
            stored = record.ask(record.client.download_artifacts, study.run_id, path, folder)
            model = read_model(Path(stored))
            members[f"seed-{seed}"] = model if isinstance(model, Member) else with_encoder(study.record, model)
    return members


def with_encoder(record: StudyRecord, model: StoredModel, encoder: Encoder | None = None) -> Member:
    """If the dataset has none: numbers as they are, and classes by their numbers."""
    names = record.data.columns or [f"x{place}" for place in range(record.data.features)]
    classes = [str(number) for number in range(count_classes(model))]
    return Member(model, encoder or Encoder.plain(names, classes))


def write_export(folder: Path, study: ConcludedStudy, members: Mapping[str, Member], refit: bool, onnx: bool) -> None:
    """All of it, or nothing."""
    with filling(folder) as partial:
        _write(partial, study, members, refit)
        if onnx:
            (partial / ONNX).write_bytes(build_onnx(Ensemble(tuple(members.values()))))


def _write(folder: Path, study: ConcludedStudy, members: Mapping[str, Member], refit: bool) -> None:
    record = study.record
    assert record.choice is not None
    (folder / MODELS).mkdir()
    for name, member in members.items():
        write_arrays(member.model, folder / MODELS / f"{name}.safetensors", member.encoder)
    encoder = next(iter(members.values())).encoder
    models = [member.model for member in members.values()]
    write_description(folder, MODELS, raw_signature(encoder), models, encoder)
    about = About(
        schema=SCHEMA,
        run_id=study.run_id,
        label=record.label,
        dataset=record.dataset,
        method=record.method,
        configuration=record.choice.configuration,
        hparams=record.choice.hparams,
        models=list(members),
        refit=refit,
        columns={raw.name: raw.kind for raw in encoder.raw},
        classes=encoder.classes,
        data_fingerprint=record.data.fingerprint,
        oodbench=__version__,
        exported=datetime.now(UTC).replace(microsecond=0),
    )
    (folder / ABOUT).write_bytes(write_document(about) + b"\n")


def read_export(folder: Path) -> Ensemble:
    """The models of a folder that `write_export` wrote."""
    if not (folder / MODELS).is_dir():
        raise UnusableData(f"{folder} has no exported model.\nWrite one with `oodbench export RUN {folder}`.")
    return load_ensemble(folder / MODELS)
