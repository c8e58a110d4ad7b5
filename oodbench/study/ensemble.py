"""Trained models with their encoders, as one predictor of raw rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oodbench.encoder.columns import Column
from oodbench.encoder.encoder import Encoder
from oodbench.engine.asking import probabilities_of
from oodbench.errors import UserError, one_line
from oodbench.study.models import StoredModel, count_classes

if TYPE_CHECKING:
    import pandas as pd

PREDICTION = "prediction"


def probability_columns(classes: Sequence[str]) -> list[str]:
    return [f"probability_{name}" for name in classes]


@dataclass(frozen=True, eq=False)
class Member:
    model: StoredModel
    encoder: Encoder

    def __post_init__(self) -> None:
        if count_classes(self.model) != len(self.encoder.classes):
            raise ValueError("its encoder is that of a model with other classes")


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Models that were taken away, with their encoders: raw rows in, classes or values of the target out.

    Of several models it gives the mean: of their probabilities, or of their values.

    Examples:
        >>> model = oodbench.load_model("taken")
        >>> model.predict(pd.read_csv("new.csv"))
    """

    members: tuple[Member, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The raw columns that it takes."""
        return tuple(raw.name for raw in self._encoder.raw)

    @property
    def classes(self) -> tuple[str, ...]:
        """Their names; none for a regression."""
        return self._encoder.classes

    def predict(self, rows: Any) -> pd.DataFrame:
        """For each row of a pandas.DataFrame or a pyarrow.Table its prediction, and of classes their probabilities.

        Columns go by their names, in any order, and others are passed over. Levels that training did not have, and
        missing values, are treated as the dataset treats them. Raises a UserError, in two lines, for a column that is
        not there or a value that cannot be read.
        """
        import pandas as pd

        reads: dict[Any, dict[str, Column]] = {}
        encoded = [self._encode(member, rows, reads) for member in self.members]
        index = rows.index if isinstance(rows, pd.DataFrame) else None
        if not self.classes:
            values = [
                member.encoder.values(_ask(member.model, x)) if len(x) else np.empty(0)
                for member, x in zip(self.members, encoded, strict=True)
            ]
            return pd.DataFrame({PREDICTION: np.mean(values, axis=0)}, index=index)
        numbers, probabilities = self._vote(encoded)
        frame = pd.DataFrame({PREDICTION: np.array(self.classes, dtype=object)[numbers]}, index=index)
        if probabilities is not None:
            frame[probability_columns(self.classes)] = probabilities
        return frame

    def count_strangers(self, rows: Any) -> dict[str, int]:
        """By column, the rows with a level that training did not have, if there are any and the encoder can tell."""
        return self._encoder.count_strangers(self._encoder.read(rows))

    @property
    def _encoder(self) -> Encoder:
        return self.members[0].encoder

    def _encode(self, member: Member, rows: Any, reads: dict[Any, dict[str, Column]]) -> NDArray[np.float64]:
        """Members that read rows alike share what was read."""
        encoder = member.encoder
        key = encoder.raw, encoder.marks, tuple((step.column, step.kind) for step in encoder.steps)
        if key not in reads:
            reads[key] = encoder.read(rows)
        return encoder.encode(reads[key])

    def _vote(self, encoded: Sequence[NDArray[np.float64]]) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
        """Class numbers [row] and probabilities [row, class], which some models do not have."""
        classes = len(self.classes)
        if not len(encoded[0]):
            return np.empty(0, np.int64), np.empty((0, classes))
        pairs = list(zip([member.model for member in self.members], encoded, strict=True))
        predicted = [_ask(model, x) for model, x in pairs]
        try:
            said = np.mean([probabilities_of(model, x, classes) for model, x in pairs], axis=0)
        except ValueError:  # each has a vote
            said = None
        if len(pairs) == 1:
            return predicted[0], said
        votes = said if said is not None else np.mean([np.eye(classes)[numbers] for numbers in predicted], axis=0)
        return votes.argmax(1), said


def _ask(model: StoredModel, x: NDArray[np.float64]) -> NDArray[Any]:
    try:
        return model.predict(x)
    except (ValueError, IndexError) as error:
        raise UserError(
            f"the model does not take rows of {x.shape[1]} features: {one_line(error)}.\nExport it again."
        ) from None
