"""A study's identity covers what trains it: the class, its bases, and what they import of their package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oodbench.study.plan import Request, plan, resolve
from oodbench.study.sources import source_digest
from oodbench.study.spec import StudyOptions

FILES = {
    "__init__.py": "",
    "pieces.py": "WEIGHT = 1.0\n",
    "base.py": "from oodbench import LossMethod\nfrom .pieces import WEIGHT\nclass Base(LossMethod):\n    pass\n",
    "mine.py": "from houses.base import Base\nclass Mine(Base):\n    def loss(self, rows, hp):\n"
    "        from houses import late\n        return late.loss(rows)\n",
    "late.py": "def loss(rows):\n    return rows.losses.mean(-1)\n",
    "neighbour.py": "from houses.mine import Mine\n",
}


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "houses").mkdir()

    def compute(**edited: str) -> str:
        for name in [name for name in sys.modules if name.partition(".")[0] == "houses"]:
            del sys.modules[name]
        for name, text in FILES.items():
            (tmp_path / "houses" / name).write_text(text + edited.get(name.removesuffix(".py"), ""))
        importlib.invalidate_caches()
        return source_digest(importlib.import_module("houses.mine").Mine)

    yield compute
    for name in [name for name in sys.modules if name.partition(".")[0] == "houses"]:
        del sys.modules[name]


@pytest.mark.parametrize("module", ["mine", "base", "pieces", "late"])
def test_what_it_is_made_of_makes_another_study(digest: Callable[..., str], module: str) -> None:
    assert digest() == digest()
    assert digest(**{module: "# edited\n"}) != digest()


def test_a_neighbour_does_not(digest: Callable[..., str]) -> None:
    assert digest(neighbour="# edited\n") == digest()


def test_an_edited_irm_is_another_eiil(tmp_path: Path) -> None:
    from oodbench_methods import irm
    from oodbench_methods.eiil import EIIL

    before = source_digest(EIIL)
    path = Path(irm.__file__)
    copy = tmp_path / "irm.py"
    copy.write_text(path.read_text() + "# edited\n")
    irm.__file__ = str(copy)
    try:
        assert source_digest(EIIL) != before
    finally:
        irm.__file__ = str(path)
    assert source_digest(EIIL) == before


def test_the_rows_of_explorers_are_in_the_identity_if_they_are_set() -> None:
    def identity(recipe: dict[str, int]) -> str:
        options = StudyOptions(recipe=recipe, trials=1, seeds=1)
        (study,) = plan(resolve(Request(["srm"], ["selection_bias"], options)), "cpu")
        return study.study_id

    assert identity({}) == identity({"explore": 0}) != identity({"explore": 500})
