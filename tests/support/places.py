"""Where things lie: the repository, the census rows beside it, and what tests bring."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
DISTRIBUTIONS = TESTS / "distributions"
CENSUS = ROOT.parent / "shared" / "data" / "acs2024"
SUITE = Path(__file__).with_name("suite.toml").read_text()
FIGURES = Path(__file__).with_name("figures.csv").read_text()
