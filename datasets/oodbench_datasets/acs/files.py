"""The census files as `oodbench data` knows them: fetched into the folder, listed and verified there."""

from __future__ import annotations

from collections.abc import Mapping

from oodbench.plugin.files import DataFiles, Holding, Sources, Transfer
from oodbench_datasets.acs.census import CensusFolder


class CensusFiles(CensusFolder, DataFiles):
    def fetch(self, which: Mapping[str, str], sources: Sources, transfer: Transfer) -> list[Holding]:
        from oodbench_datasets.acs.fetch import fetch  # with requests, which takes long to import

        return fetch(self, which, sources, transfer)
