from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oodbench.errors import InvalidSetting
from oodbench.settings.fields import as_dict, changed, configure, describe_settings, setting, split_assignment


@dataclass(frozen=True)
class Example:
    rate: float = setting(0.5, "a rate")
    count: int = setting(3, "a count")
    sizes: tuple[int, ...] = setting((1, 2), "sizes")
    flag: bool = setting(False, "a flag")
    kind: Literal["a", "b"] = setting("a", "a kind")
    limit: int | None = setting(None, "a limit")
    renamed: str = setting("", "known by another name", name="configure")

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError("count must not be negative.")


def test_text_becomes_typed_values() -> None:
    example = configure(
        Example, {"rate": "2", "count": "7", "sizes": "4,5", "flag": "true", "kind": "b", "limit": "9"}, "it"
    )
    assert example == Example(2.0, 7, (4, 5), True, "b", 9)
    assert configure(Example, {"sizes": "64"}, "it").sizes == (64,)
    assert configure(Example, {"limit": "none"}, "it").limit is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rate", "x"),
        ("rate", "nan"),
        ("rate", "inf"),
        ("count", "1.5"),
        ("sizes", "1,x"),
        ("flag", "maybe"),
        ("kind", "c"),
    ],
)
def test_ill_typed_values_are_rejected_with_the_valid_settings(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"{name}={value} is not .*\nIt has: rate=0.5, count=3"):
        configure(Example, {name: value}, "it")


def test_unknown_settings_are_rejected_with_the_valid_ones() -> None:
    with pytest.raises(InvalidSetting, match="it has no setting 'rates'.\nIt has: rate=0.5, count=3, sizes=1,2"):
        configure(Example, {"rates": "1"}, "it")


def test_what_the_class_itself_says_of_a_value_reaches_the_user() -> None:
    with pytest.raises(InvalidSetting, match="it: count must not be negative"):
        configure(Example, {"count": "-1"}, "it")


def test_changed_names_only_what_differs() -> None:
    assert changed(Example(rate=2.0, sizes=(3,))) == {"rate": "2.0", "sizes": "3"}


def test_every_setting_describes_itself() -> None:
    assert [row[0] for row in describe_settings(Example)] == list(as_dict(Example()))
    assert all(row[3] for row in describe_settings(Example))


@given(
    st.builds(
        Example,
        rate=st.floats(-1e6, 1e6),
        count=st.integers(0, 10**9),
        sizes=st.lists(st.integers(), min_size=1).map(tuple),
    )
)
def test_text_round_trips(example: Example) -> None:
    assert configure(Example, changed(example), "it") == example


@pytest.mark.parametrize("text", ["r1", "=3", "r1=", "", " = "])
def test_assignments_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InvalidSetting, match="NAME=VALUE"):
        split_assignment(text, "--set")


def test_a_setting_can_be_known_by_a_name_that_its_field_cannot_have() -> None:
    example = configure(Example, {"configure": "x"}, "it")
    assert example.renamed == "x"
    assert as_dict(example)["configure"] == "x"
    assert changed(example) == {"configure": "x"}
    assert describe_settings(Example)[-1][0] == "configure"
    with pytest.raises(InvalidSetting, match="it has no setting 'renamed'"):
        configure(Example, {"renamed": "x"}, "it")
