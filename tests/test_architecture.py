"""The tree is the architecture: no module imports another that imports it, also not inside functions or for types."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


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
