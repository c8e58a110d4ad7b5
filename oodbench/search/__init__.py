"""The search on Ray Tune. The only package that imports ray: `cluster` finds one, `packs` runs packs on it."""

from __future__ import annotations

from oodbench.search.cluster import cluster, resolve_device
from oodbench.search.packs import Job, run_jobs

__all__ = ["Job", "cluster", "resolve_device", "run_jobs"]
