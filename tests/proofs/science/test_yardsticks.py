"""The published errors of coefficients, and what the suite `sem` gives with the protocol of its authors."""

from __future__ import annotations

import numpy as np
import pytest

from concluding import concluded
from oodbench.board.metrics import summarize
from oodbench.study.plan import plan
from oodbench.suite.suite import Overrides, Part, expand
from oodbench.suite.suitefile import read_suite


def published(part: Part) -> dict[str, float]:
    """The figures of the part's method and setting, by metric."""
    setting = {name: str(value).lower() for name, value in part.settings.items()}
    own = (figure for figure in part.board.published if (figure.method, figure.settings) == (part.method, setting))
    return {figure.metric: figure.published.value for figure in own}


def compared() -> list[Part]:
    suite = read_suite("sem")
    mode = suite.find_mode("published")
    parts = expand(suite.narrow(["erm", "irm_matrix"], []), mode, Overrides())
    return [part for part in parts if published(part)]


@pytest.mark.parametrize("part", compared(), ids=lambda part: f"{part.method} {part.settings}")
def test_errors_of_coefficients(part: Part) -> None:
    """Within a fifth of the published means, or two standard errors of ours."""
    (study,) = plan([part.spec], "cpu")
    results = concluded(study).results
    assert results is not None
    found = summarize(results, "regression")
    for metric, value in published(part).items():
        ours, error = found[metric].mean(), found[metric].std() / np.sqrt(len(found))
        print(f"{part.method} {dict(part.settings)} {metric}: {ours:.4f} ± {error:.4f}, published {value:.4f}")
        assert abs(ours - value) <= max(0.2 * value, 2 * error)
