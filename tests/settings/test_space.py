from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodbench import Choice, Integer, LogUniform, Option, Uniform
from oodbench.errors import InvalidSetting
from oodbench.settings.space import Dimension, draw_configuration, parse_value

SPACE: dict[str, Dimension] = {
    "rate": LogUniform(1e-4, 1.0, default=0.01),
    "share": Uniform(0.0, 0.5, default=0.1),
    "count": Integer(1, 9, default=2),
    "kind": Choice("a", "b"),
    "variant": Option("x", "y"),
}


@given(index=st.integers(1, 1000), entropy=st.integers(0, 1000))
def test_draws_lie_in_the_space_and_options_stay_at_their_default(index: int, entropy: int) -> None:
    drawn = draw_configuration(SPACE, {}, (entropy,), index)
    assert {name: SPACE[name].parse(value) for name, value in drawn.items()} == drawn
    assert drawn["variant"] == "x"


def test_configuration_zero_is_the_defaults() -> None:
    assert draw_configuration(SPACE, {}, (0,), 0) == {name: one.default for name, one in SPACE.items()}


def test_a_value_does_not_depend_on_the_other_dimensions_nor_on_fixed_ones() -> None:
    whole = draw_configuration(SPACE, {}, (3,), 5)
    part = draw_configuration({"rate": SPACE["rate"]}, {}, (3,), 5)
    fixed = draw_configuration(SPACE, {"share": 0.2}, (3,), 5)
    assert whole["rate"] == part["rate"] == fixed["rate"]
    assert fixed["share"] == 0.2


def test_log_uniform_draws_are_uniform_on_the_log_scale() -> None:
    rng = np.random.default_rng(0)
    logs = np.log10([SPACE["rate"].draw(rng) for _ in range(4000)])
    assert abs(np.mean(logs) + 2) < 0.08
    assert abs(np.std(logs) - 4 / np.sqrt(12)) < 0.05


@pytest.mark.parametrize(
    ("name", "value"), [("rate", "0"), ("rate", "x"), ("share", "0.6"), ("count", "2.5"), ("kind", "c")]
)
def test_values_outside_are_rejected_with_the_range(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=f"{name}={value} is outside its range.\nIt may be "):
        parse_value(SPACE, name, value, "method 'm'")


def test_a_default_outside_its_range_is_the_authors_mistake() -> None:
    with pytest.raises(ValueError, match="default"):
        Uniform(0, 1, default=2)
