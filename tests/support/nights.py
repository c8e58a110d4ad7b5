"""A suite small enough for a night in a test."""

from __future__ import annotations

SUITE = """
title = "Small"
trials = 1
seeds = 2
methods = ["erm"]
[[boards]]
name = "regression"
dataset = "selection_bias"
settings = { majority = 60, minority = 20, test_rows = 20 }
[modes.fair]
"""
