"""Plug-ins as installers leave them, the broken ones included."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oodbench.errors import BrokenPlugin, UnknownName
from oodbench.plugin import registry

GOOD = """
from oodbench import LossMethod
class Good(LossMethod):
    def loss(self, rows, hp):
        return rows.losses.mean(-1)
"""


def test_first_party_plugins_come_through_the_same_door() -> None:
    assert {"erm", "fdro"} <= set(registry.names("method"))
    assert {"selection_bias", "spurious_correlation"} <= set(registry.names("dataset"))
    assert all(plugin.broken is None and plugin.summary for plugin in registry.plugins("method"))


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UnknownName, match=r"there is no method 'fdr'. Did you mean 'fdro'\?"):
        registry.find("method", "fdr")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import there_is_no_such_module\nclass Good: pass\n", "importing plug:Good failed: ModuleNotFoundError"),
        ("raise RuntimeError('no licence')\n", "RuntimeError: no licence"),
        ("class Bad: pass\n", "AttributeError"),
        ("class Good: pass\n", "not a subclass of oodbench.Method"),
        ("def Good(): pass\n", "is not a class"),
        ("from oodbench import Method\nclass Good(Method): pass\n", "defines neither fit nor fit_pack"),
        ("from oodbench import LossMethod\nclass Good(LossMethod): pass\n", "defines neither loss, direction nor"),
        (GOOD + "    needs = {'test_environments'}\n", "needs test_environments, but a method can need only"),
        (GOOD + "    space = {'rate': 3}\n", "space['rate'] is not a name with a dimension"),
        (GOOD + "    uses = {'alpha0'}\n", "uses alpha0, which is not in its search space"),
        (GOOD + "    def __init__(self, needed): pass\n", "cannot be created without arguments"),
    ],
)  # fmt: skip
def test_broken_methods_are_listed_with_the_reason(distribution: Callable[..., None], source: str, reason: str) -> None:
    distribution("plug", "plug", source, methods="odd = plug:Good")
    import sys

    sys.modules.pop("plug", None)
    listed = {plugin.name: plugin for plugin in registry.plugins("method")}
    assert reason in str(listed["odd"].broken)
    assert listed["erm"].broken is None
    with pytest.raises(BrokenPlugin, match="method 'odd' .from plug. is broken"):
        registry.find("method", "odd")


TEST = "def test(self, seed): return []"
DATASET = """
from dataclasses import dataclass
from oodbench import Dataset, Environment
{decorator}
class Data(Dataset):
    {task}
    def train(self, seed): return []
    def validation(self, seed): return []
    {test}
"""


@pytest.mark.parametrize(
    ("decorator", "task", "test", "reason"),
    [
        ("", "task = 'regression'", TEST, "is not a frozen dataclass"),
        ("@dataclass", "task = 'regression'", TEST, "is not a frozen dataclass"),
        ("@dataclass(frozen=True)", "task = 'ranking'", TEST, "task is neither"),
        ("@dataclass(frozen=True)", "pass", TEST, "does not define task"),
        ("@dataclass(frozen=True)", "task = 'regression'", "pass", "does not define test"),
        ("@dataclass(frozen=True)", "task = 'regression'; model = 'mlp'", TEST, "must be a model"),
        ("@dataclass(frozen=True)", "rows: int; task = 'regression'", TEST, "default settings"),
    ],
)  # fmt: skip
def test_broken_datasets_are_listed_with_the_reason(
    distribution: Callable[..., None], decorator: str, task: str, test: str, reason: str
) -> None:
    import sys

    distribution("plug", "plug", DATASET.format(decorator=decorator, task=task, test=test), datasets="odd = plug:Data")
    sys.modules.pop("plug", None)
    assert reason in str(registry.load("dataset", "odd").broken)


def test_two_plugins_with_one_name_are_both_refused(distribution: Callable[..., None]) -> None:
    distribution("one", "module_one", GOOD, methods="twin = module_one:Good")
    distribution("two", "module_two", GOOD, methods="twin = module_two:Good")
    plugin = registry.load("method", "twin")
    assert plugin.cls is None
    assert "two plug-ins have this name" in str(plugin.broken)
    assert "module_one:Good (one)" in str(plugin.broken)
    assert registry.find("method", "erm")


def test_a_plugin_cannot_take_the_name_of_another(distribution: Callable[..., None]) -> None:
    distribution("thief", "thief", GOOD, methods="erm = thief:Good")
    with pytest.raises(BrokenPlugin, match="two plug-ins have this name"):
        registry.find("method", "erm")
