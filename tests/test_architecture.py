"""The tree is the architecture: no module imports another that imports it, also not inside functions or for types."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median

import grimp
import pytest

import oodbench_methods


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("oodbench", "oodbench_methods", "oodbench_datasets", cache_dir=None)


def test_no_import_cycle(graph: grimp.ImportGraph) -> None:
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_rooms_do_not_import_the_public_names(graph: grimp.ImportGraph) -> None:
    importers = graph.find_modules_that_directly_import("oodbench")
    assert not [module for module in importers if module.startswith("oodbench.")]


def test_methods_are_short() -> None:
    """What several of them need is in the kit."""
    files = Path(oodbench_methods.__file__).parent.glob("[!_]*.py")
    lengths = {file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert not {name: length for name, length in lengths.items() if length >= 60}
    assert median(lengths.values()) < 35
