from __future__ import annotations

import pytest

from oodbench.errors import InvalidSetting
from oodbench.settings.duration import duration_text, parse_duration


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("10m", 600), ("1.5h", 5400), (45, 45), ("0.5", 0.5)])
def test_lengths_of_time(text: str | float, seconds: float) -> None:
    assert parse_duration(text, "--budget") == seconds
    assert parse_duration(duration_text(seconds), "--budget") == seconds


@pytest.mark.parametrize("text", ["", "0s", "-3m", "soon", "3d", "nan", "1e3"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(InvalidSetting, match="is not a length of time.\nWrite it as 30s, 10m or 2h."):
        parse_duration(text, "--budget")
