"""What a submission says of itself: the hashes of its files, and the source code and machine that it was made with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from oodbench.plugin.points import points
from oodbench.study.machine import Machine
from oodbench.study.selectors import find_selector
from oodbench.study.sources import source_digest
from oodbench.study.study import Study

SCHEMA = 1


@dataclass(frozen=True)
class Manifest:
    """What manifest.json holds."""

    schema: int
    files: Mapping[str, str]  # name -> SHA-256
    sources: Mapping[str, Mapping[str, str]]  # study -> kind of plug-in -> SHA-256 of its source code
    packages: Mapping[str, str]  # that the plug-ins come from -> version
    machine: Machine  # on which it was packed


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sources_of(study: Study) -> dict[str, str]:
    """The source code of all plug-ins that make the study, as they are installed here, by kind."""
    plugins = {
        "method": study.method,
        "dataset": study.dataset,
        "model": study.setup.model,
        "selector": find_selector(study.selector),
    }
    return {kind: source_digest(type(plugin)) for kind, plugin in plugins.items()}


def packages_of(study: Study) -> dict[str, str]:
    """The distributions of these plug-ins, and their versions."""
    selector = study.selector.partition(":")[0]
    named = [
        ("method", study.method_name),
        ("dataset", study.dataset_name),
        ("model", study.setup.model.name),
        ("selector", selector),
    ]
    found = [point.dist for kind, name in named for point in points(kind) if point.name == name and point.dist]
    return {distribution.name: distribution.version for distribution in found}
