"""`oodbench.export` and `oodbench.load_model`: the models of a study, taken away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oodbench.settings.option import option, takes_two_and_options
from oodbench.study.spec import Place

if TYPE_CHECKING:
    from oodbench.study.ensemble import Ensemble


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Place):
    """All options of `oodbench.export`, which are those of `oodbench export`.

    Examples:
        >>> oodbench.export("3f2a", "taken", seed=0)
    """

    seed: int | None = option(None, "The model of one seed.", default_text="all seeds, as an ensemble")
    refit: bool = option(False, "Train the chosen configuration again on all training rows, and export that model.")
    onnx: bool = option(False, "Write model.onnx, too: of linear and plain mlp models; needs the extra `onnx`.")


@takes_two_and_options(ExportOptions)
def export(run: str, folder: str | Path, options: ExportOptions) -> Path:
    """Write the chosen models of a study into a new folder, with all that they need to predict raw rows.

    `oodbench.load_model`, `oodbench predict` and `mlflow.pyfunc.load_model` take the folder.

    Args:
        run: The MLflow run id of the study, or a unique prefix of it.
        folder: A folder that does not exist yet, or is empty.
        options: The fields of `oodbench.ExportOptions`, as keyword arguments.

    Examples:
        >>> (row,) = oodbench.leaderboard("trips.toml").rows
        >>> oodbench.export(row.run_id, "taken")
        >>> oodbench.load_model("taken").predict(pd.read_csv("new.csv"))
    """
    from oodbench.record.exports import fetch_members, find_exportable, with_encoder, write_export
    from oodbench.record.tracking import Record
    from oodbench.study.onnx_graph import check_onnx
    from oodbench.study.refit import refit

    if options.onnx:
        check_onnx()
    record = Record(options.tracking_uri, options.folder)
    study, seeds = find_exportable(record, run, options.seed)
    if options.refit:
        members = {"refit": with_encoder(study.record, *refit(study.record, seeds[0]))}
    else:
        members = fetch_members(record, study, seeds)
    write_export(Path(folder), study, members, options.refit, options.onnx)
    return Path(folder)


def load_model(folder: str | Path) -> Ensemble:
    """The models that `oodbench.export` wrote into a folder. They predict rows of raw columns.

    Examples:
        >>> model = oodbench.load_model("taken")
        >>> model.predict(pd.read_csv("new.csv"))  # a row each: the prediction, and the probabilities of classes
    """
    from oodbench.record.exports import read_export

    return read_export(Path(folder))
