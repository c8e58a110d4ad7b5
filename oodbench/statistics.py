"""Which differences are larger than the noise over seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05


def differ(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> bool:
    """Whether two methods differ on the same seeds, by a paired t-test at 5 %.

    With fewer than two common seeds there is no noise to compare with, and nothing is claimed.
    """
    from scipy.stats import ttest_rel

    if len(a) != len(b) or len(a) < 2:
        return False
    difference = a - b
    if np.allclose(difference, difference[0], rtol=0, atol=1e-12):  # no noise at all
        return bool(abs(difference[0]) > 1e-12)
    return bool(ttest_rel(a, b).pvalue < LEVEL)
