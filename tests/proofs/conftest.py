"""Proofs look at Ray as users have it."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def worker_script() -> str:
    """Ray's own: every worker is a process of its own from the first instruction on."""
    from ray._private import ray_constants

    return str(ray_constants.SETUP_WORKER_FILENAME)
