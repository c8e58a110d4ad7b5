"""What methods that compare training environments ask of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oodbench.errors import InvalidSetting

if TYPE_CHECKING:
    from oodbench.engine.data import TrainingRows


def check_environments(train: TrainingRows) -> None:
    """Raise InvalidSetting where there is only one training environment, with which there is nothing to compare."""
    if train.environment is None or len(np.unique(train.environment)) < 2:
        raise InvalidSetting(
            "this method compares training environments, and there is only one.\n"
            "Choose a dataset with several training environments, or a method that is not told them, such as erm."
        )
