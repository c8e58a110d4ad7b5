"""The search on Ray Tune. The only package that imports ray: `packs` and `adaptive` search on a `cluster`."""

from __future__ import annotations

from oodbench.search.adaptive import search_study
from oodbench.search.cluster import cluster, resolve_device
from oodbench.search.jobs import Job
from oodbench.search.upfront import run_jobs

__all__ = ["Job", "cluster", "resolve_device", "run_jobs", "search_study"]
